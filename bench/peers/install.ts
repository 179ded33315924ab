import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';

interface Pinned {
  registry: 'npm' | 'pypi';
  /** As the registry's client takes them, with versions. */
  packages: [string, ...string[]];
}
export type PeerName = 'promptfoo' | 'inspect-ai' | 'lm-eval';

/** The newest versions on the day that they were looked up. */
export const pinned = JSON.parse(
  readFileSync(path.join(import.meta.dirname, 'versions.json'), 'utf8'),
) as Record<PeerName, Pinned> & { seen: string };

const cache = path.join(
  process.env.XDG_CACHE_HOME ?? path.join(homedir(), '.cache'),
  'turnsweep',
  'bench-peers',
);
const execute = promisify(execFile);
const minutesAtMost = 20;

/**
 * The folder that a tool is installed in, by its pinned versions; installs it on first use. Gives the reason instead where that
 * does not work.
 */
export const installPeer = async (name: PeerName): Promise<{ folder: string } | { reason: string }> => {
  const { registry, packages } = pinned[name];
  const folder = path.join(cache, packages.join('+').replaceAll(/[^\w.+@=-]/g, '_'));
  // Written last: a folder without it is half a one.
  const finished = path.join(folder, 'installed.json');
  if (existsSync(finished)) return { folder };
  console.log(`installing ${packages.join(' and ')} in ${folder}, once (minutes)`);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const command = (program: string, args: readonly string[]) =>
    execute(program, args, { cwd: folder, timeout: minutesAtMost * 60_000, maxBuffer: 2 ** 26 });
  try {
    if (registry === 'npm') {
      await command('npm', ['install', '--prefix', folder, '--no-audit', '--no-fund', ...packages]);
    } else {
      await command('python3', ['-m', 'venv', folder]);
      await command(path.join(folder, 'bin/python'), ['-m', 'pip', 'install', '--quiet', ...packages]);
    }
  } catch (error) {
    rmSync(folder, { recursive: true, force: true });
    const { message, stderr } = error as Error & { stderr?: string };
    return { reason: stderr?.trim().split('\n').at(-1) || message };
  }
  writeFileSync(finished, `${JSON.stringify({ packages, time: new Date().toISOString() })}\n`);
  return { folder };
};
