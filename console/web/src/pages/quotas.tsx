// Quotas, as admins set them, of an account or of one app.
import type { Failure, Quotas } from '../api';
import { checkCount } from '../rules';
import { Input } from '../ui';

type Name = keyof Quotas;
export type TypedQuotas = Record<Name, string>;

const names: Name[] = ['connections', 'messages_per_month', 'requests_per_minute', 'topics', 'document_bytes'];

export const typed = (q: Quotas): TypedQuotas => Object.fromEntries(names.map(k => [k, String(q[k])])) as TypedQuotas;

/** What is to be sent: only what is different, so that what is left as it was goes on following the server's settings. */
export const changed = (t: TypedQuotas, before: Quotas): Record<string, number> =>
  Object.fromEntries(names.filter(k => t[k] !== String(before[k])).map(k => [k, Number(t[k])]));

export const wrong = (t: TypedQuotas): boolean => names.some(k => checkCount(t[k]));
export const quotaFields = names.map(k => 'quotas.' + k);

interface QuotaInputsProps {
  value: TypedQuotas;
  onInput: (t: TypedQuotas) => void;
  error: Failure | undefined;
  requests: string;
}

export function QuotaInputs({ value, onInput, error, requests }: QuotaInputsProps) {
  const labels: Record<Name, string> = {
    connections: 'Connections at the same time',
    messages_per_month: 'Messages a month',
    requests_per_minute: requests,
    topics: 'Topics',
    document_bytes: 'Bytes of all newest documents',
  };
  return (
    <>
      {names.map(k => (
        <Input
          key={k}
          label={labels[k]}
          inputMode="numeric"
          value={value[k]}
          onInput={v => onInput({ ...value, [k]: v })}
          error={error?.field('quotas.' + k) ?? checkCount(value[k])}
          hint="0 is unlimited"
        />
      ))}
    </>
  );
}
