// What the other files build the page with. Texts become text nodes and nothing else: no markup is ever
// made of a string.

export const byId = (id) => document.getElementById(id);

// el makes an element. props are attributes, but for class, text, data (an object) and on (handlers).
export function el(tag, props = {}, ...children) {
  const e = document.createElement(tag);
  for (const [key, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (key === 'class') e.className = value;
    else if (key === 'text') e.textContent = value;
    else if (key === 'data') Object.assign(e.dataset, value);
    else if (key === 'on') for (const [name, f] of Object.entries(value)) e.addEventListener(name, f);
    else e.setAttribute(key, value === true ? '' : value);
  }
  e.append(...children);
  return e;
}

const svgSpace = 'http://www.w3.org/2000/svg';

export function svg(tag, attributes = {}, ...children) {
  const e = document.createElementNS(svgSpace, tag);
  for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
  e.append(...children);
  return e;
}

// setText touches the page only where something changes, so that selections and screen readers are left alone.
export function setText(e, text) {
  if (e.textContent !== text) e.textContent = text;
}

export function setClass(e, name) {
  if (e.className !== name) e.className = name;
}

// same tells whether the element already shows this value, and notes that it does from now on.
const shown = new WeakMap();
export function same(e, value) {
  const text = JSON.stringify(value);
  if (shown.get(e) === text) return true;
  shown.set(e, text);
  return false;
}

// keyed keeps the children of a parent that stand for rows in step with them, and moves and
// makes only those that have to be: the focus stays where it is.
export function keyed(parent, make) {
  const children = new Map();
  return (rows) => {
    const ids = new Set(rows.map((row) => row.id));
    for (const [id, child] of children) {
      if (ids.has(id)) continue;
      child.root.remove();
      children.delete(id);
    }
    let before = null;
    for (const row of rows) {
      let child = children.get(row.id);
      if (!child) {
        child = make(row);
        children.set(row.id, child);
      }
      child.update(row);
      const place = before ? before.nextSibling : firstRow(parent);
      if (place !== child.root) parent.insertBefore(child.root, place);
      before = child.root;
    }
  };
}

// firstRow is where rows begin: behind caption and head.
function firstRow(parent) {
  let e = parent.firstChild;
  while (e && (e.nodeType !== Node.ELEMENT_NODE || e.tagName === 'CAPTION' || e.tagName === 'THEAD')) e = e.nextSibling;
  return e;
}

// table names its parts, which a table that is laid out in another way would lose otherwise.
export function prepare(table) {
  table.setAttribute('role', 'table');
  table.tHead.setAttribute('role', 'rowgroup');
  for (const row of table.tHead.rows) row.setAttribute('role', 'row');
  for (const cell of table.tHead.querySelectorAll('th')) cell.setAttribute('role', 'columnheader');
}

export const body = (...rows) => el('tbody', { role: 'rowgroup' }, ...rows);
export const row = (props, ...cells) => el('tr', { role: 'row', ...props }, ...cells);
export const cell = (label, props, ...children) => el('td', { role: 'cell', data: { label }, ...props }, ...children);
export const head = (props, ...children) => el('th', { role: 'rowheader', scope: 'row', ...props }, ...children);
export const unseen = (text) => el('span', { class: 'unseen', text });
