// Figures of a moment, from what was counted before it and after.
import type { UsageReport } from '../api';

/** Rates are per second; what is null was not measured. */
export interface Moment {
  at: number;
  messages: number;
  bytes: number;
  full: number;
  publications: number;
  connections: number;
  pollsOK: number;
  pollsSame: number;
  pollsFailed: number;
  p50: number | null;
  p95: number | null;
  p99: number | null;
}

/** The value that a part of all does not exceed, of a histogram: bucket i ends at bounds[i], the last one nowhere. */
export function quantile(q: number, counts: number[], bounds: number[]): number | null {
  const all = counts.reduce((n, c) => n + c, 0);
  if (all <= 0) return null;
  let left = q * all;
  for (let i = 0; i < bounds.length; i++) {
    const c = counts[i] ?? 0;
    if (left <= c && c > 0) {
      const from = i > 0 ? bounds[i - 1]! : 0;
      return from + ((bounds[i]! - from) * left) / c;
    }
    left -= c;
  }
  return bounds[bounds.length - 1] ?? null;
}

/** What happened between two reports that begin at the same time. */
export function between(before: UsageReport, after: UsageReport, at: number, seconds: number): Moment {
  const a = before.total,
    b = after.total;
  const rate = (x: number, y: number): number => Math.max(0, y - x) / seconds;
  const counts = b.delivery_lag.counts.map((n, i) => Math.max(0, n - (a.delivery_lag.counts[i] ?? 0)));
  const lag = (q: number): number | null => quantile(q, counts, after.delivery_lag_bounds_ms);
  return {
    at,
    messages: rate(a.messages, b.messages),
    bytes: rate(a.bytes, b.bytes),
    full: rate(a.full_bytes, b.full_bytes),
    publications: rate(a.publications, b.publications),
    connections: rate(a.connection_seconds, b.connection_seconds),
    pollsOK: rate(a.polls_ok, b.polls_ok),
    pollsSame: rate(a.polls_not_modified, b.polls_not_modified),
    pollsFailed: rate(a.polls_failed, b.polls_failed),
    p50: lag(0.5),
    p95: lag(0.95),
    p99: lag(0.99),
  };
}
