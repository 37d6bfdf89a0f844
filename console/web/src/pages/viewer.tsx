// The live viewer: the document as a tree that shows what each patch changed, the events beside it, and what they cost.
import type { Operation } from '@freshet/client';
import { Exact, type ExactJSON, isContainer, print } from '@freshet/client/exact';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { App, Topic } from '../api';
import { bytes, count, percent, plural, time } from '../format';
import type { Follow, Version } from '../live/follow';
import type { Touch } from '../live/heat';
import { find, Folding, height, nearest, type Row, rows } from '../live/rows';
import { Icon } from '../icons';
import { Plot } from '../plot';
import { Link } from '../router';
import { Badge, Button, Card, Copy, Empty, Stat } from '../ui';

const rowHeight = 24;

// ── Which rows of a long list are in view

const tallest = 15_000_000; // pixels; browsers cut off what is taller

function useWindow(total: number, size: number) {
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 400 });
  const look = (): void => {
    const el = box.current!;
    setView({ top: el.scrollTop, height: el.clientHeight });
  };
  useLayoutEffect(() => {
    const el = box.current!;
    const watch = new ResizeObserver(look);
    watch.observe(el);
    el.addEventListener('scroll', look, { passive: true });
    return () => {
      watch.disconnect();
      el.removeEventListener('scroll', look);
    };
  }, []);
  const space = Math.min(total * size, tallest);
  const scrolled = Math.min(view.top, Math.max(0, space - view.height)); // what has become shorter is not scrolled back yet
  // A list that is too long for a browser goes by faster than it is scrolled.
  const scale = space < total * size ? (total * size - view.height) / (space - view.height) : 1;
  const top = scrolled * scale,
    from = Math.max(0, Math.floor(top / size) - 4);
  /** Scrolls there, and shows it at once: what the browser says about scrolling comes a frame later. */
  const scroll = (to: number): void => {
    box.current!.scrollTop = Math.max(0, to) / scale;
    look();
  };
  return {
    box,
    space,
    top,
    scroll,
    from,
    to: Math.min(total, Math.ceil((top + view.height) / size) + 4),
    shift: from * size - top + scrolled,
    inView: Math.floor(view.height / size),
    first: Math.ceil(top / size),
    /** Whether a row and some around it are in view. */
    sees: (row: number, below = 1) => row * size >= top && row * size <= top + view.height - below * size,
  };
}

// ── The document

/** What a line cannot show as it is: breaks, and marks that turn the text behind them around. */
const unshown = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;
const escaped = (s: string): string => s.replace(unshown, c => '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0'));
const cutOff = (s: string, most: number): string => (s.length > most ? s.slice(0, most) + '…' : s);

function Value({ value }: { value: ExactJSON }) {
  if (typeof value === 'string') return <span class="v-string">{escaped(JSON.stringify(cutOff(value, 400)))}</span>;
  if (typeof value === 'number') return <span class="v-number">{String(value)}</span>;
  if (value instanceof Exact) return <span class="v-number">{cutOff(value.text, 400)}</span>;
  return <span class="v-word">{String(value)}</span>;
}

/** A name as it is, or quoted where one could not see what it is. */
const nameOf = (name: string): string =>
  name === '' || name !== name.trim() || name.search(unshown) >= 0 ? escaped(JSON.stringify(cutOff(name, 200))) : cutOff(name, 200);

/** Names may have spaces, references to elements may not. */
const rowID = (path: string): string => 'row:' + path.replace(/\s/g, c => '\\' + c.charCodeAt(0));

/** What is very deep is still to be seen. */
const indent = (depth: number): number => 16 * Math.min(depth, 20) + Math.max(0, depth - 20);

function TreeRow({
  row,
  active,
  heat,
  still,
  onFlip,
  onActive,
}: {
  row: Row;
  active: boolean;
  heat: { kind: Touch['kind']; times: number } | undefined;
  still: Touch['kind'] | undefined;
  onFlip: () => void;
  onActive: () => void;
}) {
  const container = isContainer(row.value);
  const marks = Array.isArray(row.value) ? '[]' : '{}';
  return (
    <div
      id={rowID(row.path)}
      role="treeitem"
      aria-level={row.depth + 1}
      aria-expanded={container ? row.open : undefined}
      aria-selected={active}
      class={`tree-row${active ? ' active' : ''}${still ? ' still ' + still : ''}`}
      onClick={() => {
        onActive();
        if (container) onFlip();
      }}
    >
      {heat && <i key={heat.times} class={'heat ' + heat.kind} />}
      <span class="indent" style={{ width: indent(row.depth) + 'px' }} />
      <span class={container ? (row.open ? 'twist open' : 'twist') : 'twist none'} aria-hidden="true" />
      {row.depth > 0 && <span class={row.isIndex ? 'name index' : 'name'}>{nameOf(row.name)}</span>}
      {container ? (
        <span class="v-size">{row.children === 0 ? marks : `${marks[0]} ${count(row.children)} ${marks[1]}`}</span>
      ) : (
        <Value value={row.value} />
      )}
    </div>
  );
}

/** The document as a tree, of which only the rows in view exist. */
export function Tree({
  follow,
  height: pixels,
  goTo,
  onGone,
}: {
  follow: Follow;
  height?: number;
  goTo?: { path: string } | undefined;
  onGone?: (isMissing: boolean) => void;
}) {
  const folding = useMemo(() => new Folding(), [follow]);
  const [, redraw] = useState(0);
  const [active, setActive] = useState('');
  void follow.tick.value;
  const version = follow.shown(),
    shown = version?.hasDoc ? version : undefined,
    pinned = follow.pinned.value !== null;
  const doc = shown?.doc ?? null;
  const total = shown ? height(doc, '', folding) : 0;
  const { box, space, shift, scroll, sees, from, to, inView, first } = useWindow(total, rowHeight);
  const visible = shown ? rows(doc, folding, from, to) : [];
  const still = useMemo(() => {
    const marks = new Map<string, Touch['kind']>();
    if (pinned && shown) for (const t of shown.touches) marks.set(t.path, t.kind);
    return marks;
  }, [pinned, shown]);
  const now = Date.now();
  const flip = (path: string): void => {
    folding.flip(path);
    redraw(n => n + 1);
  };
  const reveal = (index: number): void => {
    if (!sees(index, 2)) scroll(index * rowHeight - box.current!.clientHeight / 3);
  };
  useEffect(() => {
    if (!goTo || !shown) return;
    const isThere = folding.openTo(doc, goTo.path);
    onGone?.(!isThere);
    const row = nearest(doc, folding, goTo.path);
    setActive(row.path);
    // The rows that have just been unfolded must have their room before one can scroll to them.
    setTimeout(() => {
      if (box.current) reveal(row.at);
    });
  }, [goTo]);
  /** Where the keys move from: the row one was at, or what is left of it; if that is the root alone, what one is looking at. */
  const here = (): number => {
    const row = nearest(doc, folding, active);
    return row.path === active || row.path !== '' ? row.at : Math.min(first, total - 1);
  };
  const move = (e: KeyboardEvent): void => {
    if (!shown) return;
    const at = here(),
      row = rows(doc, folding, at, at + 1)[0];
    let next = at;
    switch (e.key) {
      case 'ArrowDown':
        next = Math.min(total - 1, at + 1);
        break;
      case 'ArrowUp':
        next = Math.max(0, at - 1);
        break;
      case 'PageDown':
        next = Math.min(total - 1, at + inView);
        break;
      case 'PageUp':
        next = Math.max(0, at - inView);
        break;
      case 'Home':
        next = 0;
        break;
      case 'End':
        next = total - 1;
        break;
      case 'ArrowRight':
        if (row && isContainer(row.value)) {
          if (row.open) next = Math.min(total - 1, at + 1);
          else flip(row.path);
        }
        break;
      case 'ArrowLeft':
        if (row?.open && row.children) flip(row.path);
        else if (row?.path) next = find(doc, folding, row.path.slice(0, row.path.lastIndexOf('/')));
        break;
      case 'Enter':
      case ' ':
        if (row && isContainer(row.value)) flip(row.path);
        break;
      default:
        return;
    }
    e.preventDefault();
    const to = rows(doc, folding, next, next + 1)[0];
    if (to) {
      setActive(to.path);
      reveal(next);
    }
  };
  const row = visible.find(r => r.path === active),
    inSight = !!row;
  useLayoutEffect(() => {
    // what is deep stands far to the right
    const el = box.current!,
      left = row ? indent(row.depth) : 0;
    if (row && (left < el.scrollLeft || left > el.scrollLeft + el.clientWidth - 120)) el.scrollLeft = left - el.clientWidth / 2;
  }, [active, inSight]);
  return (
    <div
      ref={box}
      class="pane tree"
      style={pixels ? { height: pixels + 'px' } : undefined}
      role="tree"
      tabIndex={0}
      aria-label="Document"
      aria-activedescendant={inSight ? rowID(active) : undefined}
      onKeyDown={move}
    >
      {shown ? (
        <div role="presentation" class="pane-space" style={{ height: space + 'px' }}>
          <div role="presentation" class="pane-rows" style={{ transform: `translateY(${shift}px)` }}>
            {visible.map(r => {
              const h = pinned ? undefined : follow.heat.of(r.path, now);
              return (
                <TreeRow
                  key={r.path}
                  row={r}
                  active={r.path === active}
                  heat={h}
                  still={still.get(r.path)}
                  onFlip={() => flip(r.path)}
                  onActive={() => setActive(r.path)}
                />
              );
            })}
          </div>
        </div>
      ) : (
        <div role="treeitem" class="pane-empty" aria-selected={false}>
          {follow.state.value.is === 'open' ? 'Nothing was published yet.' : 'No document yet.'}
        </div>
      )}
    </div>
  );
}

// ── The events

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
const noFilter: Filter = { text: '', op: '' };

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

// ── State

export function StateBadge({ follow }: { follow: Follow }) {
  const s = follow.state.value;
  switch (s.is) {
    case 'open':
      return (
        <Badge tone="ok">
          <i class="pulse" />
          connected
        </Badge>
      );
    case 'connecting':
      return <Badge>connecting</Badge>;
    case 'waiting':
      return <Badge tone="warn">reconnecting</Badge>;
    case 'failed':
      return <Badge tone="bad">ended</Badge>;
    default:
      return <Badge>closed</Badge>;
  }
}

/** What to do about the errors that a stream can end with. */
const remedies: Record<number, string> = {
  40001: 'The subscriber key is malformed. Renew it under Keys.',
  40100: 'A key or a signature is required. Browsers can only sign requests on pages from https or from this machine.',
  40110: 'The key or the signature is wrong. Connect again to use the current key.',
  40111: 'The key was renewed meanwhile. Connect again to use the new one.',
  40112: 'The signature is too old. Check this machine’s clock.',
  40120: 'The account is disabled. Ask an admin.',
  40121: 'Too many connections, or topics. Close others, or ask an admin for a higher quota.',
  40122: 'The messages of this month are used up. Ask an admin for a higher quota.',
  40401: 'The topic is gone.',
  50001: 'No document came in time. Check that the source answers.',
  60000: 'The topic was deleted, or its document is more than the quota allows.',
  60100: 'The target cannot be reached. Check its URL under Settings.',
  60101: 'The target refused our credentials. Check the headers under Settings.',
  60400: 'The target’s host name is unknown. Check the URL under Settings.',
  61500: 'The target’s answer is not JSON that fits this topic.',
};

/** Says so after a moment, so that a short break moves nothing on the page. */
function useLate(is: boolean, ms: number): boolean {
  const [late, setLate] = useState(false);
  useEffect(() => {
    if (!is) {
      setLate(false);
      return;
    }
    const timer = setTimeout(() => setLate(true), ms);
    return () => clearTimeout(timer);
  }, [is]);
  return is && late;
}

/** renew asks for the app again, whose key may be another by now. */
function Trouble({ follow, renew }: { follow: Follow; renew: () => void }) {
  const s = follow.state.value;
  const lasts = useLate((s.is === 'waiting' || s.is === 'connecting') && !!s.why, 1500);
  if (s.is === 'failed')
    return (
      <div class="banner bad" role="alert">
        <Icon name="warn" />
        <div>
          <b>
            {s.code || ''} {s.message}
          </b>
          <p>{remedies[s.code] ?? ''}</p>
        </div>
        <Button
          small
          onClick={() => {
            follow.open();
            renew();
          }}
        >
          Connect again
        </Button>
      </div>
    );
  if (!lasts || (s.is !== 'waiting' && s.is !== 'connecting')) return null;
  return (
    <div class="banner warn" role="status">
      <Icon name="warn" />
      <div>
        <b>{s.why}</b>
        <p>{s.is === 'waiting' && s.code ? remedies[s.code] : ''} The console goes on trying; what is shown is what arrived so far.</p>
      </div>
      {s.is === 'waiting' && (
        <Button small onClick={() => follow.hurry()}>
          Try now
        </Button>
      )}
    </div>
  );
}

// ── All of it

const intervals: [number, string][] = [
  [1000, '1 s'],
  [2000, '2 s'],
  [5000, '5 s'],
  [10_000, '10 s'],
  [60_000, '1 min'],
];

function Costs({ follow, topic }: { follow: Follow; topic: Topic }) {
  void follow.beat.value;
  const own = topic.publisher.config.polling_frequency;
  const [every, setEvery] = useState(intervals.some(i => i[0] === own) ? own! : 2000);
  const t = follow.meter.totals,
    polled = follow.meter.polled(every),
    lately = follow.meter.seconds.slice(-6, -1);
  const rate = lately.length ? lately.reduce((n, s) => n + s.events, 0) / lately.length : 0;
  return (
    <dl class="stats">
      <Stat
        label="Document"
        value={follow.newest?.hasDoc ? bytes(follow.newest.docBytes) : '–'}
        hint={follow.newest?.hasDoc ? plural(follow.versions.length, 'version') + ' kept' : 'nothing yet'}
      />
      <Stat label="Events" value={count(t.events)} hint={`${rate.toFixed(1)} per second`} />
      <Stat label="Received" value={bytes(t.bytes)} hint={`full documents: ${bytes(t.full)}`} />
      <Stat
        label="Saved vs snapshots"
        value={t.full > t.bytes ? percent(t.full - t.bytes, t.full) : '–'}
        hint={t.full > t.bytes ? bytes(t.full - t.bytes) : t.patches ? 'the document is tiny' : 'from the first patch on'}
      />
      <Stat
        label="Saved vs polling"
        value={polled > t.bytes ? percent(polled - t.bytes, polled) : '–'}
        hint={
          <>
            {bytes(polled)} every{' '}
            <select aria-label="Polling interval to compare with" value={every} onChange={e => setEvery(Number(e.currentTarget.value))}>
              {intervals.map(([ms, text]) => (
                <option key={ms} value={ms}>
                  {text}
                </option>
              ))}
            </select>
          </>
        }
      />
    </dl>
  );
}

function TimeTravel({ follow }: { follow: Follow }) {
  void follow.tick.value;
  const pinned = follow.pinned.value,
    shown = follow.shown(),
    list = follow.versions;
  const first = list[0],
    last = follow.newest;
  const go = (by: number): void => {
    const i = (pinned === null ? list.length - 1 : follow.indexOf(pinned)) + by;
    const v = list[Math.max(0, Math.min(list.length - 1, i))];
    if (v) follow.pinned.value = v.n;
  };
  const behind = pinned !== null && last ? last.n - pinned : 0,
    isOlder = pinned !== null && first && pinned < first.n;
  return (
    <div class="travel">
      <Button
        kind={pinned === null ? 'plain' : 'primary'}
        icon={pinned === null ? 'pause' : 'play'}
        disabled={!last}
        onClick={() => {
          follow.pinned.value = pinned === null ? (last?.n ?? null) : null;
        }}
      >
        {pinned === null ? 'Pause' : 'Go live'}
      </Button>
      <Button icon="prev" label="Previous version" disabled={!last} onClick={() => go(-1)} />
      <input
        type="range"
        aria-label="Version"
        min={first?.n ?? 0}
        max={last?.n ?? 0}
        value={shown?.n ?? 0}
        disabled={!last}
        aria-valuetext={shown ? `${shown.id || 'version'} at ${time(shown.at)}` : 'none'}
        onInput={e => {
          follow.pinned.value = Number(e.currentTarget.value);
        }}
      />
      <Button icon="next" label="Next version" disabled={!last} onClick={() => go(1)} />
      <span class="travel-at">
        {shown ? (
          <>
            <code>{shown.id || '–'}</code>{' '}
            <span class="dim">
              {time(shown.at)}
              {behind > 0 ? ` · ${plural(behind, 'event')} behind` : ''}
              {isOlder ? ', older than what is kept' : ''}
            </span>
          </>
        ) : (
          <span class="dim">no version yet</span>
        )}
      </span>
    </div>
  );
}

function Operations({ follow }: { follow: Follow }) {
  void follow.tick.value;
  const v = follow.shown();
  if (!v || follow.pinned.value === null)
    return <p class="hint ops-hint">Choose an event to see what it did, and the document as it was then.</p>;
  return (
    <div class="ops" role="region" aria-label="Operations of the chosen event" tabIndex={0}>
      {v.ops.length === 0 && <p class="hint">{v.error || `The whole document, ${bytes(v.docBytes)}.`}</p>}
      {v.ops.slice(0, 200).map((o, i) => {
        const text = o.op === 'remove' ? '' : print((o.value ?? null) as ExactJSON);
        return (
          <div class="op" key={i}>
            <span class={'op-name ' + o.op}>{o.op}</span>
            <code class="op-path">{o.path || '(root)'}</code>
            <code class="op-value">{text.length > 300 ? text.slice(0, 300) + '…' : text}</code>
          </div>
        );
      })}
      {v.ops.length > 200 && <p class="hint">and {count(v.ops.length - 200)} more</p>}
    </div>
  );
}

function Plots({ follow }: { follow: Follow }) {
  void follow.beat.value;
  const list = follow.meter.seconds.slice(0, -1);
  if (list.length < 2) return null;
  const times = list.map(s => s.at);
  return (
    <div class="plots">
      <Card>
        <Plot
          span={30}
          label="Events per second"
          times={times}
          format={n => n.toFixed(n < 10 ? 1 : 0)}
          series={[{ label: 'events', tone: 'accent', fill: true, values: list.map(s => s.events) }]}
          height={140}
        />
      </Card>
      <Card>
        <Plot
          span={30}
          label="Bytes per second"
          times={times}
          format={bytes}
          series={[
            { label: 'received', tone: 'accent', fill: true, values: list.map(s => s.bytes) },
            { label: 'full documents', tone: 'muted', values: list.map(s => s.full) },
          ]}
          height={140}
        />
      </Card>
    </div>
  );
}

export function Viewer({ follow, topic, app, renew }: { follow: Follow; topic: Topic; app: App; renew: () => void }) {
  const [filter, setFilter] = useState<Filter>(noFilter);
  const [path, setPath] = useState(''),
    [goTo, setGoTo] = useState<{ path: string }>(),
    [isGone, setGone] = useState(false);
  return (
    <>
      <Trouble follow={follow} renew={renew} />
      <Costs follow={follow} topic={topic} />
      <TimeTravel follow={follow} />
      <div class="viewer">
        <section class="card flush viewer-doc" aria-label="Document">
          <header class="card-head">
            <h2>Document</h2>
            <StateBadge follow={follow} />
            <div class="actions">
              <form
                class="goto"
                onSubmit={e => {
                  e.preventDefault();
                  setGoTo({ path: path && !path.startsWith('/') ? '/' + path : path });
                }}
              >
                <input
                  aria-label="Go to a path"
                  placeholder="/path/to/value"
                  class="mono"
                  value={path}
                  aria-invalid={isGone || undefined}
                  title={isGone ? 'There is nothing at this path' : undefined}
                  onInput={e => {
                    setGone(false);
                    setPath(e.currentTarget.value);
                  }}
                />
                {isGone && <span role="status">Nothing is there</span>}
              </form>
              <CopyDocument follow={follow} />
            </div>
          </header>
          <FirstPublication topic={topic} app={app} follow={follow} />
          <Tree follow={follow} goTo={goTo} onGone={setGone} />
        </section>
        <section class="card flush viewer-events" aria-label="Events">
          <header class="card-head">
            <h2>Events</h2>
            <div class="actions filters">
              <input
                aria-label="Filter by path"
                placeholder="Filter by path"
                class="mono"
                value={filter.text}
                onInput={e => setFilter({ ...filter, text: e.currentTarget.value })}
              />
              <select
                aria-label="Filter by operation"
                value={filter.op}
                onChange={e => setFilter({ ...filter, op: e.currentTarget.value as Filter['op'] })}
              >
                <option value="">all</option>
                <option value="add">add</option>
                <option value="replace">replace</option>
                <option value="remove">remove</option>
                <option value="snapshot">snapshot</option>
                <option value="error">error</option>
              </select>
            </div>
          </header>
          <EventList follow={follow} filter={filter} />
          <Operations follow={follow} />
        </section>
      </div>
      <Plots follow={follow} />
    </>
  );
}

function CopyDocument({ follow }: { follow: Follow }) {
  return (
    <Copy
      what="the document"
      text={() => {
        const shown = follow.shown();
        return shown?.hasDoc ? print(shown.doc, 2) : '';
      }}
    />
  );
}

function FirstPublication({ topic, app, follow }: { topic: Topic; app: App; follow: Follow }) {
  void follow.tick.value;
  if (follow.newest?.hasDoc || follow.state.value.is !== 'open') return null; // who is not connected cannot know
  return topic.publisher.type === 'http-post' ? (
    <Empty
      icon="live"
      title="Nothing was published yet"
      action={
        <Link to={`/topics/${encodeURIComponent(topic.id)}/publish`} class="button primary">
          Publish something
        </Link>
      }
    >
      <p>Send the first document from here, or from your backend. It appears at once.</p>
    </Empty>
  ) : (
    <Empty icon="live" title="Waiting for the first answer">
      <p>
        Freshet polls <code>{topic.publisher.config.url}</code> while somebody is subscribed to this topic of {app.name}, as you are now.
      </p>
    </Empty>
  );
}
