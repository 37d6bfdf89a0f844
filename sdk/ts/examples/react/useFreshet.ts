import { useEffect, useMemo, useSyncExternalStore } from 'react';
import { subscribe, type FreshetError, type Options, type State } from '@freshet/client';

export interface Live<T> {
  document: T | undefined;
  state: State;
  error: FreshetError | undefined;
}

/**
 * Follows a topic for as long as the component is there. Branches of the document that did not change are the same objects
 * as before, so `memo` and dependency lists work as with any other state.
 */
export function useFreshet<T>(topic: string, options: Options = {}): Live<T> {
  const wishes = JSON.stringify(options); // options are often written in place, and so new at every render
  const live = useMemo(() => store<T>(topic, JSON.parse(wishes) as Options), [topic, wishes]);
  useEffect(() => live.open(), [live]);
  return useSyncExternalStore(live.listen, live.read, live.read);
}

function store<T>(topic: string, options: Options) {
  let now: Live<T> = { document: undefined, state: 'connecting', error: undefined };
  const listeners = new Set<() => void>();
  const become = (change: Partial<Live<T>>) => {
    now = { ...now, ...change };
    for (const listener of listeners) listener();
  };
  return {
    read: () => now,
    listen(listener: () => void) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    open() {
      const stream = subscribe<T>(topic, options);
      stream.on('snapshot', ({ document }) => become({ document, error: undefined }));
      stream.on('patch', ({ document }) => become({ document }));
      stream.on('state', state => become({ state }));
      stream.on('error', error => become({ error }));
      return () => stream.close();
    },
  };
}
