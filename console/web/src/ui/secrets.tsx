// Texts to copy, and those that are hidden until somebody asks.
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { Button } from './marks';
import { complain, toast } from './toasts';

type Children = { children?: ComponentChildren };

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
