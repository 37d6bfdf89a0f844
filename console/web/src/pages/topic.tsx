// One topic: what it holds, live; publishing to it; how to connect; its settings.
import { useEffect, useMemo, useState } from 'preact/hooks';
import { type App, call, config, Ended, Failure, get, id, loadConfig, type Topic } from '../api';
import { Follow } from '../live/follow';
import { navigate } from '../router';
import { Button, Card, complain, Confirm, Empty, Head, ID, NoPage, Show, Tabs, toast, useLoad, useTask } from '../ui';
import { TypeBadge } from './app';
import { Connect } from './connect';
import { Explain } from './explain';
import { Publish } from './publish';
import { TopicSettings } from './topicform';
import { UsageOf } from './usage';
import { Viewer } from './viewer';

const tabs = ['live', 'publish', 'connect', 'usage', 'settings'];

interface Both {
  topic: Topic;
  app: App;
}

export function TopicPage({ topicID, tab }: { topicID: string; tab: string }) {
  const both = useLoad<Both>(
    async s => {
      const topic = await get<Topic>('/topics/' + id(topicID), s);
      return { topic, app: await get<App>('/apps/' + id(topic.app_id), s) };
    },
    [topicID],
  );
  const at = (t: string): string => `/topics/${id(topicID)}${t === 'live' ? '' : '/' + t}`;
  return (
    <Show of={both} rows={6} whole>
      {({ topic, app }) => (
        <>
          <Head
            title={topic.name}
            badge={<TypeBadge topic={topic} />}
            actions={
              <>
                <ExplainTopic topic={topic} />
                {topic.publisher.type === 'http-poller' && <PollNow topic={topic} />}
              </>
            }
            crumbs={[
              { to: '/apps', text: 'Apps' },
              { to: `/apps/${id(app.id)}`, text: app.name },
            ]}
          >
            <ID value={topic.id} what="topic identifier" />
          </Head>
          <Tabs
            label="Topic"
            current={at(tab)}
            tabs={[
              { to: at('live'), text: 'Live' },
              ...(topic.publisher.type === 'http-post' ? [{ to: at('publish'), text: 'Publish' }] : []),
              { to: at('connect'), text: 'Connect' },
              { to: at('usage'), text: 'Usage' },
              { to: at('settings'), text: 'Settings' },
            ]}
          />
          {!tabs.includes(tab) && <NoPage />}
          {(tab === 'live' || tab === 'publish') && (
            <Following key={app.subscriber_key} topic={topic} app={app} tab={tab} renew={both.again} />
          )}
          {tab === 'connect' && <Connect topic={topic} app={app} />}
          {tab === 'usage' && <UsageOf of={`/topics/${id(topic.id)}/usage`} what="topic" />}
          {tab === 'settings' && (
            <>
              <TopicSettings topic={topic} app={app} onChange={t => both.set({ topic: t, app })} />
              <DeleteTopic topic={topic} app={app} />
            </>
          )}
        </>
      )}
    </Show>
  );
}

/** Live and Publish share one subscription, so that switching between them loses nothing. */
function Following({ topic, app, tab, renew }: Both & { tab: string; renew: () => void }) {
  const server = config.value?.subscriber_url ?? '';
  const follow = useMemo(
    () =>
      server
        ? new Follow({
            server,
            topic: topic.id,
            key: app.subscriber_key,
            ...(app.client_request_signature_enabled ? { signatureKey: app.signature_key } : {}),
          })
        : undefined,
    [topic.id, server],
  );
  useEffect(() => () => follow?.close(), [follow]);
  if (!config.value)
    return (
      <Card>
        <Empty
          icon="warn"
          title="The server did not say where its streams are"
          action={<Button onClick={() => void loadConfig().catch(complain)}>Ask again</Button>}
        >
          <p>It was busy or starting when this page was opened.</p>
        </Empty>
      </Card>
    );
  if (!follow)
    return (
      <Card>
        <Empty icon="plug" title="Where are the streams?">
          <p>This server does not know under which address browsers reach its subscriber interface. Its operator can say so:</p>
          <pre class="mono">freshet serve --subscriber-public-url https://events.example.com</pre>
        </Empty>
      </Card>
    );
  return tab === 'publish' ? (
    <Publish topic={topic} app={app} follow={follow} />
  ) : (
    <Viewer follow={follow} topic={topic} app={app} renew={renew} />
  );
}

function ExplainTopic({ topic }: { topic: Topic }) {
  const [asking, setAsking] = useState(false);
  return (
    <>
      <Button icon="search" onClick={() => setAsking(true)}>
        Explain
      </Button>
      {asking && <Explain path={`/topics/${id(topic.id)}/explain`} onClose={() => setAsking(false)} />}
    </>
  );
}

function PollNow({ topic }: { topic: Topic }) {
  const task = useTask();
  return (
    <Button
      icon="renew"
      busy={task.busy}
      onClick={() =>
        task.run(async () => {
          try {
            await call('POST', `/topics/${id(topic.id)}/refresh`);
            toast('The topic is being polled');
          } catch (e) {
            if (e instanceof Failure && !(e instanceof Ended))
              toast(e.status === 404 ? 'This server cannot poll on demand yet' : e.message, true);
          }
        })
      }
    >
      Poll now
    </Button>
  );
}

function DeleteTopic({ topic, app }: Both) {
  const [asking, setAsking] = useState(false);
  return (
    <Card title="Delete this topic">
      <div class="danger-row">
        <p>Its document goes with it, and every stream of it ends. This cannot be undone.</p>
        <Button kind="danger" icon="trash" onClick={() => setAsking(true)}>
          Delete topic
        </Button>
      </div>
      {asking && (
        <Confirm
          title="Delete this topic?"
          verb="Delete topic"
          type={topic.name}
          onClose={() => setAsking(false)}
          onConfirm={async () => {
            await call('DELETE', '/topics/' + id(topic.id));
            toast('The topic is gone');
            navigate(`/apps/${id(app.id)}`);
          }}
        >
          <p>Everybody who follows it is cut off at once, for good.</p>
        </Confirm>
      )}
    </Card>
  );
}
