// Topics: making, publishing to, connecting to, setting and deleting them.
import { base, expect, figures, picture, snap } from './harness.mjs';
import { heading, run } from './people.mjs';
import { ada, api, evil, follow, publish, target } from './service.mjs';

export async function makingTopics(page) {
  await page.getByRole('button', { name: 'New topic' }).click();
  await heading(page, 'New topic');
  await page.getByLabel('Name').fill('Weather');
  await page.getByText('Freshet polls a URL').click();
  await page.getByLabel('URL to poll').fill('ftp://example.com');
  await page.getByText('must begin with http:// or https://').waitFor();
  await page.getByLabel('Polling interval').fill('20');
  await page.getByText('must be between 100').waitFor();
  await page.getByText('Items of a list').click();
  await page.getByLabel('Path to an item').fill('..x');
  await page.getByText('has an empty name').waitFor();
  await picture(page, '08-new-topic', { full: true });
  await page.getByLabel('URL to poll').fill(target + '/weather.json');
  await page.getByLabel('Polling interval').fill('5000');
  await page.getByLabel('Path to an item').fill('.id');
  await page.getByRole('button', { name: 'Test this URL' }).click();
  await page.getByText('This would be published').waitFor();
  await page.getByRole('region', { name: 'what would be published' }).getByText('12345678901234567890').waitFor();
  await picture(page, '08-test-url', { full: true });
  await page.getByLabel('URL to poll').fill('http://127.0.0.1:1/weather.json');
  await page.getByRole('button', { name: 'Test this URL' }).click();
  await page.getByText('The data source cannot be reached').waitFor();
  await page.getByLabel('URL to poll').fill(target + '/weather.json');
  await page.getByRole('button', { name: 'Create topic' }).click();
  await heading(page, 'Weather');
  await page.getByRole('navigation', { name: 'Breadcrumbs' }).getByRole('link', { name: 'Quotes' }).click();
  await page.getByRole('button', { name: 'New topic' }).click();
  await page.getByLabel('Name').fill(evil);
  await page.getByRole('button', { name: 'Create topic' }).click();
  await heading(page, evil);
}

const hostile = `{"html": "<script>alert(1)</script><img src=x onerror=alert(2)>", "<b>name</b>": "<svg onload=alert(3)>",
  "__proto__": {"polluted": true}, "constructor": "x", "big": 12345678901234567890,
  "text": "</textarea></pre><iframe src=javascript:alert(4)>", "nested": {"\\u202e": [1, 2, {"onclick": "javascript:alert(5)"}]}}`;

export async function publishing(page) {
  const editor = page.getByLabel('JSON to publish');
  await editor.fill('{"a": 1,\n "b": }');
  await page.getByText(/Line 2, column/).waitFor();
  await picture(page, '09-publish-mistake');
  await editor.fill(hostile);
  await page.getByRole('button', { name: 'Publish', exact: true }).click();
  await page.getByText(/arrived here after/).waitFor();
  await page.getByRole('tree').getByText('12345678901234567890').waitFor();
  await page.getByRole('tree').getByText('<script>alert(1)</script>').waitFor();
  await page.getByRole('tree').getByText('__proto__').waitFor();
  expect((await page.evaluate(() => ({}).polluted)) === undefined, 'a document has polluted the prototype of objects');
  expect((await page.locator('img, iframe, .tree svg').count()) === 0, 'a document has become markup');
  await picture(page, '10-hostile');
  await page.reload();
  // One begins with what is there.
  await page.waitForFunction(() => document.querySelector('.editor textarea')?.value.includes('12345678901234567890'));
  await page.getByRole('button', { name: 'Merge' }).click();
  await editor.fill('{"big": 12345678901234567891, "new": true}');
  await editor.press('Control+Enter');
  await page.getByRole('tree').getByText('12345678901234567891').waitFor();
  await page.getByRole('button', { name: 'Document' }).click();
  await page.getByRole('button', { name: 'Publish', exact: true }).click();
  await page.getByText('it changed nothing').waitFor();
}

export async function connecting(page, { topic, app }, token) {
  const path = ".a'; false; echo 'b`c"; // names of items are their publisher's to choose
  const { body: odd } = await api(
    'POST',
    `/apps/${app.id}/topics`,
    { name: 'Odd', publisher: { type: 'http-post', config: {}, payload: { type: 'item', item_id_path: path } } },
    token,
  );
  await page.goto(`${base}/console/topics/${odd.id}/connect`);
  await page.getByRole('button', { name: 'Copy Publish in curl' }).click();
  const asWritten = await run('bash', [
    '-c',
    (await page.evaluate(() => navigator.clipboard.readText())) + " -s -o /dev/null -w '%{http_code}'",
  ]);
  expect(asWritten.stdout === '204', `the curl command with quotes in a name answers ${asWritten.stdout}`);
  await page.getByRole('button', { name: 'Go', exact: true }).click();
  await page.getByRole('button', { name: 'Copy Publish in go' }).click();
  figures.go = [await page.evaluate(() => navigator.clipboard.readText())];
  await api('DELETE', '/topics/' + odd.id, undefined, token);
  await page.goto(`${base}/console/topics/${topic}`);
  await page.getByRole('navigation', { name: 'Topic' }).getByRole('link', { name: 'Connect' }).click();
  await picture(page, '14-connect');
  await page.getByRole('button', { name: 'Copy Publish in curl' }).click();
  const command = await page.evaluate(() => navigator.clipboard.readText());
  const { stdout } = await run('bash', ['-c', command + " -s -o /dev/null -w '%{http_code}'"]);
  expect(stdout === '204', `the copied curl command answers ${stdout}`);
  await page.getByRole('button', { name: 'JavaScript' }).click();
  await page.getByRole('button', { name: 'Copy Subscribe in javascript' }).click();
  const script = await page.evaluate(() => navigator.clipboard.readText());
  await page.getByRole('button', { name: 'Copy Publish in javascript' }).click();
  const sending = await page.evaluate(() => navigator.clipboard.readText());
  // Both run as they are, one showing what the other sends.
  const shown = page.waitForEvent('console', m => m.text().includes('ACME'));
  await page.evaluate(`void (() => { ${script}; globalThis.stop = () => source.close(); })()`);
  await page.evaluate(`(async () => { ${sending} })()`);
  await shown;
  await page.evaluate(() => globalThis.stop());
  await page.getByRole('button', { name: 'Go', exact: true }).click();
  for (const what of ['Subscribe', 'Publish']) {
    await page.getByRole('button', { name: `Copy ${what} in go` }).click();
    figures.go.push(await page.evaluate(() => navigator.clipboard.readText()));
  }
}

/** The topic that is polled tells how that went. */
async function polled(page, app) {
  await page.goto(`${base}/console/apps/${app.id}`);
  await page.getByRole('link', { name: 'Weather' }).click();
  await page.getByRole('tree').getByText('Paris').waitFor(); // somebody looks, so it is polled
  await page.getByRole('button', { name: 'Poll now' }).click();
  await page.getByText('The topic is being polled').waitFor();
  await page.getByRole('navigation', { name: 'Topic' }).getByRole('link', { name: 'Usage' }).click();
  const polls = page.locator('.plot').filter({ hasText: 'Polls per hour, by outcome' });
  await polls.waitFor();
  const text = await polls.locator('.legend').textContent();
  expect(/new document [1-9]/.test(text) && /not modified \d/.test(text) && /failed 0/.test(text), `polls by outcome: ${text}`);
  await picture(page, '16-usage-polled', { full: true });
}

export async function settings(page, { topic, app }) {
  await page.getByRole('navigation', { name: 'Topic' }).getByRole('link', { name: 'Settings' }).click();
  await page.getByLabel('Name').waitFor();
  const token = (await api('PUT', '/session', ada)).body.token; // somebody else changes another thing meanwhile
  await api('PATCH', '/topics/' + topic, { publisher: { config: { force_publishing: false } } }, token);
  await page.getByLabel('Name').fill('Paris');
  await page.getByRole('button', { name: 'Save changes' }).click();
  await heading(page, 'Paris');
  const { body: saved } = await api('PATCH', '/topics/' + topic, { publisher: { config: { force_publishing: null } } }, token);
  expect(saved.name === 'Paris', `the topic is called ${saved.name}`);
  await picture(page, '15-topic-settings', { full: true });
  await page.getByRole('navigation', { name: 'Topic' }).getByRole('link', { name: 'Usage' }).click();
  await page.getByText('Messages per hour').waitFor();
  const used = await page.locator('.stat').filter({ hasText: 'Messages' }).first().textContent();
  const [messages, publications] =
    used
      .replaceAll(/(?<=\d)\D(?=\d{3}\b)/g, '')
      .match(/\d+/g)
      ?.map(Number) ?? [];
  // A busy machine merges patches that follow closely, so only publications can be told.
  expect(messages > 20 && publications > 250, `after 250 patches, the usage page says ${used}`);
  const figure = (label, series) =>
    page.locator('.plot').filter({ hasText: label }).locator('.legend li').filter({ hasText: series }).locator('b').textContent();
  for (const series of ['half within', '95 %', '99 %'])
    expect(
      /^[\d.]+ m?s$/.test(await figure('From publication to socket', series)),
      `${series}: ${await figure('From publication to socket', series)}`,
    );
  expect((await page.locator('.plot .u-over').count()) >= 5, 'the usage page has no plots');
  await picture(page, '16-usage', { full: true });
  await page.getByRole('button', { name: 'Live', exact: true }).click();
  await page.getByText('Messages per second').waitFor();
  const stop = new AbortController(),
    follower = await follow(topic, app.subscriber_key);
  const publishing = (async () => {
    // until it shows
    for (let n = 0; !stop.signal.aborted; n++) {
      await publish(topic, app.publisher_key, { n });
      await new Promise(done => setTimeout(done, 50));
    }
  })();
  const until = (label, series, pattern) =>
    page.waitForFunction(
      ([label, series, pattern]) =>
        [...document.querySelectorAll('.plot')]
          .filter(p => p.textContent.includes(label))
          .flatMap(p => [...p.querySelectorAll('.legend li')])
          .some(l => l.textContent.includes(series) && new RegExp(pattern).test(l.querySelector('b').textContent)),
      [label, series, pattern],
    );
  await until('Messages per second', 'messages', '[1-9]');
  await until('From publication to socket', '99 %', '[1-9]');
  await until('Connections', 'connections', '[1-9]');
  await until('Bytes per second', 'sent', '[1-9]');
  await picture(page, '16-usage-live', { full: true });
  stop.abort();
  await publishing;
  await follower.close();
  await polled(page, app);
  await page.goto(`${base}/console/apps/${app.id}`);
  await page.getByRole('table').waitFor();
  await picture(page, '17-topics');
  await page.getByRole('navigation', { name: 'App' }).getByRole('link', { name: 'Settings' }).click();
  await page.getByLabel('Polling interval').waitFor();
  await api('PATCH', '/apps/' + app.id, { client_request_signature_enabled: true }, token);
  await page.getByLabel('Polling interval').fill('3000');
  await page.getByRole('button', { name: 'Save changes' }).click();
  await page.getByText('Saved').waitFor();
  expect(await page.getByLabel('Signed requests only').isChecked(), 'saving one thing takes back another that was changed meanwhile');
  await api('PATCH', '/apps/' + app.id, { client_request_signature_enabled: false }, token);
  await picture(page, '18-app-settings', { full: true });
  await page.getByRole('link', { name: 'Overview' }).click();
  await page.locator('.recent').waitFor();
  await page.getByText('Messages per hour').waitFor();
  await picture(page, '19-overview', { full: true });
}

export async function deleting(page, { topic }) {
  await page.goto(`${base}/console/topics/${topic}/settings`);
  await page.getByRole('button', { name: 'Delete topic' }).click();
  const dialog = page.getByRole('dialog'),
    sure = dialog.getByRole('button', { name: 'Delete topic' });
  expect(await sure.isDisabled(), 'deleting asks for nothing');
  await dialog.getByLabel(/to confirm/).fill('Paris');
  await snap(page, '20-delete');
  await sure.click();
  await heading(page, 'Quotes');
  await page.goto(`${base}/console/topics/${topic}`);
  await page.getByText('Nothing here').waitFor();
  await page.goto(`${base}/console/no/such/page`);
  await heading(page, 'There is no such page');
}
