// Follows a topic with public clients in Chromium, until killed. Called with pairs: the name of a client and the URL of
// the topic. Each client has a page of its own, from another origin than the topic's. Prints one line of JSON for every
// document that a client comes to hold.
import { createServer } from 'node:http';
import { readFile } from 'node:fs/promises';
import { chromium } from 'playwright-core';
import { Follower, say } from './apply.mjs';

const packages = new URL('./node_modules/', import.meta.url);

// What runs in the page; `see` hands an event over.
const clients = {
  EventSource: `
    const source = new EventSource(url);
    source.addEventListener('snapshot', (e) => see('snapshot', e.data));
    source.addEventListener('patch', (e) => see('patch', e.data));
    source.addEventListener('error', (e) => { if (e.data) see('error', e.data); });`,
  'event-source-polyfill': `
    await script('/event-source-polyfill/src/eventsource.js');
    const source = new EventSourcePolyfill(url, { headers: { 'X-Custom': 'forces a preflight' } });
    source.addEventListener('snapshot', (e) => see('snapshot', e.data));
    source.addEventListener('patch', (e) => see('patch', e.data));
    source.addEventListener('error', (e) => { if (e.data) see('error', e.data); });`,
  'fetch-event-source': `
    const { fetchEventSource } = await import('/@microsoft/fetch-event-source/lib/esm/index.js');
    fetchEventSource(url, {
      openWhenHidden: true,
      headers: { 'X-Custom': 'forces a preflight' },
      onmessage: (e) => { if (e.event) see(e.event, e.data); },
      onclose() { throw new Error('again'); }, // it takes a stream that ends properly for finished otherwise
    });`,
  'streamdataio-js-sdk 2.0.2': `
    await script('/streamdataio-js-sdk/dist/bundles/streamdataio.js');
    const { hostname, port, pathname, searchParams } = new URL(url);
    const target = pathname.slice(1), token = searchParams.get('X-Sd-Token');
    const source = target.startsWith('http')
      ? streamdataio.createEventSource(target, token, [])
      : streamdataio.createEventSource('http://example.com/', token, [], { signUrl: () => target });
    Object.assign(source.server, { protocol: 'http', hostname, port });
    source.onData((data) => see('snapshot', JSON.stringify(data)));
    source.onPatch((patch) => see('patch', JSON.stringify(patch)));
    source.onError((error) => see('error', JSON.stringify(error)));
    source.open();`,
  'streamdataio-js-sdk 1.0.5': sdk1,
  'streamdataio-js-sdk 1.0.5 polyfill': 'delete window.EventSource;' + sdk1(),
};

function sdk1() {
  return `
    await script('/streamdataio-js-sdk-1/dist/streamdataio.js');
    const { hostname, port, pathname, searchParams } = new URL(url);
    const target = pathname.slice(1), token = searchParams.get('X-Sd-Token');
    const source = target.startsWith('http')
      ? streamdataio.createEventSource(target, token, [])
      : streamdataio.createEventSource('http://example.com/', token, [], { signUrl: () => target });
    Object.assign(source.streamdataConfig, { PROTOCOL: 'http://', HOST: hostname, PORT: port });
    source.onData((data) => see('snapshot', JSON.stringify(data)));
    source.onPatch((patch) => see('patch', JSON.stringify(patch)));
    source.onError((error) => see('error', JSON.stringify(error)));
    source.open();`;
}

const files = createServer(async (request, response) => {
  if (request.url === '/') return response.setHeader('Content-Type', 'text/html').end('<!doctype html><title>client</title>');
  try {
    // Old modules import each other without the extension.
    const text = await readFile(new URL('.' + (/\.\w+$/.test(request.url) ? request.url : request.url + '.js'), packages));
    response.setHeader('Content-Type', 'text/javascript').end(text);
  } catch {
    response.writeHead(404).end();
  }
}).listen(0, '127.0.0.1');
await new Promise(listening => files.once('listening', listening));

const browser = await chromium.launch({
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
process.on('SIGTERM', () => browser.close().finally(() => process.exit(0)));

async function open(name, url) {
  const follower = new Follower(name);
  const page = await browser.newPage();
  page.on('pageerror', error => say({ client: name, failed: String(error) }));
  await page.exposeFunction('see', (event, data) => follower[event](data));
  await page.goto(`http://127.0.0.1:${files.address().port}/`);
  const code = typeof clients[name] === 'function' ? clients[name]() : clients[name];
  await page.evaluate(`(async () => {
    const script = (src) => new Promise((onload, onerror) =>
      document.head.append(Object.assign(document.createElement('script'), { src, onload, onerror })));
    const url = ${JSON.stringify(url)};
    ${code}
  })()`);
}

const args = process.argv.slice(2);
await Promise.all(args.flatMap((name, i) => (i % 2 ? [] : [open(name, args[i + 1])])));
