// Against a real server.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { after, before, test } from 'node:test';
import { APIError, management, publish } from '../dist/api.js';
import { subscribe } from '../dist/index.js';
import { start } from './freshet.mjs';
import { holds, next } from './wait.mjs';

let server, api, app;

before(async () => {
  server = await start();
  const { token } = await management({ server: server.gateway }).signIn({ email: 'admin@freshet.local', password: 'freshet-admin' });
  api = management({ server: server.gateway, token });
  app = await api.createApp({ name: 'SDK' });
});
after(() => server?.stop());

const topicOf = payload =>
  api.createTopic(app.id, { name: 'A topic', publisher: { type: 'http-post', config: {}, ...(payload && { payload }) } });
const send = (topic, body, more) => publish(topic.id, body, { server: server.gateway, key: app.publisher_key, ...more });

function follow(t, topic, options = {}) {
  const stream = subscribe(topic.id, { server: server.subscriber, key: app.subscriber_key, ...options });
  t.after(() => stream.close());
  return stream;
}

for (const transport of ['fetch', 'long-poll']) {
  for (const options of [{}, { compress: true }, { mode: 'snapshot' }]) {
    test(`a document is followed by ${transport} ${JSON.stringify(options)}`, async t => {
      const topic = await topicOf();
      await send(topic, { n: 0, text: 'é\u2028' });
      const stream = follow(t, topic, { transport, ...options });
      assert.deepEqual(await holds(stream, () => true), { n: 0, text: 'é\u2028' });
      for (let n = 1; n <= 20; n++) {
        const patched = next(stream, options.mode ?? 'patch');
        await send(topic, { n, text: 'x'.repeat(100), list: [n] });
        await holds(stream, document => document.n === n);
        await patched;
      }
    });
  }
}

test('only the items asked for are followed', async t => {
  const topic = await topicOf({ type: 'item', item_id_path: '.id' });
  await send(topic, [
    { id: 'é,', v: 1 },
    { id: 'b', v: 1 },
  ]);
  const stream = follow(t, topic, { filter: ['b'] });
  assert.deepEqual(await holds(stream, () => true), [{ id: 'b', v: 1 }]);
  await send(topic, [
    { id: 'a', v: 2 },
    { id: 'b', v: 2 },
  ]);
  assert.deepEqual(await holds(stream, ([b]) => b.v === 2), [{ id: 'b', v: 2 }]);
});

test('a stream survives a drain and a kill of the server', async t => {
  const topic = await topicOf();
  await send(topic, { n: 1 });
  const stream = follow(t, topic);
  await holds(stream, ({ n }) => n === 1);
  for (const [n, signal] of [
    [2, 'SIGTERM'],
    [3, 'SIGKILL'],
  ]) {
    const waiting = next(stream, 'state', state => state === 'waiting');
    await server.stop({ signal, keep: true });
    await waiting;
    server = await start(server);
    await send(topic, { n });
    await holds(stream, document => document.n === n);
  }
});

test('an app that asks for signatures gets them, on every transport', async t => {
  const signed = await api.createApp({ name: 'Signed', client_request_signature_enabled: true });
  const topic = await api.createTopic(signed.id, { name: 'A topic', publisher: { type: 'http-post', config: {} } });
  await publish(topic.id, [1], { server: server.gateway, key: signed.publisher_key });
  const options = { key: signed.subscriber_key, signatureKey: signed.signature_key };
  for (const transport of ['fetch', 'long-poll']) {
    assert.deepEqual(await holds(follow(t, topic, { ...options, transport }), () => true), [1]);
  }
  const unsigned = await next(follow(t, topic, { key: signed.subscriber_key }), 'error');
  assert.deepEqual([unsigned.code, unsigned.category, unsigned.fatal], [40100, 'ClientException', true]);
  assert.ok(unsigned.sessionId);
});

test('the URL of a data source is signed with its query, on every transport', async t => {
  const source = createServer((request, response) => response.end(JSON.stringify(request.url))).listen(0, '127.0.0.1');
  await once(source, 'listening');
  t.after(() => source.close());
  const { subscriber_key: key, signature_key: signatureKey } = await api.createApp({
    name: 'Signed sources',
    client_request_signature_enabled: true,
    auto_provisioning_allowed: true,
  });
  const url = `http://127.0.0.1:${source.address().port}/doc?b=%2F&X-Foo=1&a=1`;
  for (const transport of ['fetch', 'long-poll']) {
    for (const topic of [url, `${server.subscriber}/${url}`]) {
      const stream = subscribe(topic, { server: server.subscriber, key, signatureKey, transport });
      t.after(() => stream.close());
      assert.equal(await holds(stream, () => true), '/doc?b=%2F&X-Foo=1&a=1');
    }
  }
});

test('errors end the stream with their code, on every transport', async t => {
  for (const transport of ['fetch', 'long-poll']) {
    const missing = await next(follow(t, { id: 'nowhere' }, { transport }), 'error');
    assert.deepEqual([missing.code, missing.fatal], [40401, true]);
    const wrong = await next(follow(t, await topicOf(), { transport, key: 'x'.repeat(48) }), 'error');
    assert.deepEqual([wrong.code, wrong.fatal], [40110, true]);
  }
});

test('a deleted topic ends its streams', async t => {
  const topic = await topicOf();
  await send(topic, 1);
  const stream = follow(t, topic);
  await holds(stream, () => true);
  const told = next(stream, 'error');
  await api.deleteTopic(topic.id);
  assert.equal((await told).code, 60000);
});

test('the management API is called by name, with errors that say what is wrong', async () => {
  const page = await api.listApps({ per_page: 1 });
  assert.equal(page.items.length, 1);
  const topic = await topicOf();
  assert.equal((await api.updateTopic(topic.id, { name: 'Renamed' })).name, 'Renamed');
  assert.notEqual((await api.renewSubscriberKey((await api.createApp({ name: 'Keys' })).id)).subscriber_key, undefined);
  assert.equal((await api.adminListUsers({ query: 'admin@' })).items.length, 1);
  const version = await send(topic, { a: 1 }, { idempotencyKey: 'once' });
  assert.equal(await send(topic, { a: 1 }, { idempotencyKey: 'once' }), version);
  await send(topic, [{ op: 'add', path: '/b', value: 2 }], { as: 'json-patch', ifMatch: version });
  await send(topic, { c: 3 }, { as: 'merge-patch' });
  assert.deepEqual(await api.getDocument(topic.id), { a: 1, b: 2, c: 3 });
  await assert.rejects(send(topic, {}, { ifMatch: version }), error => error instanceof APIError && error.status === 412);
  await assert.rejects(api.createTopic(app.id, { name: '' }), error => {
    assert.ok(error instanceof APIError);
    assert.equal(error.status, 400);
    assert.ok(
      error.errors.some(({ field }) => field === 'publisher'),
      error.message,
    );
    return true;
  });
  assert.equal(await api.deleteTopic(topic.id), undefined);
  await assert.rejects(api.getTopic(topic.id), { status: 404 });
});
