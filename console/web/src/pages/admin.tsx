// For admins: connections, usage, health and the audit log.
import { useState } from 'preact/hooks';
import { type AuditEntry, call, config, type Connection, get, type HealthReport, id, type Page } from '../api';
import { ago, bytes, date, plural } from '../format';
import { Link, param, setParams } from '../router';
import {
  Badge,
  Button,
  Card,
  Confirm,
  Empty,
  Head,
  Input,
  NoSuchPart,
  pageNumber,
  Pager,
  Show,
  Stat,
  Table,
  toast,
  toPage,
  useEvery,
  useLoad,
} from '../ui';
import { Explain } from './explain';
import { UsageOf } from './usage';

const perPage = 50;
const refreshMs = 3000;

const filters = ['user', 'app', 'topic'] as const;
type Filter = Record<(typeof filters)[number], string>;

export function Connections() {
  const [user, app, topic, page] = [param('user'), param('app'), param('topic'), pageNumber()];
  const [cutting, setCutting] = useState<Connection>(),
    [explaining, setExplaining] = useState<Connection>();
  const filter: Filter = { user, app, topic };
  const query = filters
    .filter(k => filter[k].trim())
    .map(k => `&${k}=${encodeURIComponent(filter[k].trim())}`)
    .join('');
  const put = (change: Partial<Filter>): void => setParams({ ...change, page: '' });
  const list = useLoad(s => get<Page<Connection>>(`/admin/connections?per_page=${perPage}&page=${page}${query}`, s), [query, page]);
  useEvery(refreshMs, list.refresh);
  return (
    <>
      <Head
        title="Connections"
        badge={
          <Badge tone="ok">
            <i class="pulse" />
            live
          </Badge>
        }
      >
        Everybody who is subscribed right now, on the node that answers.
      </Head>
      <div class="trio filter-row">
        <Input label="User" mono value={filter.user} onInput={user => put({ user })} placeholder="identifier" />
        <Input label="App" mono value={filter.app} onInput={app => put({ app })} placeholder="identifier" />
        <Input label="Topic" mono value={filter.topic} onInput={topic => put({ topic })} placeholder="identifier" />
      </div>
      <Show of={list}>
        {p => (
          <Card flush title={plural(p.total, 'connection')}>
            {p.items.length === 0 ? (
              p.total > 0 ? (
                <NoSuchPart />
              ) : (
                <Empty icon="plug" title={query ? 'Nobody matches' : 'Nobody is connected'}>
                  <p>Subscribers appear here as soon as they follow a topic.</p>
                </Empty>
              )
            ) : (
              <Table
                label="Connections"
                rows={p.items}
                columns={[
                  {
                    head: 'From',
                    cell: c => (
                      <span class="two-lines">
                        <code>{c.remote}</code>
                        <small>node {c.node}</small>
                      </span>
                    ),
                  },
                  {
                    head: 'Topic and user',
                    cell: c => (
                      <span class="two-lines">
                        <Link to={`/topics/${id(c.topic)}`}>
                          <code class="clip" title={c.topic}>
                            {c.topic}
                          </code>
                        </Link>
                        <small>
                          {c.user ? (
                            <button
                              type="button"
                              class="text-button"
                              title={`Only connections of ${c.user}`}
                              onClick={() => put({ user: c.user })}
                            >
                              <code class="clip">{c.user}</code>
                            </button>
                          ) : (
                            'nobody’s'
                          )}
                        </small>
                      </span>
                    ),
                  },
                  {
                    head: 'Gets',
                    cell: c =>
                      [c.mode === 'patch' ? 'patches' : 'snapshots', c.filtered && 'filtered', c.encoding === 'compressed' && 'compressed']
                        .filter(Boolean)
                        .join(', '),
                  },
                  {
                    head: 'State',
                    cell: c =>
                      c.behind || c.lag > 0 ? (
                        <Badge tone="warn">{plural(c.lag, 'version')} behind</Badge>
                      ) : (
                        <Badge tone="ok">up to date</Badge>
                      ),
                  },
                  { head: 'Since', class: 'right dim', cell: c => ago(c.since) },
                  { head: 'Sent', class: 'right', cell: c => bytes(c.bytes) },
                  {
                    head: '',
                    class: 'right',
                    cell: c => (
                      <span class="row-actions">
                        <Button small onClick={() => setExplaining(c)}>
                          Explain<span class="offscreen"> connection {c.id}</span>
                        </Button>
                        <Button small kind="danger" onClick={() => setCutting(c)}>
                          Cut<span class="offscreen"> connection {c.id}</span>
                        </Button>
                      </span>
                    ),
                  },
                ]}
              />
            )}
            <Pager page={p.page} perPage={p.per_page} total={p.total} onPage={toPage} />
          </Card>
        )}
      </Show>
      {explaining && <Explain path={`/admin/connections/${id(explaining.id)}/explain`} onClose={() => setExplaining(undefined)} />}
      {cutting && (
        <Confirm
          title="Cut this connection?"
          verb="Cut"
          onClose={() => setCutting(undefined)}
          onConfirm={async () => {
            await call('DELETE', '/admin/connections/' + id(cutting.id));
            toast('The connection is cut');
            list.again();
          }}
        >
          <p>
            The stream ends at once, and its client is asked to stay away for 30 seconds. To keep it out, renew the key or disable the
            account.
          </p>
        </Confirm>
      )}
    </>
  );
}

export function ServerUsage() {
  return (
    <>
      <Head title="Usage">The whole server.</Head>
      <UsageOf of="/admin/usage" what="server" />
    </>
  );
}

export function Health() {
  const health = useLoad(s => get<HealthReport>('/admin/health', s), []);
  useEvery(refreshMs, health.refresh);
  return (
    <>
      <Head
        title="Health"
        actions={
          <Button icon="renew" onClick={health.again}>
            Check again
          </Button>
        }
      >
        Every part of the node that answers.
      </Head>
      <Show of={health}>
        {h => (
          <>
            <dl class="stats">
              <Stat
                label="Server"
                value={<Badge tone={h.status === 'ready' ? 'ok' : h.status === 'failing' ? 'bad' : 'warn'}>{h.status}</Badge>}
                hint="as its load balancer sees it"
              />
              <Stat label="Version" value={config.value?.version ?? '–'} hint="of Freshet" />
            </dl>
            <Card flush title="Parts">
              <Table
                label="Parts"
                rows={Object.entries(h.checks)
                  .map(([name, said]) => ({ id: name, said }))
                  .sort((a, b) => order.indexOf(a.id) - order.indexOf(b.id))}
                columns={[
                  {
                    head: 'Part',
                    cell: c => (
                      <span class="two-lines">
                        <b>{c.id}</b>
                        <small>{parts[c.id] ?? ''}</small>
                      </span>
                    ),
                  },
                  {
                    head: 'State',
                    class: 'right',
                    cell: c => (
                      <Badge tone={c.said === 'ok' ? 'ok' : c.said === 'starting' || c.said === 'draining' ? 'warn' : 'bad'}>
                        {c.said}
                      </Badge>
                    ),
                  },
                ]}
              />
            </Card>
          </>
        )}
      </Show>
    </>
  );
}

const parts: Record<string, string> = {
  store: 'The database of accounts, apps and topics',
  grid: 'Newest documents and notices, shared by all nodes',
  gateway: 'The door to all APIs',
  manage: 'The management API',
  publish: 'The publishing API',
  poll: 'Asks the APIs behind polled topics',
  subscribe: 'Event streams',
};
const order = ['gateway', 'manage', 'publish', 'poll', 'subscribe', 'grid', 'store'];

export function Audit() {
  const page = pageNumber();
  const list = useLoad(s => get<Page<AuditEntry>>(`/admin/audit?per_page=${perPage}&page=${page}`, s), [page]);
  return (
    <>
      <Head title="Audit log">What admins did to other people’s things, newest first.</Head>
      <Show of={list} rows={6}>
        {p => (
          <Card flush title={plural(p.total, 'entry', 'entries')}>
            {p.items.length === 0 ? (
              p.total > 0 ? (
                <NoSuchPart />
              ) : (
                <Empty icon="audit" title="Nothing yet">
                  <p>When an admin changes somebody else’s account, app or topic, it is recorded here.</p>
                </Empty>
              )
            ) : (
              <Table
                label="Audit log"
                rows={p.items}
                columns={[
                  { head: 'When', cell: e => <span title={e.at}>{date(e.at)}</span> },
                  { head: 'Action', cell: e => <Badge tone="accent">{e.action}</Badge> },
                  { head: 'What', cell: e => (e.detail ? <code class="detail">{JSON.stringify(e.detail)}</code> : '') },
                  {
                    head: 'Admin',
                    cell: e => (
                      <code class="clip" title={e.actor}>
                        {e.actor}
                      </code>
                    ),
                  },
                  {
                    head: 'Subject',
                    cell: e => (
                      <code class="clip" title={e.subject}>
                        {e.subject}
                      </code>
                    ),
                  },
                ]}
              />
            )}
            <Pager page={p.page} perPage={p.per_page} total={p.total} onPage={toPage} />
          </Card>
        )}
      </Show>
    </>
  );
}
