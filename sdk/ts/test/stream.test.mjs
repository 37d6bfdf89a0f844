// The stream's behaviour against servers that misbehave in all the ways that are hard to get from a real one.
import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { FreshetError, subscribe } from '../dist/index.js';
import { load } from './load.mjs';
import { holds, next } from './wait.mjs';

const { final, passing, renewing } = await load('codes');
const { Parser } = await load('parser');

/** Serves with the handlers, one for each connection, the last for all further ones. */
async function serve(t, ...handlers) {
  const requests = [];
  const server = createServer((request, response) => {
    request.at = performance.now();
    requests.push(request);
    handlers[Math.min(requests.length, handlers.length) - 1](response, request);
  }).listen(0, '127.0.0.1');
  await new Promise(listening => server.once('listening', listening));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${server.address().port}/v1/topics/t`, requests, server };
}

const begin = response => response.writeHead(200, { 'Content-Type': 'text/event-stream' });
const frame = (event, data, id) => `event: ${event}\ndata: ${JSON.stringify(data)}\n${id ? `id: ${id}\n` : ''}\n`;
const stay =
  (...frames) =>
  response =>
    begin(response).write(frames.join(''));
const leave =
  (...frames) =>
  response =>
    begin(response).end(frames.join(''));
const failure = (code, category, more = {}) => ({ code, category, message: 'No', sessionId: 's1', ...more });

/** What browsers have: it reconnects by itself, to the very same URL. */
class PlainEventSource extends EventTarget {
  CLOSED = 2;
  readyState = 0;
  #abort = new AbortController();

  constructor(url) {
    super();
    void this.#run(url);
  }

  close() {
    this.readyState = 2;
    this.#abort.abort();
  }

  async #run(url) {
    for (let retry = 100; this.readyState !== 2; await new Promise(later => setTimeout(later, retry))) {
      try {
        const response = await fetch(url, { signal: this.#abort.signal });
        this.readyState = 1;
        this.onopen?.();
        let lastEventId = '';
        const parser = new Parser(
          ({ event, id, data }) => {
            lastEventId = id ?? lastEventId;
            this.dispatchEvent(Object.assign(new Event(event), { data, lastEventId }));
          },
          milliseconds => (retry = milliseconds),
        );
        parser.push(await response.text());
      } catch {
        // it broke
      }
      if (this.readyState === 2) return;
      this.readyState = 0;
      this.dispatchEvent(new Event('error'));
    }
  }
}

/** Subscribes; the stream ends with the test. */
function follow(t, url, options = {}) {
  const stream = subscribe(url, options);
  t.after(() => stream.close());
  return stream;
}

test('a snapshot and patches make the document, as events and in a loop', async t => {
  const { url } = await serve(
    t,
    stay(
      ':heartbeat\n\n',
      frame('snapshot', { a: 1, b: { c: 2 } }, 'e-1'),
      frame('patch', [{ op: 'replace', path: '/a', value: 2 }], 'e-2'),
      frame('patch', [{ op: 'remove', path: '/a' }], 'e-3'),
    ),
  );
  const stream = follow(t, url);
  const seen = [],
    states = [];
  stream.on('snapshot', event => seen.push(['snapshot', event.document, event.id]));
  stream.on('patch', event => seen.push(['patch', event.document, event.id]));
  stream.on('state', state => states.push(state));
  assert.equal(stream.state, 'connecting');
  const looped = [];
  for await (const event of stream) {
    looped.push([event.type, event.document, event.id]);
    if (looped.length === 3) break;
  }
  const want = [
    ['snapshot', { a: 1, b: { c: 2 } }, 'e-1'],
    ['patch', { a: 2, b: { c: 2 } }, 'e-2'],
    ['patch', { b: { c: 2 } }, 'e-3'],
  ];
  assert.deepEqual(looped, want);
  assert.deepEqual(seen, want);
  assert.equal(looped[0][1].b, looped[2][1].b, 'untouched branches are shared');
  assert.deepEqual(states, ['open', 'closed'], 'leaving the loop closes the stream');
  assert.deepEqual(stream.document, { b: { c: 2 } });
});

test('a lost connection is resumed from the last event', async t => {
  const { url, requests } = await serve(
    t,
    leave(frame('snapshot', { n: 1 }, 'e-1'), frame('patch', [{ op: 'replace', path: '/n', value: 2 }], 'e-2')),
    stay(frame('patch', [{ op: 'replace', path: '/n', value: 3 }], 'e-3')),
  );
  const stream = follow(t, url, { key: 'secret' });
  const waited = next(stream, 'state', state => state === 'waiting');
  await holds(stream, ({ n }) => n === 3);
  await waited;
  assert.equal(requests[0].headers['last-event-id'], undefined);
  assert.equal(requests[1].headers['last-event-id'], 'e-2');
  assert.equal(requests[1].headers['x-sd-subscriber-key'], 'secret');
  assert.doesNotMatch(requests[1].url, /secret/);
});

test('the server is not asked again before the time it named', async t => {
  const { url, requests } = await serve(t, leave('retry: 900\n\n'), leave('retry: 10\n\n'), stay(frame('snapshot', 1, 'e-1')));
  await holds(follow(t, url), document => document === 1);
  assert.ok(requests[1].at - requests[0].at >= 890, 'it came back too early');
  assert.ok(requests.length === 3);
});

test('a server that is away is tried less and less often, and told of once', async t => {
  const { url, requests } = await serve(
    t,
    response => response.writeHead(503).end(),
    response => response.writeHead(503).end(),
    response => response.writeHead(502).end(),
    stay(frame('snapshot', 1, 'e-1')),
  );
  const stream = follow(t, url);
  const errors = [];
  stream.on('error', error => errors.push(error));
  await holds(stream, document => document === 1);
  const waits = requests.slice(1).map((request, i) => request.at - requests[i].at);
  assert.ok(waits[0] >= 240 && waits[1] >= 490 && waits[2] >= 990, `waits ${waits}`);
  assert.equal(errors.length, 1);
  assert.match(errors[0].message, /503/);
  assert.equal(errors[0].fatal, false);
});

test('Retry-After of a proxy is honoured', async t => {
  const { url, requests } = await serve(
    t,
    response => response.writeHead(503, { 'Retry-After': '1' }).end(),
    stay(frame('snapshot', 1, 'e-1')),
  );
  await holds(follow(t, url), document => document === 1);
  assert.ok(requests[1].at - requests[0].at >= 990);
});

test('a fatal error ends the stream, is told to listeners and thrown in loops', async t => {
  const { url, requests } = await serve(t, leave('retry: 30000\n', frame('error', failure(40110, 'ClientException'))));
  const stream = follow(t, url);
  const told = next(stream, 'error');
  await assert.rejects(
    async () => {
      for await (const _ of stream);
    },
    error => {
      assert.ok(error instanceof FreshetError);
      assert.deepEqual(
        [error.code, error.category, error.sessionId, error.fatal, error.message],
        [40110, 'ClientException', 's1', true, 'No'],
      );
      return true;
    },
  );
  assert.equal((await told).code, 40110);
  assert.equal(stream.state, 'closed');
  for await (const _ of stream) assert.fail('a closed stream has no events');
  assert.equal(requests.length, 1);
});

/** A frame or, for who polls, an event of the answer. */
const say = (transport, event, data, id, retry) =>
  transport === 'long-poll' ? { event, data, id } : (retry ? `retry: ${retry}\n` : '') + frame(event, data, id);
const answer = (transport, said) => response =>
  transport === 'long-poll'
    ? response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify([said]))
    : begin(response).end(said);

for (const transport of ['fetch', 'long-poll', 'eventsource']) {
  test(`after a final error ${transport} stops, after one that passes it connects again`, async t => {
    if (transport === 'eventsource') {
      globalThis.EventSource = PlainEventSource;
      t.after(() => delete globalThis.EventSource);
    }
    await Promise.all(
      [...final, ...passing].map(async code => {
        const category = { 4: 'ClientException', 5: 'ServerException', 6: 'TopicException' }[Math.floor(code / 10_000)];
        const { url, requests } = await serve(
          t,
          answer(transport, say(transport, 'error', failure(code, category), undefined, 20)),
          answer(transport, say(transport, 'snapshot', 1, 'e-1')),
        );
        const stream = follow(t, url, { transport, signatureKey: btoa('b'.repeat(36) + 's'.repeat(36)) });
        const error = await next(stream, 'error');
        assert.deepEqual([error.code, error.fatal, error.sessionId], [code, final.includes(code), 's1']);
        if (final.includes(code)) {
          assert.equal(stream.state, 'closed');
          assert.equal(requests.length, 1);
          return;
        }
        await holds(stream, document => document === 1);
        const stamp = ({ headers, url }) => headers['x-auth-sd-ts'] ?? new URL(url, 'http://x').searchParams.get('X-Auth-Sd-Ts');
        assert.ok(stamp(requests[0]));
        if (renewing.includes(code)) assert.notEqual(stamp(requests[0]), stamp(requests[1]), 'it came back with the old signature');
        stream.close();
      }),
    );
  });
}

test("an error that nobody knows yet is final if it is the client's", async t => {
  for (const [code, category, fatal] of [
    [40999, 'ClientException', true],
    [50999, 'ServerException', false],
    [60999, 'TopicException', false],
  ]) {
    const { url } = await serve(t, leave(frame('error', failure(code, category))));
    assert.equal((await next(follow(t, url), 'error')).fatal, fatal);
  }
});

test('an error of the data source is told and the stream goes on', async t => {
  const { url } = await serve(
    t,
    stay(frame('snapshot', 1, 'e-1'), frame('error', failure(60001, 'TopicException')), frame('snapshot', 2, 'e-2')),
  );
  const stream = follow(t, url);
  const told = next(stream, 'error');
  await holds(stream, document => document === 2);
  assert.deepEqual([(await told).code, (await told).fatal], [60001, false]);
});

test('a patch that does not fit, or is no JSON, makes the stream start over without an id', async t => {
  const { url, requests } = await serve(
    t,
    stay(frame('snapshot', { a: 1 }, 'e-1'), frame('patch', [{ op: 'remove', path: '/nowhere' }], 'e-2')),
    stay(frame('snapshot', { a: 2 }, 'e-2'), 'event: patch\ndata: [{"op\nid: e-3\n\n'),
    stay(frame('patch', [{ op: 'remove', path: '/a' }], 'e-3')),
    stay(frame('snapshot', { a: 3 }, 'e-3')),
  );
  const stream = follow(t, url);
  const errors = [];
  stream.on('error', error => errors.push(error.message));
  await holds(stream, ({ a }) => a === 3);
  assert.equal(requests.length, 4);
  assert.equal(requests.at(-1).headers['last-event-id'], undefined);
  assert.equal(errors.length, 3);
  assert.match(errors[0], /Out of step/);
});

test('silence is noticed: a proxy that holds the stream back is passed by long polling', async t => {
  const server = await serve(t, (response, request) => {
    if (request.headers['x-sd-transport'] !== 'long-poll') return; // held back for ever
    const known = request.headers['last-event-id'];
    if (known === 'e-3') return setTimeout(() => response.writeHead(204).end(), 300);
    const events = known
      ? [{ id: 'e-3', event: 'patch', data: [{ op: 'add', path: '/-', value: 'text' }] }]
      : [
          { id: 'e-1', event: 'snapshot', data: ['a'] },
          { id: 'e-2', event: 'patch', data: [{ op: 'add', path: '/-', value: 'b' }] },
        ];
    response.setHeader('Content-Type', 'application/json').end(JSON.stringify(events));
  });
  const stream = follow(t, server.url, { patience: { first: 200 } });
  assert.deepEqual(await holds(stream, document => document.length === 3), ['a', 'b', 'text']);
  assert.equal(stream.transport, 'long-poll');
  assert.equal(server.requests[0].headers.accept, 'text/event-stream');
});

test('a connection that streamed and died is taken up again, by streaming', async t => {
  let heart;
  const { url, requests } = await serve(
    t,
    response => {
      begin(response).write(frame('snapshot', 1, 'e-1'));
      let beats = 0;
      heart = setInterval(() => (++beats < 4 ? response.write(':heartbeat\n\n') : clearInterval(heart)), 500);
    },
    stay(frame('snapshot', 2, 'e-2')),
  );
  t.after(() => clearInterval(heart));
  const stream = follow(t, url, { patience: { silence: 3000 } });
  await holds(stream, document => document === 2);
  assert.equal(stream.transport, 'fetch');
  assert.equal(requests.length, 2);
});

test('heartbeats keep a silent stream', async t => {
  let heart;
  const { url, requests } = await serve(t, response => {
    begin(response).write(frame('snapshot', 1, 'e-1'));
    let beats = 0;
    heart = setInterval(() => response.write(++beats === 12 ? frame('snapshot', 2, 'e-2') : ':heartbeat\n\n'), 300);
  });
  t.after(() => clearInterval(heart));
  await holds(follow(t, url, { patience: { silence: 3000 } }), document => document === 2);
  assert.equal(requests.length, 1);
});

test('an abort signal ends the stream and its connection, and leaves nothing behind', async t => {
  let closed;
  const gone = new Promise(resolve => (closed = resolve));
  const { url } = await serve(t, response => {
    response.on('close', closed);
    begin(response).write(frame('snapshot', 1, 'e-1'));
  });
  const controller = new AbortController();
  const stream = follow(t, url, { signal: controller.signal });
  const loop = (async () => {
    for await (const _ of stream);
  })();
  await holds(stream, document => document === 1);
  controller.abort();
  assert.equal(stream.state, 'closed');
  await loop;
  await gone;
  assert.equal(getEventListeners(controller.signal, 'abort').length, 0);
  assert.equal(follow(t, url, { signal: controller.signal }).state, 'closed');
});

test('listeners can be taken off, and one that throws disturbs nobody', async t => {
  const { url } = await serve(t, stay(frame('snapshot', 1, 'e-1'), frame('snapshot', 2, 'e-2')));
  const stream = follow(t, url);
  const uncaught = new Promise(resolve => {
    // The test runner catches what is uncaught.
    t.mock.method(globalThis, 'queueMicrotask', task => Promise.resolve().then(task).catch(resolve));
  });
  let calls = 0;
  const off = stream.on('snapshot', () => {
    calls++;
    off();
    throw new Error('of the listener');
  });
  await holds(stream, document => document === 2);
  assert.equal(calls, 1);
  assert.match((await uncaught).message, /of the listener/);
});

test('a reader that falls far behind is given the newest document', async t => {
  const frames = [frame('snapshot', { n: 0 }, 'e-0')];
  for (let n = 1; n <= 3000; n++) frames.push(frame('patch', [{ op: 'replace', path: '/n', value: n }], `e-${n}`));
  const { url } = await serve(t, stay(...frames));
  const stream = follow(t, url);
  const loop = stream[Symbol.asyncIterator]();
  await holds(stream, ({ n }) => n === 3000);
  let events = 0,
    last;
  do {
    ({ value: last } = await loop.next());
    events++;
  } while (last.document.n < 3000);
  assert.ok(events < 1100, `${events} events were kept`);
});

test('a long stream does not grow', async t => {
  let more = true;
  const { url } = await serve(t, response => {
    begin(response).write(frame('snapshot', { rows: Array.from({ length: 100 }, () => 'x'.repeat(100)) }, 'e-0'));
    let n = 0;
    const pump = () => {
      while (more && n < 200_000) {
        n++;
        if (!response.write(frame('patch', [{ op: 'replace', path: `/rows/${n % 100}`, value: `${n} ${'y'.repeat(100)}` }], `e-${n}`)))
          return response.once('drain', pump);
      }
    };
    pump();
  });
  const stream = follow(t, url);
  const heap = async () => {
    global.gc?.();
    return process.memoryUsage().heapUsed;
  };
  const number =
    n =>
    ({ id }) =>
      Number(id.slice(2)) >= n;
  await next(stream, 'patch', number(20_000));
  const early = await heap();
  await next(stream, 'patch', number(180_000));
  const late = await heap();
  more = false;
  assert.ok(late - early < 20e6, `it grew by ${late - early} bytes`);
});
