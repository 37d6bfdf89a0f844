import { Events, isSnapshot, type Options, type State, type Trouble } from './events.js';
import { FreshetError } from './error.js';
import type { Operation } from './json.js';
import { Listeners } from './listeners.js';
import { Live } from './live.js';
import type { RawEvent } from './message.js';
import { Reader } from './reader.js';
import type { TransportName } from './transport.js';

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

interface Told<T> {
  snapshot: SnapshotEvent<T>;
  patch: PatchEvent<T>;
  error: FreshetError;
  state: State;
}

/** A document that stays current. Make one with {@link subscribe}. */
export class Stream<T> implements AsyncIterable<StreamEvent<T>> {
  readonly #events: Events;
  readonly #listeners = new Listeners<Told<T>>();
  readonly #readers = new Set<Reader<T>>();
  readonly #live = new Live();
  #whole = false; // there is a document that patches fit

  constructor(topic: string, options: Options) {
    this.#events = new Events(topic, options);
    this.#events.on('event', event => this.#receive(event));
    this.#events.on('error', error => this.#listeners.tell('error', error));
    this.#events.on('state', state => this.#become(state));
  }

  /** The current document; undefined until the first has come. It is never changed in place: a change makes a new one. */
  get document(): T | undefined {
    return this.#look(() => this.#live.value());
  }

  get state(): State {
    return this.#events.state;
  }

  /** Why there is no connection; undefined while there is one, or the first is under way. */
  get trouble(): Trouble | undefined {
    return this.#events.trouble;
  }

  /** The id of the last event. */
  get id(): string | undefined {
    return this.#events.id;
  }

  /** The transport in use. */
  get transport(): TransportName {
    return this.#events.transport;
  }

  /** Calls the listener from now on. Returns what stops that. */
  on<K extends keyof Told<T>>(type: K, listener: (value: Told<T>[K]) => void): () => void {
    return this.#listeners.add(type, listener);
  }

  /** Connects again at once, if it waits to. */
  retryNow(): void {
    this.#events.retryNow();
  }

  /** Ends the stream, for good. */
  close(): void {
    this.#events.close();
  }

  /**
   * Every change from now on, beginning with the document there is. A reader that falls far behind is given the newest
   * document instead of all the steps to it. Leaving the loop closes the stream; a fatal error is thrown.
   */
  [Symbol.asyncIterator](): AsyncIterator<StreamEvent<T>, undefined> {
    const reader = new Reader<T>(() => this.close());
    const document = this.document;
    if (document !== undefined) reader.push({ type: 'snapshot', document, id: this.id });
    if (this.state === 'closed') reader.end();
    else this.#readers.add(reader);
    return reader;
  }

  #receive(event: RawEvent): void {
    try {
      this.#take(event);
    } catch (error) {
      this.#startOver(error as Error);
    }
  }

  #take(event: RawEvent): void {
    if (event.event === 'patch') {
      const patch = event.read() as Operation[];
      if (!this.#whole) throw new Error('a patch for no document');
      const after = this.#live.patch(patch);
      const look = () => this.#look(after);
      this.#send({
        type: 'patch',
        patch,
        id: this.id,
        get document() {
          return look() as T;
        },
      });
    } else if (isSnapshot(event)) {
      const document = event.read() as T;
      this.#live.replace(document);
      this.#whole = true;
      this.#send({ type: 'snapshot', document, id: this.id });
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
    this.#events.restart();
    this.#listeners.tell('error', new FreshetError(`Out of step, starting over: ${error.message}`));
  }

  #send(event: StreamEvent<T>): void {
    for (const reader of this.#readers) reader.push(event);
    this.#listeners.tell(event.type, event as SnapshotEvent<T> & PatchEvent<T>);
  }

  #become(state: State): void {
    this.#listeners.tell('state', state);
    if (state !== 'closed') return;
    const { trouble } = this;
    for (const reader of this.#readers) reader.end(trouble?.is === 'error' ? trouble.error : undefined);
    this.#readers.clear();
    this.#listeners.clear();
  }
}
