// What was used: hour by hour over the last day, and live.
import { get, type UsageCounts, type UsageReport } from '../api';
import { bytes, count, latency, percent, plural, short } from '../format';
import { Plot, type Series } from '../plot';
import { navigate, path, search } from '../router';
import { Badge, Button, Card, Empty, Show, Stat, useLoad } from '../ui';
import { useLive } from './livefigures';

const hour = 3_600_000;

export const loadUsage = (of: string, signal?: AbortSignal): Promise<UsageReport> => get<UsageReport>(of, signal);

/** The figures of a topic, an app, an account or the server. Which of both views is shown is in the address. */
export function UsageOf({ of, what }: { of: string; what: string }) {
  const live = new URLSearchParams(search.value).has('live');
  const view = (text: string, isLive: boolean) => (
    <button type="button" aria-pressed={live === isLive} onClick={() => navigate(path.value + (isLive ? '?live' : ''), true)}>
      {text}
    </button>
  );
  return (
    <>
      <div class="toolbar">
        <div class="segments" role="group" aria-label="Time">
          {view('Last day', false)}
          {view('Live', true)}
        </div>
        {live && (
          <Badge tone="ok">
            <i class="pulse" />
            every 2 s
          </Badge>
        )}
      </div>
      {live ? <Live of={of} /> : <Day of={of} what={what} />}
    </>
  );
}

// ── The last day

interface Slot extends UsageCounts {
  at: number;
  seconds: number;
}

/** Every hour of a report; of those in which nothing was used, which it leaves out, there is nothing to tell. */
function everyHour(r: UsageReport): (Slot | { at: number })[] {
  const used = new Map(r.hours.map(h => [Date.parse(h.hour), h]));
  const slots: (Slot | { at: number })[] = [],
    now = Date.now();
  for (let at = Math.floor(Date.parse(r.from) / hour) * hour; at < Date.parse(r.to); at += hour) {
    const h = used.get(at);
    slots.push(h ? { ...h, at, seconds: Math.max(1, Math.min(hour, now - at) / 1000) } : { at }); // the hour that runs is not over
  }
  return slots;
}

function Day({ of, what }: { of: string; what: string }) {
  const usage = useLoad(s => loadUsage(of, s), [of]);
  return <Show of={usage}>{report => <Usage report={report} what={what} again={usage.again} />}</Show>;
}

export function Usage({ report, what, again }: { report: UsageReport; what: string; again?: () => void }) {
  if (report.hours.length === 0)
    return (
      <Card>
        <Empty
          icon="chart"
          title="Nothing in the last day"
          action={
            again && (
              <Button icon="renew" onClick={again}>
                Look again
              </Button>
            )
          }
        >
          <p>When something is published to this {what} or somebody subscribes, it is counted here, hour by hour.</p>
        </Empty>
      </Card>
    );
  const total = report.total,
    slots = everyHour(report);
  const times = slots.map(s => s.at / 1000);
  // No bar for nothing.
  const some = (f: (s: Slot) => number | null): (number | null)[] => slots.map(s => ('hour' in s ? f(s as Slot) || null : null));
  const lag = total.delivery_lag,
    inAll = (n: number | null): string => (n === null ? '–' : latency(n));
  return (
    <>
      <dl class="stats">
        <Stat label="Messages" value={count(total.messages)} hint={`from ${plural(total.publications, 'publication')}`} />
        <Stat label="Sent" value={bytes(total.bytes)} hint="to subscribers" />
        <Stat label="Saved" value={bytes(total.bytes_saved)} hint={`${percent(total.bytes_saved, total.full_bytes)} of full documents`} />
        <Stat label="Delivered within" value={inAll(lag.p99_ms)} hint="99 of 100 messages" />
        <Stat label="Connected" value={connected(total.connection_seconds)} hint="all subscribers together" />
      </dl>
      <div class="plots">
        <Card>
          <Plot
            as="bars"
            label="Messages per hour"
            times={times}
            format={short}
            whole={[short(total.messages)]}
            series={[{ label: 'messages', tone: 'accent', values: some(s => s.messages) }]}
          />
        </Card>
        <Card>
          <Plot
            as="bars"
            least={1}
            label="Connections, on average"
            times={times}
            format={few}
            series={[{ label: 'connections', tone: 'ok', values: some(s => s.connection_seconds / s.seconds) }]}
          />
        </Card>
        <Card>
          <Plot
            label="From publication to socket"
            times={times}
            format={latency}
            whole={[inAll(lag.p50_ms), inAll(lag.p95_ms), inAll(lag.p99_ms)]}
            series={percentiles(
              some(s => s.delivery_lag.p50_ms),
              some(s => s.delivery_lag.p95_ms),
              some(s => s.delivery_lag.p99_ms),
            )}
          />
        </Card>
        <Card>
          <Plot
            as="bars"
            label="Bytes per hour"
            times={times}
            format={bytes}
            whole={[bytes(total.full_bytes), bytes(total.bytes)]}
            series={[
              { label: 'as full documents', tone: 'muted', values: some(s => s.full_bytes) },
              { label: 'sent', tone: 'accent', values: some(s => s.bytes) },
            ]}
          />
        </Card>
        <Card>
          <Plot
            as="bars"
            label="Publications per hour"
            times={times}
            format={short}
            whole={[short(total.publications)]}
            series={[{ label: 'publications', tone: 'accent', values: some(s => s.publications) }]}
          />
        </Card>
        {total.polls > 0 && (
          <Card>
            <Plot
              as="stack"
              label="Polls per hour, by outcome"
              times={times}
              format={short}
              whole={[short(total.polls_ok), short(total.polls_not_modified), short(total.polls_failed)]}
              series={outcomes(
                some(s => s.polls_ok),
                some(s => s.polls_not_modified),
                some(s => s.polls_failed),
              )}
            />
          </Card>
        )}
      </div>
    </>
  );
}

const few = (n: number): string => (n > 0 && n < 0.01 ? '< 0.01' : n < 1 ? String(Number(n.toPrecision(1))) : short(n));

type Values = (number | null)[];
const percentiles = (p50: Values, p95: Values, p99: Values): Series[] => [
  { label: 'half within', tone: 'accent', values: p50 },
  { label: '95 %', tone: 'warn', values: p95 },
  { label: '99 %', tone: 'bad', values: p99 },
];
const outcomes = (ok: Values, same: Values, failed: Values): Series[] => [
  { label: 'new document', tone: 'accent', values: ok },
  { label: 'not modified', tone: 'ok', values: same },
  { label: 'failed', tone: 'bad', values: failed },
];

const connected = (seconds: number): string =>
  seconds < 120 ? `${count(seconds)} s` : seconds < 7200 ? `${count(seconds / 60)} min` : `${count(seconds / 3600)} h`;

// ── Live

function Live({ of }: { of: string }) {
  const { moments, error } = useLive(of);
  const last = moments[moments.length - 1];
  if (!last)
    return error ? (
      <div class="banner bad" role="alert">
        {error}
      </div>
    ) : (
      <Card>
        <Empty icon="chart" title="Watching">
          <p>Figures appear in a moment.</p>
        </Empty>
      </Card>
    );
  const times = moments.map(m => m.at / 1000),
    of1 = (f: (m: typeof last) => number | null): (number | null)[] => moments.map(f);
  return (
    <>
      {error && (
        <div class="banner bad" role="alert">
          {error} Trying again.
        </div>
      )}
      <dl class="stats">
        <Stat label="Messages" value={short(last.messages)} hint="per second" />
        <Stat label="Sent" value={bytes(last.bytes)} hint="per second" />
        <Stat
          label="Saved"
          value={last.full > last.bytes ? percent(last.full - last.bytes, last.full) : '–'}
          hint={last.full >= last.bytes ? 'of full documents' : 'the document is tiny'}
        />
        <Stat label="Delivered within" value={last.p99 === null ? '–' : latency(last.p99)} hint="99 of 100 messages" />
        <Stat label="Connections" value={short(Math.round(last.connections))} hint="right now" />
      </dl>
      <div class="plots">
        <Card>
          <Plot
            span={60}
            label="Messages per second"
            times={times}
            format={short}
            series={[{ label: 'messages', tone: 'accent', fill: true, values: of1(m => m.messages) }]}
          />
        </Card>
        <Card>
          <Plot
            span={60}
            least={1}
            label="Connections"
            times={times}
            format={few}
            series={[{ label: 'connections', tone: 'ok', fill: true, values: of1(m => m.connections) }]}
          />
        </Card>
        <Card>
          <Plot
            span={60}
            label="From publication to socket"
            times={times}
            format={latency}
            series={percentiles(
              of1(m => m.p50),
              of1(m => m.p95),
              of1(m => m.p99),
            )}
          />
        </Card>
        <Card>
          <Plot
            span={60}
            label="Bytes per second"
            times={times}
            format={bytes}
            series={[
              { label: 'as full documents', tone: 'muted', values: of1(m => m.full) },
              { label: 'sent', tone: 'accent', fill: true, values: of1(m => m.bytes) },
            ]}
          />
        </Card>
        <Card>
          <Plot
            span={60}
            label="Publications per second"
            times={times}
            format={few}
            series={[{ label: 'publications', tone: 'accent', fill: true, values: of1(m => m.publications) }]}
          />
        </Card>
        <Card>
          <Plot
            span={60}
            label="Polls per second, by outcome"
            times={times}
            format={few}
            series={outcomes(
              of1(m => m.pollsOK),
              of1(m => m.pollsSame),
              of1(m => m.pollsFailed),
            )}
          />
        </Card>
      </div>
    </>
  );
}
