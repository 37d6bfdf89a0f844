// Random JSON, always the same for a seed.
export function random(seed) {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  const below = n => Math.floor(next() * n);
  const names = ['a', 'b', 'c/d', '~e', '', '0', '__proto__', 'été', 'constructor'];
  const value = depth => {
    switch (below(depth > 0 ? 6 : 4)) {
      case 0:
        return below(100);
      case 1:
        return names[below(names.length)];
      case 2:
        return next() < 0.5;
      case 3:
        return null;
      case 4:
        return Array.from({ length: below(5) }, () => value(depth - 1));
      default:
        return JSON.parse(
          `{${[...new Set(Array.from({ length: below(5) }, () => names[below(names.length)]))]
            .map(name => `${JSON.stringify(name)}:${JSON.stringify(value(depth - 1))}`)
            .join(',')}}`,
        );
    }
  };
  return { below, value, names };
}
