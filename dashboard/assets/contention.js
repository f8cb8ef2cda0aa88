// The names that this process waited longest for.

import { byId, body, cell, el, head, keyed, prepare, row, same, setText } from './dom.js';
import { age, count, duration } from './time.js';

const columns = [
  ['Waited in all', (c) => duration(c.wait)],
  ['Wait, mean', (c) => duration(c.meanWait)],
  ['Wait, longest', (c) => duration(c.maxWait)],
  ['Got', (c) => count.format(c.acquired)],
  ['In vain', (c) => count.format(c.refused)],
  ['Held, mean', (c) => (c.ended ? duration(c.meanHeld) : '–')],
  ['Held, longest', (c) => (c.ended ? duration(c.maxHeld) : '–')],
  ['Last asked', (c) => age(c.last)],
];

let rows = () => {};
let last = [];

export function start() {
  const table = document.querySelector('table.contention');
  prepare(table);
  rows = keyed(table, () => {
    const name = el('span', { class: 'name' });
    const cells = columns.map(([label]) => cell(label, { class: 'num' }));
    const root = body(row({}, head({}, name), ...cells));
    return {
      root,
      update(c) {
        if (same(root, [c, age(c.last)])) return;
        setText(name, c.name);
        columns.forEach(([, text], i) => setText(cells[i], text(c)));
      },
    };
  });
}

export function show(list) {
  last = list;
  rows(list);
  byId('contention').querySelector('.empty').hidden = list.length > 0;
}

export const tick = () => rows(last);

export const present = (on) => { byId('contention').hidden = !on; };
