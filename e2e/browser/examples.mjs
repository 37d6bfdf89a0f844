// Opens an example page in a real browser and watches it live. Called with: URL of the page, origins that it may load from (JSON),
// what to wait for (JSON: selectors with a condition each), folder for pictures. Prints one JSON line with what it saw.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { chromium } from 'playwright-core';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

const [url, originsText, waitsText, pictures] = process.argv.slice(2);
const origins = JSON.parse(originsText);
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
const seen = { foreign: [], errors: [], texts: [] };
let page;
try {
  page = await browser.newPage({ viewport: { width: 900, height: 900 } });
  page.setDefaultTimeout(60_000); // for what never comes
  page.on('request', r => {
    if (!origins.some(o => r.url().startsWith(o))) seen.foreign.push(r.url());
  });
  page.on('pageerror', e => seen.errors.push(String(e)));
  page.on('console', m => {
    if (m.type() === 'error') seen.errors.push(m.text());
  });
  await page.goto(url);
  for (const { selector, atLeast, text, changes, click } of JSON.parse(waitsText)) {
    if (click) {
      await page.click(selector);
      continue;
    }
    if (atLeast) await page.waitForFunction(([s, n]) => document.querySelectorAll(s).length >= n, [selector, atLeast]);
    if (text) await page.waitForFunction(([s, t]) => document.querySelector(s)?.textContent.includes(t), [selector, text]);
    if (changes) {
      const before = await page.textContent(selector);
      await page.waitForFunction(([s, b]) => document.querySelector(s).textContent !== b, [selector, before]);
    }
    seen.texts.push(await page.textContent(selector));
  }
  await page.evaluate(axe);
  for (const colorScheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme });
    await page.evaluate(() => {
      for (const a of document.getAnimations()) a.finish(); // colours are judged as they come to rest
    });
    const found = await page.evaluate(() => globalThis.axe.run(document, { runOnly: ['color-contrast'], resultTypes: ['violations'] }));
    for (const v of found.violations) seen.errors.push(`${colorScheme}: ${v.nodes.map(n => n.any[0]?.message).join(' | ')}`);
    await page.screenshot({ path: `${pictures}/page-${colorScheme}.png` });
  }
} catch (e) {
  await page?.screenshot({ path: `${pictures}/failure.png`, fullPage: true });
  console.error(JSON.stringify(seen));
  throw e;
} finally {
  await browser.close();
}
console.log(JSON.stringify(seen));
