// Times as people read them, by the server's clock.

let offset = 0;

export const setNow = (now) => { offset = now - Date.now(); };
export const now = () => Date.now() + offset;

export function duration(ms) {
  if (ms < 0) ms = 0;
  if (ms > 0 && ms < 0.1) return '<0.1 ms';
  if (ms < 10) return `${Math.round(ms * 10) / 10} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const s = ms / 1000;
  if (s < 10) return `${Math.floor(s * 10) / 10} s`;
  if (s < 90) return `${Math.floor(s)} s`;
  const min = Math.floor(s / 60);
  if (min < 90) return `${min} min`;
  const h = Math.floor(min / 60);
  if (h < 48) return min % 60 && h < 10 ? `${h} h ${min % 60} min` : `${h} h`;
  return `${Math.floor(h / 24)} d`;
}

// age has no parts of a second, so that what is told of it does not change all the time.
export function age(at) {
  const ms = now() - at;
  return ms < 1000 ? 'just now' : `${duration(Math.floor(ms / 1000) * 1000)} ago`;
}

const hour = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', second: '2-digit' });
const short = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' });
const day = new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric' });

const isToday = (date) => date.toDateString() === new Date(now()).toDateString();

// time tells a moment; the day only where it is not today.
export function time(at) {
  const date = new Date(at);
  return isToday(date) ? hour.format(date) : `${day.format(date)}, ${hour.format(date)}`;
}

export function shortTime(at) {
  const date = new Date(at);
  const text = date.getSeconds() ? hour.format(date) : short.format(date);
  return isToday(date) ? text : `${day.format(date)}, ${text}`;
}

export const zone = () => Intl.DateTimeFormat().resolvedOptions().timeZone;
export const count = new Intl.NumberFormat();
