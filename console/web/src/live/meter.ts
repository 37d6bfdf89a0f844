// What a subscription cost, and what it would have cost otherwise.

/** What the viewer has seen, second by second. */
export interface Second {
  at: number;
  events: number;
  bytes: number;
  full: number;
}

export interface Totals {
  events: number;
  patches: number;
  bytes: number;
  full: number;
}

const mostSeconds = 300;
const frameBytes = 50; // what an event takes beside its data

export class Meter {
  seconds: Second[] = [];
  readonly totals: Totals = { events: 0, patches: 0, bytes: 0, full: 0 };
  /** Sum over time of the size of the document: bytes × seconds, for comparing with polling. */
  private byteSeconds = 0;
  private docBytes = 0;
  private lastTick = Date.now();

  /** What polling at an interval would have transferred. */
  polled(everyMs: number): number {
    return (this.byteSeconds * 1000) / everyMs;
  }

  /** Takes an event that came at some time, and how large the document is after it. */
  count(event: { event: string; bytes: number; at: number; docBytes: number }): void {
    const s = this.pass(event.at),
      isPatch = event.event === 'patch',
      full = isPatch ? event.docBytes + frameBytes : event.bytes;
    this.docBytes = event.docBytes;
    this.totals.events++;
    if (isPatch) this.totals.patches++;
    this.totals.bytes += event.bytes;
    this.totals.full += full;
    s.events++;
    s.bytes += event.bytes;
    s.full += full;
  }

  /** The current second, after accounting for the time that has passed. */
  pass(now: number): Second {
    if (now > this.lastTick) this.byteSeconds += (this.docBytes * (now - this.lastTick)) / 1000;
    this.lastTick = Math.max(now, this.lastTick);
    const at = Math.floor(this.lastTick / 1000);
    let last: Second | undefined = this.seconds[this.seconds.length - 1];
    if (last && at - last.at > mostSeconds) {
      this.seconds = [];
      last = undefined;
    }
    for (let t = last ? last.at + 1 : at; t <= at; t++) this.seconds.push({ at: t, events: 0, bytes: 0, full: 0 });
    if (this.seconds.length > mostSeconds) this.seconds.splice(0, this.seconds.length - mostSeconds);
    return this.seconds[this.seconds.length - 1]!;
  }
}
