import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { onTestFinished } from 'vitest';
import { stringify } from 'yaml';

export const projectRoot = path.join(import.meta.dirname, '..', '..');
export const referenceRelease = path.join(projectRoot, '..', 'shared', 'reference', 'return-release');
export const main = path.join(projectRoot, 'cli', 'main.ts');
/** Compiling is half of what starting a command costs, and there are hundreds of them. */
const compileCache = path.join(projectRoot, 'node_modules', '.cache', 'turnsweep-tests');

export interface CommandResult {
  code: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
}

export interface RunningCommand {
  pid: number;
  kill(signal: NodeJS.Signals): void;
  /** What it has written so far. */
  output(): { stdout: string; stderr: string };
  ended: Promise<CommandResult>;
}

/** Starts the real command line as a process of its own. */
export const startCommand = (
  args: readonly string[],
  options: { env?: Record<string, string>; cwd?: string; uid?: number; gid?: number } = {},
): RunningCommand => {
  const child = spawn(process.execPath, [main, ...args], {
    cwd: options.cwd ?? projectRoot,
    env: { ...process.env, NO_COLOR: '1', NODE_COMPILE_CACHE: compileCache, ...options.env },
    stdio: ['ignore', 'pipe', 'pipe'],
    uid: options.uid,
    gid: options.gid,
  });
  const output = { stdout: '', stderr: '' };
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output.stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (output.stderr += text));
  const ended = new Promise<CommandResult>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => resolve({ code, signal, ...output }));
  });
  return { pid: child.pid!, kill: (signal) => child.kill(signal), output: () => output, ended };
};

export const turnsweep = (
  args: readonly string[],
  options: { env?: Record<string, string>; cwd?: string } = {},
): Promise<CommandResult> => startCommand(args, options).ended;

/** A folder of the test's own, removed after it. */
export const temporaryFolder = (): string => {
  const folder = mkdtempSync(path.join(tmpdir(), 'turnsweep-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
};

/** Writes a sweep file and gives its path. */
export const sweepFile = (folder: string, content: unknown, name = 'sweep.yaml'): string => {
  const file = path.join(folder, name);
  writeFileSync(file, typeof content === 'string' ? content : stringify(content));
  return file;
};
