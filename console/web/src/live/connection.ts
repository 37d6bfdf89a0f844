// One subscription, as the viewer sees it: the SDK follows the topic, and here is said in words how that goes. It reads with fetch,
// because EventSource can neither send a key in a header nor say what went wrong.
import { type Events, events, type RawEvent, type Trouble } from '@freshet/client';
import { parse } from '@freshet/client/exact';

export interface Incoming {
  event: RawEvent;
  at: number;
}

export type State =
  | { is: 'connecting'; why?: string }
  | { is: 'open' }
  | { is: 'closed' }
  | { is: 'waiting'; why: string; code?: number }
  | { is: 'failed'; code: number; message: string };

export interface Where {
  server: string;
  topic: string;
  key: string;
  signatureKey?: string;
}

const soonestAnswer = 8000,
  latestAnswer = 60_000,
  settlesIn = 300;

const cannotSign =
  'This app demands signed requests, and browsers sign only on pages served over TLS or from this machine. ' +
  'Open the console under https.';

/** Follows a topic until it is closed, or until the server says no. */
export class Connection {
  private readonly events: Events | undefined;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly where: Where,
    private readonly onEvent: (e: Incoming) => void,
    private readonly onState: (s: State) => void,
  ) {
    if (where.signatureKey && !globalThis.crypto?.subtle) {
      onState({ is: 'waiting', why: cannotSign });
      return;
    }
    this.events = events(where.topic, {
      server: where.server,
      key: where.key,
      signatureKey: where.signatureKey,
      transport: 'fetch',
      patience: { first: latestAnswer },
      parse,
      fetch: (url, init) => fetch(url, { ...init, credentials: 'omit', referrerPolicy: 'no-referrer' }),
    });
    this.events.on('event', e => this.take(e));
    this.events.on('state', () => this.show());
    this.show();
  }

  close(): void {
    this.events?.close();
    clearTimeout(this.timer);
    this.onState({ is: 'closed' });
  }

  /** Asks for a full document again, when a patch did not fit. */
  restart(): void {
    this.events?.restart();
  }

  /** Does not wait any longer. */
  hurry(): void {
    this.events?.retryNow();
  }

  private take(event: RawEvent): void {
    if (event.event !== 'error') this.opened();
    this.onEvent({ event, at: Date.now() });
  }

  private opened(): void {
    clearTimeout(this.timer);
    this.onState({ is: 'open' });
  }

  private show(): void {
    clearTimeout(this.timer);
    const { state, trouble } = this.events!;
    const why = trouble && explain(trouble, this.where.server);
    switch (state) {
      case 'connecting':
        this.onState({ is: 'connecting', ...(why ? { why } : {}) });
        // How long that takes is up to the browser too, so who waits is told why.
        this.timer = setTimeout(() => this.onState({ is: 'connecting', why: noAnswer(this.where.server) }), soonestAnswer);
        return;
      case 'open':
        // A topic without a document says nothing for a while, a refusal comes at once.
        this.timer = setTimeout(() => this.opened(), settlesIn);
        return;
      case 'waiting':
        this.onState({
          is: 'waiting',
          why: why ?? '',
          ...(trouble?.is === 'error' && trouble.error.code ? { code: trouble.error.code } : {}),
        });
        return;
      case 'closed':
        if (trouble?.is === 'error') this.onState({ is: 'failed', code: trouble.error.code, message: trouble.error.message });
    }
  }
}

/** Browsers keep a request waiting, without a word, when they have too many connections to one address already. */
const noAnswer = (server: string): string =>
  server.startsWith('https:')
    ? 'No answer yet. The server, or a proxy before it, may be busy or unreachable.'
    : 'No answer yet. Without TLS a browser opens at most six connections to one address, and every open viewer takes one: ' +
      'close tabs that show other topics, or serve Freshet over TLS.';

function noStream(status: number, contentType: string): string {
  const said = `The subscriber interface answered ${status} with ${contentType.split(';')[0] || 'nothing'} instead of a stream.`;
  const isBusy = status >= 500 || status === 429;
  return `${said} ${isBusy ? 'It, or a proxy before it, may be busy or starting.' : 'A proxy before it may lead elsewhere.'}`;
}

function explain(trouble: Trouble, server: string): string {
  switch (trouble.is) {
    case 'error':
      return trouble.error.message;
    case 'no-stream':
      return noStream(trouble.status, trouble.contentType);
    case 'unanswered':
      return noAnswer(server);
    case 'unreachable':
      return 'The subscriber interface cannot be reached.';
    case 'silent':
      return 'The connection has gone silent.';
    case 'lost':
      return 'The connection was lost.';
    case 'out-of-step':
      return 'A change did not fit the document; asking for all of it.';
  }
}
