import { Message, type Parse, type RawEvent } from './message.js';
import { Parser } from './parser.js';

/** The ways to the server, best first. Each falls back to the next. */
export type TransportName = 'eventsource' | 'fetch' | 'long-poll';

/** What a transport asks the server for. */
export interface Ask {
  url: string;
  headers: Record<string, string>;
}

/** Whom a transport tells what happens. */
export interface Link {
  readonly fetch: typeof fetch;
  readonly parse: Parse;
  /** Makes a request of the moment: it carries the id of the last event, and a fresh signature. */
  ask(transport: TransportName): Promise<Ask>;
  /** The server answered. */
  open(): void;
  /** Something arrived, if only a heartbeat. */
  alive(): void;
  event(event: RawEvent): void;
  /** The server advises when to come back. */
  retry(milliseconds: number): void;
  /** The transport waits and reconnects by itself. */
  waiting(): void;
}

/** Keeps one connection, or one after another, until it breaks or the signal is aborted. It may reject or not: both end it. */
export type Transport = (link: Link, signal: AbortSignal) => Promise<void>;

/** This environment cannot do it. */
export class Unsupported extends Error {}

/** Something answered that is no stream. */
export class NoStream extends Error {
  constructor(
    message: string,
    readonly status: number,
    readonly contentType: string,
  ) {
    super(message);
  }
}

/**
 * The browser's own. It hides heartbeats and cannot send headers, but costs nothing. It reconnects by itself when the
 * server asked it to; when that fails too, the stream's own back-off takes over.
 */
const eventSource: Transport = async (link, signal) => {
  const { url } = await link.ask('eventsource');
  if (signal.aborted) return;
  await new Promise<void>(resolve => {
    const source = new EventSource(url);
    let last = true; // the next failure is the last one
    const end = () => {
      source.close();
      signal.removeEventListener('abort', end);
      resolve();
    };
    signal.addEventListener('abort', end);
    source.onopen = () => {
      last = false;
      link.open();
    };
    for (const event of ['snapshot', 'data', 'patch', 'error']) {
      source.addEventListener(event, e => {
        const { data, lastEventId } = e as MessageEvent<string | undefined>;
        if (data !== undefined) {
          link.alive();
          link.event(textEvent(link, event, lastEventId, data));
        } else if (last || source.readyState === source.CLOSED) {
          end(); // an error without data is the connection's, not the server's
        } else {
          last = true;
          link.waiting();
        }
      });
    }
  });
};

function textEvent(link: Link, event: string, id: string | undefined, data: string, length?: number): RawEvent {
  return new Message(
    event,
    id,
    () => data,
    () => link.parse(data),
    length,
  );
}

const smallPiece = 16 << 10; // bytes
const readingPause = 10; // milliseconds: nobody sees the difference

const fetchStream: Transport = async (link, signal) => {
  const response = await request(link, 'fetch', signal);
  if (!contentType(response).startsWith('text/event-stream')) {
    void response.body?.cancel();
    throw new NoStream('not an event stream', response.status, contentType(response));
  }
  if (!response.body) throw new Unsupported();
  link.open();
  const parser = new Parser(
    ({ event, id, data, length }) => link.event(textEvent(link, event, id, data, length)),
    milliseconds => link.retry(milliseconds),
  );
  const text = new TextDecoder();
  const reader = response.body.getReader();
  for (let began = Date.now(); ; began = Date.now()) {
    const { done, value } = await reader.read();
    if (done) return;
    link.alive();
    parser.push(text.decode(value, { stream: true }));
    // Of very many small pieces, some are taken together: reading costs more than what is read.
    if (value.length < smallPiece && Date.now() - began < readingPause) await pause(readingPause, signal);
  }
};

interface Polled {
  event: string;
  data: unknown;
  id?: string;
}

/** One answer at a time: the way through proxies that hold streams back. */
const longPoll: Transport = async (link, signal) => {
  for (;;) {
    const response = await request(link, 'long-poll', signal);
    const text = response.status === 204 ? '[]' : await response.text();
    const events = link.parse(text) as Polled[];
    link.open();
    link.alive();
    for (const [i, { event, data, id }] of events.entries()) {
      const spelled = () => JSON.stringify((JSON.parse(text) as Polled[])[i]!.data);
      link.event(new Message(event, id, spelled, () => data));
      if (event === 'error') return; // the server ended it; come back later
    }
    // The server answers with nothing after long silence only, except while it goes away. A second does no harm to
    // latency: it is waited only when nothing happened.
    if (events.length === 0) await pause(1000, signal);
  }
};

export const transports: Record<TransportName, Transport> = {
  eventsource: eventSource,
  fetch: fetchStream,
  'long-poll': longPoll,
};

async function request(link: Link, transport: TransportName, signal: AbortSignal): Promise<Response> {
  const { url, headers } = await link.ask(transport);
  const response = await link.fetch(url, { headers, signal, cache: 'no-store' });
  if (response.ok) return response;
  const seconds = Number(response.headers.get('Retry-After'));
  if (seconds > 0) link.retry(seconds * 1000);
  void response.body?.cancel();
  throw new NoStream(`the server answered ${response.status}`, response.status, contentType(response));
}

function contentType(response: Response): string {
  return response.headers.get('Content-Type') ?? '';
}

/** Waits, or until the signal is aborted. */
export function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    if (signal.aborted) return resolve();
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, milliseconds);
    signal.addEventListener('abort', done);
  });
}
