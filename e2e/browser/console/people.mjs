// What people do on every page.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect } from './harness.mjs';

export const run = promisify(execFile);
export const heading = (page, text) => page.getByRole('heading', { level: 1, name: text }).waitFor();

export async function signIn(page, who) {
  await page.getByLabel('E-mail').fill(who.email);
  await page.getByLabel('Password').fill(who.password);
  await page.getByRole('button', { name: 'Sign in' }).click();
}

/** Goes to a button, link or field with the Tab key alone, and sees that the way there can be seen. */
export async function tabTo(page, name) {
  for (let i = 0; i < 80; i++) {
    await page.keyboard.press('Tab');
    const at = await page.evaluate(() => {
      const e = document.activeElement,
        style = getComputedStyle(e);
      const label = e.getAttribute('aria-label') ?? (e.id && document.querySelector(`label[for="${e.id}"]`)?.textContent) ?? '';
      return {
        name: (label || e.textContent).trim(),
        marked: style.outlineStyle !== 'none' || !!e.closest('.editor') || e.type === 'radio',
        tag: e.tagName,
      };
    });
    if (at.tag !== 'BODY') expect(at.marked, `the focus on “${at.name}” cannot be seen`);
    if (at.name === name) return;
  }
  throw new Error(`the Tab key does not lead to “${name}”`);
}
