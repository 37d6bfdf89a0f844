// One subscription, as the viewer sees it: a fetch whose body is read as it arrives, because EventSource can neither send a
// key in a header nor say what went wrong.
import { isFinal } from './codes';

export interface Incoming {
  id: string;
  event: string;
  data: string;
  bytes: number;
  at: number;
}

export type State =
  | { is: 'connecting'; why?: string }
  | { is: 'open' }
  | { is: 'closed' }
  | { is: 'waiting'; until: number; why: string; code?: number }
  | { is: 'failed'; code: number; message: string };

export interface Where {
  url: string;
  key: string;
  path: string;
  signatureKey?: string;
}

interface ErrorData {
  code?: number;
  message?: string;
}

const shortestWait = 1000,
  longestWait = 30_000;
const soonestAnswer = 8000,
  latestAnswer = 60_000,
  settlesIn = 300;
const longestSilence = 25_000,
  longestHeartbeat = 3_600_000;
const encoder = new TextEncoder();

/** Browsers keep a request waiting, without a word, when they have too many connections to one address already. */
const noAnswer = (url: string): string =>
  url.startsWith('https:')
    ? 'No answer yet. The server, or a proxy before it, may be busy or unreachable.'
    : 'No answer yet. Without TLS a browser opens at most six connections to one address, and every open viewer takes one: ' +
      'close tabs that show other topics, or serve Freshet over TLS.';

/** How a connection ended, other than by our own doing. */
interface End {
  why: string;
  error?: ErrorData;
}

/** An answer that is no stream, in words. */
class Refusal extends Error {}

/** Follows a topic until it is closed: reconnects after breaks, resumes where it was, stops when the server says no. */
export class Stream {
  lastID = '';
  private over = false;
  private cut = new AbortController(); // of the connection under way
  private cutBecause = '';
  private wake: (() => void) | undefined;
  private wait = shortestWait;
  private silence = longestSilence;
  private asked = 0; // how long the server wants us to stay away

  constructor(
    private readonly where: Where,
    private readonly onEvent: (e: Incoming) => void,
    private readonly onState: (s: State) => void,
  ) {
    void this.run();
  }

  close(): void {
    this.over = true;
    this.cut.abort();
    this.wake?.();
    this.onState({ is: 'closed' });
  }

  /** Asks for a full document again, when a patch did not fit. */
  restart(): void {
    this.lastID = '';
    this.drop('A change did not fit the document; asking for all of it.');
  }

  /** Does not wait any longer. */
  hurry(): void {
    this.wake?.();
  }

  private drop(why: string): void {
    this.cutBecause = why;
    this.cut.abort();
  }

  private async run(): Promise<void> {
    for (let trouble = ''; !this.over; ) {
      this.onState({ is: 'connecting', ...(trouble ? { why: trouble } : {}) });
      this.cut = new AbortController();
      this.cutBecause = '';
      this.asked = 0;
      const { why, error } = await this.connect(this.cut.signal).catch(
        (e: unknown): End => ({
          why: this.cutBecause || (e instanceof Refusal ? e.message : 'The subscriber interface cannot be reached.'),
        }),
      );
      if (this.over) return;
      if (error && isFinal(error.code ?? 0)) {
        this.onState({ is: 'failed', code: error.code ?? 0, message: error.message ?? 'The server ended the stream.' });
        return;
      }
      const wait = this.asked || this.wait;
      trouble = error?.message ?? why;
      this.onState({ is: 'waiting', until: Date.now() + wait, why: trouble, ...(error?.code ? { code: error.code } : {}) });
      await this.pause(wait);
      this.wait = Math.min(this.wait * 2, longestWait);
    }
  }

  /** Waits, but not longer than until the network is back. */
  private pause(ms: number): Promise<void> {
    return new Promise(resolve => {
      const done = (): void => {
        clearTimeout(timer);
        globalThis.removeEventListener?.('online', done);
        resolve();
      };
      const timer = setTimeout(done, ms);
      globalThis.addEventListener?.('online', done);
      this.wake = done;
    });
  }

  /** Opens a stream. How long that takes is up to the browser too, so who waits is told why. */
  private async open(signal: AbortSignal): Promise<ReadableStreamDefaultReader<Uint8Array>> {
    const headers: Record<string, string> = { Accept: 'text/event-stream', 'X-Sd-Subscriber-Key': this.where.key };
    if (this.lastID) headers['Last-Event-ID'] = this.lastID;
    if (this.where.signatureKey) Object.assign(headers, await sign(this.where.path, this.where.signatureKey));
    const late = setTimeout(() => this.onState({ is: 'connecting', why: noAnswer(this.where.url) }), soonestAnswer);
    const tooLate = setTimeout(() => this.drop(noAnswer(this.where.url)), latestAnswer);
    try {
      const answer = await fetch(this.where.url + this.where.path, {
        headers,
        signal,
        credentials: 'omit',
        cache: 'no-store',
        referrerPolicy: 'no-referrer',
      });
      const type = answer.headers.get('Content-Type') ?? '';
      if (answer.body && type.startsWith('text/event-stream')) return answer.body.getReader();
      void answer.body?.cancel();
      throw new Refusal(
        `The subscriber interface answered ${answer.status} with ${type.split(';')[0] || 'nothing'} instead of a stream. ${
          answer.status >= 500 || answer.status === 429
            ? 'It, or a proxy before it, may be busy or starting.'
            : 'A proxy before it may lead elsewhere.'
        }`,
      );
    } finally {
      clearTimeout(late);
      clearTimeout(tooLate);
    }
  }

  /** Opens one connection and reads it to its end. */
  private async connect(signal: AbortSignal): Promise<End> {
    const reader = await this.open(signal),
      decoder = new TextDecoder();
    // A topic without a document says nothing for a while, a refusal comes at once.
    const settled = setTimeout(() => this.onState({ is: 'open' }), settlesIn);
    try {
      return await this.read(reader, decoder, signal);
    } finally {
      clearTimeout(settled);
    }
  }

  private async read(reader: ReadableStreamDefaultReader<Uint8Array>, decoder: TextDecoder, signal: AbortSignal): Promise<End> {
    let rest = '',
      error: ErrorData | undefined;
    for (;;) {
      const silent = setTimeout(() => {
        // heartbeats come more often, unless the server is set otherwise: then it is we who are impatient
        this.silence = Math.min(2 * this.silence, longestHeartbeat);
        this.drop('The connection has gone silent.');
      }, this.silence);
      const { done, value } = await reader.read().finally(() => clearTimeout(silent));
      if (signal.aborted) return { why: this.cutBecause }; // what was read before is not wanted any more
      if (done) return { why: 'The connection was lost.', ...(error ? { error } : {}) };
      const piece = decoder.decode(value, { stream: true });
      rest += piece;
      if (!piece.includes('\n')) continue; // the midst of a large document, not to be read again with every piece
      const blocks = rest.split('\n\n');
      rest = blocks.pop()!;
      for (const block of blocks) {
        const e = this.take(block);
        if (e) error = e.event === 'error' ? parsed(e.data) : undefined;
      }
    }
  }

  private take(block: string): Incoming | undefined {
    const e: Incoming = { id: '', event: 'message', data: '', bytes: 0, at: Date.now() };
    for (const line of block.split('\n')) {
      if (line.startsWith('data: ')) e.data = line.slice(6);
      else if (line.startsWith('event: ')) e.event = line.slice(7);
      else if (line.startsWith('id: ')) e.id = line.slice(4);
      else if (line.startsWith('retry: ')) this.asked = Number(line.slice(7)) || 0;
    }
    if (e.event !== 'error') {
      this.onState({ is: 'open' });
      this.wait = shortestWait;
    }
    if (!e.data) return undefined;
    if (e.id) this.lastID = e.id;
    e.bytes = encoder.encode(block).byteLength + 2;
    this.onEvent(e);
    return e;
  }
}

function parsed(data: string): ErrorData {
  try {
    return JSON.parse(data) as ErrorData;
  } catch {
    return {};
  }
}

/** Signs a request for apps that demand it. Browsers offer the means only to pages from https or from this machine. */
async function sign(path: string, key: string): Promise<Record<string, string>> {
  if (!globalThis.crypto?.subtle)
    throw new Refusal(
      'This app demands signed requests, and browsers sign only on pages served over TLS or from this machine. ' +
        'Open the console under https.',
    );
  const plain = atob(key),
    beacon = plain.slice(0, 36),
    secret = plain.slice(36);
  const ts = String(Date.now());
  const hmac = await crypto.subtle.importKey('raw', encoder.encode(secret), { name: 'HMAC', hash: 'SHA-512' }, false, ['sign']);
  const mac = new Uint8Array(await crypto.subtle.sign('HMAC', hmac, encoder.encode(`GET\n${ts}\n${path}\n`)));
  return { 'X-Auth-Sd-Ts': ts, 'X-Auth-Sd-S': btoa(beacon + btoa(String.fromCharCode(...mac))) };
}
