// Actions: a button, a question, a request that carries the token. The token is kept in the memory of this
// page and nowhere else.

import { byId, el, setText } from './dom.js';

const kinds = {
  pause: { button: 'Pause', title: 'Pause this job?', yes: 'Pause', text: 'No replica starts a tick of it until it is resumed. Ticks that come due meanwhile are missed. A run that goes on is left alone.' },
  resume: { button: 'Resume', title: 'Resume this job?', yes: 'Resume', text: 'Ticks that come due from now on are run. Those of the pause stay missed.' },
  trigger: { button: 'Run now', title: 'Run this job now?', yes: 'Run now', text: 'The first replica that knows the job runs it once.' },
  resign: { button: 'Resign', title: 'Have this leader resign?', yes: 'Resign', text: 'The term of this process ends, and it stands back for a while, so that another candidate can lead. Where there is no other, nobody leads meanwhile.' },
  break: { button: 'Break', title: 'Break this lease?', yes: 'Break it', danger: true, text: 'The name is freed though its holder has not released it. If the holder still acts, two act at the same time, and only a gate that refuses old tokens protects what they write.' },
};

let token = '';
let asked = null;

// button makes the button of an action on a row. Its accessible name says on which.
export function button(kind) {
  const b = el('button', { type: 'button', class: kinds[kind].danger ? 'action danger' : 'action', text: kinds[kind].button });
  b.addEventListener('click', () => ask(kind, b.dataset.id, b.dataset.name));
  return b;
}

export function aim(b, kind, rowOf) {
  b.dataset.id = rowOf.id;
  b.dataset.name = rowOf.name;
  const label = `${kinds[kind].button} ${rowOf.name}`;
  if (b.getAttribute('aria-label') !== label) b.setAttribute('aria-label', label);
}

const dialog = byId('ask');

function ask(kind, id, name) {
  const k = kinds[kind];
  asked = { kind, id, name };
  setText(byId('ask-title'), k.title);
  setText(byId('ask-name'), name);
  setText(byId('ask-text'), k.text);
  setText(byId('ask-do'), k.yes);
  byId('ask-do').className = k.danger ? 'primary danger' : 'primary';
  fail('');
  askToken(!token);
  dialog.showModal();
  (token ? byId('ask-cancel') : byId('token')).focus();
}

function askToken(on) {
  byId('ask-secret').hidden = !on;
  byId('token').required = on;
  if (on) byId('token').value = '';
}

function fail(text) {
  setText(byId('ask-error'), text);
}

byId('ask-cancel').addEventListener('click', () => dialog.close());
byId('ask-form').addEventListener('submit', async (e) => {
  e.preventDefault();
  const given = token || byId('token').value.trim();
  if (!given || !asked) return;
  const { kind, id, name } = asked;
  byId('ask-do').disabled = true;
  fail('');
  try {
    const response = await fetch(`actions/${kind}`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${given}`, 'Content-Type': 'application/json' },
      body: JSON.stringify({ id }),
    });
    const answer = await response.json().catch(() => ({ error: `the server answered ${response.status}` }));
    if (response.ok) {
      token = given;
      dialog.close();
      tell(`${name}: ${answer.message}`);
      return;
    }
    if (response.status === 401) {
      token = '';
      askToken(true);
      byId('token').focus();
    } else {
      token = given;
    }
    fail(answer.error);
  } catch {
    fail('The server cannot be reached. Whether it did what was asked for is not known.');
  } finally {
    byId('ask-do').disabled = false;
  }
});

let quiet = 0;
function tell(text) {
  clearTimeout(quiet);
  const toast = byId('toast');
  setText(toast, text);
  toast.classList.add('shown');
  quiet = setTimeout(() => { toast.classList.remove('shown'); setText(toast, ''); }, 8000);
}
