import { statSync } from 'node:fs';
import path from 'node:path';
import { build } from 'esbuild';

/** Bundles the worker of GPU lanes into one file, which is all that its image gets of us. */

const root = path.join(import.meta.dirname, '..');
const outfile = path.join(root, 'workers', 'dist', 'worker.mjs');

await build({
  entryPoints: [path.join(root, 'workers', 'worker.ts')],
  outfile,
  bundle: true,
  platform: 'node',
  target: 'node24',
  format: 'esm',
  mainFields: ['module', 'main'],
  minify: true,
  keepNames: true,
  sourcemap: 'inline',
  sourcesContent: false,
  // esbuild needs it for CommonJS parts of an ESM bundle.
  banner: {
    js: "import { createRequire as makeRequire } from 'node:module'; const require = makeRequire(import.meta.url);",
  },
});
console.log(`${path.relative(root, outfile)}: ${(statSync(outfile).size / 1e6).toFixed(1)} MB`);
