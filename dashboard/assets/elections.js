// Who leads, and the timeline of the terms that were seen.

import { byId, body, cell, el, head, keyed, prepare, row, setText, svg } from './dom.js';
import { count, duration, now, time } from './time.js';
import { aim, button } from './actions.js';

const [least, most] = [60_000, 86_400_000];

let chosen = 0; // ms; 0 for as much as was seen
let seen = Infinity; // when the oldest term began
let rows = () => {};
const drawn = new Set();

const spanNow = () => chosen || Math.min(most, Math.max(least, (now() - seen) * 1.02));

// Six shades, by the leader's name: neighbours differ mostly, and each bar says whose it is.
function shade(leader) {
  let h = 0;
  for (const c of leader) h = (h * 31 + c.codePointAt(0)) >>> 0;
  return h % 6;
}

// fit is as much of a text as there is room for, or nothing where that would say nothing.
function fit(text, pixels) {
  const room = Math.floor((pixels - 12) / 7);
  const all = [...text];
  if (all.length <= room) return text;
  return room < 6 ? '' : `${all.slice(0, room - 1).join('')}…`;
}

// bar is a term on a line that is so many pixels wide.
function bar(term, from, to, pixels) {
  const begin = Math.max(term.since, from);
  const end = Math.max(begin, term.until || to);
  if (end < from) return null;
  const x = ((begin - from) / (to - from)) * 100;
  const width = Math.max(0.3, ((end - begin) / (to - from)) * 100);
  const tip = svg('title');
  tip.textContent = say(term);
  const part = svg('svg', { x: `${x.toFixed(3)}%`, width: `${width.toFixed(3)}%`, height: '100%' },
    tip, svg('rect', { width: '100%', height: '100%', rx: '3', class: `term shade${shade(term.leader)}` }));
  const label = fit(term.leader, (pixels * width) / 100);
  if (label) {
    const text = svg('text', { x: '7', y: '50%', 'dominant-baseline': 'central' });
    text.textContent = label;
    part.append(text);
  }
  return part;
}

function say(term) {
  const until = term.until ? `until ${time(term.until)} (${duration(term.until - term.since)})` : 'and goes on';
  return `${term.leader} led from ${time(term.since)} ${until}, term ${term.number}`;
}

function make() {
  const name = el('span', { class: 'name' });
  const leader = el('span', { class: 'name strong' });
  const about = el('span', { class: 'hint about' });
  const since = cell('For', { class: 'num' });
  const resign = button('resign');
  const elsewhere = el('span', { class: 'hint', text: 'leads elsewhere', title: 'Only the process that leads can resign' });
  const problems = el('ul', { class: 'notes' });
  const line = svg('svg', { class: 'timeline', role: 'img' });
  const axis = el('div', { class: 'axis', 'aria-hidden': 'true' });
  const terms = el('ol', { class: 'terms' });
  const summary = el('summary');
  const details = el('details', {}, summary, terms);
  const actions = cell('', { class: 'actions' }, resign, elsewhere);
  const root = body(
    row({}, head({}, name), cell('Leader', {}, leader, ' ', about), since, actions),
    row({ class: 'sub' }, cell('', { colspan: 4 }, problems, line, axis, details)),
  );
  let e = null;
  const draw = () => {
    const to = now();
    const span = spanNow();
    const from = to - span;
    const terms = e.terms ?? [];
    const current = e.leading ? terms[terms.length - 1] : null;
    setText(since, current ? duration(now() - current.since) : '–');
    const pixels = line.getBoundingClientRect().width;
    const bars = terms.map((t) => bar(t, from, to, pixels)).filter(Boolean);
    line.replaceChildren(...bars);
    setText(axis, `${duration(span)} ago`);
    line.setAttribute('aria-label', `Timeline of ${duration(span)}: ${bars.length === 1 ? '1 term' : `${bars.length} terms`}. ${current ? `${current.leader} leads` : 'Nobody leads'}.`);
  };
  const update = (next) => {
    const text = JSON.stringify(next);
    if (child.text === text) return;
    child.text = text;
    e = next;
    const terms_ = e.terms ?? [];
    const current = e.leading ? terms_[terms_.length - 1] : null;
    setText(name, e.name);
    setText(leader, current ? current.leader : 'nobody');
    leader.className = current ? 'name strong' : 'pill warn';
    setText(about, current ? [current.address, ...(current.labels ?? [])].filter(Boolean).join(' · ') : '');
    aim(resign, 'resign', e);
    resign.hidden = !e.ours;
    elsewhere.hidden = !current || Boolean(e.ours || e.here);
    problems.replaceChildren(...(e.problems ?? []).map((text) => el('li', { text })));
    setText(summary, `${count.format(terms_.length)} ${terms_.length === 1 ? 'term' : 'terms'} seen${e.followed ? '' : ', while a page was open'}`);
    terms.replaceChildren(...terms_.toReversed().map((t) => el('li', { text: say(t) })));
    draw();
  };
  const child = { root, update, draw, text: '' };
  drawn.add(child);
  return child;
}

export function start() {
  const table = document.querySelector('table.elections');
  prepare(table);
  rows = keyed(table, make);
  byId('span').addEventListener('change', (e) => {
    chosen = Number(e.target.value) * 1000;
    tick();
  });
}

export function show(list, fleet) {
  seen = Math.min(...list.flatMap((e) => (e.terms ?? []).map((t) => t.since)), now());
  rows(list);
  const section = byId('elections');
  section.querySelector('.empty').hidden = list.length > 0;
  const more = section.querySelector('.more');
  const left = (fleet?.limits.elections ?? 0) - list.length;
  more.hidden = left <= 0;
  setText(more, `${count.format(left)} more are not shown.`);
}

// tick moves the timelines on.
export function tick() {
  for (const child of drawn) {
    if (child.root.isConnected) child.draw();
    else drawn.delete(child);
  }
}
