// Loads a part of the source that the package does not export.
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

export async function load(name) {
  const entry = fileURLToPath(new URL(`../src/${name}.ts`, import.meta.url));
  const { outputFiles } = await build({ entryPoints: [entry], bundle: true, format: 'esm', write: false, target: 'es2022' });
  return import('data:text/javascript;base64,' + Buffer.from(outputFiles[0].contents).toString('base64'));
}
