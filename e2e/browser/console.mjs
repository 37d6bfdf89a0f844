// Uses the console as a person would, in a real browser, and takes pictures of it on the way. Called with: base URL of the
// gateway, URL of the subscriber interface, folder for pictures, and "all" to take them in every size and theme. Prints one
// JSON line: what was wrong, and what was measured. What is done lies in console/, by area.
import { account, signingUp } from './console/accounts.mjs';
import { administering } from './console/administering.mjs';
import { keys, makingApps } from './console/apps.mjs';
import { browser, figures, open, pictures, problems } from './console/harness.mjs';
import { ada, api, weather } from './console/service.mjs';
import { connecting, deleting, makingTopics, publishing, settings } from './console/topics.mjs';
import { load, trouble, viewing } from './console/viewing.mjs';
import { standing, typing, weighing } from './console/visiting.mjs';

const began = Date.now();
const page = await open();
let at = 'the beginning';
try {
  const flow = async (name, act) => {
    at = name;
    const t = Date.now();
    const r = await act();
    figures.seconds[name] = (Date.now() - t) / 1000;
    return r;
  };
  await flow('signing up', () => signingUp(page));
  await flow('making apps', () => makingApps(page));
  const oldKey = await flow('keys', () => keys(page));
  await flow('making topics', () => makingTopics(page));
  await flow('publishing', () => publishing(page));
  const token = (await api('PUT', '/session', ada)).body.token;
  const where = await flow('viewing', () => viewing(page, token, oldKey));
  await flow('load', () => load(page, where, token));
  await flow('trouble', () => trouble(page, where, token));
  await flow('connecting', () => connecting(page, where, token));
  await flow('settings', () => settings(page, where));
  await flow('standing', () => standing(page, where));
  await flow('weighing', weighing);
  await flow('typing', typing);
  await flow('deleting', () => deleting(page, where));
  await flow('account', () => account(page));
  await flow('administering', () => administering(page));
} catch (e) {
  await page.screenshot({ path: `${pictures}/failure.png` }).catch(() => undefined);
  problems.push(`${at} stopped at ${page.url()}: ${e.message}`);
} finally {
  await browser.close();
  weather.closeAllConnections();
  weather.close();
}
figures.took_s = (Date.now() - began) / 1000;
console.log(JSON.stringify({ problems, figures }));
process.exit(); // a flow that stopped half-way may have left a stream open
