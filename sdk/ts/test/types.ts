// Never run: it must only pass the type checker, as people's programs do.
import { subscribe, type FreshetError, type Operation, type State } from '@freshet/client';
import { management, publish, type App } from '@freshet/client/api';

export async function typed(): Promise<void> {
  const stream = subscribe<{ price: number }>('topic', { server: 'https://stream.example.com', filter: ['a'], mode: 'patch' });
  const off: () => void = stream.on('patch', ({ patch, document }) => {
    const operations: readonly Operation[] = patch;
    const price: number = document.price;
    void [operations, price];
  });
  stream.on('error', (error: FreshetError) => void error.code);
  stream.on('state', (state: State) => void state);
  // @ts-expect-error there is no such event
  stream.on('message', () => {});
  // @ts-expect-error there is no such mode
  subscribe('topic', { mode: 'everything' });
  for await (const event of stream) if (event.type === 'patch') void event.patch.length;
  off();

  const api = management({ server: 'https://api.example.com', token: 't' });
  const app: App = await api.createApp({ name: 'Quotes' });
  // @ts-expect-error a topic needs a publisher
  await api.createTopic(app.id, { name: 'Paris' });
  await publish('topic', { any: ['JSON'] }, { server: 'https://api.example.com', key: app.publisher_key });
}
