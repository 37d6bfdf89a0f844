// How the connection is, and what to do about it.
import { useEffect, useState } from 'preact/hooks';
import { Icon } from '../../icons';
import type { Follow } from '../../live/follow';
import { Badge, Button } from '../../ui';

export function StateBadge({ follow }: { follow: Follow }) {
  const s = follow.state.value;
  switch (s.is) {
    case 'open':
      return (
        <Badge tone="ok">
          <i class="pulse" />
          connected
        </Badge>
      );
    case 'connecting':
      return <Badge>connecting</Badge>;
    case 'waiting':
      return <Badge tone="warn">reconnecting</Badge>;
    case 'failed':
      return <Badge tone="bad">ended</Badge>;
    default:
      return <Badge>closed</Badge>;
  }
}

/** What to do about the errors that a stream can end with. */
const remedies: Record<number, string> = {
  40001: 'The subscriber key is malformed. Renew it under Keys.',
  40100: 'A key or a signature is required. Browsers can only sign requests on pages from https or from this machine.',
  40110: 'The key or the signature is wrong. Connect again to use the current key.',
  40111: 'The key was renewed meanwhile. Connect again to use the new one.',
  40112: 'The signature is too old. Check this machine’s clock.',
  40120: 'The account is disabled. Ask an admin.',
  40121: 'Too many connections, or topics. Close others, or ask an admin for a higher quota.',
  40122: 'The messages of this month are used up. Ask an admin for a higher quota.',
  40401: 'The topic is gone.',
  50001: 'No document came in time. Check that the source answers.',
  60000: 'The topic was deleted, or its document is more than the quota allows.',
  60100: 'The target cannot be reached. Check its URL under Settings.',
  60101: 'The target refused our credentials. Check the headers under Settings.',
  60400: 'The target’s host name is unknown. Check the URL under Settings.',
  61500: 'The target’s answer is not JSON that fits this topic.',
};

/** Says so after a moment, so that a short break moves nothing on the page. */
function useLate(is: boolean, ms: number): boolean {
  const [late, setLate] = useState(false);
  useEffect(() => {
    if (!is) {
      setLate(false);
      return;
    }
    const timer = setTimeout(() => setLate(true), ms);
    return () => clearTimeout(timer);
  }, [is]);
  return is && late;
}

/** renew asks for the app again, whose key may be another by now. */
export function Trouble({ follow, renew }: { follow: Follow; renew: () => void }) {
  const s = follow.state.value;
  const lasts = useLate((s.is === 'waiting' || s.is === 'connecting') && !!s.why, 1500);
  if (s.is === 'failed')
    return (
      <div class="banner bad" role="alert">
        <Icon name="warn" />
        <div>
          <b>
            {s.code || ''} {s.message}
          </b>
          <p>{remedies[s.code] ?? ''}</p>
        </div>
        <Button
          small
          onClick={() => {
            follow.open();
            renew();
          }}
        >
          Connect again
        </Button>
      </div>
    );
  if (!lasts || (s.is !== 'waiting' && s.is !== 'connecting')) return null;
  return (
    <div class="banner warn" role="status">
      <Icon name="warn" />
      <div>
        <b>{s.why}</b>
        <p>{s.is === 'waiting' && s.code ? remedies[s.code] : ''} The console goes on trying; what is shown is what arrived so far.</p>
      </div>
      {s.is === 'waiting' && (
        <Button small onClick={() => follow.hurry()}>
          Try now
        </Button>
      )}
    </div>
  );
}
