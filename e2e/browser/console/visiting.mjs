// Pages as a whole: how they load, what they weigh, and without a mouse.
import { base, expect, figures, open } from './harness.mjs';
import { heading, signIn, tabTo } from './people.mjs';
import { ada } from './service.mjs';

/** Pages that are opened by their address stand still while they load, and all of it is small. */
export async function standing(page, { topic, app }) {
  const paths = [
    '/',
    '/apps',
    `/apps/${app.id}`,
    `/apps/${app.id}/keys`,
    `/apps/${app.id}/usage`,
    `/apps/${app.id}/settings`,
    `/apps/${app.id}/topics/new`,
    `/topics/${topic}`,
    `/topics/${topic}/publish`,
    `/topics/${topic}/connect`,
    `/topics/${topic}/usage`,
    `/topics/${topic}/settings`,
    '/account',
  ];
  figures.shifts = {};
  for (const path of paths) {
    await page.goto(base + '/console' + path);
    await page.getByRole('heading', { level: 1 }).waitFor();
    await page.locator('.skeleton').waitFor({ state: 'detached' });
    await page.evaluate(() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done))));
    const { sum, worst } = await page.evaluate(() => globalThis.shifts);
    figures.shifts[path.replace(app.id, ':app').replace(topic, ':topic')] = Math.round(sum * 1e4) / 1e4;
    expect(sum < 0.1, `${path} jumps while it loads: ${worst}`);
  }
}

/** All that a first visit loads, fonts included. */
export async function weighing() {
  const page = await open(),
    network = await page.context().newCDPSession(page);
  await network.send('Network.enable');
  let sum = 0;
  network.on('Network.loadingFinished', e => {
    sum += e.encodedDataLength;
  });
  await page.goto(base + '/console/');
  await heading(page, 'Sign in');
  await page.evaluate(() => document.fonts.ready);
  await signIn(page, ada);
  await page.locator('.recent').waitFor();
  await page.waitForLoadState('networkidle');
  figures.transferred_bytes = sum;
  expect(sum > 10_000 && sum < 200_000, `a first visit transfers ${sum} bytes`);
  await page.context().close();
}

/** Signs in, makes an app and a topic and publishes, without a mouse. */
export async function typing() {
  const page = await open();
  await page.goto(base + '/console/');
  await heading(page, 'Sign in');
  await page.keyboard.type(ada.email);
  await tabTo(page, 'Password');
  await page.keyboard.type(ada.password);
  await page.keyboard.press('Enter');
  await heading(page, /Hello/);
  await page.locator('.recent').waitFor();
  await page.evaluate(() => document.activeElement.blur());
  await tabTo(page, 'Skip to content');
  await page.keyboard.press('Enter');
  expect((await page.evaluate(() => document.activeElement.id)) === 'main', 'the link to the content does not lead there');
  await tabTo(page, 'New app');
  await page.keyboard.press('Enter');
  await page.getByRole('dialog').waitFor();
  await page.keyboard.type('Typed');
  await page.keyboard.press('Enter');
  await heading(page, 'Typed');
  await page.waitForFunction(() => document.activeElement.id === 'title'); // a new page begins at its title
  await tabTo(page, 'New topic');
  await page.keyboard.press('Enter');
  await heading(page, 'New topic');
  await page.locator('form input').first().waitFor();
  await tabTo(page, 'Name');
  await page.keyboard.type('By hand');
  await page.keyboard.press('Enter');
  await heading(page, 'By hand');
  await tabTo(page, 'Publish');
  await page.keyboard.press('Enter');
  await tabTo(page, 'JSON to publish');
  await page.keyboard.press('Control+A');
  await page.keyboard.type('{"typed": 12}');
  await page.keyboard.press('Control+Enter');
  await page.getByText(/arrived here after/).waitFor();
  await tabTo(page, 'Document'); // the tree
  for (const key of ['End', 'Home', 'ArrowDown']) await page.keyboard.press(key);
  await page.locator('.tree-row.active').getByText('typed').waitFor();
  await page.context().close();
}
