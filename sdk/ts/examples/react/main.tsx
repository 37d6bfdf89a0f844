import { memo, StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { useFreshet } from './useFreshet';

interface Quotes {
  quotes: { symbol: string; price: number }[];
}

function Ticker({ topic, server }: { topic: string; server: string }) {
  const { document: data, state, error } = useFreshet<Quotes>(topic, { server });
  if (error?.fatal) return <p role="alert">{error.message}</p>;
  if (!data) return <p>{state}…</p>;
  return (
    <ul>
      {data.quotes.map(quote => (
        <Quote key={quote.symbol} quote={quote} />
      ))}
    </ul>
  );
}

// Rendered again only if this quote changed.
const Quote = memo(({ quote }: { quote: Quotes['quotes'][number] }) => (
  <li>
    {quote.symbol} {quote.price}
  </li>
));

const { topic = '', server = '' } = Object.fromEntries(new URLSearchParams(location.search));
createRoot(document.getElementById('app')!).render(
  <StrictMode>
    <Ticker topic={topic} server={server} />
  </StrictMode>,
);
