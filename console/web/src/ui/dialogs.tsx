// Dialogs.
import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { session } from '../session';
import { Form, FormError, Input, useTask } from './forms';
import { Button } from './marks';
import { dialogs, Toasts } from './toasts';

type Children = { children?: ComponentChildren };

interface DialogProps extends Children {
  title: string;
  onClose: () => void;
  wide?: boolean;
}

/** A modal dialog. The browser keeps the focus inside, closes it with Escape and gives the focus back. */
export function Dialog({ title, onClose, children, wide }: DialogProps) {
  const box = useRef<HTMLDialogElement>(null),
    id = useId(),
    isSignedIn = !!session.value;
  useEffect(() => {
    if (!isSignedIn) return; // an open dialog would keep everybody from signing in again
    const d = box.current!,
      before = document.activeElement;
    d.showModal();
    dialogs.value = [...dialogs.value, id];
    return () => {
      d.close();
      dialogs.value = dialogs.value.filter(o => o !== id);
      if (before instanceof HTMLElement) before.focus();
    };
  }, [isSignedIn]);
  return (
    <dialog
      ref={box}
      class={wide ? 'wide' : ''}
      aria-labelledby={id}
      onCancel={e => {
        e.preventDefault();
        onClose();
      }}
      onMouseDown={e => {
        if (e.target === box.current) onClose();
      }}
    >
      <div class="dialog">
        <header>
          <h2 id={id}>{title}</h2>
          <Button kind="quiet" icon="close" label="Close" onClick={onClose} />
        </header>
        {children}
      </div>
      <Toasts of={id} />
    </dialog>
  );
}

interface ConfirmProps extends Children {
  title: string;
  verb: string;
  /** A text that has to be typed first, for what cannot be undone. */
  type?: string;
  onConfirm: () => Promise<void>;
  onClose: () => void;
  danger?: boolean;
}

export function Confirm({ title, verb, type, onConfirm, onClose, children, danger = true }: ConfirmProps) {
  const task = useTask();
  const [typed, setTyped] = useState('');
  const ready = type === undefined || typed === type;
  return (
    <Dialog title={title} onClose={onClose}>
      <Form
        onSubmit={() => {
          if (ready)
            task.run(async () => {
              await onConfirm();
              onClose();
            });
        }}
      >
        <div class="prose">{children}</div>
        {type !== undefined && <Input label={`Type “${type}” to confirm`} value={typed} onInput={setTyped} focus />}
        <FormError error={task.error} />
        <footer>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" kind={danger ? 'danger' : 'primary'} disabled={!ready} busy={task.busy}>
            {verb}
          </Button>
        </footer>
      </Form>
    </Dialog>
  );
}
