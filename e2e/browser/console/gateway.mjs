// The gateway, as an admin sets it.
import { audit, base, expect, picture, snap } from './harness.mjs';
import { target } from './service.mjs';

/** Puts the weather behind the gateway, with a key, as an admin would. */
export async function gateway(page) {
  await page.getByRole('link', { name: 'Gateway' }).click();
  await page.getByText('No API is registered').waitFor();
  await page.getByRole('button', { name: 'New API' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Name', { exact: true }).fill('weather');
  await dialog.getByLabel('Path', { exact: true }).fill('/weather');
  await dialog.getByLabel('Upstream URL').fill('nowhere');
  await dialog.getByRole('button', { name: 'Register API' }).click();
  await dialog.getByText('is not a url').waitFor();
  await dialog.getByLabel('Upstream URL').fill(target);
  await audit(page, 'the dialog of a new API');
  await snap(page, '27-new-api');
  await dialog.getByRole('button', { name: 'Register API' }).click();
  const forwarded = async key => (await fetch(base + '/weather/today', { headers: key ? { apikey: key } : {} })).status;
  await page.getByRole('button', { name: 'Plugins of weather' }).click();
  expect((await forwarded()) === 200, 'a registered API is not forwarded');
  await dialog.getByRole('button', { name: 'Add plugin' }).click();
  await dialog.getByRole('alert').waitFor();
  await dialog.getByLabel('Per minute').fill('100');
  await dialog.getByRole('button', { name: 'Add plugin' }).click();
  await dialog.getByText('minute: 100').waitFor();
  await dialog.getByRole('status').getByText('rate-limiting is on').waitFor(); // said where it can be heard
  await dialog.getByLabel('Add a plugin').selectOption('key-auth');
  await dialog.getByRole('button', { name: 'Add plugin' }).click();
  await dialog.getByRole('button', { name: 'Switch off key-auth' }).waitFor();
  await audit(page, 'the dialog of plugins');
  await snap(page, '27-plugins');
  const rest = async (path = '/weather/today') => (await fetch(base + path)).headers;
  await dialog.getByRole('button', { name: 'Edit rate-limiting' }).click();
  expect((await dialog.getByLabel('Per minute').inputValue()) === '100', 'a plugin is not edited from what it is');
  await dialog.getByLabel('Per minute').fill('');
  await dialog.getByLabel('Per hour').fill('many');
  await dialog.getByRole('button', { name: 'Save settings' }).click();
  await dialog.getByText('is not a number').waitFor();
  await dialog.getByLabel('Per hour').fill('5000');
  await dialog.getByRole('button', { name: 'Save settings' }).click();
  await dialog.getByText('hour: 5000').waitFor();
  expect((await dialog.getByText('minute: 100').count()) === 0, 'what was cleared is still there');
  await dialog.getByRole('button', { name: 'Switch off key-auth' }).click();
  await dialog.getByRole('button', { name: 'Switch on key-auth' }).waitFor();
  expect((await rest()).get('X-RateLimit-Limit-hour') === '5000', 'a changed plugin does as before');
  await dialog.getByRole('button', { name: 'Switch on key-auth' }).click();
  await dialog.getByRole('button', { name: 'Switch off key-auth' }).waitFor();
  await page.keyboard.press('Escape');
  expect((await forwarded()) === 401, 'key-auth lets everybody through');
  await page.getByRole('button', { name: 'New consumer' }).click();
  await dialog.getByLabel('Name').fill('mobile');
  await dialog.getByRole('button', { name: 'Create consumer' }).click();
  await page.getByRole('button', { name: 'Edit consumer mobile' }).click();
  await dialog.getByLabel('Name').fill('tablet');
  await dialog.getByLabel('Custom id').fill('t-1');
  await dialog.getByRole('button', { name: 'Save changes' }).click();
  await page
    .getByRole('table', { name: 'Consumers' })
    .or(page.getByRole('region', { name: 'Consumers' }))
    .first()
    .getByText('t-1')
    .waitFor();
  await page.getByRole('button', { name: 'Keys of tablet' }).click();
  await dialog.getByRole('button', { name: 'New key' }).click();
  await dialog.getByRole('button', { name: 'Copy key' }).click();
  expect((await forwarded(await page.evaluate(() => navigator.clipboard.readText()))) === 200, 'the key that was made does not work');
  await audit(page, 'the dialog of keys');
  await snap(page, '27-keys');
  await dialog.getByRole('button', { name: 'Delete this key' }).click();
  await dialog.getByRole('button', { name: 'Delete key' }).click();
  await dialog.getByText('None yet').waitFor();
  await page.keyboard.press('Escape');
  await picture(page, '27-gateway');
  await page.getByRole('button', { name: 'Edit API weather' }).click();
  await dialog.getByLabel('Path', { exact: true }).fill('/wetter');
  await audit(page, 'the dialog of an API');
  await dialog.getByRole('button', { name: 'Save changes' }).click();
  await page.getByText('/wetter', { exact: true }).waitFor();
  expect((await forwarded()) === 404 && (await fetch(base + '/wetter/today')).status === 401, 'a changed API is where it was');
  await page.getByRole('button', { name: 'Delete API weather' }).click();
  await dialog.getByRole('button', { name: 'Delete' }).click();
  await page.getByText('No API is registered').waitFor();
  expect((await forwarded()) === 404, 'a deleted API is forwarded');
}
