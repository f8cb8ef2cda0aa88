// The health of the fleet, and its nodes.

import { byId, body, cell, el, head, keyed, prepare, row, same, setText } from './dom.js';
import { age, duration } from './time.js';

const nodes = (n) => (n === 1 ? '1 node' : `${n} nodes`);

function sentence(f) {
  if (f.sharded) return ofClusters(f);
  const spare = f.counted - f.quorum;
  const more = spare === 0 ? 'If one more fails, nothing can be acquired.' : `${spare} more may fail.`;
  switch (f.state) {
    case 'ok':
      return f.size === 1 ? 'The node answers.' : `All ${nodes(f.size)} answer.`;
    case 'degraded':
      return f.counted < f.size ? `The fleet works with ${f.counted} of ${nodes(f.size)}. ${more}` : `All ${nodes(f.size)} answer, and something is wrong: ${f.err}`;
    case 'noquorum':
      return `No quorum: ${f.up} of ${nodes(f.size)} ${f.up === 1 ? 'answers' : 'answer'}, ${f.quorum} have to. Nothing can be acquired, and leases run out.`;
    case 'quarantined':
      return `No quorum yet: ${f.up} of ${nodes(f.size)} answer, but only ${f.counted} ${f.counted === 1 ? 'counts' : 'count'}. The others restarted lately, and are waited for.`;
    case 'unfit':
      return `The fleet is unfit: ${f.err}`;
    case 'closed':
      return 'The locker of this process is closed: nothing is known any more.';
    default:
      return 'Asking the nodes…';
  }
}

// ofClusters says what holds for some names, or for all: there is a quorum for each shard's.
function ofClusters(f) {
  switch (f.state) {
    case 'ok':
      return `All shards of all ${nodes(f.size)} answer.`;
    case 'degraded':
      return `Each name has its quorum, and all shards of ${f.counted} of ${nodes(f.size)} count.`;
    case 'noquorum':
      return 'No quorum for some names: too few of their shards answer. These names cannot be acquired, and their leases run out.';
    default:
      return sentence({ ...f, sharded: false });
  }
}

export function show(f, connected) {
  const health = byId('health');
  const state = connected ? f.state : 'lost';
  if (health.dataset.state !== state) health.dataset.state = state;
  setText(byId('health-line'), connected ? sentence(f) : 'No connection to the server of this page. Trying again; what is shown is old.');
  setText(byId('identity'), f.identity);
  const mode = byId('mode');
  mode.hidden = f.actions;
  setText(mode, 'read-only');
  document.title = connected && (f.state === 'ok' || f.state === 'degraded') ? 'quorate' : '⚠ quorate';
}

export function showLost() {
  byId('health').dataset.state = 'lost';
  setText(byId('health-line'), 'No connection to the server of this page, or too many pages are open. Trying again.');
}

export function showAge(f, connected) {
  const fine = connected && !['noquorum', 'closed', 'unfit'].includes(f.state);
  setText(byId('health-age'), fine || !f.nodes ? '' : `last quorum ${age(f.nodes)}`);
}

function stateOf(n) {
  if (!n.up) return ['bad', 'does not answer'];
  if (n.err) return ['bad', 'unfit'];
  if (n.quarantine > 0) return ['warn', `quarantine, ${duration(n.quarantine)} left`];
  if (n.warnings?.length) return ['warn', 'answers, with warnings'];
  return ['ok', 'answers'];
}

function notes(n) {
  const list = [];
  if (n.err) list.push(n.err);
  if (n.quarantine > 0) list.push('restarted lately, so it may have forgotten locks, and its votes do not count yet');
  list.push(...(n.warnings ?? []));
  for (const s of n.shards ?? []) {
    const [level, text] = stateOf(s);
    list.push([`shard ${s.node}: ${text}`, ...(level === 'ok' ? [duration(s.latency)] : notes(s))].join('; '));
  }
  return list;
}

function make() {
  const name = el('span', { class: 'name' });
  const state = el('span', { class: 'pill' });
  const latency = cell('Latency', { class: 'num' });
  const uptime = cell('Up for', { class: 'num' });
  const version = cell('Version');
  const more = el('ul', { class: 'notes' });
  const moreRow = row({ class: 'sub', hidden: true }, cell('', { colspan: 5 }, more));
  const root = body(row({}, head({}, name), cell('State', {}, state), latency, uptime, version), moreRow);
  return {
    root,
    update(n) {
      if (same(root, n)) return;
      const [level, text] = stateOf(n);
      setText(name, n.node);
      setText(state, text);
      state.className = `pill ${level}`;
      setText(latency, n.up ? duration(n.latency) : '–');
      setText(uptime, n.up && n.uptime ? duration(n.uptime) : '–');
      setText(version, n.version || (n.role === 'cluster' ? 'cluster' : '–'));
      const list = notes(n);
      moreRow.hidden = list.length === 0;
      more.replaceChildren(...list.map((text) => el('li', { text })));
    },
  };
}

const table = document.querySelector('table.nodes');
prepare(table);
const rows = keyed(table, make);

export const showNodes = (list) => {
  rows(list);
  byId('nodes').querySelector('.empty').hidden = list.length > 0;
};
