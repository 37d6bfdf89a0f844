// Builds dist: one file for each entry, and their types. Also checks the types of the examples.
import { execFileSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const here = fileURLToPath(new URL('..', import.meta.url));
rmSync(here + 'dist', { recursive: true, force: true });
const common = { absWorkingDir: here, bundle: true, format: 'esm', target: 'es2022', platform: 'neutral', logLevel: 'warning' };
await build({ ...common, entryPoints: ['src/index.ts', 'src/api.ts', 'src/exact.ts'], outdir: 'dist', sourcemap: true });
await build({ ...common, entryPoints: ['src/index.ts'], outfile: 'dist/freshet.min.js', minify: true });

const tsc = (...args) =>
  execFileSync(process.execPath, [here + 'node_modules/typescript/bin/tsc', ...args], { cwd: here, stdio: 'inherit' });
tsc('--noEmit');
tsc('-p', 'tsconfig.build.json');
