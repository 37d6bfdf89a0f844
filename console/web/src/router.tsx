// Where we are: paths below /console, through the history API, so that every page has an address.
import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';

export const base = '/console';

const current = (): string => (location.pathname.startsWith(base) ? location.pathname.slice(base.length) || '/' : '/');

export const path = signal(current());
export const search = signal(location.search);

function sync(): void {
  search.value = location.search;
  path.value = current();
}
addEventListener('popstate', sync);

/** Goes to a path of the console. */
export function navigate(to: string, replace = false): void {
  if (to !== path.value + search.value) {
    history[replace ? 'replaceState' : 'pushState'](null, '', base + to);
    const before = path.value;
    sync();
    if (section(before) !== section(path.value)) scrollTo(0, 0);
  }
}

/** A parameter of the address, which is where views keep what they show, so that it can be sent to somebody and survives a reload. */
export const param = (name: string): string => new URLSearchParams(search.value).get(name) ?? '';

/** Changes parameters of the address; those that are empty go. */
export function setParams(change: Record<string, string | undefined>): void {
  const q = new URLSearchParams(search.value);
  for (const [name, value] of Object.entries(change))
    if (value) q.set(name, value);
    else q.delete(name);
  const text = q.toString();
  navigate(path.value + (text && '?' + text), true);
}

/** Tabs of one thing share a section: changing them does not scroll. */
const section = (p: string): string => p.split('/').slice(0, 3).join('/');

interface LinkProps {
  to: string;
  class?: string;
  children?: ComponentChildren;
  current?: boolean;
  label?: string;
  title?: string;
}

export function Link({ to, class: name, children, current, label, title }: LinkProps) {
  return (
    <a
      href={base + to}
      class={name}
      aria-current={current ? 'page' : undefined}
      aria-label={label}
      title={title}
      onClick={e => {
        if (e.defaultPrevented || e.button !== 0 || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return;
        e.preventDefault();
        navigate(to);
      }}
    >
      {children}
    </a>
  );
}

/** Matches /topics/:id/:tab? against a path; undefined if it does not fit. */
export function match(pattern: string, at: string): Record<string, string> | undefined {
  const want = pattern.split('/').filter(Boolean),
    have = at.split('/').filter(Boolean);
  const found: Record<string, string> = {};
  for (let i = 0; i < Math.max(want.length, have.length); i++) {
    const w = want[i],
      h = have[i];
    if (w === undefined) return undefined;
    if (w.startsWith(':')) {
      const optional = w.endsWith('?');
      if (h === undefined && !optional) return undefined;
      if (h !== undefined) {
        try {
          found[w.slice(1).replace('?', '')] = decodeURIComponent(h);
        } catch {
          return undefined;
        }
      }
    } else if (w !== h) return undefined;
  }
  return found;
}
