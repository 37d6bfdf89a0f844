// Follows what is counted, as figures of the moment.
import { useEffect, useState } from 'preact/hooks';
import { Ended, Failure, get, type UsageReport } from '../api';
import { between, type Moment } from '../live/figures';

const everyMs = 2000,
  most = 150; // five minutes

export function useLive(path: string): { moments: Moment[]; error: string } {
  const [moments, setMoments] = useState<Moment[]>([]);
  const [error, setError] = useState('');
  useEffect(() => {
    const stop = new AbortController(),
      from = Date.now(); // fixed, so that sums only grow, also over a full hour
    let before: { report: UsageReport; at: number } | undefined, timer: ReturnType<typeof setTimeout>;
    const look = async (): Promise<void> => {
      try {
        const report = await get<UsageReport>(`${path}?from=${from}`, stop.signal),
          at = Date.now();
        if (before) {
          const next = between(before.report, report, at, (at - before.at) / 1000);
          setMoments(m => [...m.slice(1 - most), next]);
        }
        before = { report, at };
        setError('');
      } catch (e) {
        if (!stop.signal.aborted && !(e instanceof Ended)) setError(e instanceof Failure ? e.message : String(e));
      }
      if (!stop.signal.aborted) timer = setTimeout(() => void look(), everyMs);
    };
    setMoments([]);
    void look();
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [path]);
  return { moments, error };
}
