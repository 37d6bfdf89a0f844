// The APIs of the service, as anybody may call them.
import type { AppPage, FieldError, Topic, User } from '@freshet/client/api';
import { signal } from '@preact/signals';
import { expire, session } from './session';

export type {
  App,
  AuditEntry,
  Connection,
  Explanation,
  Health as HealthReport,
  PublisherSettings,
  Quotas,
  Session as Token,
  Topic,
  Trial,
  UsageCounts,
  UsageReport,
  User,
} from '@freshet/client/api';

export type Page<T> = Omit<AppPage, 'items'> & { items: T[] };

/** Where streams are, and what else pages must know. */
export interface Config {
  subscriber_url: string;
  open_sign_up: boolean;
  version: string;
}

/** An answer that is not what was asked for, in words for people. */
export class Failure extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly fields: FieldError[] = [],
  ) {
    super(message);
  }
  /** What is wrong with one field of a form. */
  field(name: string): string | undefined {
    return this.fields.find(f => f.field === name)?.message;
  }
}

/** There is no session any more. Who asked says nothing about it: the page to sign in does. */
export class Ended extends Failure {
  constructor() {
    super(401, 'Your session has ended.');
  }
}

export const config = signal<Config | null>(null);
export const me = signal<User | null>(null);

const advice: Record<number, string> = {
  0: 'The server cannot be reached. Check your network, then try again.',
  404: 'There is nothing here. It may have been deleted.',
  429: 'That was too fast. Wait a moment, then try again.',
  500: 'The server failed. Try again; its log has the details.',
  502: 'The server is not reachable behind its proxy right now.',
  503: 'The server is busy or starting. Try again in a moment.',
  504: 'The server did not answer its proxy in time. Try again in a moment.',
};

async function failure(answer: Response): Promise<Failure> {
  let message = '',
    fields: FieldError[] = [];
  try {
    const body = (await answer.json()) as { message?: string; errors?: FieldError[] };
    if (typeof body.message === 'string') message = body.message;
    if (Array.isArray(body.errors)) fields = body.errors;
  } catch {
    /* not JSON: the status has to do */
  }
  const wait = answer.headers.get('Retry-After');
  if (answer.status === 429 && wait) message = `${message || 'Too many requests'}. Try again in ${wait} s.`;
  return new Failure(answer.status, message || advice[answer.status] || `The server answered ${answer.status}.`, fields);
}

async function send(url: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(url, { ...init, credentials: 'omit', referrerPolicy: 'no-referrer' });
  } catch (e) {
    if (init.signal?.aborted) throw e;
    throw new Failure(0, advice[0]!);
  }
}

interface Call {
  body?: unknown;
  signal?: AbortSignal;
  anonymous?: boolean;
  read?: (text: string) => unknown;
}

/** Calls the management API. A session that has ended leads to the sign-in page. */
export async function call<T>(method: string, path: string, { body, signal, anonymous, read = JSON.parse }: Call = {}): Promise<T> {
  const headers: Record<string, string> = { Accept: 'application/json' };
  const held = session.value;
  if (!held && !anonymous) throw new Ended();
  if (held && !anonymous) headers.Authorization = 'Bearer ' + held.token;
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  const init: RequestInit = { method, headers };
  if (body !== undefined) init.body = JSON.stringify(body);
  if (signal) init.signal = signal;
  const answer = await send('/api/v1' + path, init);
  if (answer.status === 401 && !anonymous) {
    if (held === session.value) expire();
    throw new Ended();
  }
  if (!answer.ok) throw await failure(answer);
  const text = await textOf(answer);
  try {
    return (text ? read(text) : undefined) as T;
  } catch {
    throw new Failure(
      0,
      'What answered is not Freshet: a proxy or a sign-in page of the network may be in between. Reload this page to see it.',
    );
  }
}

/** The text of an answer, which may break off. */
async function textOf(answer: Response): Promise<string> {
  try {
    return await answer.text();
  } catch {
    throw new Failure(0, advice[0]!);
  }
}

/** The members that are different from what was there: who changes one thing leaves the others to those who change them meanwhile. */
export function onlyChanged<T extends object>(now: T, before: T): Partial<T> {
  const text = (v: unknown): string | undefined => JSON.stringify(v);
  return Object.fromEntries(Object.entries(now).filter(([k, v]) => text(v) !== text(before[k as keyof T]))) as Partial<T>;
}

export const get = <T>(path: string, signal?: AbortSignal) => call<T>('GET', path, signal ? { signal } : {});
export const id = encodeURIComponent;

export interface Published {
  at: string;
  status: number;
}

/** Publishes a text as it is: what was typed is what is sent, numbers to the last digit. */
export async function publish(topic: Topic, key: string, text: string, type = 'application/json', method = 'POST'): Promise<Published> {
  const answer = await send('/publish/v1/topics/' + id(topic.id), {
    method,
    headers: { 'Content-Type': type, 'X-Sd-Publisher-Key': key },
    body: text,
  });
  if (!answer.ok) throw await failure(answer);
  return { at: (answer.headers.get('ETag') ?? '').replace(/^W\/|"/g, ''), status: answer.status };
}

export async function loadConfig(): Promise<void> {
  const answer = await send('/console/config.json', {});
  if (!answer.ok) throw await failure(answer);
  config.value = (await answer.json()) as Config;
}

export interface Some<T> {
  items: T[];
  total: number;
}

const mostOnPage = 1000,
  mostListed = 20_000; // which keeps the browser well

/** Every page of a listing, as far as anybody would look. */
export async function all<T>(path: string, signal?: AbortSignal): Promise<Some<T>> {
  const items: T[] = [];
  for (let page = 0; ; page++) {
    const part = await get<Page<T>>(`${path}?per_page=${mostOnPage}&page=${page}`, signal);
    items.push(...part.items);
    if (part.items.length < mostOnPage || items.length >= mostListed) return { items, total: Math.max(part.total, items.length) };
  }
}

/** The newest things of a listing, which begins with the oldest. */
export async function newest<T>(path: string, most: number, signal?: AbortSignal): Promise<Some<T>> {
  const ask = (page: number): Promise<Page<T>> => get<Page<T>>(`${path}?per_page=${most}&page=${page}`, signal);
  const first = await ask(0);
  if (first.total <= most) return first;
  const last = Math.ceil(first.total / most) - 1;
  const ends = await Promise.all([last === 1 ? first : ask(last - 1), ask(last)]);
  return { items: ends.flatMap(p => p.items).slice(-most), total: first.total };
}
