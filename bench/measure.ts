import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { availableParallelism, cpus, loadavg, tmpdir, totalmem } from 'node:os';
import path from 'node:path';

const projectRoot = path.join(import.meta.dirname, '..');

export interface Measured {
  code: number | null;
  /** From the start of the process to its end. */
  wallSeconds: number;
  cpuSeconds: number;
  peakMebibytes: number;
  startedMs: number;
  /** The end of what it printed, and the last line of that. */
  output: string;
  lastLine: string;
  /** The end of what it said on standard error. */
  complaints: string;
}

interface Surroundings {
  cwd?: string;
  env?: Record<string, string>;
}

/** Runs a program that writes its own use to `TURNSWEEP_USAGE_FILE`; throws where it ends without having done so. */
const measure = async (
  program: string,
  args: readonly string[],
  { cwd = projectRoot, env = {} }: Surroundings,
): Promise<Measured> => {
  const folder = mkdtempSync(path.join(tmpdir(), 'turnsweep-usage-'));
  const usageFile = path.join(folder, 'usage.json');
  const startedMs = Date.now();
  const child = spawn(program, args, {
    cwd,
    env: { ...process.env, ...env, TURNSWEEP_USAGE_FILE: usageFile },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const ends = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text: string) => {
      ends[name] = (ends[name] + text).slice(-8_000);
    });
  }
  try {
    const code = await new Promise<number | null>((resolve, reject) =>
      child.once('error', reject).once('close', resolve),
    );
    const wallSeconds = (Date.now() - startedMs) / 1000;
    const complaints = ends.stderr.trim();
    const output = ends.stdout.trim();
    const lastLine = output.split('\n').at(-1) ?? '';
    let usage: Pick<Measured, 'cpuSeconds' | 'peakMebibytes'>;
    try {
      usage = JSON.parse(readFileSync(usageFile, 'utf8'));
    } catch (cause) {
      throw new Error(`${program} ended with ${code} and left no usage: ${complaints || lastLine}`, {
        cause,
      });
    }
    const { cpuSeconds, peakMebibytes } = usage;
    return { code, wallSeconds, cpuSeconds, peakMebibytes, startedMs, output, lastLine, complaints };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};

/** Runs a script in a Node process of its own and measures that process alone. */
export const measureNode = (args: readonly string[], surroundings: Surroundings = {}): Promise<Measured> =>
  measure(
    process.execPath,
    ['--import', path.join(import.meta.dirname, 'usage-at-exit.ts'), ...args],
    surroundings,
  );

/** Runs a module with a Python; CPU includes its children, peak memory does not. */
export const measurePython = (
  python: string,
  args: readonly string[],
  surroundings: Surroundings = {},
): Promise<Measured> =>
  measure(python, [path.join(import.meta.dirname, 'usage_at_exit.py'), ...args], surroundings);

/** Runs the ordinary command line in a process of its own and measures that process alone. */
export const measureCommand = (args: readonly string[]): Promise<Measured> =>
  measureNode(['bin/turnsweep.js', ...args]);

/** The same, or an error where the process did not end with 0. */
export const wellEnded = (measured: Measured): Measured => {
  const { code, lastLine, complaints } = measured;
  if (code !== 0) throw new Error(`it ended with ${code}: ${complaints || lastLine}`);
  return measured;
};

/** The middle one; of an even number the mean of the middle two. */
export const median = (numbers: readonly number[]): number => {
  const sorted = numbers.toSorted((a, b) => a - b);
  const at = sorted.length / 2;
  return Number.isInteger(at) ? (sorted[at - 1]! + sorted[at]!) / 2 : sorted[Math.floor(at)]!;
};

export const rounded = (value: number, digits: number): number => Number(value.toFixed(digits));

/** When and on what something was measured, for the line above a table. */
export const machineLine = (): string =>
  [
    new Date().toISOString(),
    `Node ${process.versions.node}`,
    `${availableParallelism()} × ${cpus()[0]?.model.trim() || process.arch}`,
    `${Math.round(totalmem() / 2 ** 30)} GiB`,
    `load average ${loadavg()
      .map((load) => load.toFixed(2))
      .join(' ')}`,
  ].join(', ');

/** Files below a folder: how many, and their bytes as told and as the disk's blocks. */
export const folderSize = (folder: string): { files: number; bytes: number; blockBytes: number } => {
  const total = { files: 0, bytes: 0, blockBytes: 0 };
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const found = path.join(folder, entry.name);
    if (entry.isDirectory()) {
      const below = folderSize(found);
      total.files += below.files;
      total.bytes += below.bytes;
      total.blockBytes += below.blockBytes;
    } else {
      const { size, blocks } = statSync(found);
      total.files += 1;
      total.bytes += size;
      total.blockBytes += blocks * 512;
    }
  }
  return total;
};
