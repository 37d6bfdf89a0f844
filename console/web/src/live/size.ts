// How large documents are, without writing them down.
import { Exact, type ExactJSON, isContainer } from '@freshet/client/exact';

const sizes = new WeakMap<object, number>();

/** How many bytes a value has as compact JSON. Containers remember it, so a patched document costs only what changed. */
export function size(v: ExactJSON): number {
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
