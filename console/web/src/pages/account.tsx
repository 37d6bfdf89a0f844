// One's own account.
import { useState } from 'preact/hooks';
import { call, Failure, id, me, onlyChanged, type User } from '../api';
import { bytes, count, date } from '../format';
import { checkEmail, checkLocale, checkPassword, checkText } from '../rules';
import { navigate } from '../router';
import { end, notice } from '../session';
import { signOut } from '../shell';
import { Button, Card, Confirm, Form, FormError, Head, ID, Input, Stat, toast, useTask } from '../ui';

export const limit = (n: number): string => (n === 0 ? 'unlimited' : count(n));

export function Account() {
  const user = me.value!;
  return (
    <>
      <Head title="Account">
        <ID value={user.id} what="user identifier" />
      </Head>
      <dl class="stats">
        <Stat label="Connections" value={limit(user.quotas.connections)} hint="at the same time" />
        <Stat label="Messages" value={limit(user.quotas.messages_per_month)} hint="per month" />
        <Stat label="API requests" value={limit(user.quotas.requests_per_minute)} hint="per minute" />
        <Stat label="Topics" value={limit(user.quotas.topics)} hint="in all apps" />
        <Stat
          label="Documents"
          value={user.quotas.document_bytes === 0 ? 'unlimited' : bytes(user.quotas.document_bytes)}
          hint="newest ones together"
        />
        <Stat label="Member since" value={<span class="stat-text">{date(user.created_at)}</span>} hint={user.role} />
      </dl>
      <Profile user={user} />
      <Password user={user} />
      <Sessions />
      <DeleteAccount user={user} />
    </>
  );
}

function Profile({ user }: { user: User }) {
  const before = { first_name: user.first_name, last_name: user.last_name, email: user.email, language: user.language };
  const [form, setForm] = useState(before),
    [current, setCurrent] = useState('');
  const task = useTask();
  const otherEmail = form.email !== before.email;
  const set =
    (k: keyof typeof form) =>
    (v: string): void => {
      task.clear();
      setForm(f => ({ ...f, [k]: v }));
    };
  const wrong = {
    first_name: checkText(form.first_name, 100),
    last_name: checkText(form.last_name, 100),
    email: checkEmail(form.email),
    language: checkLocale(form.language),
  };
  const say = (k: keyof typeof form): string | undefined => task.error?.field(k) ?? wrong[k];
  return (
    <Card title="Profile">
      <Form
        onSubmit={() => {
          if (!Object.values(wrong).some(Boolean))
            task.run(async () => {
              const body = onlyChanged(form, before);
              me.value = await call<User>('PATCH', '/users/' + id(user.id), {
                body: otherEmail ? { ...body, current_password: current } : body,
              });
              setCurrent('');
              toast('Saved');
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
          />
          <Input label="Last name" autocomplete="family-name" value={form.last_name} onInput={set('last_name')} error={say('last_name')} />
        </div>
        <div class="pair">
          <Input
            label="E-mail"
            type="email"
            autocomplete="email"
            value={form.email}
            onInput={set('email')}
            error={say('email')}
            hint="You sign in with it"
          />
          <Input label="Language" value={form.language} onInput={set('language')} error={say('language')} hint="A locale like fr_FR" />
        </div>
        {otherEmail && (
          <CurrentPassword
            value={current}
            onInput={v => {
              task.clear();
              setCurrent(v);
            }}
            error={task.error}
            hint="Another e-mail needs it"
          />
        )}
        <FormError error={task.error} shown={[...Object.keys(form), 'current_password']} />
        <footer>
          <Button type="submit" kind="primary" busy={task.busy} disabled={otherEmail && !current}>
            Save profile
          </Button>
        </footer>
      </Form>
    </Card>
  );
}

// Whoever finds an open tab must not be able to take the account over.
function CurrentPassword({
  value,
  onInput,
  error,
  hint,
}: {
  value: string;
  onInput: (v: string) => void;
  error: Failure | undefined;
  hint?: string;
}) {
  return (
    <Input
      label="Current password"
      type="password"
      autocomplete="current-password"
      value={value}
      onInput={onInput}
      error={error?.field('current_password')}
      hint={hint}
    />
  );
}

function Password({ user }: { user: User }) {
  const [current, setCurrent] = useState(''),
    [password, setPassword] = useState(''),
    [again, setAgain] = useState('');
  const task = useTask();
  const wrong = password ? checkPassword(password) : undefined,
    differs = again && again !== password ? 'is not the same' : undefined;
  return (
    <Card title="Password">
      <Form
        onSubmit={() => {
          if (!current || !password || wrong || again !== password) return;
          task.run(async () => {
            await call('PATCH', '/users/' + id(user.id), { body: { password, current_password: current } });
            end();
            notice.value = 'Your password is new. Sign in with it.';
            navigate('/signin', true);
          });
        }}
      >
        <CurrentPassword
          value={current}
          onInput={v => {
            task.clear();
            setCurrent(v);
          }}
          error={task.error}
        />
        <div class="pair">
          <Input
            label="New password"
            type="password"
            autocomplete="new-password"
            value={password}
            onInput={setPassword}
            error={task.error?.field('password') ?? wrong}
            hint="At least 8 characters"
          />
          <Input label="Once more" type="password" autocomplete="new-password" value={again} onInput={setAgain} error={differs} />
        </div>
        <FormError error={task.error} shown={['password', 'current_password']} />
        <footer>
          <span class="hint">A new password ends every session, this one included.</span>
          <Button type="submit" kind="primary" busy={task.busy} disabled={!current || !password || !!wrong || again !== password}>
            Change password
          </Button>
        </footer>
      </Form>
    </Card>
  );
}

function Sessions() {
  const [asking, setAsking] = useState(false);
  return (
    <Card title="Sessions">
      <div class="danger-row">
        <p>This session lives in this tab only, and ends by itself. Signed in on a machine you no longer trust? End all sessions.</p>
        <div class="actions">
          <Button onClick={() => void signOut()}>Sign out</Button>
          <Button kind="danger" onClick={() => setAsking(true)}>
            Sign out everywhere
          </Button>
        </div>
      </div>
      {asking && (
        <Confirm
          title="Sign out everywhere?"
          verb="Sign out everywhere"
          onClose={() => setAsking(false)}
          onConfirm={async () => {
            try {
              await call('DELETE', '/sessions');
            } catch (e) {
              if (e instanceof Failure && e.status === 404)
                throw new Failure(404, 'This server cannot end all sessions at once. Change your password instead: that does.');
              throw e;
            }
            end();
            notice.value = 'You are signed out everywhere.';
            navigate('/signin', true);
          }}
        >
          <p>
            Every token of your account stops working at once, also those that scripts use. Streams and publishers go on: they use keys.
          </p>
        </Confirm>
      )}
    </Card>
  );
}

function DeleteAccount({ user }: { user: User }) {
  const [asking, setAsking] = useState(false);
  if (user.role === 'admin') return null;
  return (
    <Card title="Delete your account">
      <div class="danger-row">
        <p>Your apps, topics and keys go with it, and every stream ends. This cannot be undone.</p>
        <Button kind="danger" icon="trash" onClick={() => setAsking(true)}>
          Delete account
        </Button>
      </div>
      {asking && (
        <Confirm
          title="Delete your account?"
          verb="Delete account"
          type={user.email}
          onClose={() => setAsking(false)}
          onConfirm={async () => {
            await call('DELETE', '/users/' + id(user.id));
            end();
            notice.value = 'Your account is gone.';
            navigate('/signin', true);
          }}
        >
          <p>Everything you made here ends at once, for good.</p>
        </Confirm>
      )}
    </Card>
  );
}
