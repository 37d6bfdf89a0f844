// For admins: connections, usage, the gateway, health and the audit log.
import { useState } from 'preact/hooks';
import { type AuditEntry, call, type Connection, Failure, get, id, type Page } from '../api';
import { ago, bytes, count, date, plural } from '../format';
import { Badge, Button, Card, Code, Confirm, Empty, Head, Input, Pager, Show, Stat, Table, toast, useLoad } from '../ui';
import { UsageOf } from './usage';

/** What is loaded where the server may not have it yet. */
async function maybe<T>(load: Promise<T>): Promise<T | null> {
  try { return await load; } catch (e) {
    if (e instanceof Failure && (e.status === 404 || e.status === 405)) return null;
    throw e;
  }
}

export function Connections() {
  const [filter, setFilter] = useState({ user: '', app: '', topic: '' });
  const [cutting, setCutting] = useState<Connection>();
  const query = Object.entries(filter).filter(([, v]) => v).map(([k, v]) => `${k}=${encodeURIComponent(v)}`).join('&');
  const list = useLoad(s => maybe(get<Page<Connection>>('/admin/connections?per_page=200' + (query ? '&' + query : ''), s)), [query]);
  return (
    <>
      <Head title="Connections" actions={<Button icon="renew" onClick={list.again}>Refresh</Button>}>Everybody who is subscribed right now.</Head>
      <Show of={list}>{p => p === null ? (
        <Card><Empty icon="plug" title="This server does not list connections yet">
          <p>Once it does, this page shows every open stream and can cut it. How many there are is in the metrics:</p>
          <Code what="the command" text="curl -s http://127.0.0.1:8001/metrics | grep freshet" />
          <p>To end all streams of an account today, disable it under Users.</p>
        </Empty></Card>
      ) : (
        <>
          <div class="trio">
            <Input label="User" mono value={filter.user} onInput={user => setFilter({ ...filter, user })} placeholder="identifier" />
            <Input label="App" mono value={filter.app} onInput={app => setFilter({ ...filter, app })} placeholder="identifier" />
            <Input label="Topic" mono value={filter.topic} onInput={topic => setFilter({ ...filter, topic })} placeholder="identifier" />
          </div>
          <Card flush title={plural(p.total, 'connection')}>
            {p.items.length === 0 ? <Empty icon="plug" title="Nobody is connected"><p>Subscribers appear here as soon as they follow a topic.</p></Empty> :
              <Table label="Connections" rows={p.items} columns={[
                { head: 'Address', cell: c => <span class="two-lines"><code>{c.address ?? '–'}</code><small>{c.user_agent ?? c.node ?? ''}</small></span> },
                { head: 'Topic', cell: c => <code class="clip">{c.topic_id ?? '–'}</code> },
                { head: 'User', cell: c => <code class="clip">{c.user_id ?? '–'}</code> },
                { head: 'Since', class: 'right dim', cell: c => c.connected_at ? ago(c.connected_at) : '–' },
                { head: 'Sent', class: 'right', cell: c => c.bytes === undefined ? '–' : `${bytes(c.bytes)}, ${count(c.messages ?? 0)}` },
                { head: '', class: 'right', cell: c => <Button small kind="danger" onClick={() => setCutting(c)}>Cut<span class="offscreen"> connection {c.id}</span></Button> },
              ]} />}
          </Card>
        </>
      )}</Show>
      {cutting && <Confirm title="Cut this connection?" verb="Cut" onClose={() => setCutting(undefined)} onConfirm={async () => {
        await call('DELETE', '/admin/connections/' + id(cutting.id));
        toast('The connection is cut');
        list.again();
      }}><p>The stream ends at once. A client that reconnects by itself comes back unless its key is renewed or its account disabled.</p></Confirm>}
    </>
  );
}

export function ServerUsage() {
  return <><Head title="Usage">The whole server, over the last day.</Head><UsageOf path="/admin/usage" what="server" /></>;
}

interface GatewayAPI { id: string; name: string; upstream_url: string; request_path: string; strip_request_path?: boolean; preserve_host?: boolean; created_at?: number }
interface Plugin { id: string; api_id: string; name: string; config: Record<string, unknown>; enabled: boolean }
interface Consumer { id: string; username: string; custom_id?: string; created_at?: number }
interface KongList<T> { data: T[]; total: number }
interface GatewayState { apis: KongList<GatewayAPI>; plugins: KongList<Plugin>; consumers: KongList<Consumer> }

export function Gateway() {
  const state = useLoad<GatewayState | null>(async s => {
    const apis = await maybe(get<KongList<GatewayAPI>>('/admin/gateway/apis', s));
    if (!apis) return null;
    const [plugins, consumers] = await Promise.all([get<KongList<Plugin>>('/admin/gateway/plugins', s), get<KongList<Consumer>>('/admin/gateway/consumers', s)]);
    return { apis, plugins, consumers };
  }, []);
  return (
    <>
      <Head title="Gateway">APIs that this server forwards, what runs before them, and who may call them.</Head>
      <Show of={state}>{g => g === null ? (
        <Card><Empty icon="gateway" title="The gateway is administered on a private port">
          <p>For safety, its administration listens on this server’s own machine only. From there:</p>
          <Code what="the commands" text={`curl -X POST http://127.0.0.1:8001/apis/ \\\n  -d name=quotes -d upstream_url=http://127.0.0.1:9000 -d request_path=/quotes\ncurl -X POST http://127.0.0.1:8001/apis/quotes/plugins -d name=rate-limiting -d config.minute=60`} />
        </Empty></Card>
      ) : <GatewayLists state={g} />}</Show>
    </>
  );
}

function GatewayLists({ state: g }: { state: GatewayState }) {
  const pluginsOf = (api: string): Plugin[] => g.plugins.data.filter(p => p.api_id === api);
  return (
    <>
      <Card flush title={plural(g.apis.total, 'API')}>
        {g.apis.data.length === 0 ? <Empty icon="gateway" title="No API is registered"><p>Register one to have it forwarded at a path of this server.</p></Empty> :
          <Table label="APIs" rows={g.apis.data} columns={[
            { head: 'Name', cell: a => <b>{a.name}</b> }, { head: 'Path', cell: a => <code>{a.request_path}</code> }, { head: 'Upstream', cell: a => <code class="clip">{a.upstream_url}</code> },
            { head: 'Plugins', cell: a => pluginsOf(a.id).map(p => <Badge key={p.id} tone={p.enabled ? 'accent' : 'plain'}>{p.name}</Badge>) },
          ]} />}
      </Card>
      <Card flush title={plural(g.consumers.total, 'consumer')}>
        {g.consumers.data.length === 0 ? <Empty icon="key" title="No consumer"><p>Consumers hold the keys that APIs with key-auth ask for.</p></Empty> :
          <Table label="Consumers" rows={g.consumers.data} columns={[{ head: 'Name', cell: c => <b>{c.username}</b> }, { head: 'Custom id', cell: c => c.custom_id ?? '–' }]} />}
      </Card>
    </>
  );
}

interface HealthAnswer { status?: string; checks?: Record<string, unknown> }

export function Health() {
  const health = useLoad(s => maybe(get<HealthAnswer>('/admin/health', s)), []);
  return (
    <>
      <Head title="Health" actions={<Button icon="renew" onClick={health.again}>Check again</Button>}>Every part of this server.</Head>
      <Show of={health}>{h => h === null ? (
        <Card><Empty icon="health" title="Health is told on a private port">
          <p>You are reading this, so the gateway and the management API work. The rest is told on this server’s own machine:</p>
          <Code what="the command" text="curl -s http://127.0.0.1:8001/readyz" />
        </Empty></Card>
      ) : (
        <>
          <dl class="stats"><Stat label="Server" value={<Badge tone={h.status === 'ready' || h.status === 'ok' ? 'ok' : 'bad'}>{h.status ?? 'unknown'}</Badge>} /></dl>
          <Card flush title="Parts">
            <Table label="Parts" rows={Object.entries(h.checks ?? {}).map(([name, said]) => ({ id: name, said: String(said) }))} columns={[
              { head: 'Part', cell: c => <b>{c.id}</b> }, { head: 'State', cell: c => <Badge tone={c.said === 'ok' ? 'ok' : 'bad'}>{c.said}</Badge> }]} />
          </Card>
        </>
      )}</Show>
    </>
  );
}

const perPage = 50;

export function Audit() {
  const [page, setPage] = useState(0);
  const list = useLoad(s => get<Page<AuditEntry>>(`/admin/audit?per_page=${perPage}&page=${page}`, s), [page]);
  return (
    <>
      <Head title="Audit log">What admins did to other people’s things, newest first.</Head>
      <Show of={list} rows={6}>{p => (
        <Card flush title={plural(p.total, 'entry', 'entries')}>
          {p.items.length === 0 ? <Empty icon="audit" title="Nothing yet"><p>When an admin changes somebody else’s account, app or topic, it is recorded here.</p></Empty> :
            <Table label="Audit log" rows={p.items} columns={[
              { head: 'When', cell: e => <span title={e.at}>{date(e.at)}</span> }, { head: 'Action', cell: e => <Badge tone="accent">{e.action}</Badge> },
              { head: 'Admin', cell: e => <code class="clip">{e.actor}</code> }, { head: 'Subject', cell: e => <code class="clip">{e.subject}</code> },
            ]} />}
          <Pager page={p.page} perPage={p.per_page} total={p.total} onPage={setPage} />
        </Card>
      )}</Show>
    </>
  );
}
