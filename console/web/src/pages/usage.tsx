// What was used, hour by hour.
import { Failure, get, type UsageHour } from '../api';
import { bytes, count, percent, short } from '../format';
import { Plot } from '../plot';
import { Card, Code, Empty, Show, Stat, useLoad } from '../ui';

/** The hours of an answer, oldest first, whatever its frame is called. */
export function hoursOf(answer: unknown): UsageHour[] {
  const frame = (answer ?? {}) as Record<string, unknown>;
  const list = (Array.isArray(answer) ? answer : frame['hours'] ?? frame['items'] ?? []) as UsageHour[];
  return [...list].sort((a, b) => startOf(a) - startOf(b));
}

const startOf = (h: UsageHour): number => Date.parse(h.hour ?? h.at ?? '') || 0;

/** Usage at a path; null where the server does not tell. */
export async function loadUsage(path: string, signal?: AbortSignal): Promise<UsageHour[] | null> {
  try {
    return hoursOf(await get(path, signal));
  } catch (e) {
    if (e instanceof Failure && e.status === 404) return null;
    throw e;
  }
}

export function UsageOf({ path, what }: { path: string; what: string }) {
  const usage = useLoad(s => loadUsage(path, s), [path]);
  return <Show of={usage}>{hours => hours === null ? <NoUsage path={path} what={what} /> : <Usage hours={hours} what={what} />}</Show>;
}

function NoUsage({ path, what }: { path: string; what: string }) {
  return (
    <Card>
      <Empty icon="chart" title="This server keeps no usage figures yet">
        <p>Once it does, this page shows messages, bytes, savings and connections of the {what}, hour by hour. The figures will also be at:</p>
        <Code what="the command" text={`curl -H "Authorization: Bearer $token" ${location.origin}/api/v1${path}`} />
        <p>Meanwhile, the Live page of a topic measures what passes while you watch.</p>
      </Empty>
    </Card>
  );
}

const sum = (hours: UsageHour[], of: (h: UsageHour) => number | undefined): number => hours.reduce((n, h) => n + (of(h) ?? 0), 0);

export function Usage({ hours, what }: { hours: UsageHour[]; what: string }) {
  if (hours.length === 0) return (
    <Card><Empty icon="chart" title="Nothing in the last day"><p>When messages of this {what} are delivered, they are counted here, hour by hour.</p></Empty></Card>
  );
  const times = hours.map(h => startOf(h) / 1000);
  const sent = sum(hours, h => h.bytes), saved = sum(hours, h => h.bytes_saved);
  const outcomes = [...new Set(hours.flatMap(h => Object.keys(h.polls ?? {})))];
  const has = (of: (h: UsageHour) => unknown): boolean => hours.some(h => of(h) !== undefined);
  return (
    <>
      <dl class="stats">
        <Stat label="Messages" value={count(sum(hours, h => h.messages))} hint="last day" />
        <Stat label="Sent" value={bytes(sent)} hint="to subscribers" />
        <Stat label="Saved" value={bytes(saved)} hint={`${percent(saved, saved + sent)} of full documents`} />
        <Stat label="Connections" value={count(Math.max(0, ...hours.map(h => h.connections ?? 0)))} hint="at most, in an hour" />
      </dl>
      <div class="plots">
        <Card><Plot bars label="Messages per hour" times={times} format={short} series={[{ label: 'messages', tone: 'accent', values: hours.map(h => h.messages ?? 0) }]} /></Card>
        <Card><Plot label="Connections" times={times} format={short} series={[{ label: 'connections', tone: 'ok', fill: true, values: hours.map(h => h.connections ?? 0) }]} /></Card>
        <Card><Plot label="Bytes per hour" times={times} format={bytes} series={[
          { label: 'sent', tone: 'accent', fill: true, values: hours.map(h => h.bytes ?? 0) }, { label: 'saved', tone: 'ok', values: hours.map(h => h.bytes_saved ?? 0) }]} /></Card>
        {has(h => h.latency_p50_ms) && <Card><Plot label="Delivery latency" times={times} format={n => `${Math.round(n)} ms`} series={[
          { label: 'median', tone: 'accent', values: hours.map(h => h.latency_p50_ms ?? null) }, { label: '99 %', tone: 'warn', values: hours.map(h => h.latency_p99_ms ?? null) }]} /></Card>}
        {outcomes.length > 0 && <Card><Plot label="Polls by outcome" times={times} format={short} series={
          outcomes.map((o, i) => ({ label: o, tone: (['ok', 'accent', 'warn', 'bad', 'muted'] as const)[i % 5]!, values: hours.map(h => h.polls?.[o] ?? 0) }))} /></Card>}
      </div>
    </>
  );
}
