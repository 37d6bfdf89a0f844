// The service beside the console: its APIs, to prepare and to check, and people who use it.
import { once } from 'node:events';
import { createServer } from 'node:http';
import { base, subscriber } from './harness.mjs';

export async function api(method, path, body, token) {
  const answer = await fetch(base + '/api/v1' + path, {
    method,
    headers: { ...(body ? { 'Content-Type': 'application/json' } : {}), ...(token ? { Authorization: `Bearer ${token}` } : {}) },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  const text = await answer.text();
  return { status: answer.status, body: text ? JSON.parse(text) : undefined };
}
export const publish = (topic, key, doc) =>
  fetch(`${base}/publish/v1/topics/${topic}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'X-Sd-Publisher-Key': key },
    body: typeof doc === 'string' ? doc : JSON.stringify(doc),
  }).then(a => {
    if (a.status !== 204) throw new Error(`publish: ${a.status}`);
  });

/** Follows a topic as any program would, once it has got something. */
export async function follow(topic, key) {
  const stop = new AbortController();
  const answer = await fetch(`${subscriber}/v1/topics/${topic}`, { headers: { 'X-Sd-Subscriber-Key': key }, signal: stop.signal });
  let text = '',
    has;
  const begun = new Promise(resolve => {
    has = resolve;
  });
  const ended = (async () => {
    const decoder = new TextDecoder();
    for await (const piece of answer.body) {
      text += decoder.decode(piece, { stream: true });
      if (text.includes('data: ')) has();
    }
  })()
    .catch(() => undefined)
    .finally(() => has());
  await begun;
  return {
    text: () => text,
    ended,
    close: () => {
      stop.abort();
      return ended;
    },
  };
}

export const ada = { email: 'ada@example.com', password: 'correct horse battery' };
export const evil = '<img src=x onerror=alert(1)>';

export const root = { email: 'admin@freshet.local', password: 'freshet-admin' };

/** An API to poll. */
export const weather = createServer((_, answer) => {
  answer.setHeader('Content-Type', 'application/json');
  answer.end('[{"id": "Paris", "sky": "<b>clear</b>", "station": 12345678901234567890}, {"id": "Lyon", "sky": "rain", "station": 2}]');
}).listen(0, '127.0.0.1');
await once(weather, 'listening');
export const target = `http://127.0.0.1:${weather.address().port}`;
