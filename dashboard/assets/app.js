// The stream, and who gets what of it.

import { byId, setText } from './dom.js';
import { setNow, now, age, count, zone } from './time.js';
import * as fleet from './fleet.js';
import * as elections from './elections.js';
import * as jobs from './jobs.js';
import * as names from './names.js';
import * as contention from './contention.js';

// Three of the beats of the server.
const silence = 15000;
const hiddenFor = 5000;

const state = { fleet: null, connected: false };
const sections = {
  fleet: (rows) => { state.fleet = rows[0]; showFleet(); },
  nodes: (rows) => { fleet.showNodes(rows); setText(byId('count-nodes'), count.format(rows.length)); },
  elections: (rows) => elections.show(rows, state.fleet),
  jobs: (rows) => jobs.show(rows, state.fleet),
  contention: (rows) => contention.show(rows),
};
const rowsOf = new Map();

// take puts an update together with the rows that were there.
function take(section, update) {
  const known = rowsOf.get(section) ?? { order: [], rows: new Map() };
  rowsOf.set(section, known);
  for (const row of update.rows ?? []) known.rows.set(row.id, row);
  if (update.order || update.empty) {
    known.order = update.order ?? [];
    const there = new Set(known.order);
    for (const id of known.rows.keys()) if (!there.has(id)) known.rows.delete(id);
  }
  sections[section](known.order.map((id) => known.rows.get(id)));
}

function showFleet() {
  const f = state.fleet;
  document.documentElement.dataset.actions = f.actions ? 'on' : 'off';
  fleet.show(f, state.connected);
  setText(byId('count-elections'), count.format(f.limits.elections));
  setText(byId('count-jobs'), count.format(f.limits.jobs));
  setText(byId('count-names'), count.format(f.names.total));
  names.look(f);
  contention.present(f.records);
  ages();
}

// ages marks what is old, with its age: what comes with the listings, and all of it without a stream.
function ages() {
  const f = state.fleet;
  if (!f) return;
  const works = state.connected && (f.state === 'ok' || f.state === 'degraded');
  const late = now() - f.names.seen > 10 * f.interval + 20000;
  const old = !works || late || Boolean(f.names.err);
  const text = (at) => (at ? `as of ${age(at)}` : 'not known yet');
  for (const id of ['jobs', 'names']) mark(id, old, text(f.names.seen));
  // Where listing is refused, the elections that there are are those of WithElectors, which are followed.
  mark('elections', old && (!works || !f.names.refused), text(f.names.seen));
  mark('nodes', !state.connected, text(f.nodes));
  fleet.showAge(f, state.connected);
}

function mark(id, old, text) {
  byId(id).classList.toggle('old', old);
  setText(byId(`${id}-age`), old ? text : '');
}

let source = null;
let heard = 0;
let retry = 0;
let timer = 0;

function connect() {
  clearTimeout(timer);
  source?.close();
  source = new EventSource('events');
  heard = Date.now();
  // The first update of a stream is all there is.
  source.addEventListener('open', () => { rowsOf.clear(); });
  source.addEventListener('tick', (e) => {
    setNow(JSON.parse(e.data).now);
    heard = Date.now();
    retry = 0;
    setConnected(true);
    elections.tick();
  });
  for (const section of Object.keys(sections)) {
    source.addEventListener(section, (e) => {
      heard = Date.now();
      take(section, JSON.parse(e.data));
    });
  }
  source.addEventListener('error', lose);
}

function lose() {
  disconnect();
  setConnected(false);
  const wait = Math.min(15000, 1000 * 2 ** retry++) * (0.75 + Math.random() / 2);
  timer = setTimeout(connect, wait);
}

function disconnect() {
  clearTimeout(timer);
  source?.close();
  source = null;
}

function setConnected(on) {
  if (state.connected === on) return;
  state.connected = on;
  if (state.fleet) showFleet();
  else if (!on) fleet.showLost();
}

// Who does not look needs no stream, and browsers allow only a few of them.
let leaving = 0;
document.addEventListener('visibilitychange', () => {
  clearTimeout(leaving);
  if (document.hidden) leaving = setTimeout(disconnect, hiddenFor);
  else if (!source) connect();
});

setInterval(() => {
  if (source && Date.now() - heard > silence) lose();
  if (document.hidden) return;
  ages();
  jobs.tick();
  contention.tick();
}, 1000);

setText(byId('zone'), zone());
names.start();
elections.start();
jobs.start();
contention.start();
if (!document.hidden) connect(); // it may have been opened in the background
