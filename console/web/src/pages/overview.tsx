// The first page: what there is, what is used, what to do next.
import { type App, id, me, newest, type Topic, type UsageReport } from '../api';
import { ago, count } from '../format';
import { Link, navigate } from '../router';
import { Button, Card, Code, Head, Show, Stat, useLoad } from '../ui';
import { Icon } from '../icons';
import { TypeBadge } from './app';
import { inShell } from './connect';
import { loadUsage, Usage } from './usage';

const mostApps = 8,
  mostTopics = 20; // of which there is something to tell

interface Everything {
  apps: App[];
  total: number;
  topics: (Topic & { app: string })[];
  topicTotal: number;
  usage: UsageReport;
}

async function load(signal: AbortSignal): Promise<Everything> {
  const { items: some, total } = await newest<App>('/apps', mostApps, signal);
  const [pages, usage] = await Promise.all([
    Promise.all(some.map(a => newest<Topic>(`/apps/${id(a.id)}/topics`, mostTopics, signal))),
    loadUsage(`/users/${id(me.value!.id)}/usage`, signal),
  ]);
  const topics = pages.flatMap((p, i) => p.items.map(t => ({ ...t, app: some[i]!.name })));
  topics.sort((a, b) => Date.parse(b.updated_at) - Date.parse(a.updated_at));
  return { apps: some, total, topics, topicTotal: pages.reduce((n, p) => n + p.total, 0), usage };
}

export function Overview() {
  const everything = useLoad(load, []);
  const name = me.value?.first_name;
  return (
    <>
      <Head
        title={name ? `Hello, ${name}` : 'Overview'}
        actions={
          <Button kind="primary" icon="plus" onClick={() => navigate('/apps?new')}>
            New app
          </Button>
        }
      />
      <Show of={everything} rows={8}>
        {e => {
          const isAll = e.total <= mostApps,
            isNew = isAll && e.topicTotal === 0;
          return (
            <>
              <dl class="stats">
                <Stat label="Apps" value={count(e.total)} hint={<Link to="/apps">see all</Link>} />
                <Stat label="Topics" value={count(e.topicTotal)} hint={isAll ? 'in all apps' : `in the newest ${mostApps} apps`} />
                <Stat label="Published" value={count(e.usage.total.publications)} hint="documents in the last day" />
                <Stat label="Polled" value={count(e.usage.total.polls)} hint="times in the last day" />
              </dl>
              {isNew && <FirstSteps apps={e.apps} />}
              {e.topics.length > 0 && <Recent topics={e.topics} />}
              {!isNew && <Usage report={e.usage} what="account" again={everything.again} />}
            </>
          );
        }}
      </Show>
    </>
  );
}

function FirstSteps({ apps }: { apps: App[] }) {
  const app = apps[0];
  const steps: [boolean, string, string, string | undefined, string][] = [
    [apps.length > 0, 'Make an app', 'It groups topics and holds their keys.', '/apps?new', 'New app'],
    [false, 'Make a topic', 'One JSON document that changes over time.', app && `/apps/${id(app.id)}/topics/new`, 'New topic'],
    [false, 'Publish, and watch it arrive', 'From this console, or with curl from anywhere.', undefined, ''],
  ];
  const next = steps.findIndex(s => !s[0]);
  return (
    <Card title="Three steps to a stream">
      <ol class="steps">
        {steps.map(([done, title, text, to, verb], i) => (
          <li key={title} class={done ? 'done' : i === next ? 'next' : ''}>
            <span class="step-mark">{done ? <Icon name="check" size={16} /> : i + 1}</span>
            <div>
              <h3>{title}</h3>
              <p class="dim">{text}</p>
            </div>
            {i === next && to && (
              <Link to={to} class="button primary">
                {verb}
              </Link>
            )}
          </li>
        ))}
      </ol>
      <details class="more">
        <summary>Do it from a terminal instead</summary>
        <Code
          what="the commands"
          text={[
            `api=${location.origin}/api/v1`,
            `curl -X PUT $api/session -H 'Content-Type: application/json' \\`,
            `  -d ${inShell(`{"email": "${me.value?.email ?? 'you@example.com'}", "password": "…"}`)}`,
            '',
            'curl -X POST $api/apps -H "Authorization: Bearer $token" \\',
            `  -H 'Content-Type: application/json' -d '{"name": "Quotes"}'`,
          ].join('\n')}
        />
      </details>
    </Card>
  );
}

function Recent({ topics }: { topics: (Topic & { app: string })[] }) {
  return (
    <Card
      flush
      title="Topics"
      aside={
        <Link to="/apps" class="button quiet small">
          All apps
        </Link>
      }
    >
      <ul class="recent">
        {topics.slice(0, 6).map(t => (
          <li key={t.id}>
            <Link to={`/topics/${id(t.id)}`}>
              <span class="recent-name">
                <b>{t.name}</b>
                <small>{t.app}</small>
              </span>
              <span>
                <TypeBadge topic={t} />
              </span>
              <span class="dim">{ago(t.updated_at)}</span>
            </Link>
          </li>
        ))}
      </ul>
    </Card>
  );
}
