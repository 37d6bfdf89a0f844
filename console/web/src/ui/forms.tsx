// Forms and their fields.
import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { Ended, Failure } from '../api';
import { Icon } from '../icons';
import { complain } from './toasts';

type Children = { children?: ComponentChildren };

interface FieldProps extends Children {
  label: string;
  hint?: ComponentChildren;
  error?: string | undefined;
  /** Fields with several inputs are groups. */
  group?: boolean;
}

interface InputProps extends FieldProps {
  value: string;
  onInput: (v: string) => void;
  type?: 'text' | 'email' | 'password';
  placeholder?: string;
  autocomplete?: string;
  mono?: boolean;
  suffix?: string;
  focus?: boolean;
  required?: boolean;
  disabled?: boolean;
  name?: string;
  inputMode?: 'numeric' | 'url' | 'email';
}

function FieldFrame({ id, label, hint, error, children }: FieldProps & { id: string }) {
  return (
    <div class={error ? 'field bad' : 'field'}>
      <label for={id}>{label}</label>
      {children}
      <p id={id + '-hint'} class={error ? 'hint error' : 'hint'} aria-live="polite">
        {error ?? hint}
      </p>
    </div>
  );
}

export function Input(p: InputProps) {
  const id = useId(),
    box = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (p.focus) box.current?.focus();
  }, []);
  return (
    <FieldFrame id={id} label={p.label} hint={p.hint} error={p.error}>
      <div class={p.suffix ? 'input suffixed' : 'input'}>
        <input
          ref={box}
          id={id}
          name={p.name}
          type={(p.type ?? 'text') as 'text'}
          value={p.value}
          placeholder={p.placeholder}
          class={p.mono ? 'mono' : ''}
          autocomplete={p.autocomplete ?? 'off'}
          autocapitalize="off"
          spellcheck={false}
          required={p.required}
          disabled={p.disabled}
          autofocus={p.focus /* a dialog looks for it when it opens */}
          inputMode={p.inputMode}
          aria-invalid={p.error ? true : undefined}
          aria-describedby={id + '-hint'}
          onInput={e => p.onInput(e.currentTarget.value)}
        />
        {p.suffix && (
          <span class="suffix" aria-hidden="true">
            {p.suffix}
          </span>
        )}
      </div>
    </FieldFrame>
  );
}

export function TextArea(p: InputProps & { rows?: number }) {
  const id = useId();
  return (
    <FieldFrame id={id} label={p.label} hint={p.hint} error={p.error}>
      <textarea
        id={id}
        rows={p.rows ?? 4}
        value={p.value}
        placeholder={p.placeholder}
        class={p.mono ? 'mono' : ''}
        spellcheck={false}
        aria-invalid={p.error ? true : undefined}
        aria-describedby={id + '-hint'}
        onInput={e => p.onInput(e.currentTarget.value)}
      />
    </FieldFrame>
  );
}

export function Select<T extends string>(p: FieldProps & { value: T; onChange: (v: T) => void; options: [T, string][] }) {
  const id = useId();
  return (
    <FieldFrame id={id} label={p.label} hint={p.hint} error={p.error}>
      <select id={id} value={p.value} aria-describedby={id + '-hint'} onChange={e => p.onChange(e.currentTarget.value as T)}>
        {p.options.map(([v, text]) => (
          <option key={v} value={v}>
            {text}
          </option>
        ))}
      </select>
    </FieldFrame>
  );
}

export function Check({
  label,
  hint,
  value,
  onChange,
}: {
  label: string;
  hint?: ComponentChildren;
  value: boolean;
  onChange: (v: boolean) => void;
}) {
  const id = useId();
  return (
    <div class="check">
      <input id={id} type="checkbox" checked={value} aria-describedby={id + '-hint'} onChange={e => onChange(e.currentTarget.checked)} />
      <label for={id}>{label}</label>
      <p id={id + '-hint'} class="hint">
        {hint}
      </p>
    </div>
  );
}

/** A choice between few things that deserve a sentence each. */
export function Choice<T extends string>({
  label,
  value,
  onChange,
  options,
  disabled,
}: {
  label: string;
  value: T;
  onChange: (v: T) => void;
  options: [T, string, string][];
  disabled?: boolean;
}) {
  const name = useId();
  return (
    <fieldset class="choice" disabled={disabled}>
      <legend>{label}</legend>
      <div class="choice-options">
        {options.map(([v, title, text]) => (
          <label key={v} class={v === value ? 'chosen' : ''}>
            <input type="radio" name={name} value={v} checked={v === value} onChange={() => onChange(v)} />
            <span>
              <b>{title}</b>
              <small>{text}</small>
            </span>
          </label>
        ))}
      </div>
    </fieldset>
  );
}

/** A form that does one thing, cannot be sent twice, and hands field errors back. */
export function Form({ onSubmit, children, class: name }: Children & { onSubmit: () => void; class?: string }) {
  return (
    <form
      class={name ?? 'form'}
      noValidate
      onSubmit={e => {
        e.preventDefault();
        onSubmit();
      }}
    >
      {children}
    </form>
  );
}

/** Runs something once at a time. What goes wrong is kept for the form, or told in passing. */
export function useTask(): { busy: boolean; error: Failure | undefined; run: (task: () => Promise<void>) => void; clear: () => void } {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<Failure>();
  const isRunning = useRef(false); // the state is known a moment later, and two clicks may come before
  return {
    busy,
    error,
    clear: () => setError(undefined),
    run: task => {
      if (isRunning.current) return;
      isRunning.current = true;
      setBusy(true);
      setError(undefined);
      task()
        .catch((e: unknown) => {
          if (e instanceof Failure && !(e instanceof Ended)) setError(e);
          else complain(e);
        })
        .finally(() => {
          isRunning.current = false;
          setBusy(false);
        });
    },
  };
}

/** What is wrong with a form as a whole: the message, and errors of fields that the form does not show. */
export function FormError({ error, shown = [] }: { error: Failure | undefined; shown?: string[] }) {
  if (!error) return null;
  const others = error.fields.filter(f => !shown.includes(f.field));
  if (error.fields.length > 0 && others.length === 0) return null;
  return (
    <div class="banner bad" role="alert">
      <Icon name="warn" />
      <div>
        {error.message}
        {others.map(f => (
          <p key={f.field}>
            <code>{f.field}</code> {f.message}
          </p>
        ))}
      </div>
    </div>
  );
}
