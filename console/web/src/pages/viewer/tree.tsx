// The document as a tree that shows what each patch changed.
import { Exact, type ExactJSON, isContainer } from '@freshet/client/exact';
import { useEffect, useLayoutEffect, useMemo, useState } from 'preact/hooks';
import { count } from '../../format';
import type { Follow } from '../../live/follow';
import type { Touch } from '../../live/heat';
import { find, Folding, height, nearest, type Row, rows } from '../../live/rows';
import { useWindow } from './window';

const rowHeight = 24;

/** What a line cannot show as it is: breaks, and marks that turn the text behind them around. */
const unshown = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;
const escaped = (s: string): string => s.replace(unshown, c => '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0'));
export const cutOff = (s: string, most: number): string => (s.length > most ? s.slice(0, most) + '…' : s);

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
