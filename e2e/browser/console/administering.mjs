// What admins do.
import { gateway } from './gateway.mjs';
import { audit, base, desktop, expect, phone, picture, snap } from './harness.mjs';
import { heading, signIn, tabTo } from './people.mjs';
import { ada, api, follow, publish, root } from './service.mjs';

/** Sees somebody else's stream, and ends it. */
async function cutting(page) {
  const token = (await api('PUT', '/session', root)).body.token;
  const { body: app } = await api('POST', '/apps', { name: 'Followed' }, token);
  const { body: topic } = await api(
    'POST',
    `/apps/${app.id}/topics`,
    { name: 'Followed', publisher: { type: 'http-post', config: {} } },
    token,
  );
  await publish(topic.id, app.publisher_key, { n: 1 });
  const streams = [await follow(topic.id, app.subscriber_key), await follow(topic.id, app.subscriber_key)];
  await page.getByRole('link', { name: 'Connections', exact: true }).click();
  await heading(page, 'Connections');
  await page.getByLabel('Topic').fill(topic.id);
  await page.waitForURL(url => url.searchParams.get('topic') === topic.id); // a moment later, and so that it can be shared
  await page.getByText('2 connections').waitFor();
  const rows = page.getByRole('table').locator('tbody tr');
  expect((await rows.count()) === 2 && /127\.0\.0\.1/.test(await rows.first().textContent()), 'the streams are not in the table');
  await picture(page, '25-connections');
  await page.getByRole('button', { name: 'Explain' }).first().click();
  await page.getByRole('dialog').getByText('The newest document is').waitFor();
  await page.keyboard.press('Escape');
  let over = 0;
  for (const s of streams) void s.ended.then(() => over++);
  await page.getByRole('button', { name: 'Cut' }).first().click();
  await page.getByRole('dialog').getByRole('button', { name: 'Cut', exact: true }).click();
  await Promise.race(streams.map(s => s.ended));
  await page.getByText('1 connection', { exact: true }).waitFor();
  expect(over === 1, `cutting one connection ended ${over}`);
  await Promise.all(streams.map(s => s.close()));
  await page.getByText('Nobody matches').waitFor(); // by itself
  await page.getByRole('link', { name: 'Audit log' }).click();
  await page.getByText('connection.cut').first().waitFor();
}

export async function administering(page) {
  await page.goto(base + '/console/admin/users');
  await signIn(page, root);
  await heading(page, 'Users');
  await cutting(page);
  await page.getByRole('link', { name: 'Users' }).click();
  await page.goto(base + '/console/admin/users?page=99');
  await page.getByRole('button', { name: 'Go to its beginning' }).click();
  await page.getByLabel('Find by e-mail or name').fill('ada@');
  await page.getByText('1 user', { exact: true }).waitFor();
  await picture(page, '23-users');
  await page.getByRole('button', { name: 'Edit ada@example.com' }).click();
  await page.getByLabel('Connections at the same time').fill('25');
  await page.getByText('Tokens and streams end at once').click();
  await page.getByRole('dialog').getByRole('link', { name: 'Quotes' }).waitFor();
  await snap(page, '24-edit-user');
  await audit(page, 'the user dialog');
  await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click();
  await page.getByRole('table').getByText('disabled').waitFor();
  expect((await api('PUT', '/session', ada)).status === 401, 'a disabled user may sign in');
  for (const [link, name] of [
    ['Usage', '26-server-usage'],
    ['Health', '28-health'],
    ['Audit log', '29-audit'],
  ]) {
    await page.getByRole('link', { name: link }).click();
    await heading(page, link);
    await page.locator('.empty, table, .plot').first().waitFor();
    await picture(page, name);
  }
  await page.getByText('user.administer').waitFor();
  await page.getByRole('link', { name: 'Apps', exact: true }).click();
  await page.getByRole('link', { name: 'Followed' }).click();
  await page.getByRole('navigation', { name: 'App' }).getByRole('link', { name: 'Settings' }).click();
  await page.getByLabel('Messages a month').fill('12000');
  await page.getByLabel('Bytes of all newest documents').fill('5000000');
  await page.getByRole('button', { name: 'Save quotas' }).click();
  await page.getByText('Saved').first().waitFor();
  await picture(page, '29-app-quotas', { full: true });
  await page.reload();
  expect((await page.getByLabel('Messages a month').inputValue()) === '12000', 'the quota of an app was not kept');
  expect((await page.getByLabel('Bytes of all newest documents').inputValue()) === '5000000', 'the quota of documents was not kept');
  await page.getByRole('link', { name: 'Health' }).click();
  for (const part of ['gateway', 'manage', 'publish', 'poll', 'subscribe', 'grid', 'store'])
    await page.getByRole('row', { name: new RegExp(`^${part} .*ok$`) }).waitFor();
  await page.locator('.stat').getByText('ready').waitFor();
  await gateway(page);
  await page.getByRole('link', { name: 'Audit log' }).click();
  for (const act of [
    'create_api',
    'update_api',
    'create_plugin',
    'update_plugin',
    'update_consumer',
    'create_consumer',
    'create_key',
    'delete_api',
  ])
    await page
      .getByText('gateway.' + act)
      .first()
      .waitFor();
  await page.setViewportSize(phone);
  await audit(page, 'a page on a phone');
  await page.getByRole('button', { name: 'Open menu' }).click();
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Open menu', expanded: false }).press('Enter');
  await tabTo(page, 'Sign out');
  await page.keyboard.press('Tab');
  await page.getByRole('button', { name: 'Open menu', expanded: false }).press('Enter'); // it does not lie over what has the focus
  await page.getByRole('button', { name: 'Close menu', expanded: true }).waitFor();
  await snap(page, '30-menu-phone');
  await page.getByRole('link', { name: 'Overview' }).click();
  await page.setViewportSize(desktop);
  await page.getByRole('button', { name: 'Dark' }).click();
  expect((await page.evaluate(() => document.documentElement.dataset.theme)) === 'dark', 'the theme cannot be chosen');
}
