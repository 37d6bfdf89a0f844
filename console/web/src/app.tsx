// The console: which page is at which path, and the frame around it.
import { render } from 'preact';
import { useEffect } from 'preact/hooks';
import { signal } from '@preact/signals';
import { Button, Empty, NoPage, Toasts } from './ui';
import { get, id, loadConfig, me, type User } from './api';
import { Shell } from './shell';
import { match, navigate, path, search } from './router';
import { isInterrupted, session } from './session';
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
  return <NoPage whole />;
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
  get<User>('/users/' + id(userID)).then(
    u => {
      me.value = u;
    },
    (e: Error) => {
      unknown.value = e.message;
    },
  );
}

function Root() {
  const held = session.value,
    at = path.value,
    isSigning = at === '/signin' || at === '/signup';
  const known = me.value && (!held || me.value.id === held.userID) ? me.value : null;
  const isKept = !held && isInterrupted.value && !isSigning && !!known;
  useEffect(() => {
    if (held) introduce(held.userID);
    else if (!isKept) me.value = null;
  }, [held, isKept]);
  useEffect(() => {
    if (!held && !isSigning && !isKept) {
      navigate('/signin' + (at === '/' ? '' : '?to=' + encodeURIComponent(at + search.value)), true);
    } else if (held && isSigning) navigate(destination(), true);
  }, [held, at, isKept]);
  const trouble = held && unknown.value && (
    <Empty icon="warn" whole title="The server does not answer" action={<Button onClick={() => introduce(held.userID)}>Try again</Button>}>
      {unknown.value}
    </Empty>
  );
  return (
    <>
      {!held && (at === '/signup' ? <SignUp /> : <SignIn />)}
      {(held || isKept) && (
        <div key={held?.userID ?? known?.id} hidden={isKept}>
          <Shell>{known ? <Page /> : trouble || null}</Shell>
        </div>
      )}
      <Toasts />
    </>
  );
}

void loadConfig()
  .catch(() => undefined)
  .then(() => render(<Root />, document.getElementById('app')!));
