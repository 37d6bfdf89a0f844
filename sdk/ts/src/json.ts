/** Any JSON value. */
export type JSONValue = null | boolean | number | string | JSONValue[] | { [member: string]: JSONValue };

/** One operation of a patch. Freshet sends no others. */
export type Operation = { op: 'add' | 'replace'; path: string; value: unknown } | { op: 'remove'; path: string };

type Container = unknown[] | Record<string, unknown>;

/**
 * Returns the document that a patch makes of another one, which stays as it was. Branches that the patch does not touch
 * are the same objects in both, so that a comparison by identity finds what changed.
 *
 * It throws if the patch does not fit, and then nothing has changed.
 */
export function applyPatch(document: unknown, patch: readonly Operation[]): unknown {
  return applyWith(new WeakMap(), document, patch);
}

/** The same, for who applies one patch after the other to documents that nobody changes: names remembers what they have in common. */
export function applyWith(names: Names, document: unknown, patch: readonly Operation[]): unknown {
  const work = { own: new Set<object>(), names };
  for (const operation of patch) document = applyOne(document, operation, work);
  return document;
}

/** The names of the members of wide objects, which a copy has in common with what it is a copy of. */
export type Names = WeakMap<object, string[]>;

interface Work {
  /** Copied once for the whole patch, however many operations meet there. */
  readonly own: Set<object>;
  readonly names: Names;
}

function applyOne(document: unknown, operation: Operation, work: Work): unknown {
  const { op, path } = operation;
  if (path === '') {
    if (op === 'remove') throw new RangeError('the whole document cannot be removed');
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
  change(parent, unescapeName(steps[steps.length - 1]!), operation, path);
  return root;
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

/** Returns a container that belongs to this patch alone: a copy, unless it is one already. */
function mine(value: unknown, { own, names }: Work, path: string): Container {
  if (typeof value !== 'object' || value === null) throw misfit(path);
  if (own.has(value)) return value as Container;
  const copy = Array.isArray(value) ? value.slice() : copyObject(value as Record<string, unknown>, names);
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

function put(parent: Container, key: string, value: unknown): void {
  if (key === '__proto__') {
    // A document may have such a member; assigning it would change the object's nature instead.
    Object.defineProperty(parent, key, { value, writable: true, enumerable: true, configurable: true });
  } else (parent as Record<string, unknown>)[key] = value;
}

function unescapeName(step: string): string {
  return step.includes('~') ? step.replace(/~1/g, '/').replace(/~0/g, '~') : step;
}

function misfit(path: string): RangeError {
  return new RangeError(`the patch does not fit the document at ${path}`);
}
