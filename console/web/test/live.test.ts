// The parts of the live viewer that must be right whatever arrives.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { applyPatch, type Change } from '@freshet/client';
import { Exact, type ExactJSON, parse, print } from '@freshet/client/exact';
import { between, quantile } from '../src/live/figures';
import { copied, Heat, touchOf } from '../src/live/heat';
import { find, Folding, height, nearest, rows } from '../src/live/rows';
import { size } from '../src/live/size';
import { checkItemPath, checkJSON, checkURL } from '../src/rules';

/** A small generator, so that every run tries the same documents. */
let seed = 42;
const random = (n: number): number => {
  seed = (seed * 1103515245 + 12345) & 0x7fffffff;
  return (seed >> 8) % n;
};
const names = ['a', 'b', '', '/', '~', '~1', '__proto__', 'constructor', '0', '-', 'é', '😀', '"', '\n'];

function document(depth: number): ExactJSON {
  switch (random(depth > 0 ? 8 : 5)) {
    case 0:
      return null;
    case 1:
      return random(2) === 0;
    case 2:
      return random(1000) / 8;
    case 3:
      return names[random(names.length)]! + random(10);
    case 4:
      return new Exact('1234567890123456789' + random(10));
    case 5:
    case 6:
      return Array.from({ length: random(5) }, () => document(depth - 1));
    default: {
      const text = names.filter(() => random(3) === 0).map(n => JSON.stringify(n) + ':' + print(document(depth - 1)));
      return parse('{' + text.join(',') + '}');
    }
  }
}

test('a document has the size of its text', () => {
  for (let i = 0; i < 500; i++) {
    const text = print(document(4));
    assert.equal(size(parse(text)), new TextEncoder().encode(text).length);
  }
});

test('a patch touches the rows that it changes, and costs what was copied', () => {
  const before = parse('{"a":[1,2,{"b":3}],"c":{"d":4},"~/":5}'),
    changes: Change[] = [];
  const after = applyPatch(
    before,
    [
      { op: 'add', path: '/a/0', value: 0 },
      { op: 'add', path: '/a/-', value: 9 },
      { op: 'replace', path: '/a/3/b', value: null },
      { op: 'remove', path: '/a/1' },
      { op: 'add', path: '/__proto__', value: { x: 1 } },
      { op: 'replace', path: '/~0~1', value: 6 },
    ],
    c => changes.push(c),
  ) as ExactJSON;
  assert.deepEqual(
    changes.map(touchOf).map(t => t.kind + t.path),
    ['add/a/0', 'add/a/4', 'replace/a/3/b', 'remove/a', 'add/__proto__', 'replace/~0~1'],
  );
  assert.equal(copied(after, changes.slice(0, 2)), 4 * 4 + 4); // the document and its array, once each
  assert.equal(copied(after, [{ op: 'replace', path: '' }]), 0);
});

test('heat moves with the elements that it is of', () => {
  const heat = new Heat(),
    at = 1000;
  heat.warm([{ op: 'replace', path: '/a/2', value: 1 }], [{ path: '/a/2', kind: 'replace' }], at);
  heat.warm([{ op: 'add', path: '/a/0', value: 1 }], [{ path: '/a/0', kind: 'add' }], at);
  assert.deepEqual([heat.of('/a/3', at)?.kind, heat.of('/a/2', at)], ['replace', undefined]);
  heat.warm([{ op: 'remove', path: '/a/0' }], [{ path: '/a', kind: 'remove' }], at);
  assert.deepEqual([heat.of('/a/2', at)?.kind, heat.of('/a/0', at), heat.of('/a', at)?.kind], ['replace', undefined, 'remove']);
  assert.equal(heat.of('/a/2', at + 1600), undefined);
});

test('rows are those of the whole document, whichever window is looked at', () => {
  for (let i = 0; i < 200; i++) {
    const doc = document(5),
      folding = new Folding();
    const all = rows(doc, folding, 0, 1e9);
    for (let f = 0; f < 3; f++) {
      const r = all[random(all.length)]!;
      if (r.children) folding.flip(r.path);
    }
    const now = rows(doc, folding, 0, 1e9);
    assert.equal(height(doc, '', folding), now.length);
    const from = random(now.length + 1),
      to = from + random(8);
    assert.deepEqual(
      rows(doc, folding, from, to).map(r => r.path),
      now.slice(from, to).map(r => r.path),
    );
    for (const [at, r] of now.entries()) assert.equal(find(doc, folding, r.path), at);
  }
});

test('a path leads to its row through folds, or to what is left of the way', () => {
  for (let i = 0; i < 200; i++) {
    const doc = document(5),
      paths = rows(doc, new Folding(), 0, 1e9).map(r => r.path);
    const folding = new Folding();
    for (let f = 0; f < 4; f++) {
      const all = rows(doc, folding, 0, 1e9),
        r = all[random(all.length)]!;
      if (r.children) folding.flip(r.path);
    }
    const path = paths[random(paths.length)]!,
      near = nearest(doc, folding, path);
    assert.equal(rows(doc, folding, near.at, near.at + 1)[0]!.path, near.path);
    assert.ok(path.startsWith(near.path));
    assert.ok(folding.openTo(doc, path));
    assert.ok(find(doc, folding, path) >= 0, path);
  }
  const doc = parse('{"a":{"b":[1,2]},"~/":[3]}'),
    f = new Folding();
  for (const gone of ['/x', '/a/b/2', '/a/b/-', '/a/b/01', '/a/c', '/toString', '/a/b/0/z']) assert.equal(f.openTo(doc, gone), false, gone);
  assert.ok(f.openTo(doc, '/~0~1/0'));
  assert.deepEqual(nearest(doc, f, '/a/b/9/z'), { path: '/a/b', at: 2 });
  assert.deepEqual(nearest(doc, f, '/gone/with/it'), { path: '', at: 0 });
});

test('forms say what the server would', () => {
  assert.equal(checkURL('https://example.com/x?y=1'), undefined);
  for (const bad of ['', 'example.com', 'ftp://x', 'https://', 'https://u:p@x/', 'https://x/#y', 'https://a b/'])
    assert.ok(checkURL(bad), bad);
  assert.equal(checkItemPath('.Identifier.Symbol'), undefined);
  for (const bad of ['', '.', '..a', '.a..b', '.a.']) assert.ok(checkItemPath(bad), bad);
  for (let i = 0; i < 300; i++) assert.equal(checkJSON(print(document(4), random(3))), undefined);
  const places: [string, number, number][] = [
    ['{\n "a": }', 2, 7],
    ['', 1, 1],
    ['[1,]', 1, 4],
    ['{"a":1,"a":2}', 1, 8],
    ['"x\n"', 1, 1],
    ['1 2', 1, 3],
    ['[01]', 1, 3],
    ['{a:1}', 1, 2],
    ['[tru]', 1, 2],
    ['['.repeat(600), 1, 514],
  ];
  for (const [text, line, column] of places) assert.deepEqual([checkJSON(text)?.line, checkJSON(text)?.column], [line, column], text);
});

test('percentiles of a moment come from what was counted in it', () => {
  const bounds = [1, 2, 4];
  assert.equal(quantile(0.5, [0, 0, 0, 0], bounds), null);
  assert.equal(quantile(0.5, [0, 10, 0, 0], bounds), 1.5);
  assert.equal(quantile(0.99, [50, 49, 1, 0], bounds), 2);
  assert.equal(quantile(0.99, [0, 0, 0, 5], bounds), 4); // beyond the last bound nothing more is known
  const report = (messages: number, counts: number[]) => ({
    delivery_lag_bounds_ms: bounds,
    from: '',
    to: '',
    hours: [],
    total: {
      messages,
      bytes: 10 * messages,
      full_bytes: 100 * messages,
      bytes_saved: 0,
      publications: 0,
      connection_seconds: messages,
      polls: 0,
      polls_ok: 0,
      polls_not_modified: 0,
      polls_failed: 0,
      delivery_lag: { p50_ms: 1, p95_ms: 1, p99_ms: 1, counts },
    },
  });
  const now = between(report(100, [100, 0, 0, 0]), report(120, [100, 0, 20, 0]), 5, 2);
  assert.deepEqual([now.messages, now.bytes, now.full, now.connections, now.p50], [10, 100, 1000, 10, 3]);
});
