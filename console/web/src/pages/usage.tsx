// What was used, hour by hour.
import { get, type UsageCounts, type UsageReport } from '../api';
import { bytes, count, percent, plural, short } from '../format';
import { Plot } from '../plot';
import { Button, Card, Empty, Show, Stat, useLoad } from '../ui';

const hour = 3_600_000;

export const loadUsage = (path: string, signal?: AbortSignal): Promise<UsageReport> => get<UsageReport>(path, signal);

const nothing: UsageCounts = {
  messages: 0, bytes: 0, full_bytes: 0, bytes_saved: 0, publications: 0, polls: 0, polls_not_modified: 0, connection_seconds: 0,
};

function add(a: UsageCounts, b: UsageCounts): UsageCounts {
  const sum = { ...a };
  for (const k of Object.keys(nothing) as (keyof UsageCounts)[]) sum[k] += b[k];
  return sum;
}

/** The sum of several reports of the same time. */
export function together(reports: UsageReport[]): UsageReport | null {
  const first = reports[0];
  if (!first) return null;
  const hours = new Map<string, UsageReport['hours'][number]>();
  for (const h of reports.flatMap(r => r.hours)) {
    const before = hours.get(h.hour);
    hours.set(h.hour, { ...(before ? add(before, h) : h), hour: h.hour });
  }
  return { from: first.from, to: first.to, hours: [...hours.values()], total: reports.map(r => r.total).reduce(add) };
}

interface Slot extends UsageCounts { at: number; seconds: number }

/** Every hour of a report, also those in which nothing was used, which it leaves out. */
function everyHour(r: UsageReport): Slot[] {
  const used = new Map(r.hours.map(h => [Date.parse(h.hour), h]));
  const slots: Slot[] = [], now = Date.now();
  for (let at = Date.parse(r.from); at < Date.parse(r.to); at += hour) {
    slots.push({ ...nothing, ...used.get(at), at, seconds: Math.max(1, Math.min(hour, now - at) / 1000) }); // the hour that runs is not over
  }
  return slots;
}

export function UsageOf({ path, what }: { path: string; what: string }) {
  const usage = useLoad(s => loadUsage(path, s), [path]);
  return <Show of={usage}>{report => <Usage report={report} what={what} again={usage.again} />}</Show>;
}

export function Usage({ report, what, again }: { report: UsageReport; what: string; again?: () => void }) {
  if (report.hours.length === 0) return (
    <Card><Empty icon="chart" title="Nothing in the last day" action={again && <Button icon="renew" onClick={again}>Look again</Button>}>
      <p>When something is published to this {what} or somebody subscribes, it is counted here, hour by hour.</p>
    </Empty></Card>
  );
  const total = report.total, slots = everyHour(report);
  const times = slots.map(s => s.at / 1000), of = (f: (s: Slot) => number): (number | null)[] => slots.map(s => f(s) || null); // no bar for nothing
  return (
    <>
      <dl class="stats">
        <Stat label="Messages" value={count(total.messages)} hint={`from ${plural(total.publications, 'publication')}`} />
        <Stat label="Sent" value={bytes(total.bytes)} hint="to subscribers" />
        <Stat label="Saved" value={bytes(total.bytes_saved)} hint={`${percent(total.bytes_saved, total.full_bytes)} of full documents`} />
        <Stat label="Connected" value={connected(total.connection_seconds)} hint="all subscribers together" />
      </dl>
      <div class="plots">
        <Card><Plot bars label="Messages per hour" times={times} format={short} series={[{ label: 'messages', tone: 'accent', values: of(s => s.messages) }]} /></Card>
        <Card><Plot bars label="Connections, on average" times={times} format={n => n > 0 && n < 1 ? String(Number(n.toPrecision(1))) : short(n)} series={[
          { label: 'connections', tone: 'ok', values: of(s => s.connection_seconds / s.seconds) }]} /></Card>
        <Card><Plot bars label="Bytes per hour" times={times} format={bytes} series={[
          { label: 'as full documents', tone: 'muted', values: of(s => s.full_bytes) }, { label: 'sent', tone: 'accent', values: of(s => s.bytes) }]} /></Card>
        <Card><Plot bars label="Publications per hour" times={times} format={short} series={[{ label: 'publications', tone: 'accent', values: of(s => s.publications) }]} /></Card>
        {total.polls > 0 && <Card><Plot bars label="Polls per hour" times={times} format={short} series={[
          { label: 'polls', tone: 'accent', values: of(s => s.polls) }, { label: 'not modified', tone: 'ok', values: of(s => s.polls_not_modified) }]} /></Card>}
      </div>
    </>
  );
}

const connected = (seconds: number): string => seconds < 120 ? `${count(seconds)} s` : seconds < 7200 ? `${count(seconds / 60)} min` : `${count(seconds / 3600)} h`;
