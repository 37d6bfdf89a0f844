import { applyWith, type Names, type Operation } from './json.js';

/** How long patches may be put off, in milliseconds, and how many. */
const longestDelay = 50;
const longestBatch = 256;

/**
 * A document that patches arrive for, possibly much faster than anybody looks at it.
 *
 * A new document for every patch would copy what is large in it (an object with thousands of members, say) for every
 * patch. So in a burst patches wait until somebody looks, and are then applied together, with one copy for all of them.
 * What is seen is the same as if each had been applied when it came.
 */
export class Live {
  readonly #names: Names = new WeakMap();
  #batch = new Batch(undefined, this.#names);
  #applied = 0; // when

  /** The document as it is now. */
  value(): unknown {
    if (this.#batch.patches.length > 0) {
      this.#batch = new Batch(this.#batch.after(this.#batch.patches.length), this.#names);
      this.#applied = Date.now();
    }
    return this.#batch.base;
  }

  replace(document: unknown): void {
    this.#batch = new Batch(document, this.#names);
  }

  /** Forgets patches that nobody has looked at the result of. */
  drop(): void {
    this.#batch = new Batch(this.#batch.base, this.#names);
  }

  /** Takes a patch. Returns what returns the document as it is after this patch, whenever it is called. */
  patch(patch: readonly Operation[]): () => unknown {
    const batch = this.#batch;
    const count = batch.patches.push(patch);
    // A lone patch is applied at once, so that one that does not fit is noticed at once.
    if (count >= longestBatch || Date.now() - this.#applied > longestDelay) this.value();
    return () => (batch === this.#batch && count === batch.patches.length ? this.value() : batch.after(count));
  }
}

/** Patches for a document, in order. Once others have taken its place, a batch does not change. */
class Batch {
  readonly patches: (readonly Operation[])[] = [];
  #last: unknown;
  #lastCount = 0;

  constructor(
    readonly base: unknown,
    private readonly names: Names,
  ) {
    this.#last = base;
  }

  /** The document after that many of the patches. It is made once, and onwards from the one made before. */
  after(count: number): unknown {
    const from = count >= this.#lastCount ? this.#lastCount : 0;
    if (count !== this.#lastCount) {
      const made = applyWith(this.names, from === 0 ? this.base : this.#last, this.patches.slice(from, count).flat());
      if (from === 0 && this.#lastCount > count) return made; // looking back does not forget what is ahead
      this.#last = made;
      this.#lastCount = count;
    }
    return this.#last;
  }
}
