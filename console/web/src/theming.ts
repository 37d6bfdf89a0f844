// Light, dark, or what the system says.
import { signal } from '@preact/signals';

export type Taste = 'auto' | 'light' | 'dark';
const place = 'freshet-theme';
const system = matchMedia('(prefers-color-scheme: dark)');

const remembered = (): Taste => {
  const t = localStorage.getItem(place);
  return t === 'light' || t === 'dark' ? t : 'auto';
};

export const taste = signal<Taste>(remembered());
/** What is in force, for things that CSS cannot paint. */
export const theme = signal<'light' | 'dark'>(inForce());

function inForce(): 'light' | 'dark' {
  const t = taste.value;
  return t === 'auto' ? (system.matches ? 'dark' : 'light') : t;
}

system.addEventListener('change', () => {
  theme.value = inForce();
});

export function choose(t: Taste): void {
  taste.value = t;
  if (t === 'auto') {
    localStorage.removeItem(place);
    delete document.documentElement.dataset.theme;
  } else {
    localStorage.setItem(place, t);
    document.documentElement.dataset.theme = t;
  }
  theme.value = inForce();
}
