// Signing up, the account, and sessions that end.
import { audit, base, expect, picture, snap } from './harness.mjs';
import { heading, signIn } from './people.mjs';
import { ada, api, root } from './service.mjs';

export async function signingUp(page) {
  await page.goto(base + '/console');
  await heading(page, 'Sign in');
  await picture(page, '01-sign-in');
  await signIn(page, { email: 'nobody@example.com', password: 'wrong password' });
  await page.getByText('E-mail or password is wrong').waitFor();
  await page.getByRole('link', { name: 'Create an account' }).click();
  await heading(page, 'Create an account');
  await page.getByLabel('E-mail').fill('not an address');
  await page.getByText('must be an e-mail address').waitFor();
  await page.getByLabel('Password').fill('short');
  await page.getByText('must have at least 8 characters').waitFor();
  await picture(page, '02-sign-up');
  await page.getByLabel('First name').fill('Ada');
  await page.getByLabel('Last name').fill('Lovelace');
  await page.getByLabel('E-mail').fill(ada.email);
  await page.getByLabel('Password').fill(ada.password);
  await page.getByRole('button', { name: 'Create account' }).click();
  await heading(page, 'Hello, Ada');
  await page.getByText('Three steps to a stream').waitFor();
  await picture(page, '03-first-steps');
  const kept = await page.evaluate(() => ({ local: Object.keys(localStorage).join(), cookie: document.cookie }));
  expect(kept.local === '' && kept.cookie === '', `keeps ${JSON.stringify(kept)}`);
}

export async function account(page) {
  await page.getByRole('link', { name: 'Ada Lovelace' }).click();
  await page.getByLabel('First name').fill('Augusta');
  await page.getByRole('button', { name: 'Save profile' }).click();
  await page.getByRole('link', { name: 'Augusta Lovelace' }).waitFor();
  await picture(page, '21-account', { full: true });
  // Another e-mail and another password need the current one.
  expect((await page.getByLabel('Current password').count()) === 1, 'the profile asks for a password before the e-mail is another');
  await page.getByLabel('E-mail').fill('augusta@example.com');
  expect((await page.getByLabel('Current password').count()) === 2, 'another e-mail needs no password');
  await page.getByLabel('E-mail').fill(ada.email);
  await page.getByLabel('Current password').fill('wrong password');
  await page.getByLabel('New password').fill('another horse battery');
  await page.getByLabel('Once more').fill('another horse battery');
  await page.getByRole('button', { name: 'Change password' }).click();
  await page.getByText('is wrong').waitFor();
  await page.getByLabel('Current password').fill(ada.password);
  await page.getByRole('button', { name: 'Change password' }).click();
  await page.getByText('Your password is new').waitFor();
  ada.password = 'another horse battery';
  await signIn(page, ada);
  await heading(page, 'Hello, Augusta');
  await page.getByRole('link', { name: 'Augusta Lovelace' }).click();
  // Somebody ends the session elsewhere: the next click leads to the sign-in page, and from there back.
  const other = (await api('PUT', '/session', ada)).body.token;
  await page.getByRole('button', { name: 'Sign out everywhere' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Sign out everywhere' }).click();
  await page.getByText('You are signed out everywhere').waitFor();
  expect((await api('GET', '/apps', undefined, other)).status === 401, 'signing out everywhere spares other sessions');
  await signIn(page, ada);
  await heading(page, 'Hello, Augusta');
  await page.locator('.recent').waitFor(); // nothing is under way that could notice before the click
  const endAll = async () => api('DELETE', '/sessions', undefined, (await api('PUT', '/session', ada)).body.token);
  await endAll();
  await page.getByRole('link', { name: 'Apps', exact: true }).click();
  await page.getByText('Your session has ended').waitFor();
  await snap(page, '22-expired');
  await signIn(page, ada);
  await heading(page, 'Apps');
  // What was begun is still there, and is for nobody else.
  await page.getByRole('button', { name: 'New app' }).click();
  await page.getByRole('dialog').getByLabel('Name').fill('Half an app');
  await endAll();
  await page.getByRole('dialog').getByRole('button', { name: 'Create app' }).click();
  await page.getByText('Your session has ended').waitFor();
  expect(!(await page.getByRole('dialog').isVisible()), 'what was begun can be seen without a session');
  await audit(page, 'the page to sign in again');
  await signIn(page, ada);
  await page.getByRole('dialog').getByRole('button', { name: 'Create app' }).click();
  await heading(page, 'Half an app');
  await endAll();
  await page.getByRole('link', { name: 'Overview' }).click();
  await page.getByText('Your session has ended').waitFor();
  await signIn(page, root);
  await heading(page, 'Hello, Freshet');
  await page.getByRole('button', { name: 'Sign out' }).click();
  await heading(page, 'Sign in');
  await signIn(page, ada);
  await heading(page, 'Hello, Augusta');
  await page.getByRole('button', { name: 'Sign out' }).click();
  await heading(page, 'Sign in');
  expect((await page.evaluate(() => sessionStorage.length)) === 0, 'a token is left behind');
}
