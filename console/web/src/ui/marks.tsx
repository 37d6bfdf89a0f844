// Buttons, badges, cards, titles and tabs.
import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';
import { Icon, type IconName } from '../icons';
import { Link } from '../router';

type Children = { children?: ComponentChildren };

interface ButtonProps extends Children {
  onClick?: (e: MouseEvent) => void;
  kind?: 'primary' | 'danger' | 'plain' | 'quiet';
  icon?: IconName;
  type?: 'button' | 'submit';
  disabled?: boolean;
  busy?: boolean;
  label?: string;
  pressed?: boolean;
  expanded?: boolean;
  small?: boolean;
}

export function Button({
  onClick,
  kind = 'plain',
  icon,
  type = 'button',
  disabled,
  busy,
  label,
  pressed,
  expanded,
  small,
  children,
}: ButtonProps) {
  return (
    <button
      type={type}
      class={`button ${kind}${small ? ' small' : ''}${children ? '' : ' bare'}`}
      onClick={onClick}
      disabled={disabled || busy}
      aria-label={label}
      title={label}
      aria-pressed={pressed}
      aria-expanded={expanded}
      aria-busy={busy || undefined}
    >
      {icon && <Icon name={icon} size={small ? 16 : 18} />}
      {children}
    </button>
  );
}

export function Badge({ tone = 'plain', children }: Children & { tone?: 'plain' | 'ok' | 'warn' | 'bad' | 'accent' }) {
  return <span class={`badge ${tone}`}>{children}</span>;
}

export function Empty({
  icon,
  title,
  action,
  children,
  whole,
}: Children & { icon: IconName; title: string; action?: ComponentChildren; whole?: boolean | undefined }) {
  const Title = whole ? 'h1' : 'h2';
  useEffect(() => {
    if (whole) document.title = `${title} · Freshet`;
  }, [title, whole]);
  return (
    <div class="empty">
      <span class="empty-icon">
        <Icon name={icon} size={22} />
      </span>
      <Title>{title}</Title>
      <div class="empty-text">{children}</div>
      {action && <div class="actions">{action}</div>}
    </div>
  );
}

export const NoPage = ({ whole }: { whole?: boolean }) => (
  <Empty
    icon="search"
    whole={whole}
    title="There is no such page"
    action={
      <Link to="/" class="button">
        Go to the overview
      </Link>
    }
  >
    The address may be mistyped, or the page may be for admins.
  </Empty>
);

export function Card({
  title,
  aside,
  children,
  flush,
}: Children & { title?: ComponentChildren; aside?: ComponentChildren; flush?: boolean }) {
  return (
    <section class={flush ? 'card flush' : 'card'}>
      {(title || aside) && (
        <header class="card-head">
          <h2>{title}</h2>
          {aside && <div class="actions">{aside}</div>}
        </header>
      )}
      <div class="card-body">{children}</div>
    </section>
  );
}

export function Stat({ label, value, hint }: { label: string; value: ComponentChildren; hint?: ComponentChildren }) {
  return (
    <div class="stat">
      <dt>{label}</dt>
      <dd>
        {value}
        {hint && <small>{hint}</small>}
      </dd>
    </div>
  );
}

interface Crumb {
  to: string;
  text: string;
}

export function Head({
  title,
  crumbs = [],
  actions,
  badge,
  children,
}: Children & { title: string; crumbs?: Crumb[]; actions?: ComponentChildren; badge?: ComponentChildren }) {
  useEffect(() => {
    document.title = `${title} · Freshet`;
  }, [title]);
  useEffect(() => {
    // a page that had to load first could not begin at its title
    if (document.activeElement?.id === 'main') document.getElementById('title')?.focus({ preventScroll: true });
  }, []);
  return (
    <header class="head">
      {crumbs.length > 0 && (
        <nav class="crumbs" aria-label="Breadcrumbs">
          {crumbs.map(c => (
            <span key={c.to}>
              <Link to={c.to}>{c.text}</Link>
              <i aria-hidden="true">/</i>
            </span>
          ))}
        </nav>
      )}
      <div class="head-row">
        <h1 tabIndex={-1} id="title">
          {title}
        </h1>
        {badge}
        {actions && <div class="actions">{actions}</div>}
      </div>
      {children && <div class="head-text">{children}</div>}
    </header>
  );
}

export function Tabs({ tabs, current, label }: { tabs: { to: string; text: string; icon?: IconName }[]; current: string; label: string }) {
  return (
    <nav class="tabs" aria-label={label}>
      {tabs.map(t => (
        <Link key={t.to} to={t.to} current={t.to === current} class="tab">
          {t.icon && <Icon name={t.icon} size={16} />}
          {t.text}
        </Link>
      ))}
    </nav>
  );
}
