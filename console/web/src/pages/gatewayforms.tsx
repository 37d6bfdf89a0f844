// The dialogs of the gateway: APIs, their plugins, consumers and their keys; making them and changing them.
import { useState } from 'preact/hooks';
import { call, get, id } from '../api';
import { Badge, Button, Check, Confirm, Dialog, Form, FormError, Input, Secret, Select, Show, Table, toast, useLoad, useTask } from '../ui';

export interface API {
  id: string;
  name: string;
  upstream_url: string;
  request_path?: string;
  request_host?: string;
  strip_request_path: boolean;
  preserve_host: boolean;
}
export interface Plugin {
  id: string;
  api_id: string;
  consumer_id?: string;
  name: string;
  config: Record<string, unknown>;
  enabled: boolean;
}
export interface Consumer {
  id: string;
  username?: string;
  custom_id?: string;
}
interface Key {
  id: string;
  key: string;
}
export interface List<T> {
  data: T[];
  total: number;
}

export const at = '/admin/gateway';
export const all = '?size=1000';
export const nameOf = (c: Consumer): string => c.username ?? c.custom_id ?? c.id;

interface DialogOf {
  onClose: () => void;
  done: (text: string) => void;
}

/** What to send: a new thing leaves out what is empty, a change unsets it. */
const given = (texts: Record<string, string>, isChange: boolean): Record<string, string | null> =>
  Object.fromEntries(
    Object.entries(texts)
      .filter(([, v]) => v.trim() || isChange)
      .map(([k, v]) => [k, v.trim() || null]),
  );

export function APIForm({ api, onClose, done }: DialogOf & { api: API | undefined }) {
  const task = useTask();
  const [d, set] = useState({
    name: api?.name ?? '',
    request_path: api?.request_path ?? '',
    request_host: api?.request_host ?? '',
    upstream_url: api?.upstream_url ?? '',
    strip_request_path: api?.strip_request_path ?? true,
    preserve_host: api?.preserve_host ?? false,
  });
  const put = (change: Partial<typeof d>): void => {
    task.clear();
    set({ ...d, ...change });
  };
  const say = (field: string): string | undefined => task.error?.field(field);
  return (
    <Dialog title={api ? `Edit ${api.name}` : 'New API'} onClose={onClose}>
      <Form
        onSubmit={() =>
          task.run(async () => {
            const { strip_request_path, preserve_host, upstream_url, ...texts } = d;
            const body = { strip_request_path, preserve_host, upstream_url, ...given(texts, !!api) };
            await (api ? call('PATCH', `${at}/apis/${id(api.id)}`, { body }) : call('POST', `${at}/apis`, { body }));
            done(api ? 'Saved; requests go there from now on' : 'The API is registered');
            onClose();
          })
        }
      >
        <Input
          label="Name"
          focus
          value={d.name}
          onInput={name => put({ name })}
          placeholder="quotes"
          error={say('name')}
          hint="Letters, digits and . - _ ~; without one, made from the path"
        />
        <div class="pair">
          <Input
            label="Path"
            mono
            value={d.request_path}
            onInput={request_path => put({ request_path })}
            placeholder="/quotes"
            error={say('request_path')}
            hint="Of this server"
          />
          <Input
            label="or host"
            mono
            value={d.request_host}
            onInput={request_host => put({ request_host })}
            placeholder="quotes.example.com"
            error={say('request_host')}
            hint="As clients call it"
          />
        </div>
        <Input
          label="Upstream URL"
          mono
          inputMode="url"
          value={d.upstream_url}
          onInput={upstream_url => put({ upstream_url })}
          placeholder="http://quotes.internal:9000"
          error={say('upstream_url')}
          hint="Where requests go"
        />
        <Check
          label="Leave the path out when forwarding"
          hint="The upstream sees /today for /quotes/today."
          value={d.strip_request_path}
          onChange={strip_request_path => put({ strip_request_path })}
        />
        <Check
          label="Keep the host name of the client"
          hint="Otherwise the upstream sees its own."
          value={d.preserve_host}
          onChange={preserve_host => put({ preserve_host })}
        />
        <FormError error={task.error} shown={['name', 'request_path', 'request_host', 'upstream_url']} />
        <footer>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" kind="primary" busy={task.busy}>
            {api ? 'Save changes' : 'Register API'}
          </Button>
        </footer>
      </Form>
    </Dialog>
  );
}

export function ConsumerForm({ consumer, onClose, done }: DialogOf & { consumer: Consumer | undefined }) {
  const task = useTask();
  const [d, set] = useState({ username: consumer?.username ?? '', custom_id: consumer?.custom_id ?? '' });
  return (
    <Dialog title={consumer ? `Edit ${nameOf(consumer)}` : 'New consumer'} onClose={onClose}>
      <Form
        onSubmit={() =>
          task.run(async () => {
            const body = given(d, !!consumer);
            await (consumer ? call('PATCH', `${at}/consumers/${id(consumer.id)}`, { body }) : call('POST', `${at}/consumers`, { body }));
            done(consumer ? 'Saved' : 'The consumer is there; give it a key');
            onClose();
          })
        }
      >
        <Input
          label="Name"
          focus
          value={d.username}
          onInput={username => {
            task.clear();
            set({ ...d, username });
          }}
          placeholder="mobile"
          error={task.error?.field('username')}
        />
        <Input
          label="Custom id"
          value={d.custom_id}
          onInput={custom_id => {
            task.clear();
            set({ ...d, custom_id });
          }}
          error={task.error?.field('custom_id')}
          hint="What your own systems call it; may be empty"
        />
        <FormError error={task.error} shown={['username', 'custom_id']} />
        <footer>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" kind="primary" busy={task.busy}>
            {consumer ? 'Save changes' : 'Create consumer'}
          </Button>
        </footer>
      </Form>
    </Dialog>
  );
}

// ── Plugins

type Field = [name: string, label: string, type: 'number' | 'list' | 'text' | 'flag', hint: string];
interface Kind {
  text: string;
  fields: Field[];
  perConsumer: boolean;
}
const kinds: Record<string, Kind> = {
  'rate-limiting': {
    text: 'At most so many requests of one caller',
    perConsumer: true,
    fields: [
      ['second', 'Per second', 'number', ''],
      ['minute', 'Per minute', 'number', ''],
      ['hour', 'Per hour', 'number', ''],
      ['day', 'Per day', 'number', 'One of them at least'],
      ['month', 'Per month', 'number', ''],
      ['year', 'Per year', 'number', ''],
    ],
  },
  'key-auth': {
    text: 'Only callers with the key of a consumer',
    perConsumer: false,
    fields: [
      ['key_names', 'Names of the key', 'list', 'Header or query parameter; apikey without any'],
      ['hide_credentials', 'Keep the key from the upstream', 'flag', 'It is taken out of the request.'],
    ],
  },
  'ip-restriction': {
    text: 'Only some addresses, or all but some',
    perConsumer: true,
    fields: [
      ['whitelist', 'Only these', 'list', 'Addresses or networks, separated by commas'],
      ['blacklist', 'All but these', 'list', 'One of the two'],
    ],
  },
  'request-size-limiting': {
    text: 'No bodies larger than this',
    perConsumer: true,
    fields: [['allowed_payload_size', 'Megabytes', 'number', '128 without one']],
  },
  cors: {
    text: 'Let pages of other origins call it',
    perConsumer: false,
    fields: [
      ['origin', 'Origin', 'text', 'All without one'],
      ['methods', 'Methods', 'list', 'Separated by commas; all without any'],
      ['headers', 'Headers of requests', 'list', 'Those a page asks for, without any'],
      ['exposed_headers', 'Headers of answers', 'list', 'That pages may read'],
      ['max_age', 'Remember for', 'number', 'Seconds'],
      ['credentials', 'Allow credentials', 'flag', 'Cookies and the like.'],
      ['preflight_continue', 'Pass preflights on', 'flag', 'The upstream answers OPTIONS itself.'],
    ],
  },
};

type Typed = Record<string, string | boolean>;

/** A plugin's configuration, as a form holds it. */
function typedOf(p: Plugin): Typed {
  return Object.fromEntries(
    Object.entries(p.config).map(([k, v]) => [k, typeof v === 'boolean' ? v : Array.isArray(v) ? v.join(', ') : String(v)]),
  );
}

/** What a form holds, as a configuration; null unsets what is there. */
function configOf(kind: string, typed: Typed, isChange: boolean): Record<string, unknown> {
  const config: Record<string, unknown> = {};
  for (const [name, , type] of kinds[kind]!.fields) {
    const v = typed[name];
    if (type === 'flag') {
      if (v !== undefined) config[name] = v;
      continue;
    }
    const text = String(v ?? '').trim();
    if (!text) {
      if (isChange) config[name] = null;
      continue;
    }
    config[name] =
      type === 'list'
        ? text
            .split(',')
            .map(s => s.trim())
            .filter(Boolean)
        : type === 'number' && !Number.isNaN(Number(text))
          ? Number(text)
          : text;
  }
  return config;
}

const settingsOf = (p: Plugin): string =>
  Object.entries(p.config)
    .filter(([, v]) => v !== false)
    .map(([k, v]) => (v === true ? k : `${k}: ${Array.isArray(v) ? v.join(', ') : String(v)}`))
    .join('; ');

export function Plugins({ api, plugins, consumers, onClose, done }: DialogOf & { api: API; plugins: Plugin[]; consumers: Consumer[] }) {
  const task = useTask();
  const [editing, setEditing] = useState<Plugin>();
  const [removing, setRemoving] = useState<Plugin>();
  const forWhom = (p: Plugin): string => {
    const c = p.consumer_id && consumers.find(c => c.id === p.consumer_id);
    return c ? `; for ${nameOf(c)}` : p.consumer_id ? '; for one consumer' : '';
  };
  return (
    <>
      <Dialog title={`Plugins of ${api.name}`} onClose={onClose} wide>
        {plugins.length === 0 ? (
          <p class="dim">None yet: every request is passed on.</p>
        ) : (
          <Table
            label="Plugins"
            rows={plugins}
            columns={[
              {
                head: 'Plugin',
                cell: p => (
                  <span class="two-lines">
                    <b>{p.name}</b>
                    <small>
                      {settingsOf(p) || 'no settings'}
                      {forWhom(p)}
                    </small>
                  </span>
                ),
              },
              { head: 'State', cell: p => <Badge tone={p.enabled ? 'ok' : 'plain'}>{p.enabled ? 'on' : 'off'}</Badge> },
              {
                head: '',
                class: 'right',
                cell: p => (
                  <span class="row-actions">
                    {kinds[p.name] && (
                      <Button small pressed={editing?.id === p.id} onClick={() => setEditing(p)}>
                        Edit<span class="offscreen"> {p.name}</span>
                      </Button>
                    )}
                    <Button
                      small
                      busy={task.busy}
                      onClick={() =>
                        task.run(async () => {
                          await call('PATCH', `${at}/plugins/${id(p.id)}`, { body: { enabled: !p.enabled } });
                          done(`${p.name} is ${p.enabled ? 'off' : 'on'}`);
                        })
                      }
                    >
                      Switch {p.enabled ? 'off' : 'on'}
                      <span class="offscreen"> {p.name}</span>
                    </Button>
                    <Button small kind="danger" icon="trash" label={`Remove ${p.name}`} onClick={() => setRemoving(p)} />
                  </span>
                ),
              },
            ]}
          />
        )}
        <FormError error={task.error} />
        <PluginForm
          key={editing?.id ?? 'new'}
          api={api}
          plugin={editing}
          consumers={consumers}
          done={done}
          onClose={editing ? () => setEditing(undefined) : onClose}
        />
      </Dialog>
      {removing && (
        <Confirm
          title={`Remove ${removing.name}?`}
          verb="Remove"
          onClose={() => setRemoving(undefined)}
          onConfirm={async () => {
            await call('DELETE', `${at}/plugins/${id(removing.id)}`);
            if (editing?.id === removing.id) setEditing(undefined);
            done(`${removing.name} is removed`);
          }}
        >
          <p>Requests pass without it from now on. To keep its settings, switch it off instead.</p>
        </Confirm>
      )}
    </>
  );
}

function PluginForm({ api, plugin, consumers, onClose, done }: DialogOf & { api: API; plugin: Plugin | undefined; consumers: Consumer[] }) {
  const task = useTask();
  const [kind, setKind] = useState(plugin?.name ?? 'rate-limiting');
  const [typed, setTyped] = useState<Typed>(plugin ? typedOf(plugin) : {});
  const [consumer, setConsumer] = useState('');
  const { text, fields, perConsumer } = kinds[kind]!;
  const put = (name: string, v: string | boolean): void => {
    task.clear();
    setTyped({ ...typed, [name]: v });
  };
  return (
    <Form
      class="form plugin-form"
      onSubmit={() =>
        task.run(async () => {
          const config = configOf(kind, typed, !!plugin);
          if (plugin) {
            await call('PATCH', `${at}/plugins/${id(plugin.id)}`, { body: { config } });
            done(`${kind} has its new settings`);
            onClose();
          } else {
            await call('POST', `${at}/apis/${id(api.id)}/plugins`, {
              body: { name: kind, config, ...(perConsumer && consumer ? { consumer_id: consumer } : {}) },
            });
            setTyped({});
            done(`${kind} is on`);
          }
        })
      }
    >
      {plugin ? (
        <h3>Settings of {plugin.name}</h3>
      ) : (
        <Select
          label="Add a plugin"
          value={kind}
          onChange={k => {
            task.clear();
            setTyped({});
            setKind(k);
          }}
          options={Object.keys(kinds).map(k => [k, k])}
          hint={text}
        />
      )}
      <div class={fields.length >= 3 ? 'trio' : fields.length === 2 ? 'pair' : ''}>
        {fields.map(([name, label, type, hint]) =>
          type === 'flag' ? (
            <Check key={kind + name} label={label} hint={hint} value={typed[name] === true} onChange={v => put(name, v)} />
          ) : (
            <Input
              key={kind + name}
              label={label}
              mono
              value={String(typed[name] ?? '')}
              hint={hint}
              error={task.error?.field('config.' + name)}
              {...(type === 'number' ? { inputMode: 'numeric' as const } : {})}
              onInput={v => put(name, v)}
            />
          ),
        )}
      </div>
      {!plugin && perConsumer && consumers.length > 0 && (
        <Select
          label="For"
          value={consumer}
          onChange={setConsumer}
          options={[['', 'everybody'], ...consumers.map(c => [c.id, nameOf(c)] as [string, string])]}
          hint="What is set for one consumer goes before what is set for everybody"
        />
      )}
      <FormError error={task.error} shown={fields.map(f => 'config.' + f[0])} />
      <footer>
        <Button onClick={onClose}>{plugin ? 'Cancel' : 'Close'}</Button>
        <Button type="submit" kind="primary" busy={task.busy}>
          {plugin ? 'Save settings' : 'Add plugin'}
        </Button>
      </footer>
    </Form>
  );
}

// ── Keys

export function Keys({ consumer, onClose }: { consumer: Consumer; onClose: () => void }) {
  const task = useTask(),
    path = `${at}/consumers/${id(consumer.id)}/key-auth`;
  const keys = useLoad(s => get<List<Key>>(path + all, s), []);
  const [typed, setTyped] = useState('');
  const [dropping, setDropping] = useState<Key>();
  const did = (text: string): void => {
    toast(text);
    keys.again();
  };
  return (
    <>
      <Dialog title={`Keys of ${nameOf(consumer)}`} onClose={onClose} wide>
        <Show of={keys} rows={2}>
          {k =>
            k.data.length === 0 ? (
              <p class="dim">None yet: it cannot call APIs that ask for a key.</p>
            ) : (
              <Table
                label="Keys"
                rows={k.data}
                columns={[
                  { head: 'Key', cell: key => <Secret value={key.key} name="key" /> },
                  {
                    head: '',
                    class: 'right',
                    cell: key => <Button small kind="danger" icon="trash" label="Delete this key" onClick={() => setDropping(key)} />,
                  },
                ]}
              />
            )
          }
        </Show>
        <Form
          onSubmit={() =>
            task.run(async () => {
              await call('POST', path, { body: given({ key: typed }, false) });
              setTyped('');
              did('The key works');
            })
          }
        >
          <Input
            label="Add a key"
            mono
            value={typed}
            onInput={v => {
              task.clear();
              setTyped(v);
            }}
            error={task.error?.field('key')}
            hint="One that callers use already; empty for a random one"
          />
          <FormError error={task.error} shown={['key']} />
          <footer>
            <Button onClick={onClose}>Close</Button>
            <Button type="submit" kind="primary" icon="plus" busy={task.busy}>
              New key
            </Button>
          </footer>
        </Form>
      </Dialog>
      {dropping && (
        <Confirm
          title="Delete this key?"
          verb="Delete key"
          onClose={() => setDropping(undefined)}
          onConfirm={async () => {
            await call('DELETE', `${path}/${id(dropping.id)}`);
            did('The key stopped working');
          }}
        >
          <p>Whoever uses it is refused at once.</p>
        </Confirm>
      )}
    </>
  );
}
