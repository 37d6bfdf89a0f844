// What applying patches costs: 1,000 patches a second to a document of 1 MB, as a stream would bring them, for some
// seconds, while somebody looks 30 times a second. Prints the share of one core. The figure to stay under is 10 %.
import { load } from '../test/load.mjs';

const { Parser } = await load('parser');
const { Live } = await load('live');
const perSecond = 1000,
  seconds = Number(process.env.SECONDS || 3);

/** Documents of 1 MB in the shapes that people have. */
const shapes = {
  'list of 5,000 rows': {
    make: () => Array.from({ length: 5000 }, (_, id) => row(id)),
    patch: n => [{ op: 'replace', path: `/${(n * 7919) % 5000}/price`, value: n }],
  },
  'rows with head insertions': {
    make: () => ({ items: Array.from({ length: 5000 }, (_, id) => row(id)) }),
    patch: n => [
      { op: 'add', path: '/items/0', value: row(n) },
      { op: 'remove', path: '/items/5000' },
    ],
  },
  'groups of objects by key': {
    make: () =>
      Object.fromEntries(
        Array.from({ length: 70 }, (_, g) => ['group' + g, Object.fromEntries(Array.from({ length: 70 }, (_, i) => ['key' + i, row(i)]))]),
      ),
    patch: n => [{ op: 'replace', path: `/group${n % 70}/key${(n * 31) % 70}/price`, value: n }],
  },
  'one object with 5,000 keys': {
    make: () => Object.fromEntries(Array.from({ length: 5000 }, (_, i) => ['SYM' + i, row(i)])),
    patch: n => [{ op: 'replace', path: `/SYM${(n * 7919) % 5000}/price`, value: n }],
  },
};

const row = id => ({
  id,
  name: `Item number ${id}`,
  price: id * 1.5,
  tags: ['red', 'green'],
  note: 'x'.repeat(120),
  nested: { open: 1, close: 2 },
});

for (const [name, { make, patch }] of Object.entries(shapes)) {
  const text = JSON.stringify(make());
  const live = new Live();
  live.replace(JSON.parse(text));
  const parser = new Parser(
    ({ data }) => live.patch(JSON.parse(data)),
    () => {},
  );
  const frames = Array.from({ length: perSecond * seconds }, (_, n) => `event: patch\ndata: ${JSON.stringify(patch(n))}\nid: e-${n}\n\n`);
  let n = 0,
    looked = 0;
  const begin = performance.now();
  const used = process.cpuUsage();
  while (n < perSecond * seconds) {
    const due = Math.min(perSecond * seconds, Math.floor(((performance.now() - begin) / 1000) * perSecond));
    for (; n < due; n++) parser.push(frames[n]);
    if (performance.now() - looked > 33) {
      looked = performance.now();
      live.value();
    }
    await new Promise(later => setTimeout(later, 10));
  }
  const { user, system } = process.cpuUsage(used);
  const share = (user + system) / 10_000 / ((performance.now() - begin) / 1000);
  console.log(`${name.padEnd(28)} ${(text.length / 1e6).toFixed(2)} MB  ${share.toFixed(1)} % of one core`);
}
