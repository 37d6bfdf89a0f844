// A browser that reports whatever a console must not do, and takes pictures.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { chromium } from 'playwright-core';

export const [base, subscriber, pictures, which] = process.argv.slice(2);
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
export const desktop = { width: 1440, height: 900 },
  phone = { width: 390, height: 844 },
  narrow = { width: 320, height: 640 }; // as a desktop at 400 %
export const problems = [],
  figures = { seconds: {} };
export const expect = (ok, what) => {
  if (!ok) problems.push(what);
};
/** What a browser says about trouble that a flow makes on purpose. */
export const tolerance = { pattern: /^$/ };

export const browser = await chromium.launch({
  executablePath: process.env.FRESHET_TEST_CHROMIUM || '/usr/bin/chromium',
  args: [
    '--no-sandbox',
    '--disable-gpu',
    '--disable-quic',
    '--no-first-run',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
    '--font-render-hinting=none',
  ],
});

/** Opens a window that reports whatever a console must not do. */
export async function open(options = {}) {
  const context = await browser.newContext({
    viewport: desktop,
    colorScheme: 'light',
    permissions: ['clipboard-read', 'clipboard-write'],
    ...options,
  });
  const page = await context.newPage();
  page.setDefaultTimeout(60_000); // for what never comes
  page.on('request', r => {
    const own = [base, subscriber, 'data:'].some(p => r.url().startsWith(p));
    if (!own) problems.push(`asks another host: ${r.url()}`);
  });
  page.on('pageerror', e => problems.push(`script failed at ${page.url()}: ${e}`));
  page.on('dialog', d => {
    problems.push(`a dialog of the browser: ${d.message()}`);
    void d.dismiss();
  });
  page.on('console', m => {
    const expected = /status of (400|401|403|404|405|409)/.test(m.text()) || tolerance.pattern.test(m.text());
    if ((m.type() === 'error' || /Content Security Policy|Trusted/i.test(m.text())) && !expected)
      problems.push(`complains at ${page.url()}: ${m.text()}`);
  });
  await page.addInitScript(() => {
    globalThis.shifts = { sum: 0, worst: '' };
    new PerformanceObserver(list => {
      for (const e of list.getEntries())
        if (!e.hadRecentInput) {
          globalThis.shifts.sum += e.value;
          globalThis.shifts.worst += ` ${e.value.toFixed(4)} ${e.sources.map(s => s.node?.className || s.node?.nodeName).join('+')}`;
        }
    }).observe({ type: 'layout-shift', buffered: true });
    document.addEventListener('securitypolicyviolation', e =>
      console.error(`Content Security Policy: ${e.violatedDirective} ${e.blockedURI}`),
    );
  });
  return page;
}

export async function audit(page, name, rules) {
  if (!(await page.evaluate(() => !!globalThis.axe))) await page.evaluate(axe);
  await rest(page); // colours are judged as they come to rest
  const found = await page.evaluate(
    rules => globalThis.axe.run(document, { resultTypes: ['violations'], ...(rules ? { runOnly: rules } : {}) }),
    rules,
  );
  for (const v of found.violations) {
    problems.push(
      `accessibility on ${name}: ${v.id} (${v.impact}): ${v.nodes
        .slice(0, 3)
        .map(n => n.target.join(' ') + ' ' + (n.any[0]?.message ?? n.all[0]?.message ?? ''))
        .join(' | ')}`,
    );
  }
}

/** Ends what moves by itself to a rest. */
const rest = page =>
  page.evaluate(() => {
    for (const a of document.getAnimations()) if (a.effect.getComputedTiming().iterations !== Infinity) a.finish();
  });

export async function snap(page, name) {
  await rest(page);
  await page.screenshot({ path: `${pictures}/${name}.png` });
}

/** A page scrolls down, never sideways. */
async function fits(page, name) {
  await page.evaluate(() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done))));
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  expect(wide <= 0, `${name} is ${wide} pixels too wide where there are ${page.viewportSize().width}`);
}

/** A picture in every size and theme, and an audit; in the dark, only colours can be different. */
export async function picture(page, name, { full = false } = {}) {
  for (const scheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme: scheme });
    if (scheme === 'light' || which === 'all')
      for (const [size, viewport] of [
        ['desktop', desktop],
        ['phone', phone],
      ]) {
        await page.setViewportSize(viewport);
        await fits(page, name);
        await page.screenshot({ path: `${pictures}/${name}-${size}-${scheme}.png`, fullPage: full });
      }
    if (scheme === 'light') {
      await page.setViewportSize(narrow);
      await fits(page, name);
    }
    await page.setViewportSize(desktop);
    await audit(page, `${name} (${scheme})`, scheme === 'dark' ? ['color-contrast'] : undefined);
  }
  await page.emulateMedia({ colorScheme: 'light' });
}
