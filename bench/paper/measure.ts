import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

const projectRoot = path.join(import.meta.dirname, '../..');

export interface Measured {
  code: number | null;
  /** From the start of the process to its end. */
  wallSeconds: number;
  cpuSeconds: number;
  peakMebibytes: number;
  startedMs: number;
  /** The last line of what it printed. */
  lastLine: string;
  /** The end of what it said on standard error. */
  complaints: string;
}

/** Runs the ordinary command line in a process of its own and measures that process alone. */
export const measureCommand = async (args: readonly string[]): Promise<Measured> => {
  const folder = mkdtempSync(path.join(tmpdir(), 'turnsweep-usage-'));
  const usageFile = path.join(folder, 'usage.json');
  const startedMs = Date.now();
  const child = spawn(
    process.execPath,
    ['--import', path.join(projectRoot, 'bench/usage-at-exit.ts'), 'bin/turnsweep.js', ...args],
    {
      cwd: projectRoot,
      env: { ...process.env, TURNSWEEP_USAGE_FILE: usageFile },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  );
  const ends = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text: string) => {
      ends[name] = (ends[name] + text).slice(-8_000);
    });
  }
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  const wallSeconds = (Date.now() - startedMs) / 1000;
  try {
    const usage = JSON.parse(readFileSync(usageFile, 'utf8')) as Pick<
      Measured,
      'cpuSeconds' | 'peakMebibytes'
    >;
    return {
      code,
      wallSeconds,
      cpuSeconds: usage.cpuSeconds,
      peakMebibytes: usage.peakMebibytes,
      startedMs,
      lastLine: ends.stdout.trim().split('\n').at(-1) ?? '',
      complaints: ends.stderr.trim(),
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};

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
