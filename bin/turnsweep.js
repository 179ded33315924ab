#!/usr/bin/env node
// Starts the command line with the project's own Node, whatever version the system has.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const ours = fileURLToPath(new URL('../node_modules/node/bin/node', import.meta.url));
const main = fileURLToPath(new URL('../cli/main.ts', import.meta.url));
const child = spawn(existsSync(ours) ? ours : process.execPath, [main, ...process.argv.slice(2)], {
  stdio: 'inherit',
});
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
child.on('exit', (code, signal) => {
  process.exitCode = code ?? (signal === 'SIGKILL' ? 137 : 1);
});
