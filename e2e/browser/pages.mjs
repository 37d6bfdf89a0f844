// Opens an API page in a real browser, checks that everything on it comes from the server itself, and uses
// "try it out" against the running server. Called with: base URL, path of the page, JSON list of steps, folder for
// pictures. Prints one JSON line with what it saw.
import { chromium } from 'playwright-core';

const [base, path, stepsText, pictures] = process.argv.slice(2);
const browser = await chromium.launch({
  executablePath: process.env.FRESHET_TEST_CHROMIUM || '/usr/bin/chromium',
  args: [
    '--no-sandbox',
    '--disable-gpu',
    '--disable-quic',
    '--no-first-run',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
  ],
});
const seen = { foreign: [], failed: [], errors: [], operations: [], answers: [], kept: [] };
let page;
try {
  page = await browser.newPage({ viewport: { width: 1200, height: 1400 } });
  page.setDefaultTimeout(60_000); // for what never comes
  page.on('request', r => {
    if (!r.url().startsWith(base) && !r.url().startsWith('data:')) seen.foreign.push(r.url());
  });
  page.on('requestfailed', r => seen.failed.push(r.url()));
  page.on('response', r => {
    if (r.url().startsWith(base) && r.url().includes('api-browser') && r.status() >= 400) seen.failed.push(`${r.status()} ${r.url()}`);
  });
  page.on('pageerror', e => seen.errors.push(String(e)));
  page.on('console', m => {
    if (m.type() === 'error' && !/status of 4\d\d/.test(m.text())) seen.errors.push(m.text());
  });
  await page.goto(base + path);
  await page.waitForSelector('.opblock');
  seen.operations = await page.$$eval('.opblock', blocks =>
    blocks.map(
      b =>
        b.querySelector('.opblock-summary-method').textContent + ' ' + b.querySelector('.opblock-summary-path').getAttribute('data-path'),
    ),
  );
  await page.screenshot({ path: `${pictures}/list.png` });

  for (const step of JSON.parse(stepsText)) {
    if (step.authorize) {
      await page.click('.btn.authorize');
      await page.fill('.auth-container input', seen.token ?? step.authorize);
      await page.click('.auth-btn-wrapper button[type=submit]');
      await page.click('.auth-btn-wrapper .btn-done');
      continue;
    }
    const block = page
      .locator('.opblock')
      .filter({ has: page.locator(`[data-path="${step.path}"]`) })
      .filter({ has: page.locator(`.opblock-summary-method:text-is("${step.method}")`) })
      .first();
    await block.locator('.opblock-summary-control').click();
    for (const [name, value] of Object.entries(step.parameters ?? {})) {
      await block.locator(`tr[data-param-name="${name}"] input`).fill(value);
    }
    if (step.body) await block.locator('textarea.body-param__text').fill(JSON.stringify(step.body));
    await block.locator('button.execute').click();
    const live = block.locator('.live-responses-table .response').first();
    await live.waitFor();
    const status = (await live.locator('.response-col_status').textContent()).trim().slice(0, 3);
    const text = await live.locator('.response-col_description').innerText();
    seen.answers.push({ path: step.path, status, text });
    const token = text.match(/"token": "([^"]+)"/);
    if (token) seen.token = token[1];
    await block.screenshot({ path: `${pictures}/${step.method}-${seen.answers.length}.png` });
    await block.locator('.opblock-summary-control').click();
  }
  seen.kept = await page.evaluate(() =>
    [...Object.values(localStorage), ...Object.values(sessionStorage), document.cookie].filter(Boolean),
  );
} catch (e) {
  await page?.screenshot({ path: `${pictures}/failure.png`, fullPage: true });
  throw e;
} finally {
  await browser.close();
}
delete seen.token;
console.log(JSON.stringify(seen));
