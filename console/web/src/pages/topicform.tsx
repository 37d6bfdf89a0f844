// Making and changing topics.
import { type ExactJSON, parse, print } from '@freshet/client/exact';
import { useState } from 'preact/hooks';
import { type App, call, get, id, onlyChanged, type PublisherSettings, type Topic, type Trial } from '../api';
import { bytes, duration, every } from '../format';
import { navigate } from '../router';
import { checkFrequency, checkHeaderName, checkItemPath, checkText, checkURL } from '../rules';
import { Button, Card, Check, Choice, Code, Form, FormError, Head, Input, Show, toast, useLoad, useTask } from '../ui';

interface HeaderRow {
  name: string;
  value: string;
}

interface Draft {
  name: string;
  type: 'http-post' | 'http-poller';
  url: string;
  frequency: string;
  force: boolean;
  payload: 'snapshot' | 'item';
  itemPath: string;
  headers: HeaderRow[];
  oauth: boolean;
  tokenURL: string;
  clientID: string;
  clientSecret: string;
  scopes: string;
}

const hidden = '[hidden]'; // what the API shows for secrets, and takes for "as it is"

export function draftOf(t?: Topic, app?: App): Draft {
  const c = t?.publisher.config,
    o = c?.oauth2;
  return {
    name: t?.name ?? '',
    type: t?.publisher.type ?? 'http-post',
    url: c?.url ?? '',
    frequency: t ? String(c?.polling_frequency ?? '') : '',
    force: c?.force_publishing ?? app?.default_configurations['http-post'].force_publishing ?? true,
    payload: t?.publisher.payload.type ?? 'snapshot',
    itemPath: t?.publisher.payload.item_id_path ?? '',
    headers: Object.entries(c?.headers ?? {}).map(([name, value]) => ({ name, value })),
    oauth: !!o,
    tokenURL: o?.token_url ?? '',
    clientID: o?.client_id ?? '',
    clientSecret: o?.client_secret ?? '',
    scopes: (o?.scopes ?? []).join(' '),
  };
}

/** The settings that a draft sends. What the server does not know yet is sent only if it is used. */
function configOf(d: Draft, before?: Topic): PublisherSettings {
  if (d.type === 'http-post') return { force_publishing: d.force };
  const c: PublisherSettings = { url: d.url };
  if (d.frequency !== '') c.polling_frequency = Number(d.frequency);
  else if (before) c.polling_frequency = null;
  const had = before?.publisher.config;
  if (d.headers.length || had?.headers) c.headers = Object.fromEntries(d.headers.map(h => [h.name, h.value]));
  if (d.oauth)
    c.oauth2 = {
      token_url: d.tokenURL,
      client_id: d.clientID,
      client_secret: d.clientSecret,
      scopes: d.scopes.split(/\s+/).filter(Boolean),
    };
  else if (had?.oauth2) c.oauth2 = null;
  return c;
}

/** What is wrong, by the field names of the API. */
function check(d: Draft): Record<string, string | undefined> {
  const wrong: Record<string, string | undefined> = { name: checkText(d.name, 200) };
  if (d.payload === 'item') wrong['publisher.payload.item_id_path'] = checkItemPath(d.itemPath);
  if (d.type === 'http-poller') {
    wrong['publisher.config.url'] = checkURL(d.url);
    wrong['publisher.config.polling_frequency'] = checkFrequency(d.frequency);
    d.headers.forEach((h, i) => {
      wrong['header' + i] = checkHeaderName(h.name);
    });
    if (d.oauth) {
      wrong['publisher.config.oauth2.token_url'] = checkURL(d.tokenURL);
      wrong['publisher.config.oauth2.client_id'] = d.clientID ? undefined : 'is required';
      wrong['publisher.config.oauth2.client_secret'] = d.clientSecret ? undefined : 'is required';
    }
  }
  return wrong;
}

interface FieldsProps {
  draft: Draft;
  set: (d: Draft) => void;
  say: (field: string, typed: string) => string | undefined;
  appID: string;
  app?: App | undefined;
  topic?: Topic | undefined;
}

function Fields({ draft: d, set, say, appID, app, topic }: FieldsProps) {
  const fixed = !!topic;
  const put =
    <K extends keyof Draft>(k: K) =>
    (v: Draft[K]): void =>
      set({ ...d, [k]: v });
  return (
    <>
      <Input
        label="Name"
        value={d.name}
        onInput={put('name')}
        placeholder="Quotes of Paris"
        error={say('name', d.name)}
        focus={!fixed}
        hint="For people; it need not be unique"
      />
      <Choice
        label="Where its content comes from"
        value={d.type}
        onChange={put('type')}
        disabled={fixed}
        options={[
          ['http-post', 'Your backend publishes', 'POST the whole document as often as you like.'],
          ['http-poller', 'Freshet polls a URL', 'Asked only while somebody is subscribed.'],
        ]}
      />
      {d.type === 'http-poller' ? (
        <PollerFields draft={d} set={set} say={say} appID={appID} app={app} topic={topic} />
      ) : (
        <Check
          label="Publish even when nobody is subscribed"
          hint="Without it, publications that nobody would see are dropped."
          value={d.force}
          onChange={put('force')}
        />
      )}
      <Choice
        label="What a publication is"
        value={d.payload}
        onChange={put('payload')}
        disabled={fixed}
        options={[
          ['snapshot', 'The whole document', 'Any JSON. Freshet finds out what changed.'],
          ['item', 'Items of a list', 'An array of objects; each replaces the one with the same identifier.'],
        ]}
      />
      {d.payload === 'item' && (
        <Input
          label="Path to an item’s identifier"
          mono
          value={d.itemPath}
          onInput={put('itemPath')}
          placeholder=".Identifier.Symbol"
          disabled={fixed}
          error={say('publisher.payload.item_id_path', d.itemPath)}
          hint="The first character separates the names: .Identifier.Symbol and |Identifier|Symbol are the same"
        />
      )}
      {fixed && <p class="hint">The source and the kind of publication are for the life of a topic.</p>}
    </>
  );
}

function PollerFields({ draft: d, set, say, appID, app, topic }: FieldsProps) {
  const put =
    <K extends keyof Draft>(k: K) =>
    (v: Draft[K]): void =>
      set({ ...d, [k]: v });
  const header = (i: number, change: Partial<HeaderRow>): void =>
    put('headers')(d.headers.map((h, j) => (i === j ? { ...h, ...change } : h)));
  const fallback = app?.default_configurations['http-poller'].polling_frequency ?? 2000;
  return (
    <>
      <Input
        label="URL to poll"
        mono
        inputMode="url"
        value={d.url}
        onInput={put('url')}
        placeholder="https://example.com/quotes.json"
        error={say('publisher.config.url', d.url)}
        hint="Answers JSON to a GET"
      />
      <Input
        label="Polling interval"
        suffix="ms"
        inputMode="numeric"
        value={d.frequency}
        onInput={put('frequency')}
        placeholder={String(fallback)}
        error={say('publisher.config.polling_frequency', d.frequency)}
        hint={`100 at least; empty for the app’s default, every ${every(fallback)}`}
      />
      <fieldset class="rows">
        <legend>Headers for the target</legend>
        {d.headers.map((h, i) => (
          <div class="header-row" key={i}>
            <Input
              label="Name"
              mono
              value={h.name}
              onInput={name => header(i, { name })}
              placeholder="X-Api-Key"
              error={say('header' + i, h.name)}
            />
            <Input
              label="Value"
              mono
              value={h.value}
              onInput={value => header(i, { value })}
              type={h.value === hidden ? 'text' : 'password'}
              hint={h.value === hidden ? 'Kept as it is' : ''}
            />
            <Button
              kind="quiet"
              icon="trash"
              label={`Remove header ${h.name || i + 1}`}
              onClick={() => put('headers')(d.headers.filter((_, j) => j !== i))}
            />
          </div>
        ))}
        <Button small icon="plus" onClick={() => put('headers')([...d.headers, { name: '', value: '' }])}>
          Add a header
        </Button>
      </fieldset>
      <Check
        label="Get tokens by OAuth 2.0"
        hint="The client credentials grant: Freshet asks for tokens and renews them."
        value={d.oauth}
        onChange={put('oauth')}
      />
      {d.oauth && (
        <div class="nested">
          <Input
            label="Token URL"
            mono
            value={d.tokenURL}
            onInput={put('tokenURL')}
            error={say('publisher.config.oauth2.token_url', d.tokenURL)}
            placeholder="https://auth.example.com/token"
          />
          <div class="pair">
            <Input
              label="Client ID"
              mono
              value={d.clientID}
              onInput={put('clientID')}
              error={say('publisher.config.oauth2.client_id', d.clientID)}
            />
            <Input
              label="Client secret"
              mono
              type={d.clientSecret === hidden ? 'text' : 'password'}
              value={d.clientSecret}
              onInput={put('clientSecret')}
              error={say('publisher.config.oauth2.client_secret', d.clientSecret)}
            />
          </div>
          <Input label="Scopes" mono value={d.scopes} onInput={put('scopes')} hint="Separated by spaces; often none" />
        </div>
      )}
      <TestURL draft={d} appID={appID} topic={topic} />
    </>
  );
}

/** Asks the server to poll once and show what it would publish. */
function TestURL({ draft, appID, topic }: { draft: Draft; appID: string; topic?: Topic | undefined }) {
  const task = useTask();
  const [seen, setSeen] = useState<Trial>();
  const text = seen?.document === undefined ? '' : print(seen.document as ExactJSON, 2);
  return (
    <div class="test-url" aria-live="polite">
      <Button
        icon="play"
        busy={task.busy}
        disabled={!!checkURL(draft.url)}
        onClick={() =>
          task.run(async () => {
            setSeen(undefined);
            setSeen(
              await call<Trial>('POST', `/apps/${id(appID)}/topics/test`, {
                read: parse as (text: string) => unknown, // numbers to the last digit, as they would be published
                body: {
                  ...(topic ? { topic_id: topic.id } : {}),
                  publisher: {
                    type: 'http-poller',
                    config: configOf(draft),
                    payload: draft.payload === 'item' ? { type: 'item', item_id_path: draft.itemPath } : { type: 'snapshot' },
                  },
                },
              }),
            );
          })
        }
      >
        Test this URL
      </Button>
      <FormError error={task.error} />
      {seen &&
        (seen.error ? (
          <p class="hint error">
            {seen.error}. {seen.status ? `It answered ${seen.status} after ${duration(seen.duration_ms)}.` : 'Nothing would be published.'}
          </p>
        ) : (
          <p class="hint">
            Answered {seen.status} in {duration(seen.duration_ms)}, {bytes(seen.bytes)}. This would be published:
          </p>
        ))}
      {text && <Code what="what would be published" text={text.length > 20_000 ? text.slice(0, 20_000) + '\n…' : text} />}
    </div>
  );
}

const shownFields = [
  'name',
  'publisher.config.url',
  'publisher.config.polling_frequency',
  'publisher.payload.item_id_path',
  'publisher.config.oauth2.token_url',
  'publisher.config.oauth2.client_id',
  'publisher.config.oauth2.client_secret',
];

export function NewTopic({ appID }: { appID: string }) {
  const app = useLoad(s => get<App>('/apps/' + id(appID), s), [appID]);
  return (
    <Show of={app} rows={6} whole>
      {a => (
        <>
          <Head
            title="New topic"
            crumbs={[
              { to: '/apps', text: 'Apps' },
              { to: `/apps/${id(a.id)}`, text: a.name },
            ]}
          />
          <NewTopicForm app={a} />
        </>
      )}
    </Show>
  );
}

function NewTopicForm({ app }: { app: App }) {
  const [draft, setDraft] = useState(draftOf(undefined, app));
  const [tried, setTried] = useState(false);
  const task = useTask();
  const wrong = check(draft);
  const say = (field: string, typed: string): string | undefined => task.error?.field(field) ?? (tried || typed ? wrong[field] : undefined);
  return (
    <Card>
      <Form
        onSubmit={() => {
          setTried(true);
          if (Object.values(wrong).some(Boolean)) {
            toast('Some fields need another look', true);
            return;
          }
          task.run(async () => {
            const made = await call<Topic>('POST', `/apps/${id(app.id)}/topics`, {
              body: {
                name: draft.name,
                publisher: {
                  type: draft.type,
                  config: configOf(draft),
                  payload: draft.payload === 'item' ? { type: 'item', item_id_path: draft.itemPath } : { type: 'snapshot' },
                },
              },
            });
            navigate(`/topics/${id(made.id)}${draft.type === 'http-post' ? '/publish' : ''}`);
          });
        }}
      >
        <Fields
          draft={draft}
          set={d => {
            task.clear();
            setDraft(d);
          }}
          say={say}
          appID={app.id}
          app={app}
        />
        <FormError error={task.error} shown={shownFields} />
        <footer>
          <Button onClick={() => navigate(`/apps/${id(app.id)}`)}>Cancel</Button>
          <Button type="submit" kind="primary" busy={task.busy}>
            Create topic
          </Button>
        </footer>
      </Form>
    </Card>
  );
}

export function TopicSettings({ topic, app, onChange }: { topic: Topic; app: App; onChange: (t: Topic) => void }) {
  const [before, setBefore] = useState(draftOf(topic, app)),
    [draft, setDraft] = useState(before);
  const task = useTask();
  const wrong = check(draft);
  const say = (field: string): string | undefined => task.error?.field(field) ?? wrong[field];
  return (
    <Card title="Settings">
      <Form
        onSubmit={() => {
          if (Object.values(wrong).some(Boolean)) return;
          task.run(async () => {
            const { name } = onlyChanged(draft, before),
              config = onlyChanged(configOf(draft, topic), configOf(before, topic));
            const changed = await call<Topic>('PATCH', '/topics/' + id(topic.id), { body: { name, publisher: { config } } });
            onChange(changed);
            setBefore(draftOf(changed, app));
            setDraft(draftOf(changed, app));
            toast('Saved');
          });
        }}
      >
        <Fields
          draft={draft}
          set={d => {
            task.clear();
            setDraft(d);
          }}
          say={say}
          appID={app.id}
          app={app}
          topic={topic}
        />
        <FormError error={task.error} shown={shownFields} />
        <footer>
          <Button type="submit" kind="primary" busy={task.busy}>
            Save changes
          </Button>
        </footer>
      </Form>
    </Card>
  );
}
