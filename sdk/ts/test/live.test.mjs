import assert from 'node:assert/strict';
import { test } from 'node:test';
import { applyPatch } from '../dist/index.js';
import { load } from './load.mjs';
import { random } from './random.mjs';

const { Live } = await load('live');

test('whoever looks, whenever, sees the document as it was after each patch', () => {
  for (let seed = 0; seed < 300; seed++) {
    const r = random(seed);
    const live = new Live();
    let document = { list: [], n: 0 };
    live.replace(document);
    const views = [];
    for (let n = 1; n < 600; n++) {
      const patch = [
        { op: 'replace', path: '/n', value: n },
        { op: 'add', path: '/list/0', value: { n } },
      ];
      if (n > 5) patch.push({ op: 'remove', path: '/list/5' }, { op: 'replace', path: '/list/2/n', value: -n });
      document = applyPatch(document, patch);
      views.push([document, live.patch(patch)]);
      if (r.below(20) === 0) assert.deepEqual(live.value(), document);
      if (r.below(20) === 0) assert.equal(views.at(-1)[1](), live.value());
      if (r.below(10) === 0) {
        const [want, look] = views[r.below(views.length)];
        assert.deepEqual(look(), want);
      }
    }
    for (const [want, look] of seed < 10 ? views : []) assert.deepEqual(look(), want);
    assert.deepEqual(live.value(), document);
    assert.equal(live.value(), live.value());
  }
});

test('a patch that does not fit is noticed at once when it comes alone', () => {
  const live = new Live();
  live.replace({});
  assert.throws(() => live.patch([{ op: 'remove', path: '/nowhere' }]));
  live.drop();
  assert.deepEqual(live.value(), {});
});
