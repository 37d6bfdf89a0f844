// In a real browser, against a real server.
import assert from 'node:assert/strict';
import { createServer, request as forward } from 'node:http';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { chromium } from 'playwright-core';
import { management, publish } from '../dist/api.js';
import { start } from './freshet.mjs';

let server, app, api, browser, pages;
const root = fileURLToPath(new URL('..', import.meta.url));
const bundles = {};

before(async () => {
  server = await start();
  const { token } = await management({ server: server.gateway }).signIn({ email: 'admin@freshet.local', password: 'freshet-admin' });
  api = management({ server: server.gateway, token });
  app = await api.createApp({ name: 'Browser' });
  browser = await chromium.launch({
    executablePath: process.env.FRESHET_TEST_CHROMIUM || '/usr/bin/chromium',
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  });
  bundles['/freshet.min.js'] = readFileSync(root + 'dist/freshet.min.js', 'utf8');
  for (const [path, entry] of [
    ['/react.js', 'examples/react/main.tsx'],
    ['/vue.js', 'examples/vue/main.ts'],
  ]) {
    const { outputFiles } = await build({
      absWorkingDir: root,
      entryPoints: [entry],
      bundle: true,
      format: 'esm',
      write: false,
      target: 'es2022',
      define: {
        'process.env.NODE_ENV': '"production"',
        __VUE_OPTIONS_API__: 'true',
        __VUE_PROD_DEVTOOLS__: 'false',
        __VUE_PROD_HYDRATION_MISMATCH_DETAILS__: 'false',
      },
    });
    bundles[path] = outputFiles[0].text;
  }
  pages = createServer((request, response) => {
    const { pathname } = new URL(request.url, 'http://x');
    if (bundles[pathname]) return response.setHeader('Content-Type', 'text/javascript').end(bundles[pathname]);
    const script = pathname === '/' ? '' : `<script type="module" src="${pathname}.js"></script>`;
    response.setHeader('Content-Type', 'text/html').end(`<!doctype html><title>test</title><div id="app"></div>${script}`);
  }).listen(0, '127.0.0.1');
  await new Promise(listening => pages.once('listening', listening));
});

after(async () => {
  await browser?.close();
  pages?.close();
  pages?.closeAllConnections();
  await server?.stop();
});

const at = path => `http://127.0.0.1:${pages.address().port}${path}`;
const topicOf = () => api.createTopic(app.id, { name: 'A topic', publisher: { type: 'http-post', config: {} } });
const send = (topic, body) => publish(topic.id, body, { server: server.gateway, key: app.publisher_key });

/** A proxy that gives nothing away before an answer is complete; `reached` lists what came through it. */
async function buffering(t) {
  const reached = [];
  const proxy = createServer((request, response) => {
    reached.push(request.headers['x-sd-transport'] ?? request.headers.accept);
    const up = forward(server.subscriber + request.url, { method: request.method, headers: request.headers }, answer => {
      const chunks = [];
      answer.on('data', chunk => chunks.push(chunk));
      answer.on('error', () => {});
      answer.on('end', () => response.writeHead(answer.statusCode, answer.headers).end(Buffer.concat(chunks)));
    });
    response.on('close', () => up.destroy());
    up.on('error', () => response.destroy());
    up.end();
  }).listen(0, '127.0.0.1');
  await new Promise(listening => proxy.once('listening', listening));
  t.after(() => {
    proxy.closeAllConnections();
    proxy.close();
  });
  return { url: `http://127.0.0.1:${proxy.address().port}`, reached };
}

/** Opens a page that follows a topic. */
async function follow(t, topic, options = {}) {
  const page = await browser.newPage();
  page.setDefaultTimeout(120_000); // for what never comes
  t.after(() => page.close());
  const problems = [];
  page.on('pageerror', error => problems.push(String(error)));
  await page.goto(at('/'));
  await page.evaluate(
    async ([id, options]) => {
      const { subscribe } = await import('/freshet.min.js');
      window.events = [];
      window.stream = subscribe(id, options);
      for (const type of ['snapshot', 'patch']) stream.on(type, () => events.push(type));
      stream.on('error', ({ code, message }) => events.push(`error ${code} ${message}`));
      stream.on('state', state => events.push(state));
    },
    [topic.id, { server: server.subscriber, key: app.subscriber_key, ...options }],
  );
  return {
    page,
    problems,
    holds: want => page.waitForFunction(want => JSON.stringify(window.stream.document) === want, JSON.stringify(want)),
    now: () => page.evaluate(() => ({ transport: stream.transport, state: stream.state, events })),
  };
}

for (const transport of ['eventsource', 'fetch', 'long-poll']) {
  for (const options of [{}, { compress: true }, { mode: 'snapshot' }]) {
    test(`Chromium follows by ${transport} ${JSON.stringify(options)}`, async t => {
      const topic = await topicOf();
      await send(topic, { n: 0 });
      const { holds, now, problems } = await follow(t, topic, { ...options, transport });
      for (let n = 0; n <= 5; n++) {
        await send(topic, { n });
        await holds({ n });
      }
      const { events } = await now();
      assert.equal(events.includes('patch'), options.mode !== 'snapshot', events.join());
      assert.deepEqual(problems, []);
    });
  }
}

test('EventSource is the first choice, and fetch when headers are to be sent', async t => {
  const topic = await topicOf();
  await send(topic, 1);
  for (const [options, transport] of [
    [{}, 'eventsource'],
    [{ headers: { 'X-Custom': '1' } }, 'fetch'],
  ]) {
    const { holds, now } = await follow(t, topic, options);
    await holds(1);
    assert.equal((await now()).transport, transport);
  }
});

test('behind a proxy that buffers, the stream finds its way down to long polling by itself', async t => {
  const topic = await topicOf();
  await send(topic, { n: 0 });
  const proxy = await buffering(t);
  const { holds, now } = await follow(t, topic, { server: proxy.url, patience: { first: 500 } });
  for (let n = 0; n <= 5; n++) {
    await send(topic, { n });
    await holds({ n });
  }
  assert.equal((await now()).transport, 'long-poll');
  assert.ok(proxy.reached.includes('text/event-stream') && proxy.reached.includes('long-poll'), proxy.reached.join());
});

test('a quiet EventSource gives way to fetch, which sees heartbeats', async t => {
  const topic = await topicOf();
  await send(topic, { n: 0 });
  const { page, holds } = await follow(t, topic, { patience: { silence: 1000 } });
  await holds({ n: 0 });
  await page.waitForFunction(() => window.stream.transport === 'fetch');
  await send(topic, { n: 1 });
  await holds({ n: 1 });
});

for (const transport of ['eventsource', 'fetch', 'long-poll']) {
  test(`an error of the server is told apart from one of the network, by ${transport}`, async t => {
    const { page, now } = await follow(t, { id: 'nowhere' }, { transport });
    await page.waitForFunction(() => window.stream.state === 'closed');
    assert.match(
      (await now()).events.find(event => event.startsWith('error')),
      /^error 40401/,
    );
  });
}

test('a restart of the server goes by', async t => {
  const topic = await topicOf();
  await send(topic, { n: 0 });
  const streams = [];
  for (const transport of ['eventsource', 'fetch', 'long-poll']) streams.push(await follow(t, topic, { transport }));
  for (const { holds } of streams) await holds({ n: 0 });
  await server.stop({ keep: true });
  server = await start(server);
  await send(topic, { n: 1 });
  for (const { holds, problems } of streams) {
    await holds({ n: 1 });
    assert.deepEqual(problems, []);
  }
});

test('requests are signed with Web Crypto', async t => {
  const signed = await api.createApp({ name: 'Signed', client_request_signature_enabled: true });
  const topic = await api.createTopic(signed.id, { name: 'A topic', publisher: { type: 'http-post', config: {} } });
  await publish(topic.id, 'signed', { server: server.gateway, key: signed.publisher_key });
  for (const transport of ['eventsource', 'fetch', 'long-poll']) {
    const { holds } = await follow(t, topic, { key: signed.subscriber_key, signatureKey: signed.signature_key, transport });
    await holds('signed');
  }
});

for (const framework of ['react', 'vue']) {
  test(`the ${framework} example renders what is live`, async t => {
    const topic = await topicOf();
    const page = await browser.newPage();
    page.setDefaultTimeout(120_000);
    t.after(() => page.close());
    const problems = [];
    page.on('pageerror', error => problems.push(String(error)));
    await page.goto(at(`/${framework}?topic=${topic.id}&server=${encodeURIComponent(server.subscriber)}`));
    const shows = text => page.waitForFunction(text => document.querySelector('#app').innerText.trim() === text, text);
    await send(topic, {
      quotes: [
        { symbol: 'ACME', price: 1 },
        { symbol: 'INIT', price: 2 },
      ],
    });
    await shows('ACME 1\nINIT 2');
    await send(topic, {
      quotes: [
        { symbol: 'ACME', price: 3 },
        { symbol: 'INIT', price: 2 },
      ],
    });
    await shows('ACME 3\nINIT 2');
    await api.deleteTopic(topic.id);
    await page.waitForFunction(() => document.querySelector('#app').innerText.length > 0);
    assert.deepEqual(problems, []);
  });
}
