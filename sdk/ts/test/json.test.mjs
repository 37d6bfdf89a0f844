import assert from 'node:assert/strict';
import { test } from 'node:test';
import fastJSONPatch from 'fast-json-patch';
import { applyPatch } from '../dist/index.js';
import { load } from './load.mjs';
import { random } from './random.mjs';

const { applyWith } = await load('json');

const escapeName = name => name.replace(/~/g, '~0').replace(/\//g, '~1');

/** A patch that fits the document: random operations, each at a place that is there. */
function patchFor(document, r) {
  const patch = [];
  let now = structuredClone(document);
  for (let n = 1 + r.below(4); n > 0; n--) {
    let path = '',
      at = now;
    for (;;) {
      const keys = typeof at === 'object' && at !== null ? Object.keys(at) : [];
      const inside = keys.filter(key => typeof at[key] === 'object' && at[key] !== null);
      if (inside.length === 0 || r.below(3) === 0) break;
      const key = inside[r.below(inside.length)];
      path += '/' + escapeName(key);
      at = at[key];
    }
    if (typeof at !== 'object' || at === null) break;
    const keys = Object.keys(at);
    const add = keys.length === 0 || r.below(2) === 0;
    const key = !add
      ? keys[r.below(keys.length)]
      : Array.isArray(at)
        ? [String(r.below(at.length + 1)), '-'][r.below(2)]
        : r.names[r.below(r.names.length)];
    const operation = {
      path: `${path}/${escapeName(key)}`,
      ...(add || r.below(2) ? { op: add ? 'add' : 'replace', value: r.value(2) } : { op: 'remove' }),
    };
    patch.push(operation);
    now = applyPatch(now, [structuredClone(operation)]);
  }
  return patch;
}

test('patches give what fast-json-patch gives, and leave the old document as it was', () => {
  let compared = 0;
  for (let seed = 0; seed < 10_000; seed++) {
    const r = random(seed);
    const document = r.value(4);
    const patch = patchFor(document, r);
    if (patch.length === 0) continue;
    const before = JSON.stringify(document);
    const got = applyPatch(document, structuredClone(patch));
    assert.equal(JSON.stringify(document), before);
    // The other one refuses __proto__ for safety; ours keeps it, harmlessly.
    if (/__proto__/.test(before + JSON.stringify(patch))) continue;
    const want = fastJSONPatch.applyPatch(structuredClone(document), structuredClone(patch)).newDocument;
    assert.deepEqual(got, want, `seed ${seed}: ${before} ${JSON.stringify(patch)}`);
    compared++;
  }
  assert.ok(compared > 1500, `only ${compared} compared`);
});

for (const odd of [false, true])
  test(`objects with thousands of members are patched like others${odd ? ', __proto__ included' : ''}`, () => {
    let document = JSON.parse(
      `{${Array.from({ length: 2000 }, (_, i) => `"${i % 3 ? 'k' + i : i}":{"n":${i}}`).join()}${odd ? ',"__proto__":{"n":-1}' : ''}}`,
    );
    const want = new Map(Object.entries(document));
    const names = new WeakMap(),
      r = random(7);
    for (let n = 0; n < 120; n++) {
      const before = document,
        text = n % 40 === 0 ? JSON.stringify(before) : '';
      const key = odd && n % 10 === 9 && want.has('__proto__') ? '__proto__' : [...want.keys()][r.below(want.size)];
      const patch = [
        [{ op: 'replace', path: `/${key}/n`, value: n }],
        [{ op: 'replace', path: `/${key}`, value: { n } }],
        [
          { op: 'add', path: `/new${n}`, value: { n } },
          { op: 'replace', path: `/new${n}/n`, value: -n },
        ],
        [{ op: 'remove', path: `/${key}` }],
      ][n % 4];
      if (n % 4 === 2) want.set(`new${n}`, { n: -n });
      else if (n % 4 === 3) want.delete(key);
      else want.set(key, { n });
      document = n % 5 ? applyWith(names, before, patch) : applyPatch(before, patch);
      if (text) assert.equal(JSON.stringify(before), text);
      assert.deepEqual(Object.keys(document).length, want.size, `after patch ${n}`);
    }
    for (const [key, value] of want) assert.deepEqual(Object.getOwnPropertyDescriptor(document, key)?.value, value, key);
    assert.equal(Object.getPrototypeOf(document), Object.prototype);
  });

test('branches that a patch does not touch are the same objects', () => {
  const before = { rows: [{ id: 1 }, { id: 2 }], users: { ada: { age: 36 } } };
  const after = applyPatch(before, [
    { op: 'replace', path: '/rows/1/id', value: 3 },
    { op: 'add', path: '/rows/1/new', value: true },
  ]);
  assert.deepEqual(after, { rows: [{ id: 1 }, { id: 3, new: true }], users: { ada: { age: 36 } } });
  assert.equal(after.users, before.users);
  assert.equal(after.rows[0], before.rows[0]);
  assert.notEqual(after.rows, before.rows);
  assert.notEqual(after.rows[1], before.rows[1]);
});

test('a member called __proto__ is a member like others', () => {
  const before = JSON.parse('{"__proto__": {"a": 1}, "b": 2}');
  const after = applyPatch(before, [
    { op: 'replace', path: '/__proto__/a', value: 5 },
    { op: 'add', path: '/c', value: 3 },
  ]);
  assert.equal(JSON.stringify(after), '{"__proto__":{"a":5},"b":2,"c":3}');
  assert.equal(Object.getPrototypeOf(after), Object.prototype);
  assert.throws(() => applyPatch({}, [{ op: 'add', path: '/__proto__/polluted', value: true }]));
  assert.throws(() => applyPatch({}, [{ op: 'add', path: '/constructor/prototype/polluted', value: true }]));
  assert.equal({}.polluted, undefined);
});

test('a patch that does not fit is refused, and the document stays', () => {
  const document = { list: [1, 2], text: 'x' };
  for (const operation of [
    { op: 'replace', path: '/nowhere', value: 1 },
    { op: 'remove', path: '/nowhere' },
    { op: 'replace', path: '/list/3', value: 1 },
    { op: 'remove', path: '/list/-' },
    { op: 'add', path: '/list/4', value: 1 },
    { op: 'add', path: '/list/01', value: 1 },
    { op: 'add', path: '/text/0', value: 1 },
    { op: 'add', path: 'list', value: 1 },
    { op: 'move', from: '/list', path: '/other' },
    { op: 'remove', path: '' },
    { op: 'add', path: '/toString/x', value: 1 },
  ]) {
    assert.throws(() => applyPatch(document, [{ op: 'add', path: '/list/-', value: 3 }, operation]), undefined, JSON.stringify(operation));
    assert.deepEqual(document, { list: [1, 2], text: 'x' });
  }
  assert.deepEqual(applyPatch(document, [{ op: 'replace', path: '', value: [1] }]), [1]);
});

test('what each operation did is told, and where', () => {
  const before = JSON.parse('{"a":[1,2,{"b":3}],"c":{"d":4},"~/":5}');
  const changes = [];
  const after = applyPatch(
    before,
    [
      { op: 'add', path: '/a/0', value: 0 },
      { op: 'add', path: '/a/-', value: 9 },
      { op: 'replace', path: '/a/3/b', value: null },
      { op: 'remove', path: '/a/1' },
      { op: 'add', path: '/c', value: 7 },
      { op: 'add', path: '/__proto__', value: { x: 1 } },
      { op: 'replace', path: '/~0~1', value: 6 },
    ],
    ({ op, path }) => changes.push(op + path),
  );
  assert.deepEqual(changes, ['add/a/0', 'add/a/4', 'replace/a/3/b', 'remove/a/1', 'replace/c', 'add/__proto__', 'replace/~0~1']);
  assert.equal(JSON.stringify(after), '{"a":[0,2,{"b":null},9],"c":7,"~/":6,"__proto__":{"x":1}}');
  assert.deepEqual(before.a, [1, 2, { b: 3 }]);
  applyPatch(1, [{ op: 'add', path: '', value: 2 }], ({ op, path }) => changes.push(op + path));
  assert.equal(changes.at(-1), 'replace');
});
