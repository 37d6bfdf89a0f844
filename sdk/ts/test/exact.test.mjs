import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Exact, isContainer, parse, print } from '../dist/exact.js';
import { applyPatch } from '../dist/index.js';
import { random } from './random.mjs';

test('a document is printed as it was parsed, to the last digit', () => {
  for (let seed = 0; seed < 500; seed++) {
    const text = `[${JSON.stringify(random(seed).value(4))},1234567890123456789${seed}]`;
    assert.equal(print(parse(text)), text);
    assert.deepEqual(JSON.parse(print(parse(text), 2)), JSON.parse(text));
  }
  for (const exact of [
    '12345678901234567890',
    '0.1234567890123456789',
    '1e400',
    '-0.00000000000000000000000000001e-300',
    '-0',
    '-0.0',
    '-0.05',
  ]) {
    assert.equal(print(parse(`[${exact}]`)), `[${exact}]`);
  }
  assert.equal(parse('1.5e3'), 1500);
  assert.equal(parse('100000000000000000000'), 1e20);
});

test('what is not JSON is refused, also where numbers are long', () => {
  for (const bad of [
    '',
    '{',
    '[1,]',
    '{"a":1234567890123456789,}',
    '[01234567890123456789]',
    '"\n"',
    'nul',
    '1234567890123456789.',
    '[1234567890123456789 2]',
  ]) {
    assert.throws(() => parse(bad), SyntaxError);
  }
});

test('a number that is kept as text has no members, and no patch goes into it', () => {
  const document = parse('{"n":12345678901234567890,"l":[]}');
  assert.ok(document.n instanceof Exact);
  assert.deepEqual(
    [isContainer(document.n), isContainer(document.l), isContainer(document), isContainer(null)],
    [false, true, true, false],
  );
  assert.throws(() => applyPatch(document, [{ op: 'replace', path: '/n/text', value: '1' }]), RangeError);
  const after = applyPatch(document, [{ op: 'add', path: '/l/-', value: parse('98765432109876543210') }]);
  assert.equal(print(after), '{"n":12345678901234567890,"l":[98765432109876543210]}');
});
