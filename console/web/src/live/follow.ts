// What the viewer knows about one topic: the document, its retained history, and what it all cost. Events are taken in as
// they come and shown once per frame, however many came in between.
import { signal } from '@preact/signals';
import { type Json, parse, size } from './json';
import { apply, type Op, type Touch } from './patch';
import { type Incoming, type State, Stream, type Where } from './stream';

/** One event of the history, with the document it led to. */
export interface Version {
  n: number;
  id: string;
  event: string;
  bytes: number;
  at: number;
  ops: Op[];
  touches: Touch[];
  /** Null without a meaning as long as nothing was published. */
  doc: Json;
  hasDoc: boolean;
  docBytes: number;
  error: string;
  cost: number;
}

/** What the viewer has seen, second by second. */
export interface Second {
  at: number;
  events: number;
  bytes: number;
  full: number;
  slowest: number;
}

export interface Totals {
  events: number;
  patches: number;
  bytes: number;
  full: number;
  since: number;
}

const mostVersions = 2000;
const mostCost = 4_000_000; // slots of eight bytes, about
const mostSeconds = 300;
const frameBytes = 50; // what an event takes beside its data
const hotFor = 1600; // ms; the stylesheet fades as long
const mostQueued = 5000; // events, before they are taken in at once
const soonMs = 250; // by then events are taken in, frame or not

/**
 * Whether an event id is at or behind another in one history: "<epoch>-<version>". What comes fast is delivered together, under the last
 * id.
 */
function reaches(id: string, wanted: string): boolean {
  const [epoch, n] = id.split('-'),
    [of, least] = wanted.split('-');
  return id === wanted || (epoch === of && Number(n) >= Number(least));
}

/** When a path was last touched, how, and how often: the last restarts the fading. */
export interface Heat {
  at: number;
  kind: Touch['kind'];
  times: number;
}

export class Follow {
  readonly state = signal<State>({ is: 'connecting' });
  /** Rises when there is something new to show. */
  readonly tick = signal(0);
  /** Rises every second, for what need not be drawn more often. */
  readonly beat = signal(0);
  /** The number of the version shown, or null for the newest. */
  readonly pinned = signal<number | null>(null);

  versions: Version[] = [];
  heat = new Map<string, Heat>();
  seconds: Second[] = [];
  totals: Totals = { events: 0, patches: 0, bytes: 0, full: 0, since: Date.now() };
  /** Sum over time of the size of the document: bytes × seconds, for comparing with polling. */
  private byteSeconds = 0;
  private lastTick = Date.now();

  private queue: Incoming[] = [];
  private frame = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private held: Version | undefined; // is pinned, and older than what is kept
  private astray = false; // a patch did not fit: what follows does not either, until the next full document
  private count = 0;
  private cost = 0;
  private stream: Stream | undefined;
  private closed = false;
  private waiting: { id: string; there: (v: Version) => void }[] = [];
  private readonly clock: ReturnType<typeof setInterval>;

  constructor(private where: Where) {
    this.open();
    this.clock = setInterval(() => {
      this.second(Date.now());
      this.beat.value++;
      this.tick.value++;
    }, 1000);
  }

  open(where = this.where): void {
    this.where = where;
    this.stream?.close();
    this.stream = new Stream(
      where,
      e => this.take(e),
      s => {
        const now = this.state.value;
        if (s.is !== now.is || s.is === 'failed' || ('why' in s && s.why !== ('why' in now ? now.why : undefined))) this.state.value = s;
      },
    );
  }

  /** Does not wait until it is time to try again. */
  hurry(): void {
    this.stream?.hurry();
  }

  close(): void {
    this.closed = true;
    clearInterval(this.clock);
    this.unschedule();
    this.stream?.close();
  }

  get newest(): Version | undefined {
    return this.versions[this.versions.length - 1];
  }

  /** The version to show: the pinned one, else the newest. */
  shown(): Version | undefined {
    const pinned = this.pinned.value;
    if (pinned === null) return this.newest;
    if (this.held?.n === pinned) return this.held;
    return this.versions[Math.max(0, this.indexOf(pinned))];
  }

  indexOf(n: number): number {
    const first = this.versions[0];
    return first ? Math.min(n - first.n, this.versions.length - 1) : -1;
  }

  /** Resolves when the event with this id has arrived, or one behind it. */
  arrival(id: string): Promise<Version> {
    const there = this.versions.find(v => reaches(v.id, id));
    if (there) return Promise.resolve(there);
    return new Promise(resolve => this.waiting.push({ id, there: resolve }));
  }

  /** What polling at an interval would have transferred. */
  polled(everyMs: number): number {
    return (this.byteSeconds * 1000) / everyMs;
  }

  private take(e: Incoming): void {
    this.queue.push(e);
    if (this.queue.length >= mostQueued) return this.flush();
    if (this.timer !== undefined) return;
    // A hidden page gets no frames, and may be hidden before the next one; it must not grow either.
    if (!document.hidden) this.frame = requestAnimationFrame(() => this.flush());
    this.timer = setTimeout(() => this.flush(), soonMs);
  }

  private unschedule(): void {
    cancelAnimationFrame(this.frame);
    clearTimeout(this.timer);
    this.timer = undefined;
  }

  private flush(): void {
    this.unschedule();
    if (this.closed) return;
    const batch = this.queue;
    this.queue = [];
    const now = Date.now();
    for (const [path, h] of this.heat) if (now - h.at > hotFor) this.heat.delete(path);
    for (const e of batch) this.add(e);
    this.trim();
    this.second(now);
    this.tick.value++;
  }

  private add(e: Incoming): void {
    if (this.astray && e.event === 'patch') return;
    const before = this.newest;
    const v: Version = {
      n: this.count++,
      id: e.id,
      event: e.event,
      bytes: e.bytes,
      at: e.at,
      ops: [],
      touches: [],
      doc: before?.doc ?? null,
      hasDoc: before?.hasDoc ?? false,
      docBytes: before?.docBytes ?? 0,
      error: '',
      cost: 8 + e.bytes / 4,
    };
    try {
      const data = parse(e.data);
      if (e.event === 'patch') {
        v.ops = data as unknown as Op[];
        const done = apply(v.doc, v.ops);
        v.doc = done.doc;
        v.touches = done.touches;
        v.cost += done.cost;
        this.warm(v);
      } else if (e.event === 'error') {
        v.error = `${(data as { code?: number }).code ?? ''} ${(data as { message?: string }).message ?? ''}`.trim();
      } else {
        v.doc = data;
        v.hasDoc = true;
        this.astray = false;
        this.heat.clear();
      }
      v.docBytes = size(v.doc);
    } catch {
      v.error = 'This change does not fit the document; asking for all of it.';
      this.astray = true;
      this.stream?.restart();
    }
    this.versions.push(v);
    this.cost += v.cost;
    this.account(v);
    if (this.waiting.length) this.tell(v);
  }

  private tell(v: Version): void {
    const [there, waiting] = [true, false].map(is => this.waiting.filter(w => reaches(v.id, w.id) === is));
    this.waiting = waiting!;
    for (const w of there!) w.there(v);
  }

  private account(v: Version): void {
    if (v.event === 'error') return;
    const s = this.second(v.at),
      full = v.event === 'patch' ? v.docBytes + frameBytes : v.bytes;
    this.totals.events++;
    if (v.event === 'patch') this.totals.patches++;
    this.totals.bytes += v.bytes;
    this.totals.full += full;
    s.events++;
    s.bytes += v.bytes;
    s.full += full;
  }

  /** Remembers what was touched, for the fading. Elements behind an inserted or removed one move, and their heat with them. */
  private warm(v: Version): void {
    v.ops.forEach((op, i) => {
      if (op.op !== 'replace') this.shift(op);
      const t = v.touches[i];
      if (!t) return;
      const old = this.heat.get(t.path);
      this.heat.set(t.path, { at: v.at, kind: t.kind, times: (old?.times ?? 0) + 1 });
    });
  }

  private shift(op: Op): void {
    const cut = op.path.lastIndexOf('/'),
      index = Number(op.path.slice(cut + 1));
    if (!Number.isInteger(index)) return;
    const parent = op.path.slice(0, cut + 1),
      by = op.op === 'add' ? 1 : -1;
    const moved: [string, Heat][] = [];
    for (const [path, h] of this.heat) {
      if (!path.startsWith(parent)) continue;
      const rest = path.slice(parent.length),
        end = rest.indexOf('/');
      const at = Number(end < 0 ? rest : rest.slice(0, end));
      if (!Number.isInteger(at) || at < index) continue;
      this.heat.delete(path);
      if (by < 0 && at === index) continue;
      moved.push([parent + (at + by) + (end < 0 ? '' : rest.slice(end)), h]);
    }
    for (const [path, h] of moved) this.heat.set(path, h);
  }

  /** Drops the oldest versions beyond what may be kept, but never the one that somebody looks at. */
  private trim(): void {
    const pinned = this.pinned.value;
    if (this.held?.n !== pinned) this.held = undefined;
    let drop = 0;
    while (this.versions.length - drop > 1 && (this.versions.length - drop > mostVersions || this.cost > mostCost)) {
      const v = this.versions[drop++]!;
      this.cost -= v.cost;
      if (v.n === pinned) this.held = v;
    }
    if (drop) this.versions = this.versions.slice(drop);
  }

  /** The current second, after accounting for the time that has passed. */
  private second(now: number): Second {
    const newest = this.newest;
    if (newest && now > this.lastTick) this.byteSeconds += (newest.docBytes * (now - this.lastTick)) / 1000;
    this.lastTick = Math.max(now, this.lastTick);
    const at = Math.floor(this.lastTick / 1000);
    let last: Second | undefined = this.seconds[this.seconds.length - 1];
    if (last && at - last.at > mostSeconds) {
      this.seconds = [];
      last = undefined;
    }
    for (let t = last ? last.at + 1 : at; t <= at; t++) this.seconds.push({ at: t, events: 0, bytes: 0, full: 0, slowest: 0 });
    if (this.seconds.length > mostSeconds) this.seconds.splice(0, this.seconds.length - mostSeconds);
    return this.seconds[this.seconds.length - 1]!;
  }
}
