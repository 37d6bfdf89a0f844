// Apps and their keys.
import { audit, base, expect, picture, snap } from './harness.mjs';
import { heading } from './people.mjs';
import { evil } from './service.mjs';

export async function makingApps(page) {
  await page.getByRole('link', { name: 'Apps', exact: true }).click();
  await page.getByText('Make your first app').waitFor();
  await picture(page, '04-no-apps');
  await page.getByRole('button', { name: 'New app' }).first().click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Name').press('Escape');
  await dialog.waitFor({ state: 'detached' });
  let made = 0;
  page.on('request', r => {
    if (r.method() === 'POST' && r.url().endsWith('/apps')) made++;
  });
  for (const name of [evil, 'Quotes']) {
    await page.goto(base + '/console/apps?new');
    await page.getByRole('dialog').getByLabel('Name').fill(name);
    await page.evaluate(() => {
      const form = document.querySelector('dialog form');
      form.requestSubmit();
      form.requestSubmit();
    }); // somebody is in a hurry
    await heading(page, name);
  }
  expect(made === 2, `two apps took ${made} requests`);
  await page.goto(base + '/console/apps?new');
  await page.getByRole('dialog').getByLabel('Name').fill('Quotes');
  await page.keyboard.press('Enter');
  await page.getByRole('dialog').getByText('is taken').first().waitFor();
  await audit(page, 'a dialog');
  await snap(page, '05-dialog');
  await page.keyboard.press('Escape');
  await many(page);
  await page.getByRole('link', { name: 'Quotes' }).click();
  await heading(page, 'Quotes');
  await page.getByText('No topics yet').waitFor();
}

/** More apps than one answer of the API holds, which come page by page, can be found and can be linked to. */
async function many(page) {
  const list = Array.from({ length: 1001 }, (_, i) => ({ id: `a-${i}`, name: `Made up ${i}`, created_at: new Date().toISOString() }));
  const answer = route => {
    const at = Number(new URL(route.request().url()).searchParams.get('page')) * 1000;
    return route.fulfill({ json: { items: list.slice(at, at + 1000), page: at / 1000, per_page: 1000, total: list.length, links: [] } });
  };
  await page.route('**/api/v1/apps?**', answer);
  await page.goto(base + '/console/apps?page=20');
  await page.getByText('1,001–1,001 of 1,001').waitFor();
  await page.getByRole('button', { name: 'Previous page' }).click();
  await page.getByText('951–1,000 of 1,001').waitFor();
  await page.getByLabel('Find an app').fill('up 1000');
  await page.getByRole('link', { name: 'Made up 1000' }).waitFor();
  expect(
    (await page.locator('tbody tr').count()) === 1 && new URL(page.url()).searchParams.get('query') === 'up 1000',
    'what is looked for is not in the address',
  );
  await page.unroute('**/api/v1/apps?**', answer);
  await page.goto(base + '/console/apps');
}

export async function keys(page) {
  await page.getByRole('link', { name: 'Keys' }).click();
  await page.getByRole('button', { name: 'Reveal subscriber key' }).click();
  const shown = () => page.locator('.key-row').first().locator('code').textContent();
  const before = await shown();
  expect(/^[A-Za-z0-9]{48}$/.test(before), `the subscriber key is shown as ${before}`);
  await page.getByRole('button', { name: 'Copy publisher key' }).click();
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  expect(/^[A-Za-z0-9]{48}$/.test(copied), `copied ${copied}`);
  await picture(page, '06-keys');
  await page.getByRole('button', { name: 'Renew subscriber key' }).click();
  await page.getByRole('dialog').getByLabel('The old key goes on working for').selectOption('86400');
  await snap(page, '07-renew');
  await page.getByRole('dialog').getByRole('button', { name: 'Renew key' }).click();
  await page.getByText('The subscriber key is new').waitFor();
  await page.getByRole('button', { name: 'Reveal subscriber key' }).click();
  expect((await shown()) !== before, 'the key was not renewed');
  return before;
}
