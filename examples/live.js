// A live document with nothing but what every browser has: EventSource, and the three operations of JSON Patch that Freshet
// sends. Copy it, or use the SDK, which also signs requests, sends headers and falls back where streams are blocked.

/** Where the demo is and what its topics are called; freshet demo serves it beside these pages. */
export async function guide() {
  return (await fetch('/demo.json')).json();
}

/** The address of a topic's stream. filter names the items wanted of an item topic. */
export function streamOf(demo, topic, filter = []) {
  const url = new URL(`${demo.subscriber}/v1/topics/${demo.topics[topic]}`);
  url.searchParams.set('X-Sd-Subscriber-Key', demo.subscriber_key);
  if (filter.length) url.searchParams.set('X-Sd-Filter', filter.join(','));
  return url.href;
}

/** The errors that do not pass, as docs/events.md has them. */
const final = [40000, 40001, 40100, 40110, 40111, 40120, 40400, 40401, 40500, 60000];

/** Follows a stream. changed gets the whole document and, after the first, the operations that changed it. */
export function follow(url, { changed, problem = () => {}, state = () => {} }) {
  let doc;
  const source = new EventSource(url);
  source.onopen = () => state('open');
  source.addEventListener('snapshot', e => {
    doc = JSON.parse(e.data);
    changed(doc, []);
  });
  source.addEventListener('patch', e => {
    const operations = JSON.parse(e.data);
    doc = operations.reduce(apply, doc);
    changed(doc, operations);
  });
  source.addEventListener('error', e => {
    if (!e.data) return state('reconnecting'); // the browser's own: it connects again by itself
    const error = JSON.parse(e.data);
    if (final.includes(error.code)) source.close(); // connecting again would end the same way; otherwise the browser does so by itself
    problem(error);
  });
  return source;
}

/** Applies one add, replace or remove and returns the document. */
export function apply(doc, { op, path, value }) {
  const keys = path
    .split('/')
    .slice(1)
    .map(k => k.replaceAll('~1', '/').replaceAll('~0', '~'));
  const last = keys.pop();
  if (last === undefined) return value;
  const at = keys.reduce((parent, key) => parent[key], doc);
  if (!Array.isArray(at)) {
    if (op === 'remove') delete at[last];
    else at[last] = value;
  } else if (op === 'add') {
    at.splice(last === '-' ? at.length : Number(last), 0, value);
  } else if (op === 'remove') {
    at.splice(Number(last), 1);
  } else {
    at[Number(last)] = value;
  }
  return doc;
}

/** Shows the state of a stream, and what is wrong with it, in an element. */
export function status(element) {
  return {
    state: text => {
      element.textContent = text;
      element.dataset.state = text;
    },
    problem: e => {
      element.textContent = `${e.message} (${e.code})`;
      element.dataset.state = 'error';
    },
  };
}

/** Makes an element; texts become text, never markup. */
export function el(name, attributes = {}, ...children) {
  const e = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
  e.append(...children);
  return e;
}
