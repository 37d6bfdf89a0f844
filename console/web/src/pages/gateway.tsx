// The gateway, for admins: APIs that it forwards, what runs before them, and who may call them.
import { useState } from 'preact/hooks';
import { call, Failure, get, id } from '../api';
import { plural } from '../format';
import { Badge, Button, Card, Check, Code, Confirm, Dialog, Empty, Form, FormError, Head, Input, Secret, Select, Show, Table, toast, useLoad, useTask } from '../ui';

interface API { id: string; name: string; upstream_url: string; request_path?: string; request_host?: string; strip_request_path: boolean; preserve_host: boolean }
interface Plugin { id: string; api_id: string; consumer_id?: string; name: string; config: Record<string, unknown>; enabled: boolean }
interface Consumer { id: string; username?: string; custom_id?: string }
interface Key { id: string; key: string }
interface List<T> { data: T[]; total: number }
interface State { apis: List<API>; plugins: List<Plugin>; consumers: List<Consumer> }

const at = '/admin/gateway';
const all = '?size=1000';

/** null where the process that answers has no gateway. */
async function load(signal: AbortSignal): Promise<State | null> {
  try {
    const [apis, plugins, consumers] = await Promise.all([
      get<List<API>>(`${at}/apis${all}`, signal), get<List<Plugin>>(`${at}/plugins${all}`, signal), get<List<Consumer>>(`${at}/consumers${all}`, signal)]);
    return { apis, plugins, consumers };
  } catch (e) {
    if (e instanceof Failure && e.status === 404) return null;
    throw e;
  }
}

/** What the page shows on top of itself. */
type Open = { what: 'api' } | { what: 'plugins'; api: API } | { what: 'consumer' } | { what: 'keys'; consumer: Consumer }
  | { what: 'delete'; path: string; title: string; text: string };

export function Gateway() {
  const state = useLoad(load, []);
  const [open, setOpen] = useState<Open>();
  const close = (): void => setOpen(undefined);
  const done = (text: string): void => { toast(text); state.again(); };
  const there = !!state.data;
  return (
    <>
      <Head title="Gateway" actions={there && <Button kind="primary" icon="plus" onClick={() => setOpen({ what: 'api' })}>New API</Button>}>
        APIs that this server forwards, what runs before them, and who may call them.
      </Head>
      <Show of={state}>{g => g === null ? <Elsewhere /> : <Lists state={g} open={setOpen} />}</Show>
      {open?.what === 'api' && <NewAPI onClose={close} done={done} />}
      {open?.what === 'consumer' && <NewConsumer onClose={close} done={done} />}
      {open?.what === 'plugins' && <Plugins api={open.api} plugins={(state.data?.plugins.data ?? []).filter(p => p.api_id === open.api.id)} onClose={close} done={done} />}
      {open?.what === 'keys' && <Keys consumer={open.consumer} onClose={close} />}
      {open?.what === 'delete' && <Confirm title={open.title} verb="Delete" onClose={close} onConfirm={async () => {
        await call('DELETE', at + open.path);
        done('It is gone');
      }}><p>{open.text}</p></Confirm>}
    </>
  );
}

function Elsewhere() {
  return (
    <Card><Empty icon="gateway" title="The gateway runs in another process">
      <p>The one that answers here has no gateway role. Where it runs, its administration listens on that machine:</p>
      <Code what="the commands" text={`curl -X POST http://127.0.0.1:8001/apis/ \\\n  -d name=quotes -d upstream_url=http://127.0.0.1:9000 -d request_path=/quotes`} />
    </Empty></Card>
  );
}

const nameOf = (c: Consumer): string => c.username ?? c.custom_id ?? c.id;

function Lists({ state: g, open }: { state: State; open: (o: Open) => void }) {
  return (
    <>
      <Card flush title={plural(g.apis.total, 'API')}>
        {g.apis.data.length === 0 ? <Empty icon="gateway" title="No API is registered"
          action={<Button kind="primary" icon="plus" onClick={() => open({ what: 'api' })}>Register an API</Button>}>
          <p>Any HTTP service can live at a path of this server, with keys, limits and CORS before it.</p></Empty> :
          <Table label="APIs" rows={g.apis.data} columns={[
            { head: 'Name', cell: a => <b>{a.name}</b> },
            { head: 'Requests to', cell: a => <code>{a.request_path ?? a.request_host}</code> },
            { head: 'Go to', cell: a => <code class="clip">{a.upstream_url}</code> },
            { head: 'Plugins', cell: a => g.plugins.data.filter(p => p.api_id === a.id).map(p => <Badge key={p.id} tone={p.enabled ? 'accent' : 'plain'}>{p.name}</Badge>) },
            { head: '', class: 'right', cell: a => <>
              <Button small onClick={() => open({ what: 'plugins', api: a })}>Plugins<span class="offscreen"> of {a.name}</span></Button>{' '}
              <Button small kind="danger" icon="trash" label={`Delete API ${a.name}`} onClick={() => open({
                what: 'delete', path: '/apis/' + id(a.id), title: `Delete the API ${a.name}?`, text: 'Requests to it are answered with 404 at once. Its plugins go with it.' })} />
            </> },
          ]} />}
      </Card>
      <Card flush title={plural(g.consumers.total, 'consumer')} aside={<Button small icon="plus" onClick={() => open({ what: 'consumer' })}>New consumer</Button>}>
        {g.consumers.data.length === 0 ? <Empty icon="key" title="No consumer"><p>Consumers hold the keys that APIs with the plugin key-auth ask for.</p></Empty> :
          <Table label="Consumers" rows={g.consumers.data} columns={[
            { head: 'Name', cell: c => <b>{nameOf(c)}</b> }, { head: 'Custom id', cell: c => c.custom_id ?? '–' },
            { head: '', class: 'right', cell: c => <>
              <Button small icon="key" onClick={() => open({ what: 'keys', consumer: c })}>Keys<span class="offscreen"> of {nameOf(c)}</span></Button>{' '}
              <Button small kind="danger" icon="trash" label={`Delete consumer ${nameOf(c)}`} onClick={() => open({
                what: 'delete', path: '/consumers/' + id(c.id), title: `Delete the consumer ${nameOf(c)}?`, text: 'Its keys stop working at once.' })} />
            </> },
          ]} />}
      </Card>
    </>
  );
}

interface DialogOf { onClose: () => void; done: (text: string) => void }

function NewAPI({ onClose, done }: DialogOf) {
  const task = useTask();
  const [d, set] = useState({ name: '', request_path: '', request_host: '', upstream_url: '', strip_request_path: true, preserve_host: false });
  const put = (change: Partial<typeof d>): void => { task.clear(); set({ ...d, ...change }); };
  const say = (field: string): string | undefined => task.error?.field(field);
  return (
    <Dialog title="New API" onClose={onClose}>
      <Form onSubmit={() => task.run(async () => {
        const { name, request_path, request_host, ...rest } = d;
        await call('POST', `${at}/apis`, { body: { ...rest, ...(name && { name }), ...(request_path && { request_path }), ...(request_host && { request_host }) } });
        done('The API is registered');
        onClose();
      })}>
        <Input label="Name" focus value={d.name} onInput={name => put({ name })} placeholder="quotes" error={say('name')} hint="Letters, digits and . - _ ~; without one, made from the path" />
        <div class="pair">
          <Input label="Path" mono value={d.request_path} onInput={request_path => put({ request_path })} placeholder="/quotes" error={say('request_path')} hint="Of this server" />
          <Input label="or host" mono value={d.request_host} onInput={request_host => put({ request_host })} placeholder="quotes.example.com" error={say('request_host')} hint="As clients call it" />
        </div>
        <Input label="Upstream URL" mono inputMode="url" value={d.upstream_url} onInput={upstream_url => put({ upstream_url })} placeholder="http://quotes.internal:9000" error={say('upstream_url')} hint="Where requests go" />
        <Check label="Leave the path out when forwarding" hint="The upstream sees /today for /quotes/today." value={d.strip_request_path} onChange={strip_request_path => put({ strip_request_path })} />
        <Check label="Keep the host name of the client" hint="Otherwise the upstream sees its own." value={d.preserve_host} onChange={preserve_host => put({ preserve_host })} />
        <FormError error={task.error} shown={['name', 'request_path', 'request_host', 'upstream_url']} />
        <footer><Button onClick={onClose}>Cancel</Button><Button type="submit" kind="primary" busy={task.busy}>Register API</Button></footer>
      </Form>
    </Dialog>
  );
}

function NewConsumer({ onClose, done }: DialogOf) {
  const task = useTask();
  const [d, set] = useState({ username: '', custom_id: '' });
  return (
    <Dialog title="New consumer" onClose={onClose}>
      <Form onSubmit={() => task.run(async () => {
        await call('POST', `${at}/consumers`, { body: Object.fromEntries(Object.entries(d).filter(([, v]) => v)) });
        done('The consumer is there; give it a key');
        onClose();
      })}>
        <Input label="Name" focus value={d.username} onInput={username => { task.clear(); set({ ...d, username }); }} placeholder="mobile" error={task.error?.field('username')} />
        <Input label="Custom id" value={d.custom_id} onInput={custom_id => { task.clear(); set({ ...d, custom_id }); }} error={task.error?.field('custom_id')} hint="What your own systems call it; may be empty" />
        <FormError error={task.error} shown={['username', 'custom_id']} />
        <footer><Button onClick={onClose}>Cancel</Button><Button type="submit" kind="primary" busy={task.busy}>Create consumer</Button></footer>
      </Form>
    </Dialog>
  );
}

type Field = [name: string, label: string, type: 'number' | 'list' | 'text', hint: string];
const kinds: Record<string, { text: string; fields: Field[] }> = {
  'rate-limiting': { text: 'At most so many requests of one caller', fields: [['minute', 'Per minute', 'number', ''], ['hour', 'Per hour', 'number', ''], ['day', 'Per day', 'number', 'One of them at least']] },
  'key-auth': { text: 'Only callers with the key of a consumer', fields: [['key_names', 'Names of the key', 'list', 'Header or query parameter; apikey without any']] },
  'ip-restriction': { text: 'Only some addresses, or all but some', fields: [['whitelist', 'Only these', 'list', 'Addresses or networks, separated by commas'], ['blacklist', 'All but these', 'list', 'One of the two']] },
  'request-size-limiting': { text: 'No bodies larger than this', fields: [['allowed_payload_size', 'Megabytes', 'number', '128 without one']] },
  cors: { text: 'Let pages of other origins call it', fields: [['origin', 'Origin', 'text', 'All without one'], ['methods', 'Methods', 'list', 'Separated by commas']] },
};

function configOf(kind: string, typed: Record<string, string>): Record<string, unknown> {
  const config: Record<string, unknown> = {};
  for (const [name, , type] of kinds[kind]!.fields) {
    const v = (typed[name] ?? '').trim();
    if (!v) continue;
    config[name] = type === 'list' ? v.split(',').map(s => s.trim()).filter(Boolean) : type === 'number' && !isNaN(Number(v)) ? Number(v) : v;
  }
  return config;
}

const settingsOf = (p: Plugin): string => Object.entries(p.config).map(([k, v]) => `${k}: ${Array.isArray(v) ? v.join(', ') : String(v)}`).join('; ');

function Plugins({ api, plugins, onClose, done }: DialogOf & { api: API; plugins: Plugin[] }) {
  const task = useTask();
  const [kind, setKind] = useState('rate-limiting');
  const [typed, setTyped] = useState<Record<string, string>>({});
  const [removing, setRemoving] = useState<Plugin>();
  const fields = kinds[kind]!.fields;
  return (<>
    <Dialog title={`Plugins of ${api.name}`} onClose={onClose} wide>
      {plugins.length === 0 ? <p class="dim">None yet: every request is passed on.</p> :
        <Table label="Plugins" rows={plugins} columns={[
          { head: 'Plugin', cell: p => <span class="two-lines"><b>{p.name}</b><small>{settingsOf(p) || 'no settings'}{p.consumer_id ? '; for one consumer' : ''}</small></span> },
          { head: 'State', cell: p => <Badge tone={p.enabled ? 'ok' : 'plain'}>{p.enabled ? 'on' : 'off'}</Badge> },
          { head: '', class: 'right', cell: p => <>
            <Button small busy={task.busy} onClick={() => task.run(async () => {
              await call('PATCH', `${at}/plugins/${id(p.id)}`, { body: { enabled: !p.enabled } });
              done(`${p.name} is ${p.enabled ? 'off' : 'on'}`);
            })}>Switch {p.enabled ? 'off' : 'on'}<span class="offscreen"> {p.name}</span></Button>{' '}
            <Button small kind="danger" icon="trash" label={`Remove ${p.name}`} onClick={() => setRemoving(p)} />
          </> },
        ]} />}
      <Form onSubmit={() => task.run(async () => {
        await call('POST', `${at}/apis/${id(api.id)}/plugins`, { body: { name: kind, config: configOf(kind, typed) } });
        setTyped({});
        done(`${kind} is on`);
      })}>
        <Select label="Add a plugin" value={kind} onChange={k => { task.clear(); setTyped({}); setKind(k); }} options={Object.keys(kinds).map(k => [k, k])} hint={kinds[kind]!.text} />
        <div class={fields.length === 3 ? 'trio' : fields.length === 2 ? 'pair' : ''}>
          {fields.map(([name, label, type, hint]) => <Input key={kind + name} label={label} mono value={typed[name] ?? ''} hint={hint} error={task.error?.field('config.' + name)}
            {...(type === 'number' ? { inputMode: 'numeric' as const } : {})} onInput={v => { task.clear(); setTyped({ ...typed, [name]: v }); }} />)}
        </div>
        <FormError error={task.error} shown={fields.map(f => 'config.' + f[0])} />
        <footer><Button onClick={onClose}>Close</Button><Button type="submit" kind="primary" busy={task.busy}>Add plugin</Button></footer>
      </Form>
    </Dialog>
    {removing && <Confirm title={`Remove ${removing.name}?`} verb="Remove" onClose={() => setRemoving(undefined)} onConfirm={async () => {
      await call('DELETE', `${at}/plugins/${id(removing.id)}`);
      done(`${removing.name} is removed`);
    }}><p>Requests pass without it from now on. To keep its settings, switch it off instead.</p></Confirm>}
  </>);
}

function Keys({ consumer, onClose }: { consumer: Consumer; onClose: () => void }) {
  const task = useTask(), path = `${at}/consumers/${id(consumer.id)}/key-auth`;
  const keys = useLoad(s => get<List<Key>>(path + all, s), []);
  const [dropping, setDropping] = useState<Key>();
  const did = (text: string): void => { toast(text); keys.again(); };
  return (<>
    <Dialog title={`Keys of ${nameOf(consumer)}`} onClose={onClose} wide>
      <div class="form">
        <Show of={keys} rows={2}>{k => k.data.length === 0 ? <p class="dim">None yet: it cannot call APIs that ask for a key.</p> :
          <Table label="Keys" rows={k.data} columns={[
            { head: 'Key', cell: key => <Secret value={key.key} name="key" /> },
            { head: '', class: 'right', cell: key => <Button small kind="danger" icon="trash" label="Delete this key" onClick={() => setDropping(key)} /> },
          ]} />}</Show>
        <FormError error={task.error} />
        <footer><Button onClick={onClose}>Close</Button><Button kind="primary" icon="plus" busy={task.busy} onClick={() => task.run(async () => {
          await call('POST', path, { body: {} });
          did('The key works');
        })}>New key</Button></footer>
      </div>
    </Dialog>
    {dropping && <Confirm title="Delete this key?" verb="Delete key" onClose={() => setDropping(undefined)} onConfirm={async () => {
      await call('DELETE', `${path}/${id(dropping.id)}`);
      did('The key stopped working');
    }}><p>Whoever uses it is refused at once.</p></Confirm>}
  </>);
}
