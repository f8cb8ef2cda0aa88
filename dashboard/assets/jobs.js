// Jobs: a cell for each of the last ticks, and when the next come due.

import { byId, body, cell, el, head, keyed, prepare, row, setText, unseen } from './dom.js';
import { age, count, duration, now, shortTime, time } from './time.js';
import { aim, button } from './actions.js';

// By outcome: the mark, the class, and the words. Outcomes, reasons and kinds come from the nodes, where somebody may
// have written "constructor": so these have no prototype, which would know that.
const outcomes = {
  __proto__: null,
  ran: ['✓', 'ran', 'ran'],
  failed: ['✕', 'failed', 'failed'],
  panicked: ['✕', 'failed', 'panicked'],
  missed: ['–', 'missed', 'not run'],
  interrupted: ['!', 'interrupted', 'interrupted: its replica is gone'],
  running: ['▸', 'running', 'running'],
};

// As package scheduler has the reasons.
const reasons = {
  __proto__: null,
  overlap: 'an earlier run was still going on',
  late: 'it was too late when a replica could start it',
  held: 'the job’s lease was held without a sign of a run',
  no_quorum: 'too few nodes could be asked',
  busy: 'the replica had as many runs as it may have',
  paused: 'the job was paused',
  dst: 'the clocks of the time zone were changed',
  unreadable: 'the register could not be read',
  attempts: 'all attempts were made',
  timeout: 'it took longer than it may',
  lease_ended: 'its lease ended under it',
  drained: 'its replica was shut down',
};

const kinds = { __proto__: null, triggered: 'asked for by hand', backfilled: 'backfill' };
const outcomeOf = (run) => outcomes[run.outcome] ?? ['?', 'missed', run.outcome];
const reasonOf = (run) => (run.reason ? reasons[run.reason] ?? run.reason : '');

function say(run) {
  const parts = [time(run.scheduled) + (run.ticks > 1 ? ` and ${run.ticks - 1} more ticks` : '') + `: ${outcomeOf(run)[2]}`];
  if (run.reason) parts.push(reasonOf(run));
  if (run.started && run.ended) parts.push(`took ${duration(run.ended - run.started)}`);
  if (run.outcome === 'running' && run.started) parts.push(`since ${time(run.started)}`);
  if (kinds[run.kind]) parts.push(kinds[run.kind]);
  if (run.attempt > 1) parts.push(`attempt ${run.attempt}`);
  if (run.replica) parts.push(`on ${run.replica}`);
  if (run.err) parts.push(run.err);
  return parts.join('; ');
}

function mark(run) {
  const [sign, name] = outcomeOf(run);
  return el('li', { class: `cell ${name}`, title: say(run) }, el('span', { 'aria-hidden': 'true', text: run.ticks > 1 ? String(Math.min(run.ticks, 99)) : sign }), unseen(say(run)));
}

// left sums up the ticks that were not run, by reason.
function left(runs) {
  const sums = new Map();
  for (const run of runs) {
    if (run.outcome !== 'missed') continue;
    sums.set(run.reason, (sums.get(run.reason) ?? 0) + run.ticks);
  }
  return [...sums].map(([reason, n]) => `${count.format(n)} not run: ${reasons[reason] ?? reason}`);
}

function detail(run) {
  const took = run.started && run.ended ? duration(run.ended - run.started) : run.started ? 'goes on' : '–';
  const [, name, words] = outcomeOf(run);
  const why = [reasonOf(run), kinds[run.kind], run.attempt > 1 ? `attempt ${run.attempt}` : '', run.err].filter(Boolean).join('; ');
  return row({},
    head({}, time(run.scheduled), run.ticks > 1 ? ` ×${run.ticks}` : ''),
    cell('Outcome', {}, el('span', { class: `outcome ${name}`, text: words })),
    cell('Why', { class: why ? 'why' : 'why none' }, why || '–'), cell('Took', { class: took === '–' ? 'num none' : 'num' }, took),
    cell('Replica', { class: run.replica ? null : 'none' }, run.replica || '–'));
}

function make() {
  const name = el('span', { class: 'name' });
  const paused = el('span', { class: 'pill warn' });
  const waiting = el('span', { class: 'pill' });
  const grid = el('ol', { class: 'grid' });
  const why = el('ul', { class: 'notes' });
  const next = cell('Next', {});
  const [pause, resume, trigger] = ['pause', 'resume', 'trigger'].map(button);
  const toggle = el('button', { type: 'button', class: 'toggle', 'aria-expanded': 'false', text: 'Details' });
  const table = el('table', { class: 'list inner', role: 'table' });
  const more = row({ class: 'sub', hidden: true }, cell('', { colspan: 4 }, table));
  const root = body(
    row({}, head({}, name, ' ', paused, waiting), cell('Last ticks', {}, grid, why), next, cell('', { class: 'actions' }, trigger, pause, resume, toggle)),
    more,
  );
  let job = null;
  const fill = () => {
    const heads = ['Scheduled', 'Outcome', 'Why', 'Took', 'Replica'].map((text) => el('th', { scope: 'col', role: 'columnheader', text, class: text === 'Took' ? 'num' : null }));
    table.replaceChildren(
      el('caption', { class: 'unseen', text: `What became of the last ticks of ${job.name}` }),
      el('thead', { role: 'rowgroup' }, row({}, ...heads)),
      body(...(job.runs ?? []).toReversed().map(detail)),
    );
  };
  toggle.addEventListener('click', () => {
    more.hidden = !more.hidden;
    toggle.setAttribute('aria-expanded', String(!more.hidden));
    if (!more.hidden) fill();
  });
  const when = () => {
    let text;
    if (job.paused) text = '–';
    else if (!job.local) text = 'known to its replicas';
    else if (!job.next?.length) text = 'never again';
    else {
      // Between two looks, or without a quorum, what was told may have passed.
      const at = job.next.find((t) => t > now());
      text = at ? `in ${duration(Math.ceil((at - now()) / 1000) * 1000)}` : 'due';
    }
    setText(next, text);
    next.classList.toggle('hint', Boolean(!job.local || job.paused));
    next.title = job.local && !job.paused ? (job.next ?? []).map(shortTime).join(', then ') : '';
  };
  const update = (value) => {
    const text = JSON.stringify(value);
    if (child.text === text) return;
    child.text = text;
    job = value;
    const runs = job.runs ?? [];
    setText(name, job.name);
    paused.hidden = !job.paused;
    setText(paused, job.paused ? 'paused' : '');
    paused.title = job.paused ? `since ${time(job.pausedSince)}, by ${job.pausedBy}` : '';
    waiting.hidden = !job.waiting;
    setText(waiting, job.waiting ? `${job.waiting} waiting` : '');
    if (JSON.stringify(runs) !== child.runs) {
      child.runs = JSON.stringify(runs);
      grid.replaceChildren(...runs.map(mark));
      if (!more.hidden) fill();
    }
    const notes = left(runs);
    if (job.paused) notes.unshift(`paused since ${time(job.pausedSince)} by ${job.pausedBy}`);
    if (job.err) notes.unshift(`cannot be read${job.asked ? `, this is as of ${age(job.asked)}` : ''}: ${job.err}`);
    if (job.known && !runs.length) notes.push('no tick yet');
    why.replaceChildren(...notes.map((text) => el('li', { text })));
    aim(pause, 'pause', job);
    aim(resume, 'resume', job);
    aim(trigger, 'trigger', job);
    // The focus goes over to the button that takes the place of the one that was pressed.
    const focused = document.activeElement === pause || document.activeElement === resume;
    pause.hidden = Boolean(job.paused);
    resume.hidden = !job.paused;
    if (focused) (job.paused ? resume : pause).focus();
    toggle.setAttribute('aria-label', `Details of ${job.name}`);
    when();
  };
  const child = { root, update, when, text: '', runs: '' };
  shown.add(child);
  return child;
}

const shown = new Set();
let rows = () => {};

export function start() {
  const table = document.querySelector('table.jobs');
  prepare(table);
  rows = keyed(table, make);
}

export function show(list, fleet) {
  rows(list);
  const section = byId('jobs');
  section.querySelector('.empty').hidden = list.length > 0;
  const more = section.querySelector('.more');
  const rest = (fleet?.limits.jobs ?? 0) - list.length;
  more.hidden = rest <= 0;
  setText(more, `${count.format(rest)} more are not shown; those that need attention are among these.`);
}

export function tick() {
  for (const child of shown) {
    if (child.root.isConnected) child.when();
    else shown.delete(child);
  }
}
