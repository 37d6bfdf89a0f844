// For admins: every account, its state and its quotas.
import { useEffect, useState } from 'preact/hooks';
import { type App, call, get, id, me, type Page, type User } from '../api';
import { ago, count, plural } from '../format';
import { Link, param, setParams } from '../router';
import {
  Badge,
  Button,
  Card,
  Choice,
  Confirm,
  Dialog,
  Empty,
  Form,
  FormError,
  Head,
  ID,
  NoSuchPart,
  pageNumber,
  Pager,
  Search,
  Show,
  Table,
  toast,
  toPage,
  useLoad,
  useTask,
} from '../ui';
import { limit } from './account';
import { changed, QuotaInputs, quotaFields, typed, wrong } from './quotas';

const perPage = 50;

/** Follows a value once it rests, so that not every letter asks the server. */
function useRest<T>(value: T, ms = 250): T {
  const [rested, setRested] = useState(value);
  useEffect(() => {
    const t = setTimeout(() => setRested(value), ms);
    return () => clearTimeout(t);
  }, [value]);
  return rested;
}

export function Users() {
  const query = param('query'),
    page = pageNumber();
  const asked = useRest(query);
  const [editing, setEditing] = useState<User>(),
    [deleting, setDeleting] = useState<User>();
  const list = useLoad(
    s => get<Page<User>>(`/admin/users?per_page=${perPage}&page=${page}${asked ? '&query=' + encodeURIComponent(asked) : ''}`, s),
    [asked, page],
  );
  return (
    <>
      <Head title="Users">Every account of this server.</Head>
      <Show of={list} rows={6}>
        {p => (
          <Card
            flush
            title={plural(p.total, 'user')}
            aside={<Search value={query} onInput={query => setParams({ query, page: '' })} label="Find by e-mail or name" />}
          >
            {p.items.length === 0 ? (
              p.total > 0 ? (
                <NoSuchPart />
              ) : (
                <Empty icon="search" title="Nobody matches">
                  Search for a part of an e-mail address or a name.
                </Empty>
              )
            ) : (
              <Table
                label="Users"
                rows={p.items}
                columns={[
                  {
                    head: 'User',
                    cell: u => (
                      <span class="two-lines">
                        <b>
                          {u.first_name} {u.last_name}
                        </b>
                        <small>{u.email}</small>
                      </span>
                    ),
                  },
                  {
                    head: 'State',
                    cell: u => (
                      <>
                        {u.status === 'active' ? <Badge tone="ok">active</Badge> : <Badge tone="bad">disabled</Badge>}
                        {u.role === 'admin' && <Badge tone="accent">admin</Badge>}
                      </>
                    ),
                  },
                  { head: 'Connections', class: 'right', cell: u => limit(u.quotas.connections) },
                  { head: 'Messages a month', class: 'right', cell: u => limit(u.quotas.messages_per_month) },
                  { head: 'Since', class: 'right dim', cell: u => ago(u.created_at) },
                  {
                    head: '',
                    class: 'right',
                    cell: u => (
                      <span class="row-actions">
                        <Link to={`/admin/connections?user=${id(u.id)}`} class="button small">
                          Connections<span class="offscreen"> of {u.email}</span>
                        </Link>
                        <Button small onClick={() => setEditing(u)}>
                          Edit<span class="offscreen"> {u.email}</span>
                        </Button>
                      </span>
                    ),
                  },
                ]}
              />
            )}
            <Pager page={p.page} perPage={p.per_page} total={p.total} onPage={toPage} />
          </Card>
        )}
      </Show>
      {editing && (
        <EditUser
          user={editing}
          onClose={() => setEditing(undefined)}
          onDone={() => {
            setEditing(undefined);
            list.again();
          }}
          onDelete={() => {
            setEditing(undefined);
            setDeleting(editing);
          }}
        />
      )}
      {deleting && (
        <Confirm
          title={`Delete ${deleting.first_name} ${deleting.last_name}?`}
          verb="Delete account"
          type={deleting.email}
          onClose={() => setDeleting(undefined)}
          onConfirm={async () => {
            await call('DELETE', '/users/' + id(deleting.id));
            toast('The account is gone');
            list.again();
          }}
        >
          <p>Their apps, topics and keys go with the account, and every stream ends. To keep them, disable the account instead.</p>
        </Confirm>
      )}
    </>
  );
}

/** Their apps lead to their topics: admins may see and change all of them. */
function TheirApps({ user }: { user: User }) {
  const apps = useLoad(s => get<Page<App>>(`/users/${id(user.id)}/apps?per_page=20`, s), [user.id]);
  return (
    <div class="their-apps">
      <b>Apps</b>
      <p class="hint">
        {!apps.data ? (
          (apps.error?.message ?? '…')
        ) : apps.data.total === 0 ? (
          'None yet'
        ) : (
          <>
            {apps.data.items.map(a => (
              <Link key={a.id} to={`/apps/${id(a.id)}`} class="badge accent">
                {a.name}
              </Link>
            ))}
            {apps.data.total > apps.data.items.length && ` and ${count(apps.data.total - apps.data.items.length)} more`}
          </>
        )}
      </p>
    </div>
  );
}

function EditUser({ user, onClose, onDone, onDelete }: { user: User; onClose: () => void; onDone: () => void; onDelete: () => void }) {
  const [status, setStatus] = useState(user.status);
  const [quotas, setQuotas] = useState(typed(user.quotas));
  const task = useTask(),
    isSelf = user.id === me.value?.id;
  return (
    <Dialog title={`${user.first_name} ${user.last_name}`} onClose={onClose}>
      <Form
        onSubmit={() => {
          if (wrong(quotas)) return;
          task.run(async () => {
            const body: Record<string, unknown> = { quotas: changed(quotas, user.quotas) };
            if (status !== user.status) body.status = status;
            await call('PATCH', '/admin/users/' + id(user.id), { body });
            toast('Saved');
            onDone();
          });
        }}
      >
        <p class="prose">
          {user.email}
          <br />
          <ID value={user.id} what="user identifier" />
        </p>
        <Choice
          label="State"
          value={status}
          onChange={setStatus}
          disabled={isSelf}
          options={[
            ['active', 'Active', 'May sign in, publish and subscribe.'],
            ['disabled', 'Disabled', 'Tokens and streams end at once. Nothing is deleted.'],
          ]}
        />
        {isSelf && <p class="hint">You cannot disable yourself; ask another admin.</p>}
        <QuotaInputs value={quotas} onInput={setQuotas} error={task.error} requests="API requests a minute" />
        <TheirApps user={user} />
        <FormError error={task.error} shown={quotaFields} />
        <footer>
          {user.role !== 'admin' && (
            <Button kind="danger" icon="trash" onClick={onDelete}>
              Delete
            </Button>
          )}
          <span class="spring" />
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" kind={status === 'disabled' && user.status === 'active' ? 'danger' : 'primary'} busy={task.busy}>
            Save
          </Button>
        </footer>
      </Form>
    </Dialog>
  );
}
