// Following a topic, whatever the network, the server and the browser do. Time is pretended.
import assert from 'node:assert/strict';
import { beforeEach, mock, test } from 'node:test';
import { final, passing } from '../../../sdk/ts/src/codes';
import { Follow } from '../src/live/follow';
import { Connection, type Incoming, type State } from '../src/live/connection';

interface Asked {
  headers: Record<string, string>;
  answer: (text?: string, status?: number, type?: string) => Answered;
  fail: () => void;
}
interface Answered {
  say: (text: string) => void;
  end: () => void;
}

/** A server in place of fetch: every request waits here until a test answers it. */
let asked: Asked[] = [];

function pretendFetch(_url: string, init: { headers: Record<string, string>; signal: AbortSignal }): Promise<Response> {
  return new Promise((resolve, reject) => {
    let body: ReadableStreamDefaultController<Uint8Array> | undefined;
    const gone = (): void => {
      const e = new DOMException('aborted', 'AbortError');
      try {
        body?.error(e);
      } catch {
        /* it has ended */
      }
      reject(e);
    };
    init.signal.addEventListener('abort', gone);
    asked.push({
      headers: init.headers,
      fail: () => reject(new TypeError('Failed to fetch')),
      answer: (text = '', status = 200, type = 'text/event-stream') => {
        const say = (t: string): void => body!.enqueue(new TextEncoder().encode(t));
        resolve(
          new Response(
            new ReadableStream({
              start: c => {
                body = c;
                if (text) say(text);
              },
            }),
            { status, headers: type ? { 'Content-Type': type } : {} },
          ),
        );
        return { say, end: () => body!.close() };
      },
    });
  });
}

/** Lets everything happen that waits for no time, and what is read together for some milliseconds. */
async function settle(): Promise<void> {
  for (let i = 0; i < 40; i++) {
    await new Promise(setImmediate);
    if (i % 10 === 9) mock.timers.tick(5);
  }
}
async function pass(ms: number): Promise<void> {
  await settle();
  mock.timers.tick(ms);
  await settle();
}

const frames: (() => void)[] = [];
const page = { hidden: false };

beforeEach(() => {
  mock.timers.reset();
  mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'Date'] });
  mock.method(Math, 'random', () => 0); // waits are as short as they may be
  asked = [];
  frames.length = 0;
  page.hidden = false;
  Object.assign(globalThis, {
    fetch: pretendFetch,
    document: page,
    requestAnimationFrame: (f: () => void) => frames.push(f),
    cancelAnimationFrame: () => undefined,
  });
});

const where = { server: 'http://x', topic: 't', key: 'k' };

function follow(): { stream: Connection; events: Incoming[]; states: State[]; last: () => State } {
  const events: Incoming[] = [],
    states: State[] = [];
  return {
    stream: new Connection(
      where,
      e => events.push(e),
      s => states.push(s),
    ),
    events,
    states,
    last: () => states[states.length - 1]!,
  };
}

const snapshot = (n: number, doc = '{}'): string => `id: e-${n}\nevent: snapshot\ndata: ${doc}\n\n`;
const patch = (n: number, path = '/a', value = '1'): string =>
  `id: e-${n}\nevent: patch\ndata: [{"op":"add","path":"${path}","value":${value}}]\n\n`;
const error = (code: number, message: string, retry = ''): string =>
  `${retry && `retry: ${retry}\n`}event: error\ndata: {"code":${code},"message":"${message}"}\n\n`;

test('after a final error it stops, after one that passes it connects again', async () => {
  for (const code of [...final, ...passing]) {
    asked = [];
    const { stream, last } = follow();
    await settle();
    asked[0]!.answer(error(code, 'No', '2000')).end();
    await settle();
    if (final.includes(code)) assert.deepEqual(last(), { is: 'failed', code, message: 'No' });
    else assert.equal(last().is, 'waiting', `${code}`);
    await pass(2000);
    assert.equal(asked.length, final.includes(code) ? 1 : 2, `${code}`);
    stream.close();
  }
});

test('who waits for an answer is told why, and it is asked again', async () => {
  const { stream, last } = follow();
  await pass(7000);
  assert.deepEqual(last(), { is: 'connecting' });
  await pass(2000);
  assert.match((last() as { why: string }).why, /six connections/);
  await pass(52_000);
  assert.equal(last().is, 'waiting');
  await pass(1000);
  assert.equal(asked.length, 2);
  asked[1]!.answer(snapshot(1));
  await settle();
  assert.deepEqual(last(), { is: 'open' });
  stream.close();
  await pass(120_000);
  assert.equal(asked.length, 2);
  assert.deepEqual(last(), { is: 'closed' });
});

test('a topic without a document is connected as well', async () => {
  const { stream, last } = follow();
  await settle();
  asked[0]!.answer();
  await pass(1000);
  assert.deepEqual(last(), { is: 'open' });
  stream.close();
});

test('an answer that is no stream is named, and asked for again, less and less often', async () => {
  const { stream, last } = follow();
  await settle();
  asked[0]!.answer('{"message":"busy"}', 503, 'application/json; charset=utf-8');
  await settle();
  assert.match((last() as { why: string }).why, /answered 503 with application\/json .* busy or starting/);
  await pass(250);
  assert.match((last() as { why: string }).why, /503/); // while it is asked again
  asked[1]!.answer('<html>', 200, 'text/html');
  await settle();
  assert.match((last() as { why: string }).why, /answered 200 with text\/html .* lead elsewhere/);
  await pass(250);
  assert.equal(asked.length, 2);
  await pass(250);
  assert.equal(asked.length, 3);
  stream.close();
});

test('nothing is taken from a connection that was given up', async () => {
  const { stream, events } = follow();
  await settle();
  const first = asked[0]!.answer(snapshot(1));
  await settle();
  first.say(patch(2)); // on its way when
  stream.restart();
  await pass(1000);
  assert.deepEqual(
    events.map(e => e.event.id),
    ['e-1'],
  );
  assert.equal(asked[1]!.headers['Last-Event-ID'], undefined);
  asked[1]!.answer(snapshot(2)).end();
  await pass(1000);
  assert.equal(asked[2]!.headers['Last-Event-ID'], 'e-2');
  stream.close();
});

test('a server that goes away is asked again when it says so; what asking cannot mend ends it', async () => {
  const { stream, last } = follow();
  await settle();
  asked[0]!.answer(error(50000, 'This server is going away', '2500')).end();
  await settle();
  assert.deepEqual(last(), { is: 'waiting', why: 'This server is going away', code: 50000 });
  await pass(2400);
  assert.equal(asked.length, 1);
  await pass(100);
  asked[1]!.answer(snapshot(1) + error(60100, 'unreachable') + patch(2)).end(); // it recovered from that
  await settle();
  assert.equal((last() as { why: string }).why, 'The connection was lost.');
  await pass(1000);
  asked[2]!.answer(error(40401, 'There is no such topic', '30000')).end();
  await pass(60_000);
  assert.deepEqual(last(), { is: 'failed', code: 40401, message: 'There is no such topic' });
  assert.equal(asked.length, 3);
  stream.close();
});

test('a silent connection is given up, but a slow heartbeat is learnt', async () => {
  const { stream, last } = follow();
  await settle();
  asked[0]!.answer(snapshot(1));
  await pass(25_000);
  assert.match((last() as { why: string }).why, /silent/);
  await pass(1000);
  const slow = asked[1]!.answer(':heartbeat\n\n');
  for (let i = 0; i < 5; i++) {
    await pass(40_000);
    slow.say(':heartbeat\n\n');
  }
  await settle();
  assert.deepEqual([asked.length, last().is], [2, 'open']);
  stream.close();
});

test('who does not want to wait need not', async () => {
  const { stream } = follow();
  await settle();
  for (let i = 0; i < 6; i++) {
    asked[i]!.fail();
    await pass(longest);
  }
  asked[6]!.fail();
  await pass(1000);
  assert.equal(asked.length, 7);
  stream.hurry();
  await settle();
  assert.equal(asked.length, 8);
  stream.close();
});
const longest = 30_000;

test('a page that is hidden before its next frame takes in what arrives', async () => {
  const f = new Follow(where);
  await settle();
  const s = asked[0]!.answer(snapshot(1));
  await settle();
  assert.equal(f.versions.length, 0); // until the next frame, which never comes
  page.hidden = true;
  await pass(250);
  assert.equal(f.versions.length, 1);
  s.say(patch(2));
  await pass(250);
  assert.equal(f.versions.length, 2);
  s.say(patch(3));
  page.hidden = false;
  await settle();
  s.say(patch(4));
  await settle();
  while (frames.length) frames.shift()!();
  await pass(250);
  assert.deepEqual(
    f.versions.map(v => v.id),
    ['e-1', 'e-2', 'e-3', 'e-4'],
  );
  f.close();
});

test('what is queued and kept has a bound, whatever arrives and however large it is', async () => {
  const f = new Follow(where);
  await settle();
  const s = asked[0]!.answer(snapshot(0));
  let n = 0;
  s.say(Array.from({ length: 12_000 }, () => patch(++n)).join(''));
  await settle();
  assert.ok(f.versions.length >= 1 && f.versions.length <= 2000, `${f.versions.length} without a frame`);
  for (; n < 13_000; n++) s.say(patch(n + 1, '/a', JSON.stringify(String(n).padEnd(100_000, 'x'))));
  await pass(250);
  const kept = f.versions.reduce((sum, v) => sum + v.bytes, 0);
  assert.ok(kept < 20_000_000, `${kept} bytes are kept`);
  assert.equal(f.newest!.id, 'e-13000');
  f.close();
});

test('what somebody looks at stays in view, also when the history goes on without it', async () => {
  const f = new Follow(where);
  await settle();
  const s = asked[0]!.answer(snapshot(1, '{"a":"seen"}'));
  await pass(250);
  f.pinned.value = f.newest!.n;
  s.say(Array.from({ length: 4998 }, (_, i) => patch(i + 2)).join(''));
  await pass(250);
  assert.ok(f.versions[0]!.n > f.pinned.value);
  assert.deepEqual([f.shown()!.id, f.shown()!.doc], ['e-1', { a: 'seen' }]);
  f.pinned.value = f.versions[0]!.n;
  assert.equal(f.shown(), f.versions[0]);
  f.pinned.value = null;
  assert.equal(f.shown()!.id, 'e-4999');
  f.close();
});

test('a change that does not fit leads to a whole document, and what follows it is not shown as wrong', async () => {
  const f = new Follow(where);
  await settle();
  asked[0]!.answer(snapshot(1) + patch(2, '/x/y') + patch(3) + patch(4));
  await pass(250);
  assert.deepEqual(
    f.versions.map(v => !!v.error),
    [false, true],
  );
  await pass(1000);
  asked[1]!.answer(snapshot(4, '{"a":7}') + patch(5));
  await pass(250);
  assert.deepEqual([f.newest!.id, f.newest!.doc, f.newest!.error], ['e-5', { a: 1 }, '']);
  f.close();
});

test('a publication has arrived when it, or a later one, is there', async () => {
  const f = new Follow(where);
  await settle();
  const arrived: string[] = [];
  for (const id of ['e-2', 'e-3', 'f-1']) void f.arrival(id).then(v => arrived.push(`${id}:${v.id}`));
  const s = asked[0]!.answer(snapshot(1));
  await pass(250);
  assert.deepEqual(arrived, []);
  s.say(patch(10)); // what comes fast is sent together
  await pass(250);
  assert.deepEqual(arrived, ['e-2:e-10', 'e-3:e-10']);
  f.close();
});

test('an error before the first document is no document', async () => {
  const f = new Follow(where);
  await settle();
  asked[0]!.answer(error(60100, 'The data source cannot be reached', '30000')).end();
  await pass(250);
  assert.deepEqual([f.newest!.hasDoc, f.newest!.error], [false, '60100 The data source cannot be reached']);
  assert.equal(f.state.value.is, 'waiting');
  f.close();
});
