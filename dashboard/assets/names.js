// The held names: a part of them, as the server finds and sorts them.

import { byId, body, cell, el, head, keyed, prepare, row, same, setText } from './dom.js';
import { count, duration, now } from './time.js';
import { aim, button } from './actions.js';

const pause = 120; // ms between two keys, after which the server is asked

const query = { q: '', sort: '-age' };
let version = -1;
let asking = null;
let waiting = 0;
let rows = () => {};
let fleet = null; // as the stream told it last
let stranger = ''; // who answered though the stream is from another

// look asks again when the server has listed the names again.
export function look(told) {
  fleet = told;
  note();
  if (fleet.names.version === version) return;
  version = fleet.names.version;
  load(false);
}

// note says what keeps the names from being listed, unless that is what the fleet's own line says.
function note() {
  const { names, state } = fleet;
  const works = state === 'ok' || state === 'degraded';
  const p = byId('names-note');
  let text = '';
  if (names.refused) text = `The nodes refuse to list their keys: allow +scan to the user of the clients. Until then held names, jobs and other elections cannot be found. (${names.err})`;
  else if (names.err && works) text = `The names could not be listed: ${names.err}`;
  else if (stranger) text = `These names are what ${stranger} knows, and the rest of the page is from ${fleet.identity}: have the load balancer keep a browser with one replica.`;
  p.hidden = !text;
  p.className = 'note bad';
  setText(p, text);
}

async function load(told) {
  asking?.abort();
  asking = new AbortController();
  try {
    const response = await fetch(`names?${new URLSearchParams(query)}`, { signal: asking.signal });
    if (!response.ok) throw new Error(await response.text());
    show(await response.json(), told);
  } catch (e) {
    if (e.name === 'AbortError') return;
    version = -1; // again with the next news of the fleet
    if (told) setText(byId('names-told'), 'The names could not be filtered.');
  }
}

function show(answer, told) {
  stranger = fleet && answer.identity !== fleet.identity ? answer.identity : '';
  if (fleet) note();
  rows(answer.rows.map((r) => ({ ...r, at: answer.seen })));
  const section = byId('names');
  const empty = section.querySelector('.empty');
  empty.hidden = answer.rows.length > 0;
  setText(empty, !answer.seen ? 'The nodes have not been asked yet.' : query.q ? 'No held name and no holder has this in it.' : 'Nothing is held.');
  const parts = [];
  if (query.q) parts.push(`${count.format(answer.matching)} of ${count.format(answer.kept)} match`);
  if (answer.rows.length < answer.matching) parts.push(`the first ${count.format(answer.rows.length)} are shown`);
  if (answer.kept < answer.total) parts.push(`of ${count.format(answer.total)} names the filter knows ${count.format(answer.kept)}`);
  const text = parts.join('; ');
  const more = byId('names-more');
  more.hidden = !text;
  setText(more, text && `${text[0].toUpperCase()}${text.slice(1)}.`);
  if (told) setText(byId('names-told'), text || `${count.format(answer.rows.length)} names are shown.`);
}

function make() {
  const name = el('span', { class: 'name' });
  const kind = cell('Kind');
  const holder = el('span', { class: 'name' });
  const nonce = el('span', { class: 'name nonce' });
  const votes = el('span', { class: 'hint' });
  const age = cell('Held', { class: 'num' });
  const ttl = cell('Ends in', { class: 'num' });
  const token = cell('Token', { class: 'num token' });
  const release = button('break');
  const root = body(row({}, head({}, name), kind, cell('Holder', {}, holder, nonce, ' ', votes), age, ttl, token, cell('', { class: 'actions' }, release)));
  return {
    root,
    update(n) {
      setText(age, n.since ? duration(now() - n.since) : '–');
      if (same(root, n)) return;
      setText(name, n.name);
      setText(kind, n.kind);
      kind.className = `kind ${n.kind}`;
      // An owner is an identity, and random letters of this acquisition.
      const cut = n.holder.lastIndexOf('/') + 1;
      setText(holder, n.holder ? n.holder.slice(0, cut) || n.holder : 'no majority');
      setText(nonce, cut ? n.holder.slice(cut) : '');
      holder.classList.toggle('hint', !n.holder);
      setText(votes, n.holder ? '' : `locks on ${n.nodes === 1 ? '1 node' : `${n.nodes} nodes`}`);
      setText(ttl, n.ttl ? duration(n.ttl) : '–');
      setText(token, String(n.token));
      aim(release, 'break', n);
    },
  };
}

function sortBy(column) {
  // Ages and the like are looked at from the largest on.
  const first = ['age', 'token'].includes(column) ? `-${column}` : column;
  const other = first[0] === '-' ? column : `-${column}`;
  query.sort = query.sort === first ? other : first;
  markSort();
  load(true);
}

function markSort() {
  const column = query.sort.replace('-', '');
  for (const th of document.querySelectorAll('table.names th[data-sort]')) {
    if (th.dataset.sort === column) th.setAttribute('aria-sort', query.sort[0] === '-' ? 'descending' : 'ascending');
    else th.removeAttribute('aria-sort');
  }
}

export function start() {
  const table = document.querySelector('table.names');
  prepare(table);
  rows = keyed(table, make);
  for (const th of table.querySelectorAll('th[data-sort]')) th.querySelector('button').addEventListener('click', () => sortBy(th.dataset.sort));
  markSort();
  const ask = () => { query.q = byId('filter').value.trim(); load(true); };
  byId('filter').addEventListener('input', () => {
    clearTimeout(waiting);
    waiting = setTimeout(ask, pause);
  });
  byId('filter-form').addEventListener('submit', (e) => {
    e.preventDefault();
    clearTimeout(waiting);
    ask();
  });
}
