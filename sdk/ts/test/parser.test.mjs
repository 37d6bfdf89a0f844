import assert from 'node:assert/strict';
import { test } from 'node:test';
import { load } from './load.mjs';

const { Parser } = await load('parser');

function parse(pieces) {
  const seen = [],
    retries = [];
  const parser = new Parser(
    message => seen.push(message),
    wait => retries.push(wait),
  );
  for (const piece of pieces) parser.push(piece);
  return { seen, retries };
}

const text =
  'retry: 1500\n:heartbeat\n\nevent: snapshot\ndata: {"a":"é: :"}\nid: e-1\n\nevent: patch\ndata: []\nid: e-2\n\n' +
  ':\n\ndata:one\ndata: two\n\nid: e-3\n\nevent: cut\ndata: ne';
const want = [
  { event: 'snapshot', data: '{"a":"é: :"}', id: 'e-1', length: 44 },
  { event: 'patch', data: '[]', id: 'e-2', length: 31 },
  { event: 'message', data: 'one\ntwo', id: undefined, length: 20 },
];

test('a stream means the same however it is cut into pieces and however its lines end', () => {
  for (const end of ['\n', '\r\n', '\r']) {
    const stream = text.replace(/\n/g, end);
    for (let first = 0; first < stream.length; first++) {
      for (const second of [first, first + 1, first + 7]) {
        const { seen, retries } = parse([stream.slice(0, first), stream.slice(first, second), stream.slice(second)]);
        assert.deepEqual(seen, want, JSON.stringify([end, first, second]));
        assert.deepEqual(retries, [1500]);
      }
    }
  }
});

test('an event in very many pieces is not read again and again', () => {
  const piece = 'x'.repeat(1000);
  const { seen } = parse(['data: ', ...Array(20_000).fill(piece), '\n\n']);
  assert.equal(seen[0].data.length, 20_000_000);
});
