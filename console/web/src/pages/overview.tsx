// The first page: what there is, what is used, what to do next.
import { all, type App, get, id, me, type Page, type Topic, type UsageReport } from '../api';
import { ago, count } from '../format';
import { Link, navigate } from '../router';
import { Button, Card, Code, Head, Show, Stat, useLoad } from '../ui';
import { Icon } from '../icons';
import { TypeBadge } from './app';
import { loadUsage, Usage } from './usage';

const mostApps = 8; // whose topics are asked for

interface Everything { apps: App[]; total: number; topics: (Topic & { app: string })[]; topicTotal: number; usage: UsageReport }

async function load(signal: AbortSignal): Promise<Everything> {
  const { items, total } = await all<App>('/apps', signal, 100);
  const some = items.slice(0, mostApps);
  const [pages, usage] = await Promise.all([
    Promise.all(some.map(a => get<Page<Topic>>(`/apps/${id(a.id)}/topics?per_page=20`, signal))),
    loadUsage(`/users/${id(me.value!.id)}/usage`, signal),
  ]);
  const topics = pages.flatMap((p, i) => p.items.map(t => ({ ...t, app: some[i]!.name })));
  topics.sort((a, b) => Date.parse(b.updated_at) - Date.parse(a.updated_at));
  return { apps: items, total, topics, topicTotal: pages.reduce((n, p) => n + p.total, 0), usage };
}

export function Overview() {
  const everything = useLoad(load, []);
  const name = me.value?.first_name;
  return (
    <>
      <Head title={name ? `Hello, ${name}` : 'Overview'} actions={<Button kind="primary" icon="plus" onClick={() => navigate('/apps?new')}>New app</Button>} />
      <Show of={everything} rows={8}>{e => (
        <>
          <dl class="stats">
            <Stat label="Apps" value={count(e.total)} hint={<Link to="/apps">see all</Link>} />
            <Stat label="Topics" value={count(e.topicTotal)} hint={e.total > mostApps ? `in the first ${mostApps} apps` : 'in all apps'} />
            <Stat label="Polled" value={count(e.topics.filter(t => t.publisher.type === 'http-poller').length)} hint="Freshet asks" />
            <Stat label="Posted" value={count(e.topics.filter(t => t.publisher.type === 'http-post').length)} hint="your backend publishes" />
          </dl>
          {e.topics.length === 0 ? <FirstSteps apps={e.apps} /> : <Recent topics={e.topics} />}
          {e.topics.length > 0 && <Usage report={e.usage} what="account" again={everything.again} />}
        </>
      )}</Show>
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
            <div><h3>{title}</h3><p class="dim">{text}</p></div>
            {i === next && to && <Link to={to} class="button primary">{verb}</Link>}
          </li>
        ))}
      </ol>
      <details class="more"><summary>Do it from a terminal instead</summary>
        <Code what="the commands" text={`api=${location.origin}/api/v1\ncurl -X PUT $api/session -H 'Content-Type: application/json' \\\n  -d '{"email": "${me.value?.email ?? 'you@example.com'}", "password": "…"}'\n\ncurl -X POST $api/apps -H "Authorization: Bearer $token" \\\n  -H 'Content-Type: application/json' -d '{"name": "Quotes"}'`} />
      </details>
    </Card>
  );
}

function Recent({ topics }: { topics: (Topic & { app: string })[] }) {
  return (
    <Card flush title="Topics" aside={<Link to="/apps" class="button quiet small">All apps</Link>}>
      <ul class="recent">
        {topics.slice(0, 6).map(t => (
          <li key={t.id}><Link to={`/topics/${id(t.id)}`}>
            <span class="recent-name"><b>{t.name}</b><small>{t.app}</small></span><span><TypeBadge topic={t} /></span><span class="dim">{ago(t.updated_at)}</span>
          </Link></li>
        ))}
      </ul>
    </Card>
  );
}
