/**
 * Signs a subscription with the app's signature key, for apps that ask for it.
 *
 * The key is base64 of 72 characters: a beacon, which tells the server whose key it is, and a secret, which never travels.
 * `url` is the topic's path as it is sent, or the URL of a data source.
 */
export async function sign(signatureKey: string, url: string, now: number = Date.now()): Promise<Record<string, string>> {
  const plain = readKey(signatureKey);
  const utf8 = new TextEncoder();
  const algorithm = { name: 'HMAC', hash: 'SHA-512' };
  const secret = await crypto.subtle.importKey('raw', utf8.encode(plain.slice(36)), algorithm, false, ['sign']);
  const mac = await crypto.subtle.sign('HMAC', secret, utf8.encode(`GET\n${now}\n${url}\n`));
  const mac64 = btoa(String.fromCharCode(...new Uint8Array(mac)));
  return { 'X-Auth-Sd-Ts': String(now), 'X-Auth-Sd-S': btoa(plain.slice(0, 36) + mac64) };
}

/** Returns what the base64 of a signature key says, or throws an error that says what is wrong. */
export function readKey(signatureKey: string): string {
  if (!globalThis.crypto?.subtle) throw new TypeError('Signing needs Web Crypto, which browsers offer on https pages only');
  let plain = '';
  try {
    plain = atob(signatureKey);
  } catch {
    // the length tells
  }
  if (plain.length !== 72) throw new TypeError('The signature key must be base64 of 72 characters');
  return plain;
}
