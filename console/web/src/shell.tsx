// The frame around every page: where one can go, who one is, how bright it is.
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { call, config, me } from './api';
import { Icon, type IconName, Logo } from './icons';
import { Link, navigate, path } from './router';
import { end } from './session';
import { choose, taste, type Taste } from './theming';
import { Button, complain } from './ui';

interface Place {
  to: string;
  text: string;
  icon: IconName;
}

const everybody: Place[] = [
  { to: '/', text: 'Overview', icon: 'overview' },
  { to: '/apps', text: 'Apps', icon: 'apps' },
];
const admins: Place[] = [
  { to: '/admin/users', text: 'Users', icon: 'users' },
  { to: '/admin/connections', text: 'Connections', icon: 'plug' },
  { to: '/admin/usage', text: 'Usage', icon: 'chart' },
  { to: '/admin/gateway', text: 'Gateway', icon: 'gateway' },
  { to: '/admin/health', text: 'Health', icon: 'health' },
  { to: '/admin/audit', text: 'Audit log', icon: 'audit' },
];

function isCurrent(to: string, at: string): boolean {
  if (to === '/apps') return at.startsWith('/apps') || at.startsWith('/topics');
  return to === '/' ? at === '/' : at.startsWith(to);
}

function Places({ places, label }: { places: Place[]; label: string }) {
  return (
    <ul aria-label={label}>
      {places.map(p => (
        <li key={p.to}>
          <Link to={p.to} class="place" current={isCurrent(p.to, path.value)}>
            <Icon name={p.icon} />
            {p.text}
          </Link>
        </li>
      ))}
    </ul>
  );
}

const brightness: [Taste, IconName, string][] = [
  ['light', 'sun', 'Light'],
  ['auto', 'auto', 'As the system'],
  ['dark', 'moon', 'Dark'],
];

export function Brightness() {
  return (
    <div class="brightness" role="group" aria-label="Theme">
      {brightness.map(([t, icon, label]) => (
        <button key={t} type="button" aria-pressed={taste.value === t} aria-label={label} title={label} onClick={() => choose(t)}>
          <Icon name={icon} size={16} />
        </button>
      ))}
    </div>
  );
}

export async function signOut(): Promise<void> {
  try {
    await call('DELETE', '/session');
  } catch (e) {
    complain(e);
  }
  end();
  navigate('/signin', true);
}

export function Shell({ children }: { children?: ComponentChildren }) {
  const at = path.value,
    user = me.value;
  const [open, setOpen] = useState(false);
  const first = useRef(true);
  useEffect(() => {
    setOpen(false);
    // A new page begins at its title, for those who do not see that it is new.
    if (!first.current) (document.getElementById('title') ?? document.getElementById('main'))?.focus({ preventScroll: true });
    first.current = false;
  }, [at.split('/').slice(0, 3).join('/')]);
  return (
    <div
      class={open ? 'shell nav-open' : 'shell'}
      onKeyDown={e => {
        if (!open || e.key !== 'Escape') return;
        setOpen(false);
        document.querySelector<HTMLElement>('.topbar button')?.focus();
      }}
    >
      <a
        class="skip"
        href="#main"
        onClick={e => {
          e.preventDefault();
          document.getElementById('main')?.focus();
        }}
      >
        Skip to content
      </a>
      <header class="topbar">
        <Link to="/" class="brand">
          <Logo size={24} />
          <span>Freshet</span>
        </Link>
        <Button
          kind="quiet"
          icon={open ? 'close' : 'menu'}
          label={open ? 'Close menu' : 'Open menu'}
          expanded={open}
          onClick={() => setOpen(!open)}
        />
      </header>
      <nav class="side" aria-label="Main">
        <Link to="/" class="brand">
          <Logo />
          <span>Freshet</span>
        </Link>
        <Places places={everybody} label="Your things" />
        {user?.role === 'admin' && (
          <>
            <h2 class="side-title">Administration</h2>
            <Places places={admins} label="Administration" />
          </>
        )}
        <div class="side-foot">
          <Brightness />
          <Link to="/account" class="place" current={isCurrent('/account', at)}>
            <Icon name="account" />
            <span class="who">{user ? `${user.first_name} ${user.last_name}` : 'Account'}</span>
          </Link>
          <button type="button" class="place" onClick={() => void signOut()}>
            <Icon name="out" />
            Sign out
          </button>
          {config.value?.version && <p class="version">Freshet {config.value.version}</p>}
        </div>
      </nav>
      <main
        id="main"
        tabIndex={-1}
        onFocusIn={() => {
          if (open) setOpen(false); /* it lies over what has the focus */
        }}
      >
        {children}
      </main>
    </div>
  );
}
