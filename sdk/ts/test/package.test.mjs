import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { current, generate } from '../scripts/generate.mjs';
import { start } from './freshet.mjs';

const read = path => readFileSync(new URL(path, import.meta.url), 'utf8');

test('what a page has to load is under 8 KB', () => {
  const size = gzipSync(read('../dist/freshet.min.js'), { level: 9 }).length;
  assert.ok(size < 8 * 1024, `${size} bytes`);
});

test('the package has no dependencies and its entries are there', () => {
  const { dependencies, exports } = JSON.parse(read('../package.json'));
  assert.equal(dependencies, undefined);
  for (const entry of Object.values(exports)) for (const path of Object.values(entry)) read('../' + path);
  assert.doesNotMatch(read('../dist/index.js'), /^import /m);
  assert.doesNotMatch(read('../dist/index.js'), /managementRoutes/);
});

test('the operations are those of the server', async () => {
  assert.equal(current(), await generate(), 'src/operations.ts is stale; run npm run generate');
});

test('publish knows everything that the description of publishing does', async () => {
  const server = await start();
  try {
    const { paths } = await (await fetch(server.gateway + '/publish/v1/openapi.json')).json();
    const known = [];
    for (const [path, operations] of Object.entries(paths)) {
      for (const [method, { parameters, requestBody }] of Object.entries(operations)) {
        known.push([method, path, parameters.map(p => p.name), Object.keys(requestBody.content)]);
      }
    }
    const parameters = ['topic_id', 'If-Match', 'Idempotency-Key', 'Content-Encoding'];
    assert.deepEqual(known.sort(), [
      ['patch', '/topics/{topic_id}', parameters, ['application/json-patch+json', 'application/merge-patch+json']],
      ['post', '/topics/{topic_id}', parameters, ['application/json']],
    ]);
  } finally {
    await server.stop();
  }
});
