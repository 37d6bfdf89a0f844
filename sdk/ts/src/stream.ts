import { renewing } from './codes.js';
import { address, ask, type Address, type Wishes } from './address.js';
import { FreshetError, readError } from './error.js';
import type { Operation } from './json.js';
import { Live } from './live.js';
import { readKey } from './sign.js';
import { pause, transports, Unsupported, type Link, type TransportName } from './transport.js';

/** `waiting` is between two connections. */
export type State = 'connecting' | 'open' | 'waiting' | 'closed';

export interface SnapshotEvent<T> {
  readonly type: 'snapshot';
  readonly document: T;
  readonly id: string | undefined;
}

export interface PatchEvent<T> {
  readonly type: 'patch';
  /** The document after the patch. */
  readonly document: T;
  readonly patch: readonly Operation[];
  readonly id: string | undefined;
}

export type StreamEvent<T> = SnapshotEvent<T> | PatchEvent<T>;

interface Listened<T> {
  snapshot: SnapshotEvent<T>;
  patch: PatchEvent<T>;
  error: FreshetError;
  state: State;
}

export interface Options extends Wishes {
  /** Ends the stream when aborted. */
  signal?: AbortSignal | undefined;
  /** `auto` (the default) takes the best that works; naming one insists on it. */
  transport?: 'auto' | TransportName | undefined;
  /** How long to wait, in milliseconds, for the first byte (6,000), and for any byte later (25,000; a heartbeat comes every 10,000). */
  patience?: { first?: number; silence?: number } | undefined;
}

const firstPatience = 6_000;
const silencePatience = 25_000;
const longPollPatience = 35_000; // an answer may take 25 s
const shortestWait = 500;
const longestWait = 30_000;
const longestQueue = 1_000;

/** A document that stays current. Make one with {@link subscribe}. */
export class Stream<T> implements AsyncIterable<StreamEvent<T>> {
  readonly #to: Address;
  readonly #options: Options;
  readonly #over = new AbortController();
  readonly #listeners = new Map<keyof Listened<T>, Set<(value: never) => void>>();
  readonly #readers = new Set<Reader<T>>();
  readonly #ladder: TransportName[];

  readonly #live = new Live();
  #stop: (() => void) | undefined; // ends the connection
  #whole = false; // there is a document that patches fit
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
    if (options.signatureKey !== undefined) readKey(options.signatureKey);
    if (options.signal?.aborted) {
      this.#state = 'closed';
      return;
    }
    options.signal?.addEventListener('abort', this.#abort);
    if (typeof addEventListener === 'function') addEventListener('online', this.#online);
    queueMicrotask(() => void this.#run()); // so that listeners can be there before anything happens
  }

  /** The current document; undefined until the first has come. It is never changed in place: a change makes a new one. */
  get document(): T | undefined {
    return this.#look(() => this.#live.value());
  }

  get state(): State {
    return this.#state;
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
  on<K extends keyof Listened<T>>(type: K, listener: (value: Listened<T>[K]) => void): () => void {
    let all = this.#listeners.get(type);
    if (!all) {
      all = new Set();
      this.#listeners.set(type, all);
    }
    all.add(listener as (value: never) => void);
    return () => void all.delete(listener as (value: never) => void);
  }

  /** Ends the stream, for good. */
  close(): void {
    this.#end();
  }

  /**
   * Every change from now on, beginning with the document there is. A reader that falls far behind is given the newest
   * document instead of all the steps to it. Leaving the loop closes the stream; a fatal error is thrown.
   */
  [Symbol.asyncIterator](): AsyncIterator<StreamEvent<T>, undefined> {
    const reader = new Reader<T>(() => this.close());
    const document = this.document;
    if (document !== undefined) reader.push({ type: 'snapshot', document, id: this.#id });
    if (this.#state === 'closed') reader.end();
    else this.#readers.add(reader);
    return reader;
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
    const name = this.transport;
    const connection = new AbortController();
    const stop = () => connection.abort();
    this.#stop = stop;
    this.#over.signal.addEventListener('abort', stop);
    const lowest = this.#rung === this.#ladder.length - 1;
    const watch = new Watch(name, lowest, this.#options.patience, stop);
    try {
      await transports[name](this.#link(watch), connection.signal);
    } catch (error) {
      if (error instanceof Unsupported) return this.#descend();
      if (name === 'long-poll') this.#rung = 0; // the network changed; perhaps streams pass now
      // Told once for an outage, not for every attempt.
      if (!connection.signal.aborted && this.#failures === 0) {
        this.#tell('error', new FreshetError(`Cannot connect, trying again: ${(error as Error).message}`));
      }
    } finally {
      watch.stop();
      this.#over.signal.removeEventListener('abort', stop);
    }
    if (watch.heldBack) this.#descend();
  }

  #descend(): void {
    if (this.#rung < this.#ladder.length - 1) {
      this.#rung++;
      this.#advice = 0; // nothing is wrong with the server
    }
  }

  #link(watch: Watch): Link {
    return {
      ask: transport => ask(this.#to, this.#options, transport, this.#id),
      open: () => {
        watch.alive(false);
        this.#advice = undefined;
        this.#become('open');
      },
      alive: () => watch.alive(true),
      event: (name, id, read) => {
        if (this.#over.signal.aborted) return;
        try {
          this.#take(name, id, read());
        } catch (error) {
          this.#startOver(error as Error);
        }
      },
      retry: milliseconds => (this.#advice = milliseconds),
      waiting: () => {
        watch.pause();
        this.#become('waiting');
      },
    };
  }

  #take(event: string, id: string | undefined, value: unknown): void {
    if (event === 'error') {
      const error = readError(value);
      if (error.fatal) return this.#end(error);
      this.#tell('error', error);
      if (renewing.includes(error.code)) this.#stop?.(); // EventSource would come back by itself, with the old signature
      return;
    }
    this.#failures = 0;
    if (event === 'patch') {
      if (!this.#whole) throw new Error('a patch for no document');
      const patch = value as Operation[];
      const after = this.#live.patch(patch);
      const look = () => this.#look(after);
      this.#id = id || this.#id;
      this.#send({
        type: 'patch',
        patch,
        id: this.#id,
        get document() {
          return look() as T;
        },
      });
    } else if (event === 'snapshot' || event === 'data') {
      this.#live.replace(value);
      this.#whole = true;
      this.#id = id || undefined;
      this.#send({ type: 'snapshot', document: value as T, id: this.#id });
    }
  }

  /** Patches may be applied only when somebody looks, so that is when it may show that one does not fit. */
  #look(look: () => unknown): T | undefined {
    try {
      return look() as T | undefined;
    } catch (error) {
      this.#startOver(error as Error);
      return this.#live.value() as T | undefined;
    }
  }

  /** What came does not fit what we hold. Nothing is lost: the server gives the whole document to who has no id. */
  #startOver(error: Error): void {
    this.#live.drop();
    this.#whole = false;
    this.#id = undefined;
    this.#stop?.();
    this.#tell('error', new FreshetError(`Out of step, starting over: ${error.message}`));
  }

  #send(event: StreamEvent<T>): void {
    for (const reader of this.#readers) reader.push(event);
    this.#tell(event.type, event as SnapshotEvent<T> & PatchEvent<T>);
  }

  #become(state: State): void {
    if (this.#state === state) return;
    this.#state = state;
    this.#tell('state', state);
  }

  /** A listener that throws harms nobody but itself; the environment reports it as uncaught. */
  #tell<K extends keyof Listened<T>>(type: K, value: Listened<T>[K]): void {
    for (const listener of [...(this.#listeners.get(type) ?? [])]) {
      try {
        listener(value as never);
      } catch (error) {
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  }

  #end(error?: FreshetError): void {
    if (this.#state === 'closed') return;
    this.#options.signal?.removeEventListener('abort', this.#abort);
    if (typeof removeEventListener === 'function') removeEventListener('online', this.#online);
    this.#over.abort();
    this.#wake?.abort();
    if (error) this.#tell('error', error);
    this.#become('closed');
    for (const reader of this.#readers) reader.end(error);
    this.#readers.clear();
    this.#listeners.clear();
  }

  readonly #abort = () => this.close();

  readonly #online = () => {
    this.#failures = 0;
    this.#wake?.abort();
  };
}

function ladder({ transport = 'auto', headers }: Options): TransportName[] {
  if (transport !== 'auto') return [transport];
  const native = typeof EventSource === 'function' && Object.keys(headers ?? {}).length === 0;
  return native ? ['eventsource', 'fetch', 'long-poll'] : ['fetch', 'long-poll'];
}

/** Notices that nothing arrives: the connection is dead, or somebody on the way holds the stream back. */
class Watch {
  heldBack = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #last = Date.now();
  #first: number | undefined; // when the first byte came
  #flows = false; // bytes came at different times, so the way lets them through
  #paused = false;

  readonly #firstPatience: number;
  readonly #silencePatience: number;

  constructor(
    private readonly transport: TransportName,
    private readonly lowest: boolean, // there is no other transport to fall back to
    patience: Options['patience'],
    private readonly onSilence: () => void,
  ) {
    this.#silencePatience = transport === 'long-poll' ? longPollPatience : (patience?.silence ?? silencePatience);
    this.#firstPatience = transport === 'long-poll' ? longPollPatience : (patience?.first ?? firstPatience);
    this.#look();
  }

  alive(bytes: boolean): void {
    this.#paused = false;
    this.#last = Date.now();
    if (!bytes) return;
    this.#first ??= this.#last;
    if (this.#last - this.#first > 1_000) this.#flows = true;
  }

  pause(): void {
    this.#paused = true;
    this.#first ??= Date.now(); // the next connection has nothing to say if nothing is new
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  #look(): void {
    const left = this.#last + (this.#first === undefined ? this.#firstPatience : this.#silencePatience) - Date.now();
    if (left > 0 || this.#paused) {
      // Set again only when it fires, not at every byte.
      this.#timer = setTimeout(() => this.#look(), Math.max(left, 100));
      return;
    }
    // EventSource hides heartbeats, so its silence says nothing; a transport that sees them has to look, if there is one.
    if (this.transport === 'eventsource' && this.lowest) return;
    this.heldBack = this.transport === 'eventsource' || (this.transport === 'fetch' && !this.#flows);
    this.onSilence();
  }
}

/** One loop over a stream. */
class Reader<T> implements AsyncIterator<StreamEvent<T>, undefined> {
  #queue: StreamEvent<T>[] = [];
  #waiting: { resolve(result: IteratorResult<StreamEvent<T>, undefined>): void; reject(error: Error): void }[] = [];
  #ended = false;
  #error: Error | undefined;

  constructor(private readonly onLeave: () => void) {}

  push(event: StreamEvent<T>): void {
    const next = this.#waiting.shift();
    if (next) return next.resolve({ value: event, done: false });
    if (this.#queue.length >= longestQueue) {
      this.#queue = [{ type: 'snapshot', document: event.document, id: event.id }];
    } else this.#queue.push(event);
  }

  end(error?: Error): void {
    this.#ended = true;
    for (const { resolve, reject } of this.#waiting.splice(0)) {
      if (error) reject(error);
      else resolve({ value: undefined, done: true });
      error = undefined; // thrown once
    }
    this.#error = error;
  }

  async next(): Promise<IteratorResult<StreamEvent<T>, undefined>> {
    const value = this.#queue.shift();
    if (value) return { value, done: false };
    if (this.#error) {
      const error = this.#error;
      this.#error = undefined;
      throw error;
    }
    if (this.#ended) return { value: undefined, done: true };
    return new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }));
  }

  async return(): Promise<IteratorResult<StreamEvent<T>, undefined>> {
    this.#queue = [];
    this.#error = undefined;
    this.onLeave();
    return { value: undefined, done: true };
  }
}
