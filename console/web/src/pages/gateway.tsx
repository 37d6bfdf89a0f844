// The gateway, for admins: APIs that it forwards, what runs before them, and who may call them.
import { useState } from 'preact/hooks';
import { call, Failure, get, id } from '../api';
import { plural } from '../format';
import { Badge, Button, Card, Code, Confirm, Empty, Head, Show, Table, toast, useLoad } from '../ui';
import { all, type API, APIForm, at, type Consumer, ConsumerForm, Keys, type List, nameOf, type Plugin, Plugins } from './gatewayforms';

interface State {
  apis: List<API>;
  own: List<API>;
  plugins: List<Plugin>;
  consumers: List<Consumer>;
}

/** null where the process that answers has no gateway. */
async function load(signal: AbortSignal): Promise<State | null> {
  try {
    const [apis, own, plugins, consumers] = await Promise.all([
      get<List<API>>(`${at}/apis${all}`, signal),
      get<List<API>>(`${at}/apis${all}&built_in=true`, signal),
      get<List<Plugin>>(`${at}/plugins${all}`, signal),
      get<List<Consumer>>(`${at}/consumers${all}`, signal),
    ]);
    return { apis, own, plugins, consumers };
  } catch (e) {
    if (e instanceof Failure && e.status === 404) return null;
    throw e;
  }
}

/** What the page shows on top of itself. */
type Open =
  | { what: 'api'; api?: API }
  | { what: 'plugins'; api: API }
  | { what: 'consumer'; consumer?: Consumer }
  | { what: 'keys'; consumer: Consumer }
  | { what: 'delete'; path: string; title: string; text: string };

export function Gateway() {
  const state = useLoad(load, []);
  const [open, setOpen] = useState<Open>();
  const close = (): void => setOpen(undefined);
  const done = (text: string): void => {
    toast(text);
    state.again();
  };
  const there = !!state.data;
  return (
    <>
      <Head
        title="Gateway"
        actions={
          there && (
            <Button kind="primary" icon="plus" onClick={() => setOpen({ what: 'api' })}>
              New API
            </Button>
          )
        }
      >
        APIs that this server forwards, what runs before them, and who may call them.
      </Head>
      <Show of={state}>{g => (g === null ? <Elsewhere /> : <Lists state={g} open={setOpen} />)}</Show>
      {open?.what === 'api' && <APIForm api={open.api} onClose={close} done={done} />}
      {open?.what === 'consumer' && <ConsumerForm consumer={open.consumer} onClose={close} done={done} />}
      {open?.what === 'plugins' && (
        <Plugins
          api={open.api}
          plugins={(state.data?.plugins.data ?? []).filter(p => p.api_id === open.api.id)}
          consumers={state.data?.consumers.data ?? []}
          onClose={close}
          done={done}
        />
      )}
      {open?.what === 'keys' && <Keys consumer={open.consumer} onClose={close} />}
      {open?.what === 'delete' && (
        <Confirm
          title={open.title}
          verb="Delete"
          onClose={close}
          onConfirm={async () => {
            await call('DELETE', at + open.path);
            done('It is gone');
          }}
        >
          <p>{open.text}</p>
        </Confirm>
      )}
    </>
  );
}

function Elsewhere() {
  return (
    <Card>
      <Empty icon="gateway" title="The gateway runs in another process">
        <p>The one that answers here has no gateway role. Where it runs, its administration listens on that machine:</p>
        <Code
          what="the commands"
          text={[
            'curl -X POST http://127.0.0.1:8001/apis/ \\',
            '  -d name=quotes -d upstream_url=http://127.0.0.1:9000 -d request_path=/quotes',
          ].join('\n')}
        />
      </Empty>
    </Card>
  );
}

function Lists({ state: g, open }: { state: State; open: (o: Open) => void }) {
  const plugins = (a: API) =>
    g.plugins.data
      .filter(p => p.api_id === a.id)
      .map(p => (
        <Badge key={p.id} tone={p.enabled ? 'accent' : 'plain'}>
          {p.name}
          {p.enabled ? '' : ', off'}
        </Badge>
      ));
  const pluginsButton = (a: API) => (
    <Button small onClick={() => open({ what: 'plugins', api: a })}>
      Plugins<span class="offscreen"> of {a.name}</span>
    </Button>
  );
  return (
    <>
      <Card flush title={plural(g.apis.total, 'API')}>
        {g.apis.total === 0 ? (
          <Empty
            icon="gateway"
            title="No API is registered"
            action={
              <Button kind="primary" icon="plus" onClick={() => open({ what: 'api' })}>
                Register an API
              </Button>
            }
          >
            <p>Any HTTP service can live at a path of this server, with keys, limits and CORS before it.</p>
          </Empty>
        ) : (
          <Table
            label="APIs"
            rows={g.apis.data}
            columns={[
              { head: 'Name', cell: a => <b>{a.name}</b> },
              { head: 'Requests to', cell: a => <code>{[a.request_host, a.request_path].filter(Boolean).join('')}</code> },
              {
                head: 'Go to',
                cell: a => (
                  <code class="clip" title={a.upstream_url}>
                    {a.upstream_url}
                  </code>
                ),
              },
              { head: 'Plugins', cell: a => plugins(a) },
              {
                head: '',
                class: 'right',
                cell: a => (
                  <span class="row-actions">
                    <Button small onClick={() => open({ what: 'api', api: a })}>
                      Edit<span class="offscreen"> API {a.name}</span>
                    </Button>
                    {pluginsButton(a)}
                    <Button
                      small
                      kind="danger"
                      icon="trash"
                      label={`Delete API ${a.name}`}
                      onClick={() =>
                        open({
                          what: 'delete',
                          path: '/apis/' + id(a.id),
                          title: `Delete the API ${a.name}?`,
                          text: 'Requests to it are answered with 404 at once. Its plugins go with it.',
                        })
                      }
                    />
                  </span>
                ),
              },
            ]}
          />
        )}
      </Card>
      <Card
        flush
        title={plural(g.consumers.total, 'consumer')}
        aside={
          <Button small icon="plus" onClick={() => open({ what: 'consumer' })}>
            New consumer
          </Button>
        }
      >
        {g.consumers.data.length === 0 ? (
          <Empty icon="key" title="No consumer">
            <p>Consumers hold the keys that APIs with the plugin key-auth ask for.</p>
          </Empty>
        ) : (
          <Table
            label="Consumers"
            rows={g.consumers.data}
            columns={[
              { head: 'Name', cell: c => <b>{nameOf(c)}</b> },
              { head: 'Custom id', cell: c => c.custom_id ?? '–' },
              {
                head: '',
                class: 'right',
                cell: c => (
                  <span class="row-actions">
                    <Button small onClick={() => open({ what: 'consumer', consumer: c })}>
                      Edit<span class="offscreen"> consumer {nameOf(c)}</span>
                    </Button>
                    <Button small icon="key" onClick={() => open({ what: 'keys', consumer: c })}>
                      Keys<span class="offscreen"> of {nameOf(c)}</span>
                    </Button>
                    <Button
                      small
                      kind="danger"
                      icon="trash"
                      label={`Delete consumer ${nameOf(c)}`}
                      onClick={() =>
                        open({
                          what: 'delete',
                          path: '/consumers/' + id(c.id),
                          title: `Delete the consumer ${nameOf(c)}?`,
                          text: 'Its keys stop working at once.',
                        })
                      }
                    />
                  </span>
                ),
              },
            ]}
          />
        )}
      </Card>
      {g.own.total > 0 && (
        <Card flush title="Freshet’s own APIs">
          <Table
            label="Freshet’s own APIs"
            rows={g.own.data}
            columns={[
              { head: 'Name', cell: a => <b>{a.name}</b> },
              { head: 'Requests to', cell: a => <code>{a.request_path}</code> },
              { head: 'Plugins', cell: a => plugins(a) },
              { head: '', class: 'right', cell: a => pluginsButton(a) },
            ]}
          />
        </Card>
      )}
    </>
  );
}
