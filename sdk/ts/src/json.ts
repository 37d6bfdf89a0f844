import { unescapeName } from './pointer.js';

/** Any JSON value. */
export type JSONValue = null | boolean | number | string | JSONValue[] | { [member: string]: JSONValue };

/** One operation of a patch. Freshet sends no others. */
export type Operation = { op: 'add' | 'replace'; path: string; value: unknown } | { op: 'remove'; path: string };

/** What an operation did: `add` to a member that was there is a `replace`, and `-` is the index that it stood for. */
export interface Change {
  readonly op: Operation['op'];
  readonly path: string;
}

type Container = unknown[] | Record<string, unknown>;

/**
 * Returns the document that a patch makes of another one, which stays as it was. Branches that the patch does not touch
 * are the same objects in both, so that a comparison by identity finds what changed.
 *
 * It throws if the patch does not fit, and then nothing has changed. `onChange` is told what each operation did, to show it.
 */
export function applyPatch(document: unknown, patch: readonly Operation[], onChange?: (change: Change) => void): unknown {
  return applyWith(new WeakMap(), document, patch, onChange);
}

/** The same, for who applies one patch after the other to documents that nobody changes: names remembers what they have in common. */
export function applyWith(names: Names, document: unknown, patch: readonly Operation[], onChange?: (change: Change) => void): unknown {
  const work = { own: new Set<object>(), names, onChange };
  for (const operation of patch) document = applyOne(document, operation, work);
  return document;
}

/** The names of the members of wide objects, which a copy has in common with what it is a copy of. */
export type Names = WeakMap<object, string[]>;

interface Work {
  /** Copied once for the whole patch, however many operations meet there. */
  readonly own: Set<object>;
  readonly names: Names;
  readonly onChange: ((change: Change) => void) | undefined;
}

function applyOne(document: unknown, operation: Operation, work: Work): unknown {
  const { op, path } = operation;
  if (path === '') {
    if (op === 'remove') throw new RangeError('the whole document cannot be removed');
    work.onChange?.({ op: 'replace', path });
    return operation.value;
  }
  if (path[0] !== '/') throw misfit(path);
  const steps = path.split('/');
  const root = mine(document, work, path);
  let parent = root;
  for (let i = 1; i < steps.length - 1; i++) {
    const key = keyIn(parent, unescapeName(steps[i]!), path);
    const child = mine((parent as Record<string, unknown>)[key], work, path);
    put(parent, key, child);
    parent = child;
  }
  if (operation.op !== 'replace') work.names.delete(parent);
  const last = unescapeName(steps[steps.length - 1]!);
  const done = work.onChange && changeBy(operation, parent, last);
  change(parent, last, operation, path);
  if (done) work.onChange?.(done);
  return root;
}

/** What an operation is about to do. */
function changeBy({ op, path }: Operation, parent: Container, last: string): Change {
  if (!Array.isArray(parent)) return { op: op === 'add' && Object.hasOwn(parent, last) ? 'replace' : op, path };
  return { op, path: last === '-' ? path.slice(0, -1) + parent.length : path };
}

function change(parent: Container, last: string, operation: Operation, path: string): void {
  if (operation.op === 'add') {
    if (Array.isArray(parent)) {
      const index = last === '-' ? parent.length : indexIn(last, parent.length, path);
      if (index === parent.length) parent.push(operation.value);
      else parent.splice(index, 0, operation.value);
    } else put(parent, last, operation.value);
    return;
  }
  const key = keyIn(parent, last, path);
  if (operation.op === 'replace') put(parent, key, operation.value);
  else if (operation.op === 'remove') {
    if (Array.isArray(parent)) parent.splice(+key, 1);
    else delete parent[key];
  } else throw new RangeError(`unknown operation ${(operation as { op: string }).op}`);
}

/** Whether a patch may go into a value. What the option `parse` makes of numbers or texts may be an object too, but has no members. */
export function isPlain(value: unknown): value is Container {
  if (typeof value !== 'object' || value === null) return false;
  const prototype = Object.getPrototypeOf(value);
  return Array.isArray(value) || prototype === Object.prototype || prototype === null;
}

/** Returns a container that belongs to this patch alone: a copy, unless it is one already. */
function mine(value: unknown, { own, names }: Work, path: string): Container {
  if (!isPlain(value)) throw misfit(path);
  if (own.has(value)) return value;
  const copy = Array.isArray(value) ? value.slice() : copyObject(value, names);
  own.add(copy);
  return copy;
}

/** Beyond so many members engines keep an object as a hash table, which they are slow to spread. */
const wide = 1_000;

function copyObject(value: Record<string, unknown>, names: Names): Record<string, unknown> {
  let all = names.get(value);
  if (!all) {
    all = Object.keys(value);
    if (all.length < wide || all.includes('__proto__')) return { ...value };
  }
  const copy: Record<string, unknown> = {};
  for (const name of all) copy[name] = value[name];
  names.set(copy, all);
  return copy;
}

/** Checks that a member or element is there. */
function keyIn(parent: Container, key: string, path: string): string {
  if (Array.isArray(parent)) indexIn(key, parent.length - 1, path);
  else if (!Object.hasOwn(parent, key)) throw misfit(path);
  return key;
}

function indexIn(key: string, max: number, path: string): number {
  const index = +key >>> 0;
  if (String(index) !== key || index > max) throw misfit(path); // as JSON Pointer spells it, and no other way
  return index;
}

export function put(parent: Container, key: string, value: unknown): void {
  if (key === '__proto__') {
    // A document may have such a member; assigning it would change the object's nature instead.
    Object.defineProperty(parent, key, { value, writable: true, enumerable: true, configurable: true });
  } else (parent as Record<string, unknown>)[key] = value;
}

function misfit(path: string): RangeError {
  return new RangeError(`the patch does not fit the document at ${path}`);
}
