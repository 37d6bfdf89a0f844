// Events as they come, and what is known when none do.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { parse, print } from '../dist/exact.js';
import { events, subscribe } from '../dist/index.js';
import { holds, next } from './wait.mjs';

async function serve(t, ...handlers) {
  const requests = [];
  const server = createServer((request, response) => {
    requests.push(request);
    handlers[Math.min(requests.length, handlers.length) - 1](response);
  }).listen(0, '127.0.0.1');
  await new Promise(listening => server.once('listening', listening));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${server.address().port}/v1/topics/t`, requests };
}

const stream = text => response => response.writeHead(200, { 'Content-Type': 'text/event-stream' }).write(text);
const polled = list => response => response.writeHead(200, { 'Content-Type': 'application/json' }).end(list);

function follow(t, url, options) {
  const feed = events(url, options);
  t.after(() => feed.close());
  return feed;
}

test('events are given as text, with the size of their frames', async t => {
  const frame = 'event: snapshot\ndata: {"a":"é"}\nid: e-1\n\n';
  const answers = { fetch: stream(`:\n\n${frame}`), 'long-poll': polled('[{"event":"snapshot","data":{"a":"é"},"id":"e-1"}]') };
  for (const [transport, answer] of Object.entries(answers)) {
    const { url } = await serve(t, answer);
    const feed = follow(t, url, { transport });
    const event = await next(feed, 'event');
    assert.deepEqual([event.event, event.id, event.data, event.bytes], ['snapshot', 'e-1', '{"a":"é"}', Buffer.byteLength(frame)]);
    assert.deepEqual(event.read(), { a: 'é' });
    feed.close();
  }
});

test('who cannot make sense of an event gets the whole document, and nothing more of what was under way', async t => {
  const { url, requests } = await serve(
    t,
    stream('event: snapshot\ndata: 1\nid: e-1\n\nevent: snapshot\ndata: 2\nid: e-2\n\n'),
    stream('event: snapshot\ndata: 3\nid: e-3\n\n'),
  );
  const feed = follow(t, url);
  const seen = [];
  feed.on('event', ({ id }) => {
    seen.push(id);
    if (seen.length === 1) feed.restart();
  });
  feed.on('state', state => state === 'waiting' && seen.push(feed.trouble.is));
  await next(feed, 'event', ({ id }) => id === 'e-3');
  assert.deepEqual(seen, ['e-1', 'out-of-step', 'e-3']);
  assert.equal(requests[1].headers['last-event-id'], undefined);
});

test('why there is no connection is known while there is none, and who does not want to wait need not', async t => {
  const { url } = await serve(
    t,
    response => response.writeHead(503, { 'Content-Type': 'text/html', 'Retry-After': '600' }).end('busy'),
    response => response.writeHead(200, { 'Content-Type': 'text/event-stream' }).end('retry: 600000\n\n'),
    stream('event: snapshot\ndata: 1\nid: e-1\n\n'),
  );
  const document = subscribe(url);
  t.after(() => document.close());
  await next(document, 'state', state => state === 'waiting');
  assert.deepEqual(document.trouble, { is: 'no-stream', status: 503, contentType: 'text/html' });
  const again = next(document, 'state', state => state === 'waiting');
  document.retryNow();
  await again;
  assert.deepEqual(document.trouble, { is: 'lost' });
  document.retryNow();
  await holds(document, value => value === 1);
  assert.equal(document.trouble, undefined);
});

test('a final error is the reason for good', async t => {
  const { url } = await serve(t, stream('event: error\ndata: {"code":40401,"message":"Gone"}\n\n'));
  const feed = follow(t, url);
  await next(feed, 'state', state => state === 'closed');
  assert.deepEqual([feed.trouble.is, feed.trouble.error.code, feed.trouble.error.message], ['error', 40401, 'Gone']);
});

test('JSON is read and requests are made by whoever the options name', async t => {
  const { url } = await serve(t, stream('event: snapshot\ndata: {"n":12345678901234567890}\nid: e-1\n\n'));
  const asked = [];
  const exact = subscribe(url, {
    parse,
    fetch: (to, init) => {
      asked.push(String(to));
      return fetch(to, init);
    },
  });
  t.after(() => exact.close());
  assert.equal(print(await holds(exact, () => true)), '{"n":12345678901234567890}');
  assert.match(asked[0], /topics\/t/);
});
