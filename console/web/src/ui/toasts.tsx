// Words in passing.
import { signal } from '@preact/signals';
import { Ended } from '../api';
import { Icon } from '../icons';

interface Toast {
  n: number;
  text: string;
  bad: boolean;
}
const toasts = signal<Toast[]>([]);
let toastCount = 0;

/** Says something in passing; screen readers hear it too. */
export function toast(text: string, bad = false): void {
  const n = ++toastCount;
  toasts.value = [...toasts.value.slice(-2), { n, text, bad }];
  setTimeout(
    () => {
      toasts.value = toasts.value.filter(t => t.n !== n);
    },
    bad ? 8000 : 4000,
  );
}

/** Says what went wrong, unless the reason is that the page is no longer there to be told. */
export function complain(e: unknown): void {
  if (e instanceof DOMException && e.name === 'AbortError') return;
  if (e instanceof Ended) return;
  toast(e instanceof Error ? e.message : String(e), true);
}

/** The modal dialogs that are open, the newest last. What is outside of it is neither bright nor heard. */
export const dialogs = signal<string[]>([]);

export function Toasts({ of }: { of?: string }) {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {dialogs.value[dialogs.value.length - 1] === of &&
        toasts.value.map(t => (
          <div key={t.n} class={t.bad ? 'toast bad' : 'toast'}>
            <Icon name={t.bad ? 'warn' : 'check'} />
            <span>{t.text}</span>
          </div>
        ))}
    </div>
  );
}
