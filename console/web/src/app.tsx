// The console: which page is at which path, and the frame around it.
import { render } from 'preact';
import { useEffect } from 'preact/hooks';
import { signal } from '@preact/signals';
import { Button, Empty, NoPage, Toasts } from './ui';
import { get, id, loadConfig, me, type User } from './api';
import { Shell } from './shell';
import { match, navigate, path, search } from './router';
import { session } from './session';
import { SignIn, SignUp } from './pages/sign';
import { Overview } from './pages/overview';
import { Apps } from './pages/apps';
import { AppPage } from './pages/app';
import { NewTopic } from './pages/topicform';
import { TopicPage } from './pages/topic';
import { Account } from './pages/account';
import { Users } from './pages/users';
import { Audit, Connections, Health, ServerUsage } from './pages/admin';
import { Gateway } from './pages/gateway';

type Params = Record<string, string>;

const pages: [string, (p: Params) => preact.JSX.Element, 'admin'?][] = [
  ['/', () => <Overview />],
  ['/apps', () => <Apps />],
  ['/apps/:app/topics/new', p => <NewTopic key={p.app} appID={p.app!} />],
  ['/apps/:app/:tab?', p => <AppPage key={p.app} appID={p.app!} tab={p.tab ?? 'topics'} />],
  ['/topics/:topic/:tab?', p => <TopicPage key={p.topic} topicID={p.topic!} tab={p.tab ?? 'live'} />],
  ['/account', () => <Account />],
  ['/admin/users', () => <Users />, 'admin'],
  ['/admin/connections', () => <Connections />, 'admin'],
  ['/admin/usage', () => <ServerUsage />, 'admin'],
  ['/admin/gateway', () => <Gateway />, 'admin'],
  ['/admin/health', () => <Health />, 'admin'],
  ['/admin/audit', () => <Audit />, 'admin'],
];

function Page() {
  for (const [pattern, show, only] of pages) {
    const found = match(pattern, path.value);
    if (found && (!only || me.value?.role === 'admin')) return show(found);
  }
  return <NoPage />;
}

/** Where to go after signing in: only ever a path of ours. */
function destination(): string {
  const to = new URLSearchParams(search.value).get('to') ?? '/';
  return to.startsWith('/') && !to.startsWith('//') && !to.startsWith('/sign') ? to : '/';
}

/** Why we do not know who we are, if we do not. */
const unknown = signal('');

function introduce(userID: string): void {
  unknown.value = '';
  get<User>('/users/' + id(userID)).then(u => { me.value = u; }, (e: Error) => { unknown.value = e.message; });
}

function Root() {
  const held = session.value, at = path.value;
  useEffect(() => {
    if (!held) {
      me.value = null;
      return;
    }
    introduce(held.userID);
  }, [held]);
  useEffect(() => {
    if (!held && at !== '/signin' && at !== '/signup') {
      navigate('/signin' + (at === '/' ? '' : '?to=' + encodeURIComponent(at + search.value)), true);
    } else if (held && (at === '/signin' || at === '/signup')) navigate(destination(), true);
  }, [held, at]);
  if (!held) return <>{at === '/signup' ? <SignUp /> : <SignIn />}<Toasts /></>;
  const trouble = unknown.value && (
    <Empty icon="warn" title="The server does not answer" action={<Button onClick={() => introduce(held.userID)}>Try again</Button>}>{unknown.value}</Empty>
  );
  return <><Shell>{me.value ? <Page /> : trouble || null}</Shell><Toasts /></>;
}

void loadConfig().catch(() => undefined).then(() => render(<Root />, document.getElementById('app')!));
