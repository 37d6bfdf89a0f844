// What following costs: a server in another process sends 1,000 patches a second to a document of 1 MB, and a whole stream
// follows it, connection and all. Prints the share of one core that this process used.
import { fork } from 'node:child_process';
import { createServer } from 'node:http';
import { subscribe } from '../dist/index.js';

const perSecond = 1000,
  seconds = Number(process.env.SECONDS || 5);
const row = id => ({
  id,
  name: `Item number ${id}`,
  price: id * 1.5,
  tags: ['red', 'green'],
  note: 'x'.repeat(120),
  nested: { open: 1, close: 2 },
});
const shapes = {
  'list of 5,000 rows': [() => Array.from({ length: 5000 }, (_, id) => row(id)), n => `/${n % 5000}/price`],
  'one object with 5,000 keys': [
    () => Object.fromEntries(Array.from({ length: 5000 }, (_, id) => ['SYM' + id, row(id)])),
    n => `/SYM${n % 5000}/price`,
  ],
};

if (process.send) {
  const server = createServer((request, response) => {
    const [make, path] = shapes[decodeURIComponent(request.url.slice(1).split('?')[0])];
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    response.write(`event: snapshot\ndata: ${JSON.stringify(make())}\nid: e-0\n\n`);
    const begin = performance.now();
    let n = 0;
    const timer = setInterval(() => {
      for (const due = ((performance.now() - begin) / 1000) * perSecond; n < due; n++) {
        response.write(`event: patch\ndata: [{"op":"replace","path":"${path(n)}","value":${n}}]\nid: e-${n + 1}\n\n`);
      }
    }, 1);
    response.on('close', () => clearInterval(timer));
  }).listen(0, '127.0.0.1', () => process.send(server.address().port));
} else {
  const child = fork(new URL(import.meta.url));
  const port = await new Promise(resolve => child.once('message', resolve));
  for (const name of Object.keys(shapes)) {
    const stream = subscribe(`http://127.0.0.1:${port}/${encodeURIComponent(name)}`);
    let patches = 0;
    stream.on('patch', () => patches++);
    await new Promise(resolve => setTimeout(resolve, 1500)); // the snapshot, and the compiler
    const looking = setInterval(() => stream.document, 33);
    patches = 0;
    const begin = performance.now(),
      used = process.cpuUsage();
    await new Promise(resolve => setTimeout(resolve, seconds * 1000));
    const { user, system } = process.cpuUsage(used);
    const elapsed = (performance.now() - begin) / 1000;
    console.log(
      `${name.padEnd(28)} ${Math.round(patches / elapsed)} patches/s  ${((user + system) / 10_000 / elapsed).toFixed(1)} % of one core`,
    );
    clearInterval(looking);
    stream.close();
  }
  child.kill();
}
