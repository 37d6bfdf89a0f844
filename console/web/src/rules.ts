// What forms say while one types. The server has the last word; these rules only spare people the round trip.

export function checkText(s: string, longest: number): string | undefined {
  if (!s.trim()) return 'is required';
  return [...s].length > longest ? `must have at most ${longest} characters` : undefined;
}

export function checkEmail(s: string): string | undefined {
  if (!s) return 'is required';
  return /^[^\s@"]+@[^\s@[\]]+$/.test(s) ? undefined : 'must be an e-mail address like name@example.com';
}

export function checkPassword(s: string): string | undefined {
  if (!s) return 'is required';
  return [...s].length < 8 ? 'must have at least 8 characters' : undefined;
}

export function checkURL(s: string): string | undefined {
  if (!s) return 'is required';
  if (!/^https?:\/\//i.test(s)) return 'must begin with http:// or https://';
  let u: URL;
  try { u = new URL(s); } catch { return 'is not a valid URL'; }
  if (u.username || u.password) return 'must not contain a user name or password; use a header';
  return s.includes('#') ? 'must not contain a fragment' : undefined;
}

export function checkFrequency(s: string): string | undefined {
  if (s === '') return undefined;
  const n = Number(s);
  return Number.isInteger(n) && n >= 100 && n <= 86_400_000 ? undefined : 'must be between 100 and 86400000 milliseconds';
}

export function checkItemPath(s: string): string | undefined {
  if (!s) return 'is required when the payload is items';
  if (s.length < 2) return 'needs a separator and a name, such as .id';
  return s.slice(1).split(s[0]!).some(p => p === '') ? `has an empty name between two “${s[0]}”` : undefined;
}

export function checkHeaderName(s: string): string | undefined {
  if (!s) return 'is required';
  return /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(s) ? undefined : 'is not a header name';
}

export function checkLocale(s: string): string | undefined {
  return /^[a-z]{2,3}_[A-Z]{2}$/.test(s) ? undefined : 'must be a locale like fr_FR';
}

export function checkCount(s: string): string | undefined {
  return /^\d{1,15}$/.test(s) ? undefined : 'must be a whole number; 0 is unlimited';
}

/** Where JSON is wrong, as an editor would say it. */
export function checkJSON(text: string): { message: string; line: number; column: number } | undefined {
  try { JSON.parse(text); return undefined; } catch (e) {
    const said = e instanceof Error ? e.message : String(e);
    const at = /position (\d+)/.exec(said);
    const offset = at ? Number(at[1]) : text.length;
    const before = text.slice(0, offset).split('\n');
    const message = text.trim() === '' ? 'Type a JSON document' : said.replace(/ in JSON.*$/s, '').replace(/, \.{0,3}".*$/s, '').replace(/^JSON\.parse: /, '');
    return { message, line: before.length, column: before[before.length - 1]!.length + 1 };
  }
}
