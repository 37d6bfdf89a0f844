import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sign, subscribe } from '../dist/index.js';
import { load } from './load.mjs';

const { address, ask } = await load('address');

test('signatures are those of other clients', async () => {
  for (const { beacon, secret, ts, url, mac } of [
    {
      beacon: '11111111-2222-3333-4444-555555555555',
      secret: 'aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee',
      ts: 1500000000000,
      url: 'http://myRestservice.com/stocks',
      mac: 'V5SMXTL46gye3B0GQoyDohe3g+Nx5r945vb32hwEY+fWq3Qbz3XPbXGw2RqCCIYs5V5P+FXm6poGgoTefIHL2A==',
    },
    {
      beacon: '0f8fad5b-d9cb-469f-a165-70867728950e',
      secret: '7c9e6679-7425-40de-944b-e07fc1f90ae7',
      ts: 1,
      url: 'https://api.example.com:8443/caf%C3%A9/prix?q=été',
      mac: 'KYYDXYOBG+rBI2XkXTduyLRKgnh1Z+EUxtg8suPTTokBa4e18DN2fF5Io4GjwHHrUdFk5UrVjpWfgByqRGv9pA==',
    },
  ]) {
    assert.deepEqual(await sign(btoa(beacon + secret), url, ts), { 'X-Auth-Sd-Ts': String(ts), 'X-Auth-Sd-S': btoa(beacon + mac) });
  }
});

test('a signature key that is none is refused before anything is sent', () => {
  for (const signatureKey of ['', 'short', '%%%', btoa('x'.repeat(71))]) {
    assert.throws(() => subscribe('t', { server: 'http://localhost', signatureKey }), /72 characters/);
  }
});

test('a topic is an id, the URL of a stream, or a data source', () => {
  const server = 'https://stream.example.com/';
  assert.deepEqual(address('t 1', server), { url: 'https://stream.example.com/v1/topics/t%201', signed: '/v1/topics/t%201' });
  assert.deepEqual(address('https://x.example/deep/v1/topics/t?a=1#f', undefined), {
    url: 'https://x.example/deep/v1/topics/t?a=1',
    signed: '/v1/topics/t',
  });
  assert.deepEqual(address('https://stream.example.com/v1/topics/t', server), {
    url: 'https://stream.example.com/v1/topics/t',
    signed: '/v1/topics/t',
  });
  assert.deepEqual(address('http://api.example/q?x=é', server), {
    url: 'https://stream.example.com/http://api.example/q?x=é',
    signed: 'http://api.example/q?x=é',
  });
  for (const given of [undefined, server, 'https://stream.example.com/deep']) {
    const url = 'https://stream.example.com/deep/https://api.example/v1/topics/7?x=1&X-Foo=2';
    assert.deepEqual(address(url + '#f', given), { url, signed: 'https://api.example/v1/topics/7?x=1&X-Foo=2' });
  }
  assert.throws(() => address('t', undefined), /server/);
});

test('everything goes into the URL for EventSource, and secrets into headers otherwise', async () => {
  const to = address('https://x.example/data?a=1', 'https://s.example');
  const wishes = { key: 'k&y', filter: ['a', 'b c'], mode: 'snapshot', compress: true, headers: { 'X-Api': '1' } };
  assert.deepEqual(await ask(to, { ...wishes, headers: {} }, 'eventsource', 'e-1'), {
    url:
      'https://s.example/https://x.example/data?a=1&X-Sd-Subscriber-Key=k%26y&X-Sd-Compress=true&X-Sd-Filter=a%2Cb%20c' +
      '&X-Sd-Header=Accept%3A%20application%2Fjson&lastEventId=e-1',
    headers: {},
  });
  assert.deepEqual(await ask(to, wishes, 'fetch', 'e-1'), {
    url: 'https://s.example/https://x.example/data?a=1&X-Sd-Filter=a%2Cb%20c&evs_preamble=1',
    headers: { 'X-Api': '1', 'X-Sd-Subscriber-Key': 'k&y', 'X-Sd-Compress': 'true', Accept: 'application/json', 'Last-Event-ID': 'e-1' },
  });
  const polled = await ask(to, wishes, 'long-poll', undefined);
  assert.equal(polled.headers['X-Sd-Transport'], 'long-poll');
  assert.match(polled.url, /X-Sd-Header=Accept/);
});
