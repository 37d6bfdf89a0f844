// A real server for tests.
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const repository = fileURLToPath(new URL('../../..', import.meta.url));
let binary = process.env.FRESHET_TEST_BINARY;

/** Returns the program under test: the one that FRESHET_TEST_BINARY names, or one built from this repository. */
function program() {
  if (!binary) {
    const dir = mkdtempSync(join(tmpdir(), 'freshet-bin-'));
    process.on('exit', () => rmSync(dir, { recursive: true, force: true }));
    binary = join(dir, 'freshet');
    execFileSync('go', ['build', '-o', binary, './cmd/freshet'], { cwd: repository, stdio: 'inherit' });
  }
  return binary;
}

/** Settings of whoever runs the tests are not for this server. */
const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^FRESHET_(?!TEST_)|^SDIO_/.test(name)));

/** Starts a server on free ports; given one that ran before, in its place. */
export async function start(before) {
  const data = before?.data ?? mkdtempSync(join(tmpdir(), 'freshet-data-'));
  const at = address => address?.replace('http://', '') ?? '127.0.0.1:0';
  const child = spawn(
    program(),
    [
      'serve',
      '--log-format',
      'json',
      '--data',
      data,
      '--drain-timeout',
      '1s',
      '--gateway-listen',
      at(before?.gateway),
      '--subscriber-listen',
      at(before?.subscriber),
      '--admin-listen',
      '127.0.0.1:0',
    ],
    { stdio: ['ignore', 'ignore', 'pipe'], env },
  );
  const exited = new Promise(resolve => child.once('exit', resolve));
  let said = '';
  const ready = await new Promise((resolve, reject) => {
    exited.then(() => reject(new Error(`the server ended:\n${said}`)));
    createInterface({ input: child.stderr }).on('line', line => {
      said += line + '\n';
      try {
        const fields = JSON.parse(line);
        if (fields.msg === 'ready') resolve(fields);
      } catch {
        // not a log line
      }
    });
  });
  return {
    data,
    gateway: 'http://' + ready.gateway,
    subscriber: 'http://' + ready.subscriber,
    /** Ends the process, and forgets its data unless it shall start again. */
    async stop({ signal = 'SIGTERM', keep = false } = {}) {
      child.kill(signal);
      await exited;
      if (!keep) rmSync(data, { recursive: true, force: true });
    },
  };
}
