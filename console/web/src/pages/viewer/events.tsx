// The events, newest first.
import type { Operation } from '@freshet/client';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { bytes, time } from '../../format';
import type { Follow, Version } from '../../live/follow';
import { cutOff } from './tree';
import { useWindow } from './window';

export interface Filter {
  text: string;
  op: '' | Operation['op'] | 'snapshot' | 'error';
}

function passes(v: Version, f: Filter): boolean {
  if (f.op === 'snapshot' || f.op === 'error') {
    if (f.op === 'error' ? v.event !== 'error' : v.ops.length > 0 || v.event === 'error') return false;
  } else if (f.op || f.text) {
    return v.ops.some(o => (!f.op || o.op === f.op) && o.path.includes(f.text));
  }
  return !f.text || v.id.includes(f.text);
}

function about(v: Version): string {
  if (v.error) return v.error;
  if (v.event !== 'patch') return 'full document';
  const first = v.ops[0];
  if (!first) return 'nothing';
  const what = `${first.op} ${cutOff(first.path, 300) || '(all of it)'}`;
  return v.ops.length === 1 ? what : `${what} +${v.ops.length - 1}`;
}

const eventHeight = 30;
const farRanks = 10_000; // browsers know no places that are millions of pixels away
export const noFilter: Filter = { text: '', op: '' };

/** The events, newest first. Choosing one shows the document as it was then. */
export function EventList({
  follow,
  height: pixels,
  filter = noFilter,
  compact,
}: {
  follow: Follow;
  height?: number;
  filter?: Filter;
  compact?: boolean;
}) {
  void follow.tick.value;
  const filtered = filter.text !== '' || filter.op !== '';
  const list = filtered ? follow.versions.filter(v => passes(v, filter)) : follow.versions;
  const { box, space, shift, top, scroll, sees, from, to } = useWindow(list.length, eventHeight);
  const chosen = follow.pinned.value;
  const newest = list[list.length - 1]?.n ?? -1;
  const before = useRef(newest);
  useLayoutEffect(() => {
    // Who has scrolled down reads; what arrives above must not push the text away.
    // Where we are is known from the last scroll: asking the browser here would make it lay out the page once more a frame.
    const added = newest - before.current;
    before.current = newest;
    if (added > 0 && !filtered && top > 0) box.current!.scrollTop += added * eventHeight;
  }, [newest]);
  const step = (by: number): void => {
    const at = chosen === null ? list.length - 1 : list.findIndex(v => v.n === chosen);
    const v = list[Math.max(0, Math.min(list.length - 1, at - by))];
    if (!v) return;
    follow.pinned.value = v.n;
    const row = list.length - 1 - list.indexOf(v);
    if (!sees(row)) scroll(row * eventHeight - box.current!.clientHeight / 2);
  };
  // Every row has its place for good and all of them are moved together: what arrives makes no other row be laid out anew.
  const rank = (i: number): number => (filtered ? list.length - 1 - i : newest - i); // from the oldest
  const base = Math.floor(rank(0) / farRanks) * farRanks;
  const visible: { v: Version; place: number }[] = [];
  for (let i = from; i < to; i++) visible.push({ v: list[list.length - 1 - i]!, place: (base - rank(i)) * eventHeight });
  return (
    <div
      ref={box}
      class={compact ? 'pane events compact' : 'pane events'}
      style={pixels ? { height: pixels + 'px' } : undefined}
      role="listbox"
      tabIndex={0}
      aria-label="Events, newest first"
      aria-activedescendant={visible.some(({ v }) => v.n === chosen) ? `event:${chosen}` : undefined}
      onKeyDown={e => {
        if (e.key === 'ArrowDown') step(1);
        else if (e.key === 'ArrowUp') step(-1);
        else if (e.key === 'Escape') follow.pinned.value = null;
        else return;
        e.preventDefault();
      }}
    >
      <div role="presentation" class="pane-space" style={{ height: space + 'px' }}>
        <div role="presentation" class="pane-rows" style={{ transform: `translateY(${shift + (rank(from) - base) * eventHeight}px)` }}>
          {visible.map(({ v, place }) => (
            <div
              key={v.n}
              id={`event:${v.n}`}
              role="option"
              style={{ top: place + 'px' }}
              aria-selected={v.n === chosen}
              class={`event-row${v.n === chosen ? ' chosen' : ''}${v.error ? ' bad' : ''}`}
              onClick={() => {
                follow.pinned.value = v.n === chosen ? null : v.n;
              }}
            >
              <span class="event-time">{time(v.at)}</span>
              <span class={'event-kind ' + (v.error ? 'error' : v.event === 'patch' ? 'patch' : 'snapshot')}>
                {v.event === 'data' ? 'snapshot' : v.event}
              </span>
              <span class="event-about">{about(v)}</span>
              <span class="event-size">{bytes(v.bytes)}</span>
            </div>
          ))}
        </div>
      </div>
      {list.length === 0 && (
        <div role="option" aria-selected={false} class="pane-empty">
          {filtered ? 'No event matches.' : 'Waiting for events.'}
        </div>
      )}
    </div>
  );
}
