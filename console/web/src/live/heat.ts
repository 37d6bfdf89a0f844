// What patches touch, for rows that glow for a moment.
import { type Change, type Operation, unescapeName } from '@freshet/client';
import { type ExactContainer, type ExactJSON, isContainer } from '@freshet/client/exact';
import { children } from './rows';

/** Which row of the document an operation touched. */
export interface Touch {
  path: string;
  kind: Change['op'];
}

/** What is removed has no row any more: the one above it is touched. */
export const touchOf = ({ op, path }: Change): Touch => ({ path: op === 'remove' ? path.slice(0, path.lastIndexOf('/')) : path, kind: op });

/** How much was copied to make these changes, in slots: what keeping the document before them costs, about. */
export function copied(doc: ExactJSON, changes: Change[]): number {
  const seen = new Set<ExactContainer>();
  for (const { path } of changes) {
    let at: ExactJSON | undefined = doc;
    for (const step of path.split('/').slice(1)) {
      if (!isContainer(at)) break;
      seen.add(at);
      at = Array.isArray(at) ? at[Number(step)] : at[unescapeName(step)];
    }
  }
  let slots = 0;
  for (const v of seen) slots += Array.isArray(v) ? v.length : 4 * children(v);
  return slots;
}

const hotFor = 1600; // ms; the stylesheet fades as long

/** When a path was last touched, how, and how often: the last restarts the fading. */
interface Glow {
  at: number;
  kind: Touch['kind'];
  times: number;
}

export class Heat {
  private readonly glowing = new Map<string, Glow>();

  of(path: string, now: number): Glow | undefined {
    const glow = this.glowing.get(path);
    return glow && now - glow.at < hotFor ? glow : undefined;
  }

  /** Forgets what has faded. */
  fade(now: number): void {
    for (const [path, glow] of this.glowing) if (now - glow.at > hotFor) this.glowing.delete(path);
  }

  clear(): void {
    this.glowing.clear();
  }

  /** Remembers what a patch touched. Elements behind an inserted or removed one move, and their heat with them. */
  warm(ops: Operation[], touches: Touch[], at: number): void {
    for (const [i, op] of ops.entries()) {
      if (op.op !== 'replace') this.shift(op);
      const t = touches[i];
      if (t) this.glowing.set(t.path, { at, kind: t.kind, times: (this.glowing.get(t.path)?.times ?? 0) + 1 });
    }
  }

  private shift(op: Operation): void {
    const cut = op.path.lastIndexOf('/'),
      index = Number(op.path.slice(cut + 1));
    if (!Number.isInteger(index)) return;
    const parent = op.path.slice(0, cut + 1),
      by = op.op === 'add' ? 1 : -1;
    const moved: [string, Glow][] = [];
    for (const [path, glow] of this.glowing) {
      if (!path.startsWith(parent)) continue;
      const rest = path.slice(parent.length),
        end = rest.indexOf('/');
      const at = Number(end < 0 ? rest : rest.slice(0, end));
      if (!Number.isInteger(at) || at < index) continue;
      this.glowing.delete(path);
      if (by < 0 && at === index) continue;
      moved.push([parent + (at + by) + (end < 0 ? '' : rest.slice(end)), glow]);
    }
    for (const [path, glow] of moved) this.glowing.set(path, glow);
  }
}
