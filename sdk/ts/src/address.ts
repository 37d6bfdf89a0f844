import { sign } from './sign.js';
import type { Ask, TransportName } from './transport.js';

/** What a subscription asks for. */
export interface Wishes {
  /** The server's subscriber interface, such as `https://stream.example.com`. */
  server?: string | undefined;
  /** The app's subscriber key. */
  key?: string | undefined;
  /** Of an item topic, only the items with these identifiers. */
  filter?: readonly string[] | undefined;
  /** `patch` (the default) sends a snapshot and then patches, `snapshot` the whole document every time. */
  mode?: 'patch' | 'snapshot' | undefined;
  /** Headers to send along; for a data source, those that it is to get. */
  headers?: Readonly<Record<string, string>> | undefined;
  /** Ask for a compressed stream. */
  compress?: boolean | undefined;
  /** The app's signature key, if it asks for signed requests. Keep it where no stranger can read it. */
  signatureKey?: string | undefined;
}

/** Where a subscription goes: `url` is sent, `signed` is what a signature is over. */
export interface Address {
  url: string;
  signed: string;
}

/**
 * A topic may be named by its id or by the URL of its stream. Any other URL, together with a server, is a data source that
 * the server shall poll.
 */
export function address(topic: string, server: string | undefined): Address {
  const base = server?.replace(/\/+$/, '');
  if (!/^https?:\/\//i.test(topic)) {
    if (base === undefined) throw new TypeError('A topic id needs the option server; or give the URL of its stream');
    const path = '/v1/topics/' + encodeURIComponent(topic);
    return { url: base + path, signed: path };
  }
  const url = topic.replace(/#.*/s, '');
  if (base !== undefined && !url.startsWith(base + '/')) return { url: `${base}/${url}`, signed: url };
  // The address of a stream. It may lie below a path of its own; a data source in it is signed with its query, a topic without.
  const source = /^https?:\/\/[^/]+\/.*?(https?:\/.*)/is.exec(url)?.[1];
  return { url, signed: source ?? new URL(url).pathname.replace(/^.*(?=\/(v\d+|latest)\/topics\/)/, '') };
}

/** Makes the request. EventSource cannot send headers, so for it everything goes into the URL. */
export async function ask(to: Address, wishes: Wishes, transport: TransportName, lastId: string | undefined): Promise<Ask> {
  const plain = transport === 'eventsource';
  const query: [string, string][] = [];
  const headers: Record<string, string> = { ...wishes.headers };
  const add = (name: string, value: string) => {
    if (plain) query.push([name, value]);
    else headers[name] = value;
  };

  // A signature covers a target's URL with its query, up to what we add here.
  if (wishes.signatureKey !== undefined) {
    for (const [name, value] of Object.entries(await sign(wishes.signatureKey, to.signed))) add(name, value);
  }
  if (wishes.key !== undefined) add('X-Sd-Subscriber-Key', wishes.key);
  if (wishes.compress) add('X-Sd-Compress', 'true');
  if (wishes.filter) query.push(['X-Sd-Filter', wishes.filter.join(',')]); // identifiers may be in any script
  const full = wishes.mode === 'snapshot';
  if (full && transport !== 'fetch') query.push(['X-Sd-Header', 'Accept: application/json']);
  if (transport === 'fetch') {
    headers.Accept = full ? 'application/json' : 'text/event-stream';
    query.push(['evs_preamble', '1']); // a first byte at once shows that nobody on the way holds the stream back
  }
  if (transport === 'long-poll') {
    headers.Accept = 'application/json';
    headers['X-Sd-Transport'] = 'long-poll';
  }
  if (lastId) {
    if (plain) query.push(['lastEventId', lastId]);
    else headers['Last-Event-ID'] = lastId;
  }
  const text = query.map(([name, value]) => name + '=' + encodeURIComponent(value)).join('&');
  return { url: text === '' ? to.url : to.url + (to.url.includes('?') ? '&' : '?') + text, headers };
}
