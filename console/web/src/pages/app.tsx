// One app: its topics, keys and settings.
import { useState } from 'preact/hooks';
import { all, type App, call, get, id, me, onlyChanged, type Topic } from '../api';
import { ago, every } from '../format';
import { Link, navigate } from '../router';
import { checkFrequency, checkText } from '../rules';
import {
  Badge,
  Button,
  Card,
  Check,
  Confirm,
  Dialog,
  Empty,
  Form,
  FormError,
  Head,
  ID,
  Input,
  Listing,
  type Loaded,
  NoPage,
  Secret,
  Select,
  Show,
  Tabs,
  TextArea,
  toast,
  useLoad,
  useTask,
} from '../ui';
import { changed, QuotaInputs, quotaFields, typed, wrong } from './quotas';
import { UsageOf } from './usage';

const tabs = ['topics', 'keys', 'usage', 'settings'];

export function AppPage({ appID, tab }: { appID: string; tab: string }) {
  const app = useLoad(s => get<App>('/apps/' + id(appID), s), [appID]);
  const at = (t: string): string => `/apps/${id(appID)}${t === 'topics' ? '' : '/' + t}`;
  return (
    <Show of={app} rows={6} whole>
      {a => (
        <>
          <Head
            title={a.name}
            crumbs={[{ to: '/apps', text: 'Apps' }]}
            actions={
              <Button kind="primary" icon="plus" onClick={() => navigate(`/apps/${id(appID)}/topics/new`)}>
                New topic
              </Button>
            }
          >
            <ID value={a.id} what="app identifier" />
          </Head>
          <Tabs
            label="App"
            current={at(tab)}
            tabs={[
              { to: at('topics'), text: 'Topics' },
              { to: at('keys'), text: 'Keys' },
              { to: at('usage'), text: 'Usage' },
              { to: at('settings'), text: 'Settings' },
            ]}
          />
          {!tabs.includes(tab) && <NoPage />}
          {tab === 'topics' && <Topics app={a} />}
          {tab === 'keys' && <Keys app={a} onChange={app.set} />}
          {tab === 'usage' && <UsageOf of={`/apps/${id(a.id)}/usage`} what="app" />}
          {tab === 'settings' && <AppSettings app={a} of={app} />}
          {tab === 'settings' && me.value?.role === 'admin' && <AppQuotas app={a} onChange={app.set} />}
        </>
      )}
    </Show>
  );
}

export const TypeBadge = ({ topic }: { topic: Topic }) => (
  <>
    <Badge tone={topic.publisher.type === 'http-poller' ? 'accent' : 'plain'}>
      {topic.publisher.type === 'http-poller' ? 'polled' : 'posted'}
    </Badge>
    {topic.publisher.payload.type === 'item' && <Badge>items</Badge>}
    {topic.auto_provisioned && <Badge>auto</Badge>}
  </>
);

function Topics({ app }: { app: App }) {
  const list = useLoad(s => all<Topic>(`/apps/${id(app.id)}/topics`, s), [app.id]);
  return (
    <Show of={list}>
      {({ items, total }) => {
        if (total === 0)
          return (
            <Card>
              <Empty
                icon="live"
                title="No topics yet"
                action={
                  <Link to={`/apps/${id(app.id)}/topics/new`} class="button primary">
                    New topic
                  </Link>
                }
              >
                <p>
                  A topic is one JSON document that changes over time. Subscribers get it whole once, and from then on only what changed.
                </p>
                <p>
                  Feed it yourself with a <code>POST</code> for every change, or let Freshet poll an address of yours.
                </p>
              </Empty>
            </Card>
          );
        return (
          <Listing
            what="topic"
            label="Topics"
            items={items}
            total={total}
            columns={[
              {
                head: 'Name',
                cell: t => (
                  <Link to={`/topics/${id(t.id)}`} class="row-link">
                    {t.name}
                  </Link>
                ),
              },
              { head: 'Type', cell: t => <TypeBadge topic={t} /> },
              {
                head: 'Source',
                class: 'dim source',
                cell: t =>
                  t.publisher.type === 'http-poller' ? (
                    <span title={t.publisher.config.url}>
                      {t.publisher.config.url} <small>every {every(t.publisher.config.polling_frequency ?? 2000)}</small>
                    </span>
                  ) : (
                    'Your backend publishes'
                  ),
              },
              { head: 'Changed', class: 'right dim', cell: t => ago(t.updated_at) },
            ]}
          />
        );
      }}
    </Show>
  );
}

const keyKinds = [
  ['subscriber', 'Subscriber key', 'Opens every topic of the app to those who follow it. It may be in pages and apps that people install.'],
  ['publisher', 'Publisher key', 'Lets its holder publish to every topic of the app. Keep it on your servers.'],
  ['signature', 'Signature key', 'Signs subscribers’ requests when the app demands signatures.'],
] as const;

type KeyKind = (typeof keyKinds)[number][0];

function Keys({ app, onChange }: { app: App; onChange: (a: App) => void }) {
  const [renewing, setRenewing] = useState<KeyKind>();
  return (
    <Card title="Keys">
      <div class="keys">
        {keyKinds.map(([kind, title, text]) => (
          <div class="key-row" key={kind}>
            <div>
              <h3>{title}</h3>
              <p class="dim">{text}</p>
            </div>
            <Secret key={app[`${kind}_key`]} value={app[`${kind}_key`]} name={title.toLowerCase()} />
            <Button icon="renew" onClick={() => setRenewing(kind)}>
              Renew<span class="offscreen"> {title.toLowerCase()}</span>
            </Button>
          </div>
        ))}
      </div>
      {renewing && <Renew app={app} kind={renewing} onClose={() => setRenewing(undefined)} onChange={onChange} />}
    </Card>
  );
}

const overlaps: [string, string][] = [
  ['0', 'Not at all: it stops working now'],
  ['300', '5 minutes'],
  ['3600', '1 hour'],
  ['86400', '1 day'],
  ['604800', '7 days'],
  ['2592000', '30 days'],
];

function Renew({ app, kind, onClose, onChange }: { app: App; kind: KeyKind; onClose: () => void; onChange: (a: App) => void }) {
  const [overlap, setOverlap] = useState('3600');
  const [own, setOwn] = useState('');
  const task = useTask();
  return (
    <Dialog title={`Renew the ${kind} key`} onClose={onClose}>
      <Form
        onSubmit={() =>
          task.run(async () => {
            const body: Record<string, unknown> = { overlap_seconds: Number(overlap) };
            if (own) body.key = own;
            onChange(await call<App>('PUT', `/apps/${id(app.id)}/${kind}_key`, { body }));
            toast(`The ${kind} key is new. The old one ${overlap === '0' ? 'no longer works' : 'works for a while longer'}.`);
            onClose();
          })
        }
      >
        <p class="prose">
          A new key takes the place of the current one. Choose how long both work, so that you can replace it everywhere without a gap.
        </p>
        <Select
          label="The old key goes on working for"
          value={overlap}
          onChange={setOverlap}
          options={overlaps}
          hint={
            overlap === '0' ? (
              <span class="warn-text">Streams and publishers that use it are cut within a second.</span>
            ) : (
              'After that, it is revoked for good.'
            )
          }
        />
        <Input
          label="Bring a key along (optional)"
          value={own}
          onInput={setOwn}
          mono
          error={task.error?.field('key')}
          hint="Leave empty for a fresh one. Use this to move from another system."
        />
        <FormError error={task.error} shown={['key']} />
        <footer>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" kind={overlap === '0' ? 'danger' : 'primary'} busy={task.busy}>
            Renew key
          </Button>
        </footer>
      </Form>
    </Dialog>
  );
}

interface AppForm {
  name: string;
  auto: boolean;
  sign: boolean;
  frequency: string;
  force: boolean;
  hosts: string;
}

function appForm(a: App): AppForm {
  const d = a.default_configurations;
  return {
    name: a.name,
    auto: a.auto_provisioning_allowed,
    sign: a.client_request_signature_enabled,
    frequency: String(d['http-poller'].polling_frequency),
    force: d['http-post'].force_publishing,
    hosts: (a.allowed_target_hosts ?? []).join('\n'),
  };
}

/** A change of a form, as the API takes it. Undefined members are not sent. */
function appChange({ name, auto, sign, frequency, force, hosts }: Partial<AppForm>): object {
  return {
    name,
    auto_provisioning_allowed: auto,
    client_request_signature_enabled: sign,
    default_configurations:
      frequency === undefined && force === undefined
        ? undefined
        : {
            'http-poller': frequency === undefined ? undefined : { polling_frequency: frequency === '' ? null : Number(frequency) },
            'http-post': force === undefined ? undefined : { force_publishing: force },
          },
    allowed_target_hosts: hosts?.split(/\s+/).filter(Boolean),
  };
}

function AppSettings({ app, of }: { app: App; of: Loaded<App> }) {
  const [before, setBefore] = useState(appForm(app)),
    [form, setForm] = useState(before);
  const [deleting, setDeleting] = useState(false);
  const task = useTask();
  const set =
    <K extends keyof typeof form>(k: K) =>
    (v: (typeof form)[K]): void => {
      task.clear();
      setForm(f => ({ ...f, [k]: v }));
    };
  const wrongName = checkText(form.name, 200),
    wrongFrequency = checkFrequency(form.frequency);
  const freq = 'default_configurations.http-poller.polling_frequency';
  return (
    <>
      <Card title="Settings">
        <Form
          onSubmit={() => {
            if (wrongName || wrongFrequency) return;
            task.run(async () => {
              const saved = await call<App>('PATCH', '/apps/' + id(app.id), { body: appChange(onlyChanged(form, before)) });
              of.set(saved);
              setBefore(appForm(saved));
              setForm(appForm(saved));
              toast('Saved');
            });
          }}
        >
          <Input
            label="Name"
            value={form.name}
            onInput={set('name')}
            error={task.error?.field('name') ?? wrongName}
            hint="Unique among your apps"
          />
          <Check
            label="Auto-provisioning"
            hint="Any holder of the subscriber key may create a polled topic by subscribing to a URL."
            value={form.auto}
            onChange={set('auto')}
          />
          <Check
            label="Signed requests only"
            hint="Subscribers must sign their requests with the signature key."
            value={form.sign}
            onChange={set('sign')}
          />
          <Input
            label="Polling interval of new topics"
            suffix="ms"
            inputMode="numeric"
            value={form.frequency}
            onInput={set('frequency')}
            error={task.error?.field(freq) ?? wrongFrequency}
            hint="What polled topics take that set none themselves; empty for the server’s default"
          />
          <Check
            label="Publish even when nobody is subscribed"
            hint="What posted topics take that set nothing themselves. Without it, publications that nobody would see are dropped."
            value={form.force}
            onChange={set('force')}
          />
          {app.allowed_target_hosts && (
            <TextArea
              label="Hosts that pollers may reach"
              mono
              rows={3}
              value={form.hosts}
              onInput={set('hosts')}
              error={task.error?.field('allowed_target_hosts')}
              hint="One on each line, such as api.example.com or *.example.com; empty allows all"
            />
          )}
          <FormError error={task.error} shown={['name', freq, 'allowed_target_hosts']} />
          <footer>
            <Button type="submit" kind="primary" busy={task.busy}>
              Save changes
            </Button>
          </footer>
        </Form>
      </Card>
      <Card title="Delete this app">
        <div class="danger-row">
          <p>Its topics and keys go with it, and every stream of them ends. This cannot be undone.</p>
          <Button kind="danger" icon="trash" onClick={() => setDeleting(true)}>
            Delete app
          </Button>
        </div>
      </Card>
      {deleting && (
        <Confirm
          title="Delete this app?"
          verb="Delete app"
          type={app.name}
          onClose={() => setDeleting(false)}
          onConfirm={async () => {
            await call('DELETE', '/apps/' + id(app.id));
            toast('The app is gone');
            navigate('/apps');
          }}
        >
          <p>All its topics, keys and streams end at once, for good.</p>
        </Confirm>
      )}
    </>
  );
}

/** Admins may limit one app, beside what its account may use. */
function AppQuotas({ app, onChange }: { app: App; onChange: (a: App) => void }) {
  const [quotas, setQuotas] = useState(typed(app.quotas));
  const task = useTask();
  return (
    <Card title="Quotas of this app">
      <Form
        onSubmit={() => {
          if (!wrong(quotas))
            task.run(async () => {
              onChange(await call<App>('PATCH', '/admin/apps/' + id(app.id), { body: { quotas: changed(quotas, app.quotas) } }));
              toast('Saved');
            });
        }}
      >
        <p class="prose">They apply beside those of the account. Only admins see this.</p>
        <QuotaInputs
          value={quotas}
          onInput={q => {
            task.clear();
            setQuotas(q);
          }}
          error={task.error}
          requests="Publications a minute"
        />
        <FormError error={task.error} shown={quotaFields} />
        <footer>
          <Button type="submit" kind="primary" busy={task.busy}>
            Save quotas
          </Button>
        </footer>
      </Form>
    </Card>
  );
}
