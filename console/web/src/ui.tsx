// The parts that pages are made of.
import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { Ended, Failure } from './api';
import { clockTime, count, plural } from './format';
import { Icon, type IconName } from './icons';
import { Link, param, setParams } from './router';
import { session } from './session';

type Children = { children?: ComponentChildren };

// ── Words in passing

interface Toast {
  n: number;
  text: string;
  bad: boolean;
}
const toasts = signal<Toast[]>([]);
let toastCount = 0;

/** Says something in passing; screen readers hear it too. */
export function toast(text: string, bad = false): void {
  const n = ++toastCount;
  toasts.value = [...toasts.value.slice(-2), { n, text, bad }];
  setTimeout(
    () => {
      toasts.value = toasts.value.filter(t => t.n !== n);
    },
    bad ? 8000 : 4000,
  );
}

/** Says what went wrong, unless the reason is that the page is no longer there to be told. */
export function complain(e: unknown): void {
  if (e instanceof DOMException && e.name === 'AbortError') return;
  if (e instanceof Ended) return;
  toast(e instanceof Error ? e.message : String(e), true);
}

/** The modal dialogs that are open, the newest last. What is outside of it is neither bright nor heard. */
const dialogs = signal<string[]>([]);

export function Toasts({ of }: { of?: string }) {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {dialogs.value[dialogs.value.length - 1] === of &&
        toasts.value.map(t => (
          <div key={t.n} class={t.bad ? 'toast bad' : 'toast'}>
            <Icon name={t.bad ? 'warn' : 'check'} />
            <span>{t.text}</span>
          </div>
        ))}
    </div>
  );
}

// ── Loading

/** data is the newest answer, error what went wrong since, if anything; refresh is again, unless somebody asks already. */
export interface Loaded<T> {
  data: T | undefined;
  error: Failure | undefined;
  at: number;
  again: () => void;
  refresh: () => void;
  set: (d: T) => void;
}

const longestLoad = 30_000;

/** Loads something when the inputs change, and forgets answers that come too late. */
export function useLoad<T>(load: (signal: AbortSignal) => Promise<T>, inputs: unknown[]): Loaded<T> {
  const [state, setState] = useState<{ data?: T; error?: Failure; at: number }>({ at: 0 });
  const [round, setRound] = useState(0);
  const busy = useRef(false);
  const again = (): void => setRound(r => r + 1);
  useEffect(() => {
    const stop = new AbortController();
    busy.current = true;
    const end = (change: (s: typeof state) => typeof state): void => {
      if (stop.signal.aborted) return;
      stop.abort(); // also ends whatever else the load is about
      clearTimeout(timer);
      busy.current = false;
      setState(change);
    };
    const timer = setTimeout(
      () => end(s => ({ ...s, error: new Failure(0, 'The server takes too long to answer. Try again in a moment.') })),
      longestLoad,
    );
    load(stop.signal).then(
      data => end(() => ({ data, at: Date.now() })),
      (e: unknown) => end(s => ({ ...s, error: e instanceof Failure ? e : new Failure(0, String(e)) })),
    );
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [...inputs, round]);
  const isBack = !!session.value && state.error instanceof Ended;
  useEffect(() => {
    if (isBack) again();
  }, [isBack]); // signed in again, it goes on
  return {
    data: state.data,
    error: state.error,
    at: state.at,
    again,
    refresh: () => {
      if (!busy.current) again();
    },
    set: data => setState({ data, at: Date.now() }),
  };
}

/** Does something again and again while the page can be seen. */
export function useEvery(ms: number, act: () => void): void {
  const latest = useRef(act);
  latest.current = act;
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden) latest.current();
    }, ms);
    return () => clearInterval(timer);
  }, [ms]);
}

export function Skeleton({ rows = 4 }: { rows?: number }) {
  return (
    <div class="skeleton" aria-busy="true" aria-label="Loading">
      {Array.from({ length: rows }, (_, i) => (
        <span key={i} />
      ))}
    </div>
  );
}

/** Shows what was loaded, or that it is loading, or what to do about it. whole if the page has no title without it. */
export function Show<T>({
  of,
  children,
  rows,
  whole,
}: {
  of: Loaded<T>;
  children: (data: T) => ComponentChildren;
  rows?: number;
  whole?: boolean;
}) {
  if (of.data !== undefined)
    return (
      <>
        {of.error && !(of.error instanceof Ended) && (
          <div class="banner warn" role="status">
            <Icon name="warn" />
            <div>
              <b>{of.error.message}</b>
              <p>What you see is from {clockTime(of.at)}.</p>
            </div>
            <Button small onClick={of.again}>
              Try again
            </Button>
          </div>
        )}
        {children(of.data)}
      </>
    );
  if (of.error && !(of.error instanceof Ended)) {
    return (
      <Empty
        icon="warn"
        whole={whole}
        title={of.error.status === 404 ? 'Nothing here' : 'That did not work'}
        action={
          of.error.status === 404 ? (
            <Link to="/apps" class="button">
              Go to your apps
            </Link>
          ) : (
            <Button onClick={of.again}>Try again</Button>
          )
        }
      >
        {of.error.message}
      </Empty>
    );
  }
  return <Skeleton rows={rows ?? 4} />;
}

// ── Buttons and marks

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

// ── Copying and secrets

async function toClipboard(text: string): Promise<void> {
  if (navigator.clipboard) {
    try {
      await navigator.clipboard.writeText(text);
      return;
    } catch {
      /* not allowed: the old way may be */
    }
  }
  const area = document.createElement('textarea'); // pages from plain http have no other way
  area.value = text;
  area.className = 'offscreen';
  (document.querySelector('dialog[open]') ?? document.body).append(area);
  area.select();
  const done = document.execCommand('copy');
  area.remove();
  if (!done) throw new Error('The browser does not allow copying; select the text instead.');
}

/** Copies a text; one that is costly to make is made when it is asked for. */
export function Copy({ text, what, small = true, children }: Children & { text: string | (() => string); what: string; small?: boolean }) {
  const [done, setDone] = useState(false);
  return (
    <Button
      kind="quiet"
      small={small}
      icon={done ? 'check' : 'copy'}
      label={children ? undefined : `Copy ${what}`}
      onClick={() => {
        toClipboard(typeof text === 'string' ? text : text()).then(() => {
          setDone(true);
          toast(`Copied ${what}`);
          setTimeout(() => setDone(false), 1500);
        }, complain);
      }}
    >
      {children}
    </Button>
  );
}

/** A value that is hidden until somebody asks for it. */
export function Secret({ value, name }: { value: string; name: string }) {
  const [open, setOpen] = useState(false);
  return (
    <span class="secret">
      <code class={open ? '' : 'hidden-value'} aria-label={open ? undefined : `${name}, hidden`}>
        {open ? value : '•'.repeat(24)}
      </code>
      <Button
        kind="quiet"
        small
        icon={open ? 'hide' : 'eye'}
        label={`${open ? 'Hide' : 'Reveal'} ${name}`}
        onClick={() => setOpen(!open)}
      />
      <Copy text={value} what={name} />
    </span>
  );
}

/** A text to copy; what is copied may have keys in it that are not shown. */
export function Code({ text, copied = text, what }: { text: string; copied?: string; what: string }) {
  return (
    <div class="code">
      <pre tabIndex={0} role="region" aria-label={what}>
        {text}
      </pre>
      <Copy text={copied} what={what} />
    </div>
  );
}

export const ID = ({ value, what = 'identifier' }: { value: string; what?: string }) => (
  <span class="id">
    <code>{value}</code>
    <Copy text={value} what={what} />
  </span>
);

// ── Forms

interface FieldProps extends Children {
  label: string;
  hint?: ComponentChildren;
  error?: string | undefined;
  /** Fields with several inputs are groups. */
  group?: boolean;
}

interface InputProps extends FieldProps {
  value: string;
  onInput: (v: string) => void;
  type?: 'text' | 'email' | 'password';
  placeholder?: string;
  autocomplete?: string;
  mono?: boolean;
  suffix?: string;
  focus?: boolean;
  required?: boolean;
  disabled?: boolean;
  name?: string;
  inputMode?: 'numeric' | 'url' | 'email';
}

function FieldFrame({ id, label, hint, error, children }: FieldProps & { id: string }) {
  return (
    <div class={error ? 'field bad' : 'field'}>
      <label for={id}>{label}</label>
      {children}
      <p id={id + '-hint'} class={error ? 'hint error' : 'hint'} aria-live="polite">
        {error ?? hint}
      </p>
    </div>
  );
}

export function Input(p: InputProps) {
  const id = useId(),
    box = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (p.focus) box.current?.focus();
  }, []);
  return (
    <FieldFrame id={id} label={p.label} hint={p.hint} error={p.error}>
      <div class={p.suffix ? 'input suffixed' : 'input'}>
        <input
          ref={box}
          id={id}
          name={p.name}
          type={(p.type ?? 'text') as 'text'}
          value={p.value}
          placeholder={p.placeholder}
          class={p.mono ? 'mono' : ''}
          autocomplete={p.autocomplete ?? 'off'}
          autocapitalize="off"
          spellcheck={false}
          required={p.required}
          disabled={p.disabled}
          autofocus={p.focus /* a dialog looks for it when it opens */}
          inputMode={p.inputMode}
          aria-invalid={p.error ? true : undefined}
          aria-describedby={id + '-hint'}
          onInput={e => p.onInput(e.currentTarget.value)}
        />
        {p.suffix && (
          <span class="suffix" aria-hidden="true">
            {p.suffix}
          </span>
        )}
      </div>
    </FieldFrame>
  );
}

export function TextArea(p: InputProps & { rows?: number }) {
  const id = useId();
  return (
    <FieldFrame id={id} label={p.label} hint={p.hint} error={p.error}>
      <textarea
        id={id}
        rows={p.rows ?? 4}
        value={p.value}
        placeholder={p.placeholder}
        class={p.mono ? 'mono' : ''}
        spellcheck={false}
        aria-invalid={p.error ? true : undefined}
        aria-describedby={id + '-hint'}
        onInput={e => p.onInput(e.currentTarget.value)}
      />
    </FieldFrame>
  );
}

export function Select<T extends string>(p: FieldProps & { value: T; onChange: (v: T) => void; options: [T, string][] }) {
  const id = useId();
  return (
    <FieldFrame id={id} label={p.label} hint={p.hint} error={p.error}>
      <select id={id} value={p.value} aria-describedby={id + '-hint'} onChange={e => p.onChange(e.currentTarget.value as T)}>
        {p.options.map(([v, text]) => (
          <option key={v} value={v}>
            {text}
          </option>
        ))}
      </select>
    </FieldFrame>
  );
}

export function Check({
  label,
  hint,
  value,
  onChange,
}: {
  label: string;
  hint?: ComponentChildren;
  value: boolean;
  onChange: (v: boolean) => void;
}) {
  const id = useId();
  return (
    <div class="check">
      <input id={id} type="checkbox" checked={value} aria-describedby={id + '-hint'} onChange={e => onChange(e.currentTarget.checked)} />
      <label for={id}>{label}</label>
      <p id={id + '-hint'} class="hint">
        {hint}
      </p>
    </div>
  );
}

/** A choice between few things that deserve a sentence each. */
export function Choice<T extends string>({
  label,
  value,
  onChange,
  options,
  disabled,
}: {
  label: string;
  value: T;
  onChange: (v: T) => void;
  options: [T, string, string][];
  disabled?: boolean;
}) {
  const name = useId();
  return (
    <fieldset class="choice" disabled={disabled}>
      <legend>{label}</legend>
      <div class="choice-options">
        {options.map(([v, title, text]) => (
          <label key={v} class={v === value ? 'chosen' : ''}>
            <input type="radio" name={name} value={v} checked={v === value} onChange={() => onChange(v)} />
            <span>
              <b>{title}</b>
              <small>{text}</small>
            </span>
          </label>
        ))}
      </div>
    </fieldset>
  );
}

/** A form that does one thing, cannot be sent twice, and hands field errors back. */
export function Form({ onSubmit, children, class: name }: Children & { onSubmit: () => void; class?: string }) {
  return (
    <form
      class={name ?? 'form'}
      noValidate
      onSubmit={e => {
        e.preventDefault();
        onSubmit();
      }}
    >
      {children}
    </form>
  );
}

/** Runs something once at a time. What goes wrong is kept for the form, or told in passing. */
export function useTask(): { busy: boolean; error: Failure | undefined; run: (task: () => Promise<void>) => void; clear: () => void } {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<Failure>();
  const isRunning = useRef(false); // the state is known a moment later, and two clicks may come before
  return {
    busy,
    error,
    clear: () => setError(undefined),
    run: task => {
      if (isRunning.current) return;
      isRunning.current = true;
      setBusy(true);
      setError(undefined);
      task()
        .catch((e: unknown) => {
          if (e instanceof Failure && !(e instanceof Ended)) setError(e);
          else complain(e);
        })
        .finally(() => {
          isRunning.current = false;
          setBusy(false);
        });
    },
  };
}

/** What is wrong with a form as a whole: the message, and errors of fields that the form does not show. */
export function FormError({ error, shown = [] }: { error: Failure | undefined; shown?: string[] }) {
  if (!error) return null;
  const others = error.fields.filter(f => !shown.includes(f.field));
  if (error.fields.length > 0 && others.length === 0) return null;
  return (
    <div class="banner bad" role="alert">
      <Icon name="warn" />
      <div>
        {error.message}
        {others.map(f => (
          <p key={f.field}>
            <code>{f.field}</code> {f.message}
          </p>
        ))}
      </div>
    </div>
  );
}

// ── Dialogs

interface DialogProps extends Children {
  title: string;
  onClose: () => void;
  wide?: boolean;
}

/** A modal dialog. The browser keeps the focus inside, closes it with Escape and gives the focus back. */
export function Dialog({ title, onClose, children, wide }: DialogProps) {
  const box = useRef<HTMLDialogElement>(null),
    id = useId(),
    isSignedIn = !!session.value;
  useEffect(() => {
    if (!isSignedIn) return; // an open dialog would keep everybody from signing in again
    const d = box.current!,
      before = document.activeElement;
    d.showModal();
    dialogs.value = [...dialogs.value, id];
    return () => {
      d.close();
      dialogs.value = dialogs.value.filter(o => o !== id);
      if (before instanceof HTMLElement) before.focus();
    };
  }, [isSignedIn]);
  return (
    <dialog
      ref={box}
      class={wide ? 'wide' : ''}
      aria-labelledby={id}
      onCancel={e => {
        e.preventDefault();
        onClose();
      }}
      onMouseDown={e => {
        if (e.target === box.current) onClose();
      }}
    >
      <div class="dialog">
        <header>
          <h2 id={id}>{title}</h2>
          <Button kind="quiet" icon="close" label="Close" onClick={onClose} />
        </header>
        {children}
      </div>
      <Toasts of={id} />
    </dialog>
  );
}

interface ConfirmProps extends Children {
  title: string;
  verb: string;
  /** A text that has to be typed first, for what cannot be undone. */
  type?: string;
  onConfirm: () => Promise<void>;
  onClose: () => void;
  danger?: boolean;
}

export function Confirm({ title, verb, type, onConfirm, onClose, children, danger = true }: ConfirmProps) {
  const task = useTask();
  const [typed, setTyped] = useState('');
  const ready = type === undefined || typed === type;
  return (
    <Dialog title={title} onClose={onClose}>
      <Form
        onSubmit={() => {
          if (ready)
            task.run(async () => {
              await onConfirm();
              onClose();
            });
        }}
      >
        <div class="prose">{children}</div>
        {type !== undefined && <Input label={`Type “${type}” to confirm`} value={typed} onInput={setTyped} focus />}
        <FormError error={task.error} />
        <footer>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" kind={danger ? 'danger' : 'primary'} disabled={!ready} busy={task.busy}>
            {verb}
          </Button>
        </footer>
      </Form>
    </Dialog>
  );
}

// ── Tables

export interface Column<T> {
  head: string;
  cell: (row: T) => ComponentChildren;
  class?: string;
}

export function Table<T extends { id: string }>({ rows, columns, label }: { rows: T[]; columns: Column<T>[]; label: string }) {
  return (
    <div class="table" role="region" aria-label={label} tabIndex={0}>
      <table>
        <thead>
          <tr>
            {columns.map(c => (
              <th key={c.head} scope="col" class={c.class}>
                {c.head || <span class="offscreen">Actions</span>}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(r => (
            <tr key={r.id}>
              {columns.map(c => (
                <td key={c.head} class={c.class} data-head={c.head}>
                  {c.cell(r)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export function Search({ value, onInput, label }: { value: string; onInput: (v: string) => void; label: string }) {
  return (
    <div class="search">
      <Icon name="search" size={16} />
      <input type="search" value={value} placeholder={label} aria-label={label} onInput={e => onInput(e.currentTarget.value)} />
    </div>
  );
}

export function Pager({ page, perPage, total, onPage }: { page: number; perPage: number; total: number; onPage: (p: number) => void }) {
  if (total <= perPage) return null;
  const last = Math.ceil(total / perPage) - 1;
  page = Math.min(page, last);
  return (
    <nav class="pager" aria-label="Pages">
      <Button small icon="prev" label="Previous page" disabled={page === 0} onClick={() => onPage(page - 1)} />
      <span>
        {count(page * perPage + 1)}–{count(Math.min(total, (page + 1) * perPage))} of {count(total)}
      </span>
      <Button small icon="next" label="Next page" disabled={page >= last} onClick={() => onPage(page + 1)} />
    </nav>
  );
}

/** Which page of a listing the address names. */
export const pageNumber = (): number => (/^\d{1,9}$/.test(param('page')) ? Number(param('page')) : 0);
export const toPage = (n: number): void => setParams({ page: n ? String(n) : '' });

/** What a listing shows on a page behind its last. */
export const NoSuchPart = () => (
  <Empty icon="search" title="The list is shorter by now" action={<Button onClick={() => toPage(0)}>Go to its beginning</Button>} />
);

interface Named {
  id: string;
  name: string;
}
interface ListingProps<T> {
  items: T[];
  total: number;
  what: string;
  label: string;
  columns: Column<T>[];
}

const rowsOnPage = 50;

/** Things with names, page by page, and a way to find some. Where one is stands in the address. */
export function Listing<T extends Named>({ items, total, what, label, columns }: ListingProps<T>) {
  const query = param('query'),
    q = query.trim().toLowerCase(),
    page = pageNumber();
  const found = q ? items.filter(i => i.name.toLowerCase().includes(q) || i.id.startsWith(q)) : items;
  const from = Math.min(page, Math.max(0, Math.ceil(found.length / rowsOnPage) - 1)) * rowsOnPage;
  return (
    <Card
      flush
      title={plural(total, what)}
      aside={
        (items.length > 5 || query) && (
          <Search
            value={query}
            onInput={query => setParams({ query, page: '' })}
            label={`Find ${/^[aeiou]/.test(what) ? 'an' : 'a'} ${what}`}
          />
        )
      }
    >
      {found.length === 0 ? (
        <Empty icon="search" title={`No ${what} matches`}>
          Search for a part of its name, or the beginning of its identifier.
        </Empty>
      ) : (
        <Table label={label} rows={found.slice(from, from + rowsOnPage)} columns={columns} />
      )}
      {items.length < total && <p class="hint short-list">These are the first {count(items.length)}; the API has them all.</p>}
      <Pager page={page} perPage={rowsOnPage} total={found.length} onPage={toPage} />
    </Card>
  );
}
