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
  if (/^https?:\/\/[^/?#]*\s/i.test(s)) return 'is not a valid URL'; // some browsers would mend it
  let u: URL;
  try {
    u = new URL(s);
  } catch {
    return 'is not a valid URL';
  }
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
  return s
    .slice(1)
    .split(s[0]!)
    .some(p => p === '')
    ? `has an empty name between two “${s[0]}”`
    : undefined;
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

export interface Mistake {
  message: string;
  line: number;
  column: number;
}

/** Where JSON is wrong, as an editor would say it. Browsers say that it is, but not where. */
export function checkJSON(text: string): Mistake | undefined {
  const found = new Scanner(text).mistake();
  if (!found) return undefined;
  const before = text.slice(0, found.at).split('\n');
  return { message: found.message, line: before.length, column: before[before.length - 1]!.length + 1 };
}

const deepest = 512; // as the server has it
const wordOrNumber = /true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const wholeString = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;

class Stop {
  constructor(
    readonly at: number,
    readonly message: string,
  ) {}
}

/** Reads JSON without making anything of it, and stops at the first mistake. */
class Scanner {
  private at = 0;
  constructor(private readonly text: string) {}

  mistake(): Stop | undefined {
    try {
      this.space();
      if (this.at === this.text.length) return new Stop(0, 'Type a JSON document');
      this.value(0);
      this.space();
      return this.at < this.text.length ? new Stop(this.at, 'Something follows the end of the document') : undefined;
    } catch (e) {
      if (e instanceof Stop) return e;
      throw e;
    }
  }

  private space(): void {
    while (' \n\r\t'.includes(this.text[this.at] ?? 'x')) this.at++;
  }

  private stop(wanted: string): Stop {
    const c = this.text[this.at];
    return new Stop(
      this.at,
      c === undefined ? `The text ends where ${wanted} should be` : `Here should be ${wanted}, not ${JSON.stringify(c)}`,
    );
  }

  private take(pattern: RegExp): boolean {
    pattern.lastIndex = this.at;
    if (!pattern.test(this.text)) return false;
    this.at = pattern.lastIndex;
    return true;
  }

  private value(depth: number): void {
    if (depth > deepest) throw new Stop(this.at, `Nested more than ${deepest} levels deep`);
    const c = this.text[this.at];
    if (c === '{' || c === '[') this.members(depth, c === '{');
    else if (c === '"') this.string();
    else if (!this.take(wordOrNumber)) throw this.stop('a value');
  }

  private string(): string {
    const from = this.at;
    if (this.text[from] !== '"') throw this.stop('a name in double quotes');
    if (!this.take(wholeString)) throw new Stop(from, 'This string does not end, or has a character that must be escaped');
    return JSON.parse(this.text.slice(from, this.at)) as string;
  }

  private members(depth: number, isObject: boolean): void {
    const close = isObject ? '}' : ']',
      seen = new Set<string>();
    this.at++;
    this.space();
    if (this.text[this.at] === close) {
      this.at++;
      return;
    }
    for (;;) {
      if (isObject) {
        const at = this.at,
          name = this.string();
        if (seen.has(name)) throw new Stop(at, `The name ${JSON.stringify(name)} is there twice`);
        seen.add(name);
        this.space();
        if (this.text[this.at] !== ':') throw this.stop('a colon');
        this.at++;
        this.space();
      }
      this.value(depth + 1);
      this.space();
      const c = this.text[this.at];
      if (c !== ',' && c !== close) throw this.stop(`a comma or ${close}`);
      this.at++;
      if (c === close) return;
      this.space();
    }
  }
}
