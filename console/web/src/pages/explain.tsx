// Why nothing arrives: what the server knows about a topic, or about one connection, in sentences.
import { type Explanation, get } from '../api';
import { ago, date } from '../format';
import { Icon } from '../icons';
import { Button, Dialog, Show, useLoad } from '../ui';

export function Explain({ path, onClose }: { path: string; onClose: () => void }) {
  const said = useLoad(s => get<Explanation>(path, s), [path]);
  return (
    <Dialog title="Why does nothing arrive?" onClose={onClose}>
      <Show of={said} rows={2}>
        {e => (
          <div class="form">
            {e.reasons.length === 0 ? (
              <div class="banner">
                <Icon name="check" />
                <div>
                  <b>Everything is as it should be.</b>
                  <p>What is published now arrives at once.</p>
                </div>
              </div>
            ) : (
              <ul class="reasons">
                {e.reasons.map(r => (
                  <li key={r.code}>
                    <Icon name="warn" />
                    <div>
                      <b>{r.message}</b>
                      <small>{[r.count ? `${r.count} ×` : '', r.since ? `since ${date(r.since)}` : ''].filter(Boolean).join(', ')}</small>
                    </div>
                  </li>
                ))}
              </ul>
            )}
            <p class="hint">
              {e.version ? (
                <>
                  The newest document is <code>{e.version}</code>
                  {e.published && `, published ${ago(e.published)}`}.
                </>
              ) : (
                'The topic holds no document.'
              )}
              {e.subscribers !== undefined && ` It has ${e.subscribers} ${e.subscribers === 1 ? 'subscriber' : 'subscribers'} now.`}
            </p>
            <footer>
              <Button onClick={onClose}>Close</Button>
              <Button kind="primary" icon="renew" onClick={said.again}>
                Ask again
              </Button>
            </footer>
          </div>
        )}
      </Show>
    </Dialog>
  );
}
