import { type Address, address, ask, type Wishes } from './address.js';
import { renewing } from './codes.js';
import { FreshetError, readError } from './error.js';
import { Listeners } from './listeners.js';
import type { Parse, RawEvent } from './message.js';
import { readKey } from './sign.js';
import { type Link, NoStream, pause, type TransportName, transports, Unsupported } from './transport.js';
import { type Patience, Silence, Watch } from './watch.js';

/** `waiting` is between two connections. */
export type State = 'connecting' | 'open' | 'waiting' | 'closed';

/** Why there is no connection. */
export type Trouble =
  /** The server said why. After an error that is fatal there will be no other connection. */
  | { readonly is: 'error'; readonly error: FreshetError }
  | { readonly is: 'unreachable'; readonly cause: Error }
  /** Something answered, but not with a stream. */
  | { readonly is: 'no-stream'; readonly status: number; readonly contentType: string }
  /** Nothing answered in time. */
  | { readonly is: 'unanswered' }
  /** Neither events nor heartbeats came for too long. */
  | { readonly is: 'silent' }
  /** The connection ended without a word. */
  | { readonly is: 'lost' }
  /** What came did not fit what was there, and the whole document is asked for. */
  | { readonly is: 'out-of-step' };

export interface Options extends Wishes {
  /** Ends the stream when aborted. */
  signal?: AbortSignal | undefined;
  /** `auto` (the default) takes the best that works; naming one insists on it. */
  transport?: 'auto' | TransportName | undefined;
  /** How long to wait, in milliseconds, for the first byte (6,000), and for any byte later (25,000; a heartbeat comes every 10,000). */
  patience?: Patience | undefined;
  /** Reads JSON in place of `JSON.parse`, which rounds long numbers; `parse` of `@freshet/client/exact` does not. */
  parse?: Parse | undefined;
  /** Makes requests in place of the global `fetch`. EventSource makes its own. */
  fetch?: typeof fetch | undefined;
}

interface Told {
  event: RawEvent;
  error: FreshetError;
  state: State;
}

const firstPatience = 6_000;
const silencePatience = 25_000;
const shortestWait = 500;
const longestWait = 30_000;

/**
 * The events of a topic as they come. It reconnects and goes on after the last event, but makes no document of them. Make one with
 * {@link events}.
 */
export class Events {
  readonly #to: Address;
  readonly #options: Options;
  readonly #over = new AbortController();
  readonly #listeners = new Listeners<Told>();
  readonly #ladder: TransportName[];
  readonly #silence: Silence;

  #connection = new AbortController();
  #gaveUp: Trouble | undefined; // why we ended the connection, if we did
  #said: FreshetError | undefined; // by the server, as the last thing on this connection
  #trouble: Trouble | undefined;
  #id: string | undefined;
  #state: State = 'connecting';
  #rung = 0;
  #failures = 0;
  #advice: number | undefined;
  #wake: AbortController | undefined;

  constructor(topic: string, options: Options) {
    this.#to = address(topic, options.server);
    this.#options = options;
    this.#ladder = ladder(options);
    this.#silence = new Silence(options.patience?.silence ?? silencePatience);
    if (options.signatureKey !== undefined) readKey(options.signatureKey);
    if (options.signal?.aborted) {
      this.#state = 'closed';
      return;
    }
    options.signal?.addEventListener('abort', this.#abort);
    if (typeof addEventListener === 'function') addEventListener('online', this.#online);
    queueMicrotask(() => void this.#run()); // so that listeners can be there before anything happens
  }

  get state(): State {
    return this.#state;
  }

  /** Why there is no connection; undefined while there is one, or the first is under way. */
  get trouble(): Trouble | undefined {
    return this.#trouble;
  }

  /** The id of the last event. */
  get id(): string | undefined {
    return this.#id;
  }

  /** The transport in use. */
  get transport(): TransportName {
    return this.#ladder[this.#rung]!;
  }

  /** Calls the listener from now on. Returns what stops that. */
  on<K extends keyof Told>(type: K, listener: (value: Told[K]) => void): () => void {
    return this.#listeners.add(type, listener);
  }

  /** Connects again at once, if it waits to. */
  retryNow(): void {
    this.#wake?.abort();
  }

  /** Asks for the whole document, on a new connection: for who cannot make sense of what came. */
  restart(): void {
    this.#id = undefined;
    this.#giveUp({ is: 'out-of-step' });
  }

  /** Ends it, for good. */
  close(): void {
    this.#end();
  }

  async #run(): Promise<void> {
    while (!this.#over.signal.aborted) {
      this.#become('connecting');
      await this.#connect();
      if (this.#over.signal.aborted) return;
      this.#become('waiting');
      this.#wake = new AbortController();
      await pause(this.#wait(), this.#wake.signal);
    }
  }

  /** How long to wait before the next connection: as the server asked, or ever longer; never the same for everybody. */
  #wait(): number {
    const advice = this.#advice;
    this.#advice = undefined;
    if (advice !== undefined) return advice * (1 + Math.random() / 5);
    const longest = Math.min(shortestWait * 2 ** this.#failures++, longestWait);
    return longest * (0.5 + Math.random() / 2);
  }

  /** Keeps a connection until it breaks, and decides what is tried next. */
  async #connect(): Promise<void> {
    if (this.#over.signal.aborted) return; // by who was told that it connects
    const name = this.transport;
    const connection = new AbortController();
    this.#connection = connection;
    this.#gaveUp = this.#said = undefined;
    const lowest = this.#rung === this.#ladder.length - 1;
    const watch = new Watch(name, lowest, this.#options.patience?.first ?? firstPatience, this.#silence, answered =>
      this.#giveUp({ is: answered ? 'silent' : 'unanswered' }),
    );
    try {
      await transports[name](this.#link(watch, connection.signal), connection.signal);
      this.#note({ is: 'lost' });
    } catch (error) {
      if (error instanceof Unsupported) return this.#descend();
      if (name === 'long-poll') this.#rung = 0; // the network changed; perhaps streams pass now
      this.#note(troubleOf(error as Error));
      // Told once for an outage, not for every attempt.
      if (!connection.signal.aborted && this.#failures === 0) {
        this.#listeners.tell('error', new FreshetError(`Cannot connect, trying again: ${(error as Error).message}`));
      }
    } finally {
      watch.stop();
    }
    if (watch.heldBack) this.#descend();
  }

  #descend(): void {
    if (this.#rung < this.#ladder.length - 1) {
      this.#rung++;
      this.#advice = 0; // nothing is wrong with the server
    }
  }

  #link(watch: Watch, signal: AbortSignal): Link {
    const { fetch = globalThis.fetch, parse = JSON.parse } = this.#options;
    return {
      fetch: (input, init) => fetch(input, init), // which browsers refuse as a method of something else
      parse,
      ask: transport => ask(this.#to, this.#options, transport, this.#id),
      open: () => {
        watch.alive(false);
        this.#advice = undefined;
        this.#trouble = undefined;
        this.#become('open');
      },
      alive: () => watch.alive(true),
      event: event => {
        if (!signal.aborted) this.#take(event, signal); // what comes later is not wanted any more
      },
      retry: milliseconds => {
        this.#advice = milliseconds;
      },
      waiting: () => {
        watch.pause();
        this.#note({ is: 'lost' });
        this.#become('waiting');
      },
    };
  }

  #take(event: RawEvent, signal: AbortSignal): void {
    if (event.event === 'error') {
      this.#listeners.tell('event', event);
      return this.#heed(readError(contentOf(event)));
    }
    this.#said = undefined;
    if (event.event === 'patch') this.#id = event.id || this.#id;
    else if (isSnapshot(event)) this.#id = event.id || undefined;
    this.#listeners.tell('event', event);
    if (!signal.aborted) this.#failures = 0; // nobody found fault with it
  }

  #heed(error: FreshetError): void {
    if (error.fatal) return this.#end(error);
    this.#said = error;
    this.#listeners.tell('error', error);
    if (renewing.includes(error.code)) this.#connection.abort(); // EventSource would come back by itself, with the old signature
  }

  /** Remembers why there is no connection: what we did ourselves, what the server said, or what it looks like. */
  #note(otherwise: Trouble): void {
    this.#trouble = this.#gaveUp ?? (this.#said ? { is: 'error', error: this.#said } : otherwise);
  }

  #giveUp(why: Trouble): void {
    this.#gaveUp = why;
    this.#connection.abort();
  }

  #become(state: State): void {
    if (this.#state === state) return;
    this.#state = state;
    this.#listeners.tell('state', state);
  }

  #end(error?: FreshetError): void {
    if (this.#state === 'closed') return;
    this.#options.signal?.removeEventListener('abort', this.#abort);
    if (typeof removeEventListener === 'function') removeEventListener('online', this.#online);
    this.#over.abort();
    this.#connection.abort();
    this.#wake?.abort();
    this.#trouble = error && { is: 'error', error };
    if (error) this.#listeners.tell('error', error);
    this.#become('closed');
    this.#listeners.clear();
  }

  readonly #abort = () => this.close();

  readonly #online = () => {
    this.#failures = 0;
    this.#wake?.abort();
  };
}

/** Whether an event brings a whole document. */
export function isSnapshot({ event }: RawEvent): boolean {
  return event === 'snapshot' || event === 'data';
}

function ladder({ transport = 'auto', headers }: Options): TransportName[] {
  if (transport !== 'auto') return [transport];
  const native = typeof EventSource === 'function' && Object.keys(headers ?? {}).length === 0;
  return native ? ['eventsource', 'fetch', 'long-poll'] : ['fetch', 'long-poll'];
}

function troubleOf(error: Error): Trouble {
  if (!(error instanceof NoStream)) return { is: 'unreachable', cause: error };
  return { is: 'no-stream', status: error.status, contentType: error.contentType };
}

/** What an error event says, which may be no JSON. */
function contentOf(event: RawEvent): unknown {
  try {
    return event.read();
  } catch {
    return undefined;
  }
}
