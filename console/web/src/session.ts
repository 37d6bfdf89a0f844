// Who is signed in. The token lives in memory, and in sessionStorage so that a reload keeps it: gone with the tab, never
// shared with other tabs, never in a cookie. Requests carry it as a header, so no other site can make us send it.
import { signal } from '@preact/signals';
export interface Session {
  token: string;
  expiresAt: number;
  userID: string;
}

const place = 'freshet-session';
const longestTimer = 2 ** 31 - 1;

export const session = signal<Session | null>(restore());
/** Why the sign-in page is shown, if there is something to say. */
export const notice = signal('');
/** Whether the session ended by itself: then what was begun is kept, out of sight, for who signs in again. */
export const isInterrupted = signal(false);

let expiry: ReturnType<typeof setTimeout> | undefined;
watch();

function restore(): Session | null {
  try {
    const s = JSON.parse(sessionStorage.getItem(place) ?? 'null') as Session | null;
    return s && typeof s.token === 'string' && s.expiresAt > Date.now() ? s : null;
  } catch {
    return null;
  }
}

function watch(): void {
  clearTimeout(expiry);
  const s = session.value;
  if (s) expiry = setTimeout(() => (s.expiresAt > Date.now() ? watch() : expire()), Math.min(s.expiresAt - Date.now(), longestTimer));
}

export function begin(s: Session): void {
  // This machine's clock is wrong: the server will say when it is over.
  if (s.expiresAt <= Date.now()) s = { ...s, expiresAt: Number.MAX_SAFE_INTEGER };
  try {
    sessionStorage.setItem(place, JSON.stringify(s));
  } catch {
    /* private windows may refuse; memory is enough */
  }
  session.value = s;
  isInterrupted.value = false;
  notice.value = '';
  watch();
}

export function end(): void {
  try {
    sessionStorage.removeItem(place);
  } catch {
    /* nothing was kept */
  }
  session.value = null;
  isInterrupted.value = false;
  clearTimeout(expiry);
}

/** The server no longer takes our token: sign in again and come back to the same place. */
export function expire(): void {
  if (!session.value) return;
  end();
  isInterrupted.value = true;
  notice.value = 'Your session has ended. Sign in again to go on where you were.';
}
