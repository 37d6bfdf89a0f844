// What is loaded, and what is shown meanwhile.
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { Ended, Failure } from '../api';
import { clockTime } from '../format';
import { Icon } from '../icons';
import { Link } from '../router';
import { session } from '../session';
import { Button, Empty } from './marks';

/** data is the newest answer, error what went wrong since, if anything; refresh is again, unless somebody asks already. */
export interface Loaded<T> {
  data: T | undefined;
  error: Failure | undefined;
  at: number;
  again: () => void;
  refresh: () => void;
  set: (d: T) => void;
}

const longestLoad = 30_000;

/** Loads something when the inputs change, and forgets answers that come too late. */
export function useLoad<T>(load: (signal: AbortSignal) => Promise<T>, inputs: unknown[]): Loaded<T> {
  const [state, setState] = useState<{ data?: T; error?: Failure; at: number }>({ at: 0 });
  const [round, setRound] = useState(0);
  const busy = useRef(false);
  const again = (): void => setRound(r => r + 1);
  useEffect(() => {
    const stop = new AbortController();
    busy.current = true;
    const end = (change: (s: typeof state) => typeof state): void => {
      if (stop.signal.aborted) return;
      stop.abort(); // also ends whatever else the load is about
      clearTimeout(timer);
      busy.current = false;
      setState(change);
    };
    const timer = setTimeout(
      () => end(s => ({ ...s, error: new Failure(0, 'The server takes too long to answer. Try again in a moment.') })),
      longestLoad,
    );
    load(stop.signal).then(
      data => end(() => ({ data, at: Date.now() })),
      (e: unknown) => end(s => ({ ...s, error: e instanceof Failure ? e : new Failure(0, String(e)) })),
    );
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [...inputs, round]);
  const isBack = !!session.value && state.error instanceof Ended;
  useEffect(() => {
    if (isBack) again();
  }, [isBack]); // signed in again, it goes on
  return {
    data: state.data,
    error: state.error,
    at: state.at,
    again,
    refresh: () => {
      if (!busy.current) again();
    },
    set: data => setState({ data, at: Date.now() }),
  };
}

/** Does something again and again while the page can be seen. */
export function useEvery(ms: number, act: () => void): void {
  const latest = useRef(act);
  latest.current = act;
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden) latest.current();
    }, ms);
    return () => clearInterval(timer);
  }, [ms]);
}

function Skeleton({ rows = 4 }: { rows?: number }) {
  return (
    <div class="skeleton" aria-busy="true" aria-label="Loading">
      {Array.from({ length: rows }, (_, i) => (
        <span key={i} />
      ))}
    </div>
  );
}

/** Shows what was loaded, or that it is loading, or what to do about it. whole if the page has no title without it. */
export function Show<T>({
  of,
  children,
  rows,
  whole,
}: {
  of: Loaded<T>;
  children: (data: T) => ComponentChildren;
  rows?: number;
  whole?: boolean;
}) {
  if (of.data !== undefined)
    return (
      <>
        {of.error && !(of.error instanceof Ended) && (
          <div class="banner warn" role="status">
            <Icon name="warn" />
            <div>
              <b>{of.error.message}</b>
              <p>What you see is from {clockTime(of.at)}.</p>
            </div>
            <Button small onClick={of.again}>
              Try again
            </Button>
          </div>
        )}
        {children(of.data)}
      </>
    );
  if (of.error && !(of.error instanceof Ended)) {
    return (
      <Empty
        icon="warn"
        whole={whole}
        title={of.error.status === 404 ? 'Nothing here' : 'That did not work'}
        action={
          of.error.status === 404 ? (
            <Link to="/apps" class="button">
              Go to your apps
            </Link>
          ) : (
            <Button onClick={of.again}>Try again</Button>
          )
        }
      >
        {of.error.message}
      </Empty>
    );
  }
  return <Skeleton rows={rows ?? 4} />;
}
