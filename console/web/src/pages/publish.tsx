// Publishing from the browser, with the stream beside it: what is sent is seen to arrive.
import { type ExactJSON, parse, print } from '@freshet/client/exact';
import { useEffect, useMemo, useState } from 'preact/hooks';
import { type App, publish, type Topic } from '../api';
import { bytes, duration } from '../format';
import type { Follow } from '../live/follow';
import { checkJSON } from '../rules';
import { Button, Card, FormError, useTask } from '../ui';
import { sample } from './connect';
import { EventList } from './viewer/events';
import { StateBadge } from './viewer/state';
import { Tree } from './viewer/tree';

type Form = 'document' | 'merge' | 'patch';
const forms: Record<Form, { text: string; type: string; method: string; hint: string; example: string }> = {
  document: {
    text: 'Document',
    type: 'application/json',
    method: 'POST',
    hint: 'The whole document takes the place of the one before.',
    example: '',
  },
  merge: {
    text: 'Merge',
    type: 'application/merge-patch+json',
    method: 'PATCH',
    hint: 'Members given here are set; those that are null are removed.',
    example: '{"ACME": 102}',
  },
  patch: {
    text: 'Patch',
    type: 'application/json-patch+json',
    method: 'PATCH',
    hint: 'JSON Patch: add, replace, remove.',
    example: '[{"op": "replace", "path": "/ACME", "value": 102}]',
  },
};

interface Sent {
  at: string;
  status: number;
  tookMs: number;
  arrivedMs?: number;
  unchanged: boolean;
}

/** What became of it, as the end of a sentence. */
function outcome(sent: Sent): string {
  if (sent.unchanged) return '; it changed nothing, so nobody was told.';
  return sent.arrivedMs === undefined ? ', on its way…' : `, arrived here after ${duration(sent.arrivedMs)}`;
}

const tab = '  ';
const mostEdited = 300_000; // bytes of a document that is put into the editor; browsers are slow with long texts
/** A document over many lines, unless it is so deep that it would be mostly space. */
const spread = (doc: ExactJSON): string => {
  const text = print(doc, 2);
  return text.length <= mostEdited ? text : print(doc);
};
const areObjects = (v: unknown): boolean => Array.isArray(v) && v.every(e => typeof e === 'object' && e !== null && !Array.isArray(e));

export function Publish({ topic, app, follow }: { topic: Topic; app: App; follow: Follow }) {
  const first = useMemo(() => print(parse(sample(topic)), 2), [topic.id]);
  const [form, setForm] = useState<Form>('document');
  const [text, setText] = useState(first),
    [isTyped, setTyped] = useState(false);
  const [sent, setSent] = useState<Sent>();
  const task = useTask();
  const isItem = topic.publisher.payload.type === 'item';
  // Events arrive many times a second; the text is looked at when it has changed.
  const { wrong, lines, size, notItems } = useMemo(() => {
    const wrong = checkJSON(text);
    return {
      wrong,
      lines: text.split('\n').length,
      size: new TextEncoder().encode(text).length,
      notItems:
        !wrong && isItem && form === 'document' && !areObjects(JSON.parse(text)) ? 'This topic takes an array of objects' : undefined,
    };
  }, [text, form, isItem]);
  void follow.tick.value;
  const newest = follow.newest,
    editable = newest?.hasDoc && newest.docBytes <= mostEdited ? newest : undefined;
  // One begins with what is there: an example would take its place. What was typed stays.
  useEffect(() => {
    if (editable && !isItem && !isTyped && form === 'document' && text === first) setText(spread(editable.doc));
  }, [!editable]);

  const send = (): void => {
    if (wrong || notItems) return;
    task.run(async () => {
      const began = performance.now(),
        before = follow.newest?.id;
      const done = await publish(topic, app.publisher_key, text, forms[form].type, forms[form].method);
      const tookMs = performance.now() - began,
        unchanged = !done.at || done.at === before;
      setSent({ ...done, tookMs, unchanged });
      if (!unchanged)
        void follow.arrival(done.at).then(() => setSent(s => (s && s.at === done.at ? { ...s, arrivedMs: performance.now() - began } : s)));
    });
  };

  return (
    <div class="publish">
      <Card
        title="Publish"
        aside={
          !isItem && (
            <div class="segments" role="group" aria-label="What to send">
              {(Object.keys(forms) as Form[]).map(f => (
                <button
                  key={f}
                  type="button"
                  aria-pressed={form === f}
                  onClick={() => {
                    setForm(f);
                    setText(f !== 'document' ? forms[f].example : editable ? spread(editable.doc) : first);
                  }}
                >
                  {forms[f].text}
                </button>
              ))}
            </div>
          )
        }
      >
        <p class="hint">{isItem ? 'Each item takes the place of the one with the same identifier; the others stay.' : forms[form].hint}</p>
        {form === 'document' && !isItem && newest && newest.docBytes > mostEdited && (
          <p class="hint">
            The present document has {bytes(newest.docBytes)}, too much to edit here. Send a merge or a patch, or publish all of it from
            your backend.
          </p>
        )}
        <div class={wrong || notItems ? 'editor bad' : 'editor'}>
          <pre class="gutter" aria-hidden="true">
            {Array.from({ length: lines }, (_, i) => i + 1).join('\n')}
          </pre>
          <textarea
            value={text}
            rows={18}
            spellcheck={false}
            autocapitalize="off"
            wrap="off"
            aria-label="JSON to publish"
            aria-invalid={wrong ? true : undefined}
            aria-describedby="editor-said"
            onInput={e => {
              task.clear();
              setTyped(true);
              setText(e.currentTarget.value);
            }}
            onScroll={e => {
              const g = e.currentTarget.previousElementSibling;
              if (g) g.scrollTop = e.currentTarget.scrollTop;
            }}
            onKeyDown={e => {
              if (e.key === 'Enter' && (e.ctrlKey || e.metaKey)) {
                e.preventDefault();
                send();
              }
              if (e.key === 'Tab' && e.altKey) {
                e.preventDefault();
                const t = e.currentTarget;
                t.setRangeText(tab, t.selectionStart, t.selectionEnd, 'end');
                setText(t.value);
              }
            }}
          />
        </div>
        <p id="editor-said" class={wrong || notItems ? 'hint error' : 'hint'} aria-live="polite">
          {wrong ? `Line ${wrong.line}, column ${wrong.column}: ${wrong.message}` : (notItems ?? `Valid JSON, ${bytes(size)}`)}
        </p>
        <FormError error={task.error} />
        <div class="toolbar">
          <Button kind="primary" icon="send" busy={task.busy} disabled={!!wrong || !!notItems} onClick={send}>
            Publish
          </Button>
          <Button
            disabled={!!wrong}
            onClick={() => {
              if (!wrong) setText(spread(parse(text)));
            }}
          >
            Format
          </Button>
          <span class="dim keys-hint">Ctrl + Enter</span>
          <output class="sent" aria-live="polite">
            {sent && `Accepted in ${duration(sent.tookMs)}${outcome(sent)}`}
          </output>
        </div>
      </Card>
      <Card title="What subscribers see" aside={<StateBadge follow={follow} />} flush>
        <Tree follow={follow} height={300} />
        <EventList follow={follow} height={180} compact />
      </Card>
    </div>
  );
}
