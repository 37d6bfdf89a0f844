// All apps.
import { useState } from 'preact/hooks';
import { all, type App, call, id } from '../api';
import { ago } from '../format';
import { Link, navigate, search } from '../router';
import { checkText } from '../rules';
import { Badge, Button, Card, Code, Dialog, Empty, Form, FormError, Head, Input, Listing, Show, useLoad, useTask } from '../ui';

export function Apps() {
  const list = useLoad(s => all<App>('/apps', s), []);
  const making = new URLSearchParams(search.value).has('new'); // in the address, so that one can go back from it
  const setMaking = (is: boolean): void => navigate(is ? '/apps?new' : '/apps', !is);
  return (
    <>
      <Head
        title="Apps"
        actions={
          <Button kind="primary" icon="plus" onClick={() => setMaking(true)}>
            New app
          </Button>
        }
      >
        An app groups topics that share keys.
      </Head>
      <Show of={list} rows={6}>
        {({ items, total }) =>
          total === 0 ? (
            <NoApps onNew={() => setMaking(true)} />
          ) : (
            <Listing
              what="app"
              label="Apps"
              items={items}
              total={total}
              columns={[
                {
                  head: 'Name',
                  cell: a => (
                    <Link to={`/apps/${id(a.id)}`} class="row-link">
                      {a.name}
                    </Link>
                  ),
                },
                {
                  head: 'Options',
                  cell: a => (
                    <>
                      {a.auto_provisioning_allowed && <Badge>auto-provisioning</Badge>}
                      {a.client_request_signature_enabled && <Badge>signed requests</Badge>}
                    </>
                  ),
                },
                { head: 'Created', class: 'right dim', cell: a => ago(a.created_at) },
              ]}
            />
          )
        }
      </Show>
      {making && <MakeApp onClose={() => setMaking(false)} />}
    </>
  );
}

export function NoApps({ onNew }: { onNew: () => void }) {
  return (
    <Card>
      <Empty
        icon="apps"
        title="Make your first app"
        action={
          <Button kind="primary" icon="plus" onClick={onNew}>
            New app
          </Button>
        }
      >
        <p>An app holds topics, and comes with three keys: one to publish, one to subscribe, one to sign requests.</p>
        <p>From a terminal, it is one call:</p>
        <Code
          what="the command"
          text={[
            `curl -X POST ${location.origin}/api/v1/apps \\`,
            '  -H "Authorization: Bearer $token" -H "Content-Type: application/json" \\',
            `  -d '{"name": "Quotes"}'`,
          ].join('\n')}
        />
      </Empty>
    </Card>
  );
}

export function MakeApp({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState('');
  const [tried, setTried] = useState(false);
  const task = useTask();
  const wrong = checkText(name, 200);
  return (
    <Dialog title="New app" onClose={onClose}>
      <Form
        onSubmit={() => {
          setTried(true);
          if (!wrong)
            task.run(async () => {
              const made = await call<App>('POST', '/apps', { body: { name } });
              onClose();
              navigate(`/apps/${id(made.id)}`);
            });
        }}
      >
        <Input
          label="Name"
          value={name}
          onInput={v => {
            task.clear();
            setName(v);
          }}
          placeholder="Quotes"
          focus
          hint="Unique among your apps"
          error={task.error?.field('name') ?? (tried || [...name].length > 200 ? wrong : undefined)}
        />
        <FormError error={task.error} shown={['name']} />
        <footer>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" kind="primary" busy={task.busy}>
            Create app
          </Button>
        </footer>
      </Form>
    </Dialog>
  );
}
