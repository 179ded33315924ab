/**
 * Own cost of a sweep on one machine: 2,000 views against a mock without latency that runs as a process of
 * its own. Prints CPU per call, views per second and peak memory of the sweeping process alone, as medians.
 *
 * node bench/one-machine.ts [--roots 125] [--runs 3]
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { stringify } from 'yaml';
import { releaseOnDisk } from '../test/support/release-on-disk.ts';

const { values } = parseArgs({
  options: { roots: { type: 'string', default: '125' }, runs: { type: 'string', default: '3' } },
});
const root = path.join(import.meta.dirname, '..');
const folder = mkdtempSync(path.join(tmpdir(), 'turnsweep-bench-'));

const median = (numbers: number[]): number =>
  numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)]!;

const run = (args: string[], env: Record<string, string> = {}) => {
  const child = spawn(process.execPath, args, {
    cwd: root,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
  const ended = new Promise<{ code: number | null; output: string }>((resolve) =>
    child.once('close', (code) => resolve({ code, output })),
  );
  return { child, ended, output: () => output };
};

const startMock = async () => {
  const scenario = path.join(folder, 'scenario.json');
  writeFileSync(
    scenario,
    JSON.stringify({
      models: { '*': { reply: { text: 'hammer' } }, judge: { reply: { judge: 'aliases' } } },
    }),
  );
  const mock = run(['bin/turnsweep.js', 'mock', '--scenario', scenario]);
  while (!mock.output().includes('http')) await new Promise((resolve) => setTimeout(resolve, 50));
  return { stop: () => mock.child.kill('SIGTERM'), url: /http:[^\s;]+/.exec(mock.output())![0] };
};

const measure = async (sweep: string, out: string) => {
  const usageFile = path.join(folder, 'usage.json');
  const { code, output } = await run(
    [
      '--import',
      path.join(root, 'bench/usage-at-exit.ts'),
      'bin/turnsweep.js',
      'run',
      sweep,
      '--out',
      out,
      '--json',
    ],
    { TURNSWEEP_USAGE_FILE: usageFile },
  ).ended;
  const result = JSON.parse(output.trim().split('\n').at(-1)!) as {
    views: number;
    calls: number;
    valid: number;
  };
  if (code !== 0 || result.valid !== result.views)
    throw new Error(`the sweep ended with ${code}: ${output.slice(-500)}`);
  return {
    ...result,
    ...(JSON.parse(readFileSync(usageFile, 'utf8')) as {
      wallSeconds: number;
      cpuSeconds: number;
      peakMebibytes: number;
    }),
  };
};

const mock = await startMock();
try {
  releaseOnDisk(path.join(folder, 'release'), { roots: Number(values.roots), seed: 7 });
  const sweep = path.join(folder, 'sweep.yaml');
  writeFileSync(
    sweep,
    stringify({
      name: 'bench',
      benchmark: { kind: 'return', release: path.join(folder, 'release') },
      models: [
        {
          id: 'lane',
          modalities: ['V', 'A'],
          provider: 'openai-compatible',
          model: 'm',
          baseUrl: mock.url,
          maxInFlight: 32,
          settings: { stream: false },
        },
      ],
      judge: { provider: 'openai-compatible', model: 'judge', baseUrl: mock.url },
    }),
  );
  const fresh: Awaited<ReturnType<typeof measure>>[] = [];
  const again: typeof fresh = [];
  for (let index = 0; index < Number(values.runs); index += 1) {
    const out = path.join(folder, `out-${index}`);
    fresh.push(await measure(sweep, out));
    again.push(await measure(sweep, out));
  }
  const { views, calls } = fresh[0]!;
  const row = (name: string, runs: typeof fresh) => ({
    run: name,
    views,
    calls: name === 'fresh' ? calls : 0,
    'wall s': Number(median(runs.map((one) => one.wallSeconds)).toFixed(2)),
    'own CPU s': Number(median(runs.map((one) => one.cpuSeconds)).toFixed(2)),
    'own CPU ms per call':
      name === 'fresh'
        ? Number((1000 * median(runs.map((one) => one.cpuSeconds / one.calls))).toFixed(3))
        : null,
    'views per s': Math.round(median(runs.map((one) => one.views / one.wallSeconds))),
    'peak MiB': Math.round(median(runs.map((one) => one.peakMebibytes))),
  });
  console.table([row('fresh', fresh), row('all recorded', again)]);
} finally {
  mock.stop();
  rmSync(folder, { recursive: true, force: true });
}
