// JSON as it was written. JavaScript rounds long numbers: it makes 12345678901234567000 of …890. Here numbers that a double cannot hold
// are kept as their text.
import { put } from './json.js';

/** A number that JavaScript would round. */
export class Exact {
  constructor(readonly text: string) {}
}

/** Any JSON value, as {@link parse} returns it. */
export type ExactJSON = null | boolean | number | string | Exact | ExactJSON[] | { [member: string]: ExactJSON };

/** A value that has members or elements. */
export type ExactContainer = ExactJSON[] | { [member: string]: ExactJSON };

/** Whether a value has members or elements. */
export function isContainer(value: ExactJSON | undefined): value is ExactContainer {
  return typeof value === 'object' && value !== null && !(value instanceof Exact);
}

/** Only a text with such digits can hold a number that would be rounded. Strings may match too; that costs time only. */
const suspicious = /[0-9.]{16}|[0-9][eE]|-0(?:\.0*)?(?![0-9.])/;

/** Parses a JSON text, exactly. */
export function parse(text: string): ExactJSON {
  return suspicious.test(text) ? new Parser(text).whole() : (JSON.parse(text) as ExactJSON);
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

/** A plain parser for texts with long numbers. It leaves the judgement of strings to the engine's own. */
class Parser {
  private at = 0;
  constructor(private readonly text: string) {}

  whole(): ExactJSON {
    JSON.parse(this.text); // whatever is wrong, the engine says it better
    return this.value();
  }

  private space(): void {
    for (; this.at < this.text.length; this.at++) {
      const c = this.text.charCodeAt(this.at);
      if (c !== 32 && c !== 10 && c !== 13 && c !== 9) return;
    }
  }

  private value(): ExactJSON {
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

  private object(): ExactJSON {
    const out: { [key: string]: ExactJSON } = {};
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
      put(out, key, this.value());
      this.space();
      if (this.text[this.at] === ',') this.at++;
    }
  }

  private array(): ExactJSON {
    const out: ExactJSON[] = [];
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

/** The text of a value, exact numbers included; with an indent, over many lines. */
export function print(value: ExactJSON, indent = 0): string {
  return printAt(value, indent, 0);
}

function printAt(v: ExactJSON, indent: number, depth: number): string {
  if (v instanceof Exact) return v.text;
  if (!isContainer(v)) return JSON.stringify(v);
  const pad = indent ? '\n' + ' '.repeat(indent * (depth + 1)) : '',
    end = indent ? '\n' + ' '.repeat(indent * depth) : '';
  const colon = indent ? ': ' : ':';
  const parts = Array.isArray(v)
    ? v.map(e => printAt(e, indent, depth + 1))
    : Object.keys(v).map(k => JSON.stringify(k) + colon + printAt(v[k]!, indent, depth + 1));
  const [open, close] = Array.isArray(v) ? '[]' : '{}';
  return parts.length ? open + pad + parts.join(',' + pad) + end + close : open! + close!;
}
