// Tables and listings, page by page.
import type { ComponentChildren } from 'preact';
import { count, plural } from '../format';
import { Icon } from '../icons';
import { param, setParams } from '../router';
import { Button, Card, Empty } from './marks';

export interface Column<T> {
  head: string;
  cell: (row: T) => ComponentChildren;
  class?: string;
}

export function Table<T extends { id: string }>({ rows, columns, label }: { rows: T[]; columns: Column<T>[]; label: string }) {
  return (
    <div class="table" role="region" aria-label={label} tabIndex={0}>
      <table>
        <thead>
          <tr>
            {columns.map(c => (
              <th key={c.head} scope="col" class={c.class}>
                {c.head || <span class="offscreen">Actions</span>}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(r => (
            <tr key={r.id}>
              {columns.map(c => (
                <td key={c.head} class={c.class} data-head={c.head}>
                  {c.cell(r)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export function Search({ value, onInput, label }: { value: string; onInput: (v: string) => void; label: string }) {
  return (
    <div class="search">
      <Icon name="search" size={16} />
      <input type="search" value={value} placeholder={label} aria-label={label} onInput={e => onInput(e.currentTarget.value)} />
    </div>
  );
}

export function Pager({ page, perPage, total, onPage }: { page: number; perPage: number; total: number; onPage: (p: number) => void }) {
  if (total <= perPage) return null;
  const last = Math.ceil(total / perPage) - 1;
  page = Math.min(page, last);
  return (
    <nav class="pager" aria-label="Pages">
      <Button small icon="prev" label="Previous page" disabled={page === 0} onClick={() => onPage(page - 1)} />
      <span>
        {count(page * perPage + 1)}–{count(Math.min(total, (page + 1) * perPage))} of {count(total)}
      </span>
      <Button small icon="next" label="Next page" disabled={page >= last} onClick={() => onPage(page + 1)} />
    </nav>
  );
}

/** Which page of a listing the address names. */
export const pageNumber = (): number => (/^\d{1,9}$/.test(param('page')) ? Number(param('page')) : 0);
export const toPage = (n: number): void => setParams({ page: n ? String(n) : '' });

/** What a listing shows on a page behind its last. */
export const NoSuchPart = () => (
  <Empty icon="search" title="The list is shorter by now" action={<Button onClick={() => toPage(0)}>Go to its beginning</Button>} />
);

interface Named {
  id: string;
  name: string;
}
interface ListingProps<T> {
  items: T[];
  total: number;
  what: string;
  label: string;
  columns: Column<T>[];
}

const rowsOnPage = 50;

/** Things with names, page by page, and a way to find some. Where one is stands in the address. */
export function Listing<T extends Named>({ items, total, what, label, columns }: ListingProps<T>) {
  const query = param('query'),
    q = query.trim().toLowerCase(),
    page = pageNumber();
  const found = q ? items.filter(i => i.name.toLowerCase().includes(q) || i.id.startsWith(q)) : items;
  const from = Math.min(page, Math.max(0, Math.ceil(found.length / rowsOnPage) - 1)) * rowsOnPage;
  return (
    <Card
      flush
      title={plural(total, what)}
      aside={
        (items.length > 5 || query) && (
          <Search
            value={query}
            onInput={query => setParams({ query, page: '' })}
            label={`Find ${/^[aeiou]/.test(what) ? 'an' : 'a'} ${what}`}
          />
        )
      }
    >
      {found.length === 0 ? (
        <Empty icon="search" title={`No ${what} matches`}>
          Search for a part of its name, or the beginning of its identifier.
        </Empty>
      ) : (
        <Table label={label} rows={found.slice(from, from + rowsOnPage)} columns={columns} />
      )}
      {items.length < total && <p class="hint short-list">These are the first {count(items.length)}; the API has them all.</p>}
      <Pager page={page} perPage={rowsOnPage} total={found.length} onPage={toPage} />
    </Card>
  );
}
