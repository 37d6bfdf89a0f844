import { adminRoutes, managementRoutes, type Admin, type Management } from './operations.js';

export type * from './operations.js';

/** An answer of the management or publishing API that says no. */
export class APIError extends Error {
  override readonly name = 'APIError';

  constructor(
    readonly status: number,
    message: string,
    /** Which fields of the request are at fault, where fields are. */
    readonly errors: readonly { field: string; message: string }[] = [],
    /** After how many seconds to come back, if the server said so. */
    readonly retryAfter?: number,
  ) {
    super(message + errors.map(({ field, message }) => `; ${field} ${message}`).join(''));
  }
}

export interface APIOptions {
  /** The server's gateway, such as `https://api.example.com`. */
  server: string;
  /** The token of a session; `signIn` returns one. */
  token?: string | undefined;
  signal?: AbortSignal | undefined;
}

/** The management API, and for admins the admin API: one function for each operation. */
export function management(options: APIOptions): Management & Admin {
  const client: Record<string, (...args: unknown[]) => Promise<unknown>> = {};
  for (const [name, route] of Object.entries({ ...managementRoutes, ...adminRoutes })) {
    client[name] = (...args) => call(options, route, args);
  }
  return client as unknown as Management & Admin;
}

async function call({ server, token, signal }: APIOptions, route: string, args: unknown[]): Promise<unknown> {
  const [method, template] = route.split(' ') as [string, string];
  const rest = [...args];
  let path = '/api/v1' + template.replace(/\{\w+\}/g, () => encodeURIComponent(String(rest.shift())));
  let body: string | undefined;
  if (method === 'GET') {
    const query = Object.entries((rest[0] ?? {}) as Record<string, unknown>).filter(([, value]) => value !== undefined);
    if (query.length > 0) path += '?' + new URLSearchParams(query.map(([name, value]) => [name, String(value)]));
  } else if (rest[0] !== undefined) body = JSON.stringify(rest[0]);
  const headers: Record<string, string> = { Accept: 'application/json' };
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  if (token !== undefined) headers.Authorization = 'Bearer ' + token;
  const response = await send(server, path, { method, headers, body: body ?? null, signal: signal ?? null });
  const text = await response.text();
  return text === '' ? undefined : JSON.parse(text);
}

export interface PublishOptions {
  /** The server's gateway. */
  server: string;
  /** The app's publisher key. Keep it on your servers: who has it can publish. */
  key: string;
  /** Publish only if this is the newest version; otherwise the answer is 412. */
  ifMatch?: string | undefined;
  /** Repetitions with the same key change nothing. */
  idempotencyKey?: string | undefined;
  /** What the body is: a whole document (the default), a JSON Patch or a merge patch. */
  as?: 'document' | 'json-patch' | 'merge-patch' | undefined;
  signal?: AbortSignal | undefined;
}

/** Publishes to a topic. Returns the version it made; undefined if nobody is subscribed and the topic does not keep such publications. */
export async function publish(topicId: string, body: unknown, options: PublishOptions): Promise<string | undefined> {
  const { as = 'document' } = options;
  const headers: Record<string, string> = {
    'X-Sd-Publisher-Key': options.key,
    'Content-Type': as === 'document' ? 'application/json' : `application/${as}+json`,
  };
  if (options.ifMatch !== undefined) headers['If-Match'] = options.ifMatch;
  if (options.idempotencyKey !== undefined) headers['Idempotency-Key'] = options.idempotencyKey;
  const method = as === 'document' ? 'POST' : 'PATCH';
  const init = { method, headers, body: JSON.stringify(body), signal: options.signal ?? null };
  const response = await send(options.server, '/publish/v1/topics/' + encodeURIComponent(topicId), init);
  return response.headers.get('ETag') ?? undefined;
}

async function send(server: string, path: string, init: RequestInit): Promise<Response> {
  const response = await fetch(server.replace(/\/+$/, '') + path, init);
  if (response.ok) return response;
  const said = (await response.json().catch(() => ({}))) as { message?: string; errors?: { field: string; message: string }[] };
  const seconds = Number(response.headers.get('Retry-After'));
  throw new APIError(
    response.status,
    said.message ?? `The server answered ${response.status}`,
    said.errors,
    seconds > 0 ? seconds : undefined,
  );
}
