// The live viewer: the document, the events beside it, and what they cost.
import { type ExactJSON, print } from '@freshet/client/exact';
import { useState } from 'preact/hooks';
import type { App, Topic } from '../../api';
import { bytes, count, percent, plural, time } from '../../format';
import type { Follow } from '../../live/follow';
import { Plot } from '../../plot';
import { Link } from '../../router';
import { Button, Card, Copy, Empty, Stat } from '../../ui';
import { EventList, type Filter, noFilter } from './events';
import { StateBadge, Trouble } from './state';
import { Tree } from './tree';

const intervals: [number, string][] = [
  [1000, '1 s'],
  [2000, '2 s'],
  [5000, '5 s'],
  [10_000, '10 s'],
  [60_000, '1 min'],
];

function Costs({ follow, topic }: { follow: Follow; topic: Topic }) {
  void follow.beat.value;
  const own = topic.publisher.config.polling_frequency;
  const [every, setEvery] = useState(intervals.some(i => i[0] === own) ? own! : 2000);
  const t = follow.meter.totals,
    polled = follow.meter.polled(every),
    lately = follow.meter.seconds.slice(-6, -1);
  const rate = lately.length ? lately.reduce((n, s) => n + s.events, 0) / lately.length : 0;
  return (
    <dl class="stats">
      <Stat
        label="Document"
        value={follow.newest?.hasDoc ? bytes(follow.newest.docBytes) : '–'}
        hint={follow.newest?.hasDoc ? plural(follow.versions.length, 'version') + ' kept' : 'nothing yet'}
      />
      <Stat label="Events" value={count(t.events)} hint={`${rate.toFixed(1)} per second`} />
      <Stat label="Received" value={bytes(t.bytes)} hint={`full documents: ${bytes(t.full)}`} />
      <Stat
        label="Saved vs snapshots"
        value={t.full > t.bytes ? percent(t.full - t.bytes, t.full) : '–'}
        hint={t.full > t.bytes ? bytes(t.full - t.bytes) : t.patches ? 'the document is tiny' : 'from the first patch on'}
      />
      <Stat
        label="Saved vs polling"
        value={polled > t.bytes ? percent(polled - t.bytes, polled) : '–'}
        hint={
          <>
            {bytes(polled)} every{' '}
            <select aria-label="Polling interval to compare with" value={every} onChange={e => setEvery(Number(e.currentTarget.value))}>
              {intervals.map(([ms, text]) => (
                <option key={ms} value={ms}>
                  {text}
                </option>
              ))}
            </select>
          </>
        }
      />
    </dl>
  );
}

function TimeTravel({ follow }: { follow: Follow }) {
  void follow.tick.value;
  const pinned = follow.pinned.value,
    shown = follow.shown(),
    list = follow.versions;
  const first = list[0],
    last = follow.newest;
  const go = (by: number): void => {
    const i = (pinned === null ? list.length - 1 : follow.indexOf(pinned)) + by;
    const v = list[Math.max(0, Math.min(list.length - 1, i))];
    if (v) follow.pinned.value = v.n;
  };
  const behind = pinned !== null && last ? last.n - pinned : 0,
    isOlder = pinned !== null && first && pinned < first.n;
  return (
    <div class="travel">
      <Button
        kind={pinned === null ? 'plain' : 'primary'}
        icon={pinned === null ? 'pause' : 'play'}
        disabled={!last}
        onClick={() => {
          follow.pinned.value = pinned === null ? (last?.n ?? null) : null;
        }}
      >
        {pinned === null ? 'Pause' : 'Go live'}
      </Button>
      <Button icon="prev" label="Previous version" disabled={!last} onClick={() => go(-1)} />
      <input
        type="range"
        aria-label="Version"
        min={first?.n ?? 0}
        max={last?.n ?? 0}
        value={shown?.n ?? 0}
        disabled={!last}
        aria-valuetext={shown ? `${shown.id || 'version'} at ${time(shown.at)}` : 'none'}
        onInput={e => {
          follow.pinned.value = Number(e.currentTarget.value);
        }}
      />
      <Button icon="next" label="Next version" disabled={!last} onClick={() => go(1)} />
      <span class="travel-at">
        {shown ? (
          <>
            <code>{shown.id || '–'}</code>{' '}
            <span class="dim">
              {time(shown.at)}
              {behind > 0 ? ` · ${plural(behind, 'event')} behind` : ''}
              {isOlder ? ', older than what is kept' : ''}
            </span>
          </>
        ) : (
          <span class="dim">no version yet</span>
        )}
      </span>
    </div>
  );
}

function Operations({ follow }: { follow: Follow }) {
  void follow.tick.value;
  const v = follow.shown();
  if (!v || follow.pinned.value === null)
    return <p class="hint ops-hint">Choose an event to see what it did, and the document as it was then.</p>;
  return (
    <div class="ops" role="region" aria-label="Operations of the chosen event" tabIndex={0}>
      {v.ops.length === 0 && <p class="hint">{v.error || `The whole document, ${bytes(v.docBytes)}.`}</p>}
      {v.ops.slice(0, 200).map((o, i) => {
        const text = o.op === 'remove' ? '' : print((o.value ?? null) as ExactJSON);
        return (
          <div class="op" key={i}>
            <span class={'op-name ' + o.op}>{o.op}</span>
            <code class="op-path">{o.path || '(root)'}</code>
            <code class="op-value">{text.length > 300 ? text.slice(0, 300) + '…' : text}</code>
          </div>
        );
      })}
      {v.ops.length > 200 && <p class="hint">and {count(v.ops.length - 200)} more</p>}
    </div>
  );
}

function Plots({ follow }: { follow: Follow }) {
  void follow.beat.value;
  const list = follow.meter.seconds.slice(0, -1);
  if (list.length < 2) return null;
  const times = list.map(s => s.at);
  return (
    <div class="plots">
      <Card>
        <Plot
          span={30}
          label="Events per second"
          times={times}
          format={n => n.toFixed(n < 10 ? 1 : 0)}
          series={[{ label: 'events', tone: 'accent', fill: true, values: list.map(s => s.events) }]}
          height={140}
        />
      </Card>
      <Card>
        <Plot
          span={30}
          label="Bytes per second"
          times={times}
          format={bytes}
          series={[
            { label: 'received', tone: 'accent', fill: true, values: list.map(s => s.bytes) },
            { label: 'full documents', tone: 'muted', values: list.map(s => s.full) },
          ]}
          height={140}
        />
      </Card>
    </div>
  );
}

export function Viewer({ follow, topic, app, renew }: { follow: Follow; topic: Topic; app: App; renew: () => void }) {
  const [filter, setFilter] = useState<Filter>(noFilter);
  const [path, setPath] = useState(''),
    [goTo, setGoTo] = useState<{ path: string }>(),
    [isGone, setGone] = useState(false);
  return (
    <>
      <Trouble follow={follow} renew={renew} />
      <Costs follow={follow} topic={topic} />
      <TimeTravel follow={follow} />
      <div class="viewer">
        <section class="card flush viewer-doc" aria-label="Document">
          <header class="card-head">
            <h2>Document</h2>
            <StateBadge follow={follow} />
            <div class="actions">
              <form
                class="goto"
                onSubmit={e => {
                  e.preventDefault();
                  setGoTo({ path: path && !path.startsWith('/') ? '/' + path : path });
                }}
              >
                <input
                  aria-label="Go to a path"
                  placeholder="/path/to/value"
                  class="mono"
                  value={path}
                  aria-invalid={isGone || undefined}
                  title={isGone ? 'There is nothing at this path' : undefined}
                  onInput={e => {
                    setGone(false);
                    setPath(e.currentTarget.value);
                  }}
                />
                {isGone && <span role="status">Nothing is there</span>}
              </form>
              <CopyDocument follow={follow} />
            </div>
          </header>
          <FirstPublication topic={topic} app={app} follow={follow} />
          <Tree follow={follow} goTo={goTo} onGone={setGone} />
        </section>
        <section class="card flush viewer-events" aria-label="Events">
          <header class="card-head">
            <h2>Events</h2>
            <div class="actions filters">
              <input
                aria-label="Filter by path"
                placeholder="Filter by path"
                class="mono"
                value={filter.text}
                onInput={e => setFilter({ ...filter, text: e.currentTarget.value })}
              />
              <select
                aria-label="Filter by operation"
                value={filter.op}
                onChange={e => setFilter({ ...filter, op: e.currentTarget.value as Filter['op'] })}
              >
                <option value="">all</option>
                <option value="add">add</option>
                <option value="replace">replace</option>
                <option value="remove">remove</option>
                <option value="snapshot">snapshot</option>
                <option value="error">error</option>
              </select>
            </div>
          </header>
          <EventList follow={follow} filter={filter} />
          <Operations follow={follow} />
        </section>
      </div>
      <Plots follow={follow} />
    </>
  );
}

function CopyDocument({ follow }: { follow: Follow }) {
  return (
    <Copy
      what="the document"
      text={() => {
        const shown = follow.shown();
        return shown?.hasDoc ? print(shown.doc, 2) : '';
      }}
    />
  );
}

function FirstPublication({ topic, app, follow }: { topic: Topic; app: App; follow: Follow }) {
  void follow.tick.value;
  if (follow.newest?.hasDoc || follow.state.value.is !== 'open') return null; // who is not connected cannot know
  return topic.publisher.type === 'http-post' ? (
    <Empty
      icon="live"
      title="Nothing was published yet"
      action={
        <Link to={`/topics/${encodeURIComponent(topic.id)}/publish`} class="button primary">
          Publish something
        </Link>
      }
    >
      <p>Send the first document from here, or from your backend. It appears at once.</p>
    </Empty>
  ) : (
    <Empty icon="live" title="Waiting for the first answer">
      <p>
        Freshet polls <code>{topic.publisher.config.url}</code> while somebody is subscribed to this topic of {app.name}, as you are now.
      </p>
    </Empty>
  );
}
