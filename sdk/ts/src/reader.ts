import type { StreamEvent } from './stream.js';

const longestQueue = 1_000;

/** One loop over a stream. */
export class Reader<T> implements AsyncIterator<StreamEvent<T>, undefined> {
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
