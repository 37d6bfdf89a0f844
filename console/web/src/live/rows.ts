// A document as lines on a screen, of which only those in view are ever made. Counting lines is cheap because containers
// remember their counts, and a patched document shares nearly all its containers with the one before.
import { escapeName, unescapeName } from '@freshet/client';
import { type ExactContainer, type ExactJSON, isContainer } from '@freshet/client/exact';

/** Containers larger than this begin folded, unless they are the document itself. */
const largeContainer = 100;

export interface Row {
  path: string;
  name: string;
  /** Whether the name is an index of an array. */
  isIndex: boolean;
  depth: number;
  value: ExactJSON;
  open: boolean;
  children: number;
}

/** What a person has opened and closed against the default. */
export class Folding {
  private readonly flipped = new Set<string>();
  private readonly above = new Map<string, number>(); // how many flipped paths are at or below a path

  isOpen(path: string, v: ExactContainer): boolean {
    return (children(v) <= largeContainer || path === '') !== this.flipped.has(path);
  }

  flip(path: string): void {
    const by = this.flipped.delete(path) ? -1 : 1;
    if (by > 0) this.flipped.add(path);
    for (let p = path; ; p = p.slice(0, p.lastIndexOf('/'))) {
      const n = (this.above.get(p) ?? 0) + by;
      if (n) this.above.set(p, n);
      else this.above.delete(p);
      if (p === '') return;
    }
  }

  /** Opens whatever is folded on the way to a path. It returns whether there is something at it. */
  openTo(doc: ExactJSON, pointer: string): boolean {
    let v = doc,
      path = '';
    for (const name of pointer === '' ? [] : pointer.slice(1).split('/')) {
      if (!isContainer(v)) return false;
      const key = unescapeName(name),
        next = Array.isArray(v) ? v[/^(0|[1-9]\d*)$/.test(key) ? Number(key) : -1] : Object.hasOwn(v, key) ? v[key] : undefined;
      if (next === undefined) return false;
      if (!this.isOpen(path, v)) this.flip(path);
      path += '/' + name;
      v = next;
    }
    return true;
  }

  isTouched(path: string): boolean {
    return this.above.has(path);
  }

  clear(): void {
    this.flipped.clear();
    this.above.clear();
  }
}

export const children = (v: ExactContainer): number => (Array.isArray(v) ? v.length : keysOf(v).length);

const keys = new WeakMap<object, string[]>();
function keysOf(v: { [key: string]: ExactJSON }): string[] {
  let k = keys.get(v);
  if (!k) {
    k = Object.keys(v);
    keys.set(v, k);
  }
  return k;
}

const heights = new WeakMap<object, number>();

/** How many rows a value takes, with nothing flipped. */
function plainHeight(v: ExactJSON, isRoot: boolean): number {
  if (!isContainer(v)) return 1;
  if (!isRoot && children(v) > largeContainer) return 1;
  let n = heights.get(v);
  if (n === undefined) {
    n = 1;
    if (Array.isArray(v)) for (const e of v) n += plainHeight(e, false);
    else for (const k of keysOf(v)) n += plainHeight(v[k]!, false);
    heights.set(v, n);
  }
  return n;
}

/** How many rows a value takes at a path. */
export function height(v: ExactJSON, path: string, f: Folding): number {
  if (!isContainer(v)) return 1;
  if (!f.isTouched(path)) return plainHeight(v, path === '');
  if (!f.isOpen(path, v)) return 1;
  let n = 1;
  if (Array.isArray(v))
    v.forEach((e, i) => {
      n += height(e, `${path}/${i}`, f);
    });
  else for (const k of keysOf(v)) n += height(v[k]!, `${path}/${escapeName(k)}`, f);
  return n;
}

/** The rows from one to another. */
export function rows(doc: ExactJSON, f: Folding, from: number, to: number): Row[] {
  const out: Row[] = [];
  let at = 0;
  const walk = (v: ExactJSON, path: string, name: string, isIndex: boolean, depth: number): void => {
    if (at >= to) return;
    const open = isContainer(v) && f.isOpen(path, v);
    if (at >= from) out.push({ path, name, isIndex, depth, value: v, open, children: isContainer(v) ? children(v) : 0 });
    at++;
    if (!open) return;
    const visit = (e: ExactJSON, key: string, index: boolean): void => {
      if (at >= to) return;
      const p = `${path}/${index ? key : escapeName(key)}`;
      const h = at < from ? height(e, p, f) : 0;
      if (h && at + h <= from) at += h;
      else walk(e, p, key, index, depth + 1);
    };
    if (Array.isArray(v)) for (let i = 0; i < v.length && at < to; i++) visit(v[i]!, String(i), true);
    else for (const k of keysOf(v as { [key: string]: ExactJSON })) visit((v as { [key: string]: ExactJSON })[k]!, k, false);
  };
  walk(doc, '', '', false, 0);
  return out;
}

/** The row that stands for a path: its own, or that of the nearest thing above it that is there and in no fold. */
export function nearest(doc: ExactJSON, f: Folding, pointer: string): { path: string; at: number } {
  for (let path = pointer; ; path = path.slice(0, path.lastIndexOf('/'))) {
    const at = find(doc, f, path);
    if (at >= 0 || path === '') return { path, at: Math.max(0, at) };
  }
}

/** Where the row of a path is, or -1 if it does not exist or is folded away. */
export function find(doc: ExactJSON, f: Folding, pointer: string): number {
  let at = 0,
    v = doc,
    path = '';
  for (const name of pointer === '' ? [] : pointer.slice(1).split('/')) {
    if (!isContainer(v) || !f.isOpen(path, v)) return -1;
    at++;
    const here = path,
      list = Array.isArray(v) ? v.map((_, i) => String(i)) : keysOf(v).map(escapeName);
    const i = list.indexOf(name);
    if (i < 0) return -1;
    for (let j = 0; j < i; j++) at += height(Array.isArray(v) ? v[j]! : v[keysOf(v)[j]!]!, `${here}/${list[j]}`, f);
    v = Array.isArray(v) ? v[i]! : v[keysOf(v)[i]!]!;
    path = `${here}/${name}`;
  }
  return at;
}
