// The live viewer: what it shows, under load and in trouble.
import { audit, base, expect, figures, picture, snap, subscriber, tolerance } from './harness.mjs';
import { heading } from './people.mjs';
import { api, evil, follow, publish } from './service.mjs';

export async function viewing(page, token, oldKey) {
  const topic = page.url().split('/').at(-2);
  const {
    body: { app_id },
  } = await api('GET', '/topics/' + topic, undefined, token);
  const { body: app } = await api('GET', '/apps/' + app_id, undefined, token);
  await page.getByRole('navigation', { name: 'Topic' }).getByRole('link', { name: 'Live' }).click();
  const market = n => ({
    market: 'Paris',
    open: true,
    at: n,
    quotes: { ACME: { bid: 101.5 + n, ask: 101.7 + n }, INIT: { bid: 47, ask: 47.2 } },
    trades: Array.from({ length: n % 6 }, (_, i) => ({ id: i, qty: 10 * i })),
  });
  for (let n = 0; n < 12; n++) await publish(topic, app.publisher_key, market(n));
  await page.getByRole('tree').getByText('112.5').waitFor();
  await page.getByRole('listbox').getByText('replace /at', { exact: false }).first().waitFor();
  await page.locator('.u-over').first().waitFor();
  await picture(page, '11-live', { full: true });
  await page.getByRole('button', { name: 'Pause' }).click();
  await publish(topic, app.publisher_key, market(40));
  await page.getByText('1 event behind').waitFor();
  expect((await page.getByRole('tree').getByText('112.5').count()) === 1, 'a paused viewer went on');
  await page.getByRole('button', { name: 'Previous version' }).click();
  await page.getByRole('tree').getByText('111.5').waitFor();
  await page.locator('.op').first().waitFor();
  await picture(page, '12-time-travel');
  await page.getByRole('slider', { name: 'Version' }).press('Home');
  await page.getByRole('button', { name: 'Go live' }).click();
  await page.getByRole('tree').getByText('141.5').waitFor();
  await page.getByLabel('Filter by operation').selectOption('remove');
  await page.getByLabel('Filter by path').fill('/trades');
  await page.waitForFunction(() => (n => n > 0 && n < 12)(document.querySelectorAll('.event-row').length)); // not everything
  await page.getByLabel('Filter by path').fill('/no/such/path');
  await page.getByText('No event matches').waitFor();
  await page.getByLabel('Filter by path').fill('');
  await page.getByLabel('Filter by operation').selectOption('');
  const first = await follow(topic, oldKey);
  expect(/event: snapshot/.test(first.text()), `the renewed key does not go on working for a while: ${first.text()}`);
  await first.close();
  await page.getByRole('button', { name: 'Explain' }).click();
  await page.getByRole('dialog').getByText('The newest document is').waitFor();
  await audit(page, 'the explanation');
  await snap(page, '12-explain');
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'hidden' });
  await page.waitForFunction(() => document.activeElement?.textContent.includes('Explain')); // who opened it has the focus again
  const tree = page.getByRole('tree'),
    active = text => page.locator('.tree-row.active').filter({ hasText: text }).waitFor();
  for (const key of ['End', 'ArrowUp', 'Home', 'ArrowDown', 'ArrowRight']) await tree.press(key);
  await active('market');
  for (const [path, found] of [
    ['/trades/3/qty', 'qty'],
    ['no/such/thing', '{ 5 }'],
  ]) {
    await page.getByLabel('Go to a path').fill(path);
    await page.getByLabel('Go to a path').press('Enter');
    await active(found);
  }
  await page.getByText('Nothing is there').waitFor();
  // A new document takes the place of what one was at: the keys go on from what is left of it.
  await page.getByLabel('Go to a path').fill('/trades/3/qty');
  await page.getByLabel('Go to a path').press('Enter');
  await active('qty');
  await publish(topic, app.publisher_key, { ...market(40), trades: Array.from({ length: 60 }, (_, i) => i) });
  await tree.getByText('[ 60 ]').waitFor();
  await tree.press('ArrowDown');
  await active(/^44$/); // element 4, which is 4
  return { topic, app };
}

/** 50 patches a second on a document of 500 rows, as smooth as a film. */
export async function load(page, { topic, app }, token) {
  const row = i => ({ id: i, symbol: 'SYM' + i, bid: i + 0.5, ask: i + 0.7, last: i + 0.6, volume: i * 100, venue: 'XPAR', open: true });
  const doc = Array.from({ length: 500 }, (_, i) => row(i));
  await page.getByRole('tree').press('Home'); // only what is in view is in the page
  await publish(topic, app.publisher_key, doc);
  await page.getByRole('tree').getByText('[ 500 ]').waitFor();
  await page.evaluate(() => {
    const seen = { frames: [], long: [] };
    globalThis.seen = seen;
    new PerformanceObserver(l => {
      for (const e of l.getEntries()) seen.long.push(e.duration);
    }).observe({ type: 'longtask' });
    let last = performance.now();
    const frame = now => {
      seen.frames.push(now - last);
      last = now;
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
    seen.touched = 0;
    globalThis.shifts = { sum: 0, worst: '' };
    new MutationObserver(list => {
      for (const m of list) seen.touched += m.type === 'childList' ? m.addedNodes.length + m.removedNodes.length : 1;
    }).observe(document.querySelector('.viewer'), { subtree: true, childList: true, characterData: true, attributes: true });
  });
  const cpu = await page.context().newCDPSession(page);
  await cpu.send('Performance.enable', { timeDomain: 'threadTicks' });
  const spent = async () => (await cpu.send('Performance.getMetrics')).metrics.find(m => m.name === 'TaskDuration').value;
  const spentBefore = await spent();
  const began = Date.now(),
    patches = 250;
  for (let n = 0; n < patches; n++) {
    const changed = doc[(n * 7) % 40];
    changed.bid = Math.round((changed.bid + 0.1) * 10) / 10;
    doc[(n * 13) % 500].volume++;
    await publish(topic, app.publisher_key, doc);
    const due = began + (n + 1) * 20 - Date.now();
    if (due > 0) await new Promise(done => setTimeout(done, due));
  }
  const took = (Date.now() - began) / 1000;
  const last = (
    await (await fetch(`${base}/api/v1/topics/${topic}/document`, { headers: { Authorization: `Bearer ${token}` } })).headers.get('etag')
  ).replaceAll('"', '');
  await page.locator('.travel-at').getByText(last).waitFor(); // all of them are shown
  const seen = await page.evaluate(() => globalThis.seen);
  const frames = seen.frames.slice(5).sort((a, b) => a - b);
  figures.load = {
    patches_per_second: Math.round(patches / took),
    frames_per_second: Math.round(frames.length / took),
    frame_p50_ms: Math.round(frames[frames.length >> 1]),
    frame_p99_ms: Math.round(frames[Math.floor(frames.length * 0.99)]),
    frame_max_ms: Math.round(frames.at(-1)),
    long_tasks: seen.long.length,
    longest_task_ms: Math.round(Math.max(0, ...seen.long)),
    rows_made: await page.locator('.tree-row').count(),
    nodes_touched_per_patch: Math.round((10 * seen.touched) / patches) / 10,
    main_thread_cpu_ms_per_patch: Math.round((10_000 * ((await spent()) - spentBefore)) / patches) / 10,
  };
  await cpu.detach();
  const { sum, worst } = await page.evaluate(() => globalThis.shifts);
  expect(sum < 0.1, `what arrives makes the page jump by ${sum}: ${worst.slice(0, 200)}`);
  // A patch may change what can be seen of it, never the 4,500 rows of the document: that is what keeps it smooth on any machine.
  expect(figures.load.nodes_touched_per_patch < 50, `a patch touches ${figures.load.nodes_touched_per_patch} nodes of the page`);
  for (const what of ['Saved vs snapshots', 'Saved vs polling']) {
    const saved = await page
      .locator('.stat')
      .filter({ hasText: what })
      .locator('dd')
      .first()
      .evaluate(dd => dd.firstChild.textContent);
    expect(parseFloat(saved) > (what.endsWith('polling') ? 0 : 90), `${what}: ${saved}`);
  }
  expect(figures.load.rows_made < 80, `the tree makes ${figures.load.rows_made} rows`);
  await picture(page, '13-load');
}

/** What lies between says something else than a stream; then nothing; then all is well again. */
export async function trouble(page, { topic, app }, token) {
  tolerance.pattern = /status of 503|Failed to load resource/;
  const there = route =>
    route.fulfill({
      status: 503,
      contentType: 'application/json',
      headers: { 'Access-Control-Allow-Origin': '*' },
      body: '{"message":"busy"}',
    });
  await page.route(`${subscriber}/**`, there);
  await page.reload();
  await page.getByText('answered 503 with application/json instead of a stream').waitFor();
  await page
    .getByText('reconnecting')
    .or(page.getByText('connecting', { exact: true }))
    .first()
    .waitFor();
  await picture(page, '13-trouble');
  await page.unroute(`${subscriber}/**`, there);
  await page
    .getByRole('button', { name: 'Try now' })
    .click({ trial: false, timeout: 5000 })
    .catch(() => undefined); // unless it tries already
  await page.getByText('connected', { exact: true }).waitFor();
  await page.getByText('instead of a stream').waitFor({ state: 'detached' });
  await page.getByRole('tree').getByText('[ 500 ]').waitFor();
  // A figure that cannot be had any more is not shown as if it were new.
  const gone = route => route.abort();
  await page.getByRole('navigation', { name: 'Topic' }).getByRole('link', { name: 'Usage' }).click();
  await page.getByRole('button', { name: 'Live', exact: true }).click();
  await page.getByText('Messages per second').waitFor();
  await page.route(`${base}/api/**`, gone);
  await page.getByText('The server cannot be reached').first().waitFor();
  await page.unroute(`${base}/api/**`, gone);
  await page.getByText('The server cannot be reached').first().waitFor({ state: 'detached' });
  tolerance.pattern = /^$/;
  await page.goto(`${base}/console/topics/${topic}`);
  await heading(page, evil);
  await page.getByText('connected', { exact: true }).waitFor();
  // The key is another by now: one click, and the viewer has it too.
  app.subscriber_key = (await api('PUT', `/apps/${app.id}/subscriber_key`, { overlap_seconds: 0 }, token)).body.subscriber_key;
  await page.getByRole('alert').getByText('40111').waitFor();
  await page.getByRole('button', { name: 'Connect again' }).click();
  await page.getByText('connected', { exact: true }).waitFor();
}
