#!/usr/bin/env node
// Starts the command line: in this process where Node can strip types, else with the project's own Node.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import * as modules from 'node:module';
import process from 'node:process';
import { fileURLToPath } from 'node:url';

const main = new URL('../cli/main.ts', import.meta.url);

if (process.features.typescript) {
  // Stripping types and compiling is half of the time that a short command takes.
  modules.enableCompileCache(fileURLToPath(new URL('../node_modules/.cache/turnsweep', import.meta.url)));
  await import(main.href);
} else {
  const ours = fileURLToPath(new URL('../node_modules/node/bin/node', import.meta.url));
  if (!existsSync(ours)) {
    console.error('error: turnsweep is not installed here; run `npm ci` in its folder, or use Node 24');
    process.exit(1);
  }
  // The channel ends with this process, however it ends: a killed command must not leave a run behind.
  const child = spawn(ours, [fileURLToPath(main), ...process.argv.slice(2)], {
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
    env: { ...process.env, TURNSWEEP_TIED_TO_PARENT: '1' },
  });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
  child.on('exit', (code, signal) => {
    process.exitCode = code ?? (signal === 'SIGKILL' ? 137 : 1);
  });
}
