/**
 * Own cost of a sweep on one machine: 2,000 views against a mock without latency that runs as a process of
 * its own. Prints CPU per call, views per second and peak memory of the sweeping process alone, as medians.
 *
 * npm run bench -- [--roots 125] [--runs 3]
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { stringify } from 'yaml';
import { releaseOnDisk } from '../test/support/release-on-disk.ts';
import { machineLine, measureCommand, median, rounded, wellEnded } from './measure.ts';
import { startMock } from './start-mock.ts';

const { values } = parseArgs({
  options: { roots: { type: 'string', default: '125' }, runs: { type: 'string', default: '3' } },
});
const folder = mkdtempSync(path.join(tmpdir(), 'turnsweep-bench-'));

const measure = async (sweep: string, out: string) => {
  const measured = wellEnded(await measureCommand(['run', sweep, '--out', out, '--json']));
  const result = JSON.parse(measured.lastLine) as { views: number; calls: number; valid: number };
  if (result.valid !== result.views) throw new Error(`views without a result: ${measured.lastLine}`);
  return { ...result, ...measured };
};

const mock = await startMock({
  models: { '*': { reply: { text: 'hammer' } }, judge: { reply: { judge: 'aliases' } } },
});
try {
  console.log(machineLine());
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
    'wall s': rounded(median(runs.map((one) => one.wallSeconds)), 2),
    'own CPU s': rounded(median(runs.map((one) => one.cpuSeconds)), 2),
    'own CPU ms per call':
      name === 'fresh' ? rounded(1000 * median(runs.map((one) => one.cpuSeconds / one.calls)), 3) : null,
    'views per s': Math.round(median(runs.map((one) => one.views / one.wallSeconds))),
    'peak MiB': Math.round(median(runs.map((one) => one.peakMebibytes))),
  });
  console.table([row('fresh', fresh), row('all recorded', again)]);
} finally {
  mock.stop();
  rmSync(folder, { recursive: true, force: true });
}
