// Signing in and signing up.
import { useEffect, useState } from 'preact/hooks';
import { call, config, type Token } from '../api';
import { Logo } from '../icons';
import { Link, search } from '../router';
import { begin, notice } from '../session';
import { Brightness } from '../shell';
import { Button, Form, FormError, Input, useTask } from '../ui';
import { checkEmail, checkPassword, checkText } from '../rules';

async function open(email: string, password: string): Promise<void> {
  const t = await call<Token>('PUT', '/session', { body: { email, password }, anonymous: true });
  const user =
    t.links
      .find(l => l.rel === 'user')
      ?.href.split('/')
      .pop() ?? '';
  begin({ token: t.token, expiresAt: Date.parse(t.expires_at), userID: user });
}

function Frame({ title, children }: { title: string; children: preact.ComponentChildren }) {
  useEffect(() => {
    const before = document.title;
    document.title = `${title} · Freshet`;
    return () => {
      document.title = before;
    }; // of the page that one comes back to
  }, [title]);
  return (
    <div class="sign">
      <main class="sign-form" id="main">
        <div class="brand">
          <Logo size={34} />
          <span>Freshet</span>
        </div>
        <h1>{title}</h1>
        {children}
      </main>
      <aside class="sign-show" aria-hidden="true">
        <Demo />
      </aside>
      <footer class="sign-theme">
        <Brightness />
      </footer>
    </div>
  );
}

export function SignIn() {
  const [email, setEmail] = useState(''),
    [password, setPassword] = useState('');
  const task = useTask();
  return (
    <Frame title="Sign in">
      {notice.value && (
        <div class="banner" role="status">
          {notice.value}
        </div>
      )}
      <Form class="form tight" onSubmit={() => task.run(() => open(email, password))}>
        <Input label="E-mail" name="email" type="email" autocomplete="username" value={email} onInput={setEmail} focus required />
        <Input
          label="Password"
          name="password"
          type="password"
          autocomplete="current-password"
          value={password}
          onInput={setPassword}
          required
        />
        <FormError error={task.error} />
        <Button type="submit" kind="primary" busy={task.busy}>
          Sign in
        </Button>
      </Form>
      {config.value?.open_sign_up !== false && (
        <p class="sign-other">
          New here? <Link to={'/signup' + search.value}>Create an account</Link>
        </p>
      )}
    </Frame>
  );
}

/** The browser's language as a locale of ours. */
const locale = (): string => {
  const [language, region] = navigator.language.split('-');
  return /^[a-z]{2,3}$/.test(language ?? '') ? `${language}_${/^[A-Z]{2}$/.test(region ?? '') ? region : 'GB'}` : 'en_GB';
};

export function SignUp() {
  const [form, setForm] = useState({ email: '', password: '', first_name: '', last_name: '' });
  const [touched, setTouched] = useState(false);
  const task = useTask();
  const set = (k: keyof typeof form) => (v: string) => {
    task.clear();
    setForm(f => ({ ...f, [k]: v }));
  };
  const errors = {
    email: checkEmail(form.email),
    password: checkPassword(form.password),
    first_name: checkText(form.first_name, 100),
    last_name: checkText(form.last_name, 100),
  };
  const say = (k: keyof typeof form): string | undefined => task.error?.field(k) ?? (touched || form[k] ? errors[k] : undefined);
  return (
    <Frame title="Create an account">
      <Form
        onSubmit={() => {
          setTouched(true);
          if (Object.values(errors).some(Boolean)) return;
          task.run(async () => {
            await call('POST', '/users', { body: { ...form, language: locale() }, anonymous: true });
            await open(form.email, form.password);
          });
        }}
      >
        <div class="pair">
          <Input
            label="First name"
            autocomplete="given-name"
            value={form.first_name}
            onInput={set('first_name')}
            error={say('first_name')}
            focus
          />
          <Input label="Last name" autocomplete="family-name" value={form.last_name} onInput={set('last_name')} error={say('last_name')} />
        </div>
        <Input label="E-mail" type="email" autocomplete="username" value={form.email} onInput={set('email')} error={say('email')} />
        <Input
          label="Password"
          type="password"
          autocomplete="new-password"
          value={form.password}
          onInput={set('password')}
          error={say('password')}
          hint="At least 8 characters"
        />
        <FormError error={task.error} shown={['email', 'password', 'first_name', 'last_name']} />
        <Button type="submit" kind="primary" busy={task.busy}>
          Create account
        </Button>
      </Form>
      <p class="sign-other">
        Have an account? <Link to={'/signin' + search.value}>Sign in</Link>
      </p>
    </Frame>
  );
}

const symbols: [string, number][] = [
  ['ACME', 101.5],
  ['INIT', 47.12],
  ['NORD', 233.4],
  ['RHEA', 12.86],
  ['VOLT', 78.03],
];

/** What the service does, in miniature: a document, and only what changes. */
function Demo() {
  const [state, setState] = useState({ prices: symbols.map(s => s[1]), at: -1, n: 41 });
  useEffect(() => {
    if (matchMedia('(prefers-reduced-motion: reduce)').matches) return;
    const timer = setInterval(
      () =>
        setState(s => {
          const at = (s.at + 1 + Math.floor(Math.random() * 4)) % symbols.length;
          return {
            at,
            n: s.n + 1,
            prices: s.prices.map((p, i) => (i === at ? Math.round((p + (Math.random() - 0.48) * 2) * 100) / 100 : p)),
          };
        }),
      1500,
    );
    return () => clearInterval(timer);
  }, []);
  const patch =
    state.at >= 0 ? `[{"op":"replace","path":"/${symbols[state.at]![0]}","value":${state.prices[state.at]}}]` : 'data: {"ACME":101.5, …}';
  return (
    <div class="demo">
      <p class="demo-lead">
        JSON that changes,
        <br />
        as a stream.
      </p>
      <div class="demo-doc">
        <span class="dim">{'{'}</span>
        {symbols.map(([name], i) => (
          <span key={name} class="demo-row">
            {'  '}
            <b>"{name}"</b>:{' '}
            <i key={i === state.at ? state.n : 0} class={i === state.at ? 'changed' : ''}>
              {state.prices[i]!.toFixed(2)}
            </i>
            {i < symbols.length - 1 ? ',' : ''}
          </span>
        ))}
        <span class="dim">{'}'}</span>
      </div>
      <div class="demo-event" key={state.n}>
        <span class="dim">event:</span> {state.at >= 0 ? 'patch' : 'snapshot'}
        <br />
        <span class="demo-patch">{patch}</span>
      </div>
    </div>
  );
}
