// JSON Patch on documents that are never changed in place: what a patch does not touch is shared with the document before
// it, so that keeping a thousand versions costs little more than keeping one.
import { type Container, isContainer, type Json, setMember } from './json';

export interface Op {
  op: 'add' | 'replace' | 'remove';
  path: string;
  value?: Json;
}

export class Misfit extends Error {}

/** The names in a JSON Pointer. */
export function segments(pointer: string): string[] {
  if (pointer === '') return [];
  return pointer.slice(1).split('/').map(unescapeName);
}

export const unescapeName = (s: string): string => (s.includes('~') ? s.replaceAll('~1', '/').replaceAll('~0', '~') : s);

export const escapeName = (name: string): string => (/[~/]/.test(name) ? name.replaceAll('~', '~0').replaceAll('/', '~1') : name);

/** Which row of the document an operation touched. */
export interface Touch {
  path: string;
  kind: 'add' | 'replace' | 'remove';
}

export interface Applied {
  doc: Json;
  touches: Touch[];
  /** How much was copied, in slots: what keeping the version before costs. */
  cost: number;
}

/** Applies a patch. It throws Misfit if the patch does not fit, and then nothing has happened. */
export function apply(doc: Json, ops: Op[]): Applied {
  const own = new Set<Container>(); // copied in this patch, so they may be changed
  const out: Applied = { doc, touches: [], cost: 0 };
  const owned = (v: Container): Container => {
    if (own.has(v)) return v;
    let copy: Container;
    if (Array.isArray(v)) {
      copy = v.slice();
      out.cost += v.length;
    } else {
      copy = { ...v };
      out.cost += 4 * Object.keys(v).length;
    }
    own.add(copy);
    return copy;
  };
  for (const op of ops) {
    const names = segments(op.path);
    if (names.length === 0) {
      out.doc = op.op === 'remove' ? null : (op.value ?? null);
      out.touches.push({ path: '', kind: 'replace' });
      continue;
    }
    if (!isContainer(out.doc)) throw new Misfit(`nothing at ${op.path}`);
    let at = owned(out.doc);
    out.doc = at;
    let pointer = '';
    for (const name of names.slice(0, -1)) {
      const index = Array.isArray(at) ? position(name, at.length - 1) : name;
      const next = Array.isArray(at) ? at[index as number] : Object.hasOwn(at, name) ? at[name] : undefined;
      if (!isContainer(next)) throw new Misfit(`nothing at ${op.path}`);
      const copy = owned(next);
      if (Array.isArray(at)) at[index as number] = copy;
      else setMember(at, name, copy);
      pointer += '/' + escapeName(name);
      at = copy;
    }
    out.touches.push(change(at, names[names.length - 1]!, op, pointer));
  }
  return out;
}

function change(at: Container, name: string, op: Op, parent: string): Touch {
  if (Array.isArray(at)) {
    const adding = op.op === 'add';
    const i = adding && name === '-' ? at.length : position(name, adding ? at.length : at.length - 1);
    if (adding) at.splice(i, 0, op.value ?? null);
    else if (op.op === 'replace') at[i] = op.value ?? null;
    else at.splice(i, 1);
    return op.op === 'remove' ? { path: parent, kind: 'remove' } : { path: `${parent}/${i}`, kind: op.op };
  }
  const has = Object.hasOwn(at, name);
  if (op.op !== 'add' && !has) throw new Misfit(`nothing at ${op.path}`);
  if (op.op === 'remove') {
    delete at[name];
    return { path: parent, kind: 'remove' };
  }
  setMember(at, name, op.value ?? null);
  return { path: `${parent}/${escapeName(name)}`, kind: has ? 'replace' : 'add' };
}

function position(name: string, last: number): number {
  const i = /^(0|[1-9][0-9]*)$/.test(name) ? Number(name) : -1;
  if (i < 0 || i > last) throw new Misfit(`no element ${name}`);
  return i;
}
