// Figures and times for people.
const units = ['B', 'kB', 'MB', 'GB', 'TB'];

export function bytes(n: number): string {
  let i = 0;
  while (n >= 1000 && i < units.length - 1) {
    n /= 1000;
    i++;
  }
  return `${i === 0 ? Math.round(n) : n < 10 ? n.toFixed(2) : n < 100 ? n.toFixed(1) : Math.round(n)} ${units[i]}`;
}

const grouped = new Intl.NumberFormat('en');
export const count = (n: number): string => grouped.format(Math.round(n));

export function short(n: number): string {
  if (n < 1000) return String(Math.round(n * 10) / 10);
  if (n < 1e6) return (n / 1e3).toFixed(n < 1e4 ? 1 : 0) + 'k';
  if (n < 1e9) return (n / 1e6).toFixed(n < 1e7 ? 1 : 0) + 'M';
  return (n / 1e9).toFixed(1) + 'G';
}

export const percent = (part: number, whole: number): string =>
  whole <= 0 ? '–' : (Math.floor((1000 * part) / whole) / 10).toFixed(1) + ' %';

export const plural = (n: number, one: string, many = one + 's'): string => `${count(n)} ${n === 1 ? one : many}`;

const clock = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' });
export const clockTime = (ms: number): string => clock.format(ms);
export const time = (ms: number): string => `${clock.format(ms)}.${String((ms % 1000) | 0).padStart(3, '0')}`;

const full = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'short' });
export const date = (text: string): string => {
  const d = new Date(text);
  return Number.isNaN(+d) ? '–' : full.format(d);
};

export function ago(text: string): string {
  const s = (Date.now() - +new Date(text)) / 1000;
  if (Number.isNaN(s)) return '–';
  if (s < 45) return 'just now';
  if (s < 3600) return `${Math.max(1, Math.round(s / 60))} min ago`;
  if (s < 86400) return `${Math.round(s / 3600)} h ago`;
  return s < 86400 * 30 ? `${Math.round(s / 86400)} d ago` : date(text);
}

export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const s = Math.floor(ms / 1000);
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
}

/** A time that is often far below a millisecond. */
export function latency(ms: number): string {
  if (ms >= 1000) return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`;
  return `${ms >= 100 ? Math.round(ms) : ms >= 10 ? ms.toFixed(0) : Number(ms.toPrecision(2))} ms`;
}

export function every(ms: number): string {
  return ms % 60000 === 0 ? `${ms / 60000} min` : ms % 1000 === 0 ? `${ms / 1000} s` : `${ms} ms`;
}
