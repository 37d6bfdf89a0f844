/** Who is told what, by name. */
export class Listeners<Told> {
  readonly #all = new Map<keyof Told, Set<(value: never) => void>>();

  /** Calls the listener from now on. Returns what stops that. */
  add<K extends keyof Told>(type: K, listener: (value: Told[K]) => void): () => void {
    let all = this.#all.get(type);
    if (!all) {
      all = new Set();
      this.#all.set(type, all);
    }
    all.add(listener as (value: never) => void);
    return () => void all.delete(listener as (value: never) => void);
  }

  /** A listener that throws harms nobody but itself; the environment reports it as uncaught. */
  tell<K extends keyof Told>(type: K, value: Told[K]): void {
    for (const listener of [...(this.#all.get(type) ?? [])]) {
      try {
        listener(value as never);
      } catch (error) {
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  }

  clear(): void {
    this.#all.clear();
  }
}
