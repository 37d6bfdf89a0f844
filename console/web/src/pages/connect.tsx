// How to use a topic from elsewhere: texts to copy, complete and ready to run.
import { useState } from 'preact/hooks';
import { type App, config, type Topic } from '../api';
import { Button, Card, Code } from '../ui';

type Language = 'curl' | 'javascript' | 'go';
const languages: [Language, string][] = [
  ['curl', 'curl'],
  ['javascript', 'JavaScript'],
  ['go', 'Go'],
];

interface About {
  stream: string;
  publishAt: string;
  subscriberKey: string;
  publisherKey: string;
  sample: string;
}

/** Names in a publication may be anything, also what ends a quoted text and begins a command. */
export const inShell = (s: string): string => `'${s.replaceAll("'", "'\\''")}'`;
const inGo = (s: string): string => (s.includes('`') ? JSON.stringify(s) : `\`${s}\``);

const subscribing: Record<Language, (a: About) => string> = {
  curl: a => `curl -N '${a.stream}' \\\n  -H 'X-Sd-Subscriber-Key: ${a.subscriberKey}'`,
  javascript: a => `const source = new EventSource('${a.stream}?X-Sd-Subscriber-Key=${a.subscriberKey}');
let doc;

source.addEventListener('snapshot', e => { doc = JSON.parse(e.data); show(doc); });
source.addEventListener('patch', e => {
  for (const { op, path, value } of JSON.parse(e.data)) {
    const names = path.slice(1).split('/').map(s => s.replaceAll('~1', '/').replaceAll('~0', '~'));
    const last = names.pop();
    const at = names.reduce((o, name) => o[name], doc);
    if (!Array.isArray(at)) { if (op === 'remove') delete at[last]; else at[last] = value; }
    else if (op === 'add') at.splice(last === '-' ? at.length : Number(last), 0, value);
    else if (op === 'remove') at.splice(Number(last), 1);
    else at[last] = value;
  }
  show(doc);
});
source.addEventListener('error', e => { if (e.data) console.error(JSON.parse(e.data).message); });

function show(doc) { console.log(doc); }`,
  go: a => `package main

import (
	"bufio"
	"fmt"
	"log"
	"net/http"
	"strings"
)

func main() {
	r, err := http.NewRequest("GET", "${a.stream}", nil)
	if err != nil {
		log.Fatal(err)
	}
	r.Header.Set("X-Sd-Subscriber-Key", "${a.subscriberKey}")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		log.Fatal(err)
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 16<<20)
	event := ""
	for lines.Scan() {
		if name, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			event = name // snapshot, patch or error
		} else if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			fmt.Println(event, data)
		}
	}
	log.Fatal(lines.Err())
}`,
};

const publishing: Record<Language, (a: About) => string> = {
  curl: a =>
    [
      `curl -X POST '${a.publishAt}' \\`,
      `  -H 'X-Sd-Publisher-Key: ${a.publisherKey}' \\`,
      `  -H 'Content-Type: application/json' \\`,
      `  -d ${inShell(a.sample)}`,
    ].join('\n'),
  javascript: a => `const answer = await fetch('${a.publishAt}', {
  method: 'POST',
  headers: {
    'X-Sd-Publisher-Key': '${a.publisherKey}', // on your server only
    'Content-Type': 'application/json',
  },
  body: JSON.stringify(${a.sample}),
});
if (!answer.ok) throw new Error((await answer.json()).message);`,
  go: a => `package main

import (
	"log"
	"net/http"
	"strings"
)

func main() {
	r, err := http.NewRequest("POST", "${a.publishAt}", strings.NewReader(${inGo(a.sample)}))
	if err != nil {
		log.Fatal(err)
	}
	r.Header.Set("X-Sd-Publisher-Key", "${a.publisherKey}") // on your server only
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		log.Fatal(err)
	}
	answer.Body.Close()
	log.Println(answer.Status) // 204 No Content
}`,
};

/** A publication that fits the topic. */
export function sample(topic: Topic): string {
  if (topic.publisher.payload.type === 'snapshot') return '{"ACME": 101.5, "INIT": 47}';
  const path = topic.publisher.payload.item_id_path ?? '.id';
  const nested = path
    .slice(1)
    .split(path[0]!)
    .reduceRight<unknown>((inner, name) => ({ [name]: inner }), 'ACME') as object;
  return JSON.stringify([{ ...nested, price: 101.5 }]);
}

export function Connect({ topic, app }: { topic: Topic; app: App }) {
  const [language, setLanguage] = useState<Language>('curl');
  const [revealed, setRevealed] = useState(false);
  const about = (hide: boolean): About => ({
    stream: `${config.value?.subscriber_url || 'https://subscriber.example.com'}/v1/topics/${topic.id}`,
    publishAt: `${location.origin}/publish/v1/topics/${topic.id}`,
    subscriberKey: hide ? '••••••••' : app.subscriber_key,
    publisherKey: hide ? '••••••••' : app.publisher_key,
    sample: sample(topic),
  });
  const block = (title: string, of: Record<Language, (a: About) => string>) => (
    <Card title={title} key={title}>
      <Code text={of[language](about(!revealed))} copied={of[language](about(false))} what={`${title} in ${language}`} />
    </Card>
  );
  return (
    <>
      <div class="toolbar">
        <div class="segments" role="group" aria-label="Language">
          {languages.map(([l, text]) => (
            <button key={l} type="button" aria-pressed={language === l} onClick={() => setLanguage(l)}>
              {text}
            </button>
          ))}
        </div>
        <Button small kind="quiet" icon={revealed ? 'hide' : 'eye'} pressed={revealed} onClick={() => setRevealed(!revealed)}>
          {revealed ? 'Hide keys' : 'Show keys'}
        </Button>
        <span class="dim">Copies carry the keys, ready to run.</span>
      </div>
      {block('Subscribe', subscribing)}
      {topic.publisher.type === 'http-post' && block('Publish', publishing)}
      {app.client_request_signature_enabled && (
        <div class="banner">
          This app demands signed requests: a subscriber also sends <code>X-Auth-Sd-Ts</code> and <code>X-Auth-Sd-S</code>, made with the
          signature key.
        </div>
      )}
    </>
  );
}
