// One subscription, as the viewer sees it: a fetch whose body is read as it arrives, because EventSource can neither send a
// key in a header nor say what went wrong.

export interface Incoming { id: string; event: string; data: string; bytes: number; at: number }

export type State =
  | { is: 'connecting' } | { is: 'open' } | { is: 'closed' }
  | { is: 'waiting'; until: number; why: string }
  | { is: 'failed'; code: number; message: string };

export interface Where { url: string; key: string; path: string; signatureKey?: string }

interface ErrorData { code?: number; message?: string }

const shortestWait = 1000, longestWait = 30_000, longestSilence = 25_000;
const encoder = new TextEncoder();

/** Follows a topic until it is closed: reconnects after breaks, resumes where it was, stops when the server says no. */
export class Stream {
  lastID = '';
  private readonly ending = new AbortController();
  private wake: (() => void) | undefined;
  private wait = shortestWait;

  constructor(private readonly where: Where, private readonly onEvent: (e: Incoming) => void,
    private readonly onState: (s: State) => void, private readonly onBytes: (n: number) => void) {
    void this.run();
  }

  close(): void {
    this.ending.abort();
    this.wake?.();
    this.onState({ is: 'closed' });
  }

  /** Asks for a full document again, when a patch did not fit. */
  restart(): void { this.lastID = ''; this.cut?.abort(); }
  private cut: AbortController | undefined;

  private async run(): Promise<void> {
    while (!this.ending.signal.aborted) {
      this.onState({ is: 'connecting' });
      let why = 'The connection was lost.';
      try {
        const failed = await this.connect();
        if (this.ending.signal.aborted) return;
        if (failed) {
          this.onState({ is: 'failed', code: failed.code ?? 0, message: failed.message ?? 'The server ended the stream.' });
          return;
        }
      } catch {
        if (this.ending.signal.aborted) return;
        why = 'The subscriber interface cannot be reached.';
      }
      this.onState({ is: 'waiting', until: Date.now() + this.wait, why });
      await new Promise<void>(resolve => { this.wake = resolve; setTimeout(resolve, this.wait); });
      this.wait = Math.min(this.wait * 2, longestWait);
    }
  }

  /** Reads one connection to its end. It returns the error event that ended it, if one did. */
  private async connect(): Promise<ErrorData | undefined> {
    this.cut = new AbortController();
    const stop = (): void => this.cut?.abort();
    this.ending.signal.addEventListener('abort', stop, { once: true });
    const headers: Record<string, string> = { Accept: 'text/event-stream', 'X-Sd-Subscriber-Key': this.where.key };
    if (this.lastID) headers['Last-Event-ID'] = this.lastID;
    if (this.where.signatureKey) Object.assign(headers, await sign(this.where.path, this.where.signatureKey));
    const answer = await fetch(this.where.url + this.where.path,
      { headers, signal: this.cut.signal, credentials: 'omit', cache: 'no-store', referrerPolicy: 'no-referrer' });
    if (!answer.body) throw new Error('no body');
    const reader = answer.body.getReader(), decoder = new TextDecoder();
    let rest = '', failed: ErrorData | undefined;
    for (;;) {
      const silence = setTimeout(stop, longestSilence); // heartbeats come more often: the connection is dead
      const { done, value } = await reader.read().finally(() => clearTimeout(silence));
      if (done) return failed;
      this.onBytes(value.byteLength);
      const piece = decoder.decode(value, { stream: true });
      rest += piece;
      if (!piece.includes('\n')) continue; // the midst of a large document, not to be read again with every piece
      const blocks = rest.split('\n\n');
      rest = blocks.pop()!;
      for (const block of blocks) failed = this.take(block) ?? failed;
    }
  }

  private take(block: string): ErrorData | undefined {
    const e: Incoming = { id: '', event: 'message', data: '', bytes: 0, at: Date.now() };
    for (const line of block.split('\n')) {
      if (line.startsWith('data: ')) e.data = line.slice(6);
      else if (line.startsWith('event: ')) e.event = line.slice(7);
      else if (line.startsWith('id: ')) e.id = line.slice(4);
    }
    this.onState({ is: 'open' });
    this.wait = shortestWait;
    if (!e.data) return undefined;
    if (e.id) this.lastID = e.id;
    e.bytes = encoder.encode(block).byteLength + 2;
    this.onEvent(e);
    if (e.event !== 'error') return undefined;
    try { return JSON.parse(e.data) as ErrorData; } catch { return {}; }
  }
}

/** Signs a request for apps that demand it. Browsers offer the means only to pages from https or from this machine. */
async function sign(path: string, key: string): Promise<Record<string, string>> {
  if (!globalThis.crypto?.subtle) throw new Error('no crypto');
  const plain = atob(key), beacon = plain.slice(0, 36), secret = plain.slice(36);
  const ts = String(Date.now());
  const hmac = await crypto.subtle.importKey('raw', encoder.encode(secret), { name: 'HMAC', hash: 'SHA-512' }, false, ['sign']);
  const mac = new Uint8Array(await crypto.subtle.sign('HMAC', hmac, encoder.encode(`GET\n${ts}\n${path}\n`)));
  return { 'X-Auth-Sd-Ts': ts, 'X-Auth-Sd-S': btoa(beacon + btoa(String.fromCharCode(...mac))) };
}
