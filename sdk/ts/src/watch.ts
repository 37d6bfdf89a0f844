import type { TransportName } from './transport.js';

const longPollPatience = 35_000; // an answer may take 25 s
const longestSilence = 3_600_000;

/** How long to wait, in milliseconds, for the first byte and for any byte later. */
export interface Patience {
  first?: number;
  silence?: number;
}

/**
 * How long a silence may last. It is learnt: a server may be set to send heartbeats less often than we expect, and then it is we who
 * are impatient.
 */
export class Silence {
  readonly usual: number;
  most: number;

  constructor(usual: number) {
    this.usual = usual;
    this.most = usual;
  }

  /** A connection was given up for it. */
  broke(): void {
    this.most = Math.min(2 * this.most, longestSilence);
  }

  /** Bytes come often enough. */
  keeps(): void {
    this.most = this.usual;
  }
}

/** Notices that nothing arrives: the connection is dead, or somebody on the way holds the stream back. */
export class Watch {
  heldBack = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #last = Date.now();
  #first: number | undefined; // when the first byte came
  #flows = false; // bytes came at different times, so the way lets them through
  #isSlow = false; // bytes came so late that less patience would have ended the connection, or nearly
  #paused = false;

  constructor(
    private readonly transport: TransportName,
    private readonly lowest: boolean, // there is no other transport to fall back to
    private readonly first: number,
    private readonly silence: Silence,
    private readonly onSilence: (answered: boolean) => void,
  ) {
    this.#look();
  }

  alive(bytes: boolean): void {
    this.#paused = false;
    const now = Date.now();
    if (now - this.#last > this.silence.usual / 2) this.#isSlow = true;
    this.#last = now;
    if (!bytes) return;
    if (this.#first === undefined) {
      this.#first = now;
      this.#isSlow = false;
      this.#look(); // by another measure from here on
    }
    if (now - this.#first > 1_000) this.#flows = true;
    if (!this.#isSlow && now - this.#first > this.silence.most) this.silence.keeps();
  }

  pause(): void {
    this.#paused = true;
    this.#first ??= Date.now(); // the next connection has nothing to say if nothing is new
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  #look(): void {
    clearTimeout(this.#timer);
    const left = this.#last + this.#patience() - Date.now();
    if (left > 0 || this.#paused) {
      // Set again only when it fires, not at every byte.
      this.#timer = setTimeout(() => this.#look(), Math.max(left, 100));
      return;
    }
    // EventSource hides heartbeats, so its silence says nothing; a transport that sees them has to look, if there is one.
    if (this.transport === 'eventsource' && this.lowest) return;
    this.heldBack = this.transport === 'eventsource' || (this.transport === 'fetch' && !this.#flows);
    if (this.#first !== undefined && (this.lowest || !this.heldBack)) this.silence.broke();
    this.onSilence(this.#first !== undefined);
  }

  #patience(): number {
    if (this.transport === 'long-poll') return longPollPatience;
    return this.#first === undefined ? this.first : this.silence.most;
  }
}
