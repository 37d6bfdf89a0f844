// JSON as it was written. JavaScript rounds long numbers; a viewer that shows 12345678901234567000 for …890 would lie, so
// numbers that a double cannot hold are kept as their text.

/** A number that JavaScript would round. */
export class Exact {
  constructor(readonly text: string) {}
}

export type Json = null | boolean | number | string | Exact | Json[] | { [key: string]: Json };
export type Container = Json[] | { [key: string]: Json };

export const isContainer = (v: Json | undefined): v is Container => typeof v === 'object' && v !== null && !(v instanceof Exact);

/** Only a text with such digits can hold a number that would be rounded. Strings may match too; that costs time only. */
const suspicious = /[0-9.]{16}|[0-9][eE]|-0(?:\.0*)?(?![0-9.])/;

/** Parses one JSON value, exactly. */
export function parse(text: string): Json {
  return suspicious.test(text) ? new Parser(text).whole() : (JSON.parse(text) as Json);
}

function exactly(text: string): number | Exact {
  const n = Number(text);
  return canonical(String(n)) === canonical(text) ? n : new Exact(text);
}

/** Brings a decimal text to digits and an exponent, so that spellings of one number compare equal. */
function canonical(text: string): string {
  const m = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text);
  if (!m) return text;
  const fraction = m[3] ?? '';
  const digits = (m[2]! + fraction).replace(/^0+/, '');
  const trimmed = digits.replace(/0+$/, '');
  if (!trimmed) return m[1] + '0'; // JavaScript prints -0 as 0
  return `${m[1]}${trimmed}e${Number(m[4] ?? 0) - fraction.length + digits.length - trimmed.length}`;
}

/** Sets a member, also one called __proto__, which plain assignment would take for something else. */
export function setMember(to: { [key: string]: Json }, key: string, value: Json): void {
  if (key === '__proto__') Object.defineProperty(to, key, { value, enumerable: true, configurable: true, writable: true });
  else to[key] = value;
}

/** A plain parser for texts with long numbers. It leaves the judgement of strings to the browser's own. */
class Parser {
  private at = 0;
  constructor(private readonly text: string) {}

  whole(): Json {
    JSON.parse(this.text); // whatever is wrong, the browser says it better
    return this.value();
  }

  private space(): void {
    for (; this.at < this.text.length; this.at++) {
      const c = this.text.charCodeAt(this.at);
      if (c !== 32 && c !== 10 && c !== 13 && c !== 9) return;
    }
  }

  private value(): Json {
    this.space();
    switch (this.text[this.at]) {
      case '{':
        return this.object();
      case '[':
        return this.array();
      case '"':
        return this.string();
      case 't':
        this.at += 4;
        return true;
      case 'f':
        this.at += 5;
        return false;
      case 'n':
        this.at += 4;
        return null;
    }
    const from = this.at;
    while (/[-+.0-9eE]/.test(this.text[this.at] ?? ' ')) this.at++;
    return exactly(this.text.slice(from, this.at));
  }

  private string(): string {
    const from = this.at++;
    for (;;) {
      const c = this.text[this.at++];
      if (c === '\\') this.at++;
      else if (c === '"' || c === undefined) return JSON.parse(this.text.slice(from, this.at)) as string;
    }
  }

  private object(): Json {
    const out: { [key: string]: Json } = {};
    this.at++;
    for (;;) {
      this.space();
      if (this.text[this.at] === '}') {
        this.at++;
        return out;
      }
      const key = this.string();
      this.space();
      this.at++; // the colon
      setMember(out, key, this.value());
      this.space();
      if (this.text[this.at] === ',') this.at++;
    }
  }

  private array(): Json {
    const out: Json[] = [];
    this.at++;
    for (;;) {
      this.space();
      if (this.text[this.at] === ']') {
        this.at++;
        return out;
      }
      out.push(this.value());
      this.space();
      if (this.text[this.at] === ',') this.at++;
    }
  }
}

/** The text of a value, exact numbers included. */
export function print(v: Json, indent = 0, depth = 0): string {
  if (v instanceof Exact) return v.text;
  if (!isContainer(v)) return JSON.stringify(v);
  const pad = indent ? '\n' + ' '.repeat(indent * (depth + 1)) : '',
    end = indent ? '\n' + ' '.repeat(indent * depth) : '';
  const colon = indent ? ': ' : ':';
  const parts = Array.isArray(v)
    ? v.map(e => print(e, indent, depth + 1))
    : Object.keys(v).map(k => JSON.stringify(k) + colon + print(v[k]!, indent, depth + 1));
  const [open, close] = Array.isArray(v) ? '[]' : '{}';
  return parts.length ? open + pad + parts.join(',' + pad) + end + close : open! + close!;
}

const sizes = new WeakMap<object, number>();

/** How many bytes a value has as compact JSON. Containers remember it, so a patched document costs only what changed. */
export function size(v: Json): number {
  if (v instanceof Exact) return v.text.length;
  if (typeof v === 'string') return textSize(v);
  if (!isContainer(v)) return String(v).length;
  let n = sizes.get(v);
  if (n === undefined) {
    n = 2;
    if (Array.isArray(v)) {
      for (const e of v) n += size(e) + 1;
      if (v.length) n--;
    } else {
      let any = 0;
      for (const k in v) {
        n += textSize(k) + size(v[k]!) + 2;
        any = 1;
      }
      n -= any;
    }
    sizes.set(v, n);
  }
  return n;
}

function textSize(s: string): number {
  let n = 2;
  for (let i = 0; i < s.length; i++) {
    const c = s.charCodeAt(i);
    n += c === 34 || c === 92 || (c >= 8 && c <= 13 && c !== 11) ? 2 : c < 32 ? 6 : c < 0x80 ? 1 : c < 0x800 ? 2 : 3;
    if (c >= 0xd800 && c < 0xdc00) {
      n++;
      i++;
    } // a pair takes four bytes
  }
  return n;
}
