// What the viewer knows about one topic: the document, its retained history, and what it all cost. Events are taken in as
// they come and shown once per frame, however many came in between.
import { applyPatch, type Change, type Operation } from '@freshet/client';
import type { ExactJSON } from '@freshet/client/exact';
import { signal } from '@preact/signals';
import { Connection, type Incoming, type State, type Where } from './connection';
import { copied, Heat, type Touch, touchOf } from './heat';
import { Meter } from './meter';
import { size } from './size';

/** One event of the history, with the document it led to. */
export interface Version {
  n: number;
  id: string;
  event: string;
  bytes: number;
  at: number;
  ops: Operation[];
  touches: Touch[];
  /** Null without a meaning as long as nothing was published. */
  doc: ExactJSON;
  hasDoc: boolean;
  docBytes: number;
  error: string;
  cost: number;
}

const mostVersions = 2000;
const mostCost = 4_000_000; // slots of eight bytes, about
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

export class Follow {
  readonly state = signal<State>({ is: 'connecting' });
  /** Rises when there is something new to show. */
  readonly tick = signal(0);
  /** Rises every second, for what need not be drawn more often. */
  readonly beat = signal(0);
  /** The number of the version shown, or null for the newest. */
  readonly pinned = signal<number | null>(null);

  versions: Version[] = [];
  readonly heat = new Heat();
  readonly meter = new Meter();

  private queue: Incoming[] = [];
  private frame = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private held: Version | undefined; // is pinned, and older than what is kept
  private astray = false; // a patch did not fit: what follows does not either, until the next full document
  private count = 0;
  private cost = 0;
  private connection: Connection | undefined;
  private closed = false;
  private waiting: { id: string; there: (v: Version) => void }[] = [];
  private readonly clock: ReturnType<typeof setInterval>;

  constructor(private where: Where) {
    this.open();
    this.clock = setInterval(() => {
      this.meter.pass(Date.now());
      this.beat.value++;
      this.tick.value++;
    }, 1000);
  }

  open(where = this.where): void {
    this.where = where;
    this.connection?.close();
    this.connection = new Connection(
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
    this.connection?.hurry();
  }

  close(): void {
    this.closed = true;
    clearInterval(this.clock);
    this.unschedule();
    this.connection?.close();
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
    this.heat.fade(now);
    for (const e of batch) this.add(e);
    this.trim();
    this.meter.pass(now);
    this.tick.value++;
  }

  private add({ event: raw, at }: Incoming): void {
    if (this.astray && raw.event === 'patch') return;
    const before = this.newest,
      bytes = raw.bytes;
    const v: Version = {
      n: this.count++,
      id: raw.id ?? '',
      event: raw.event,
      bytes,
      at,
      ops: [],
      touches: [],
      doc: before?.doc ?? null,
      hasDoc: before?.hasDoc ?? false,
      docBytes: before?.docBytes ?? 0,
      error: '',
      cost: 8 + bytes / 4,
    };
    try {
      this.make(v, raw.read());
      v.docBytes = size(v.doc);
    } catch {
      v.error = 'This change does not fit the document; asking for all of it.';
      this.astray = true;
      this.connection?.restart();
    }
    this.versions.push(v);
    this.cost += v.cost;
    if (v.event !== 'error') this.meter.count(v);
    if (this.waiting.length) this.tell(v);
  }

  /** Makes a version of what an event says. */
  private make(v: Version, data: unknown): void {
    if (v.event === 'error') {
      const { code = '', message = '' } = data as { code?: number; message?: string };
      v.error = `${code} ${message}`.trim();
    } else if (v.event === 'patch') {
      const changes: Change[] = [];
      v.ops = data as Operation[];
      v.doc = applyPatch(v.doc, v.ops, c => changes.push(c)) as ExactJSON;
      v.touches = changes.map(touchOf);
      v.cost += copied(v.doc, changes);
      this.heat.warm(v.ops, v.touches, v.at);
    } else {
      v.doc = data as ExactJSON;
      v.hasDoc = true;
      this.astray = false;
      this.heat.clear();
    }
  }

  private tell(v: Version): void {
    const [there, waiting] = [true, false].map(is => this.waiting.filter(w => reaches(v.id, w.id) === is));
    this.waiting = waiting!;
    for (const w of there!) w.there(v);
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
}
