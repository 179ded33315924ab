import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { startMockProvider } from '../../mock/server.ts';
import { projectRoot, sweepFile, temporaryFolder, turnsweep } from '../support/command-line.ts';
import { releaseOnDisk } from '../support/release-on-disk.ts';

/** A root of the generated release has 16 views. */
const sizes = [
  { roots: 63, views: 1_008 },
  { roots: 625, views: 10_000 },
];
/**
 * Left to itself V8 collects late, and the peak says more about it than about the program. Under a limit that ten times
 * the views would break if what is held grew with the calls, what is held is what counts.
 */
const heapMebibytes = 192;

it('holds about as much for 10,000 views as for 1,000', async () => {
  const mock = await startMockProvider({
    scenario: { models: { '*': { reply: { text: 'hammer' } }, judge: { reply: { judge: 'aliases' } } } },
  });
  onTestFinished(() => mock.close());
  const peaks: number[] = [];
  for (const { roots, views } of sizes) {
    const folder = temporaryFolder();
    releaseOnDisk(path.join(folder, 'release'), { roots, seed: 7 });
    const common = { provider: 'openai-compatible', baseUrl: mock.url };
    const sweep = sweepFile(folder, {
      name: 'memory',
      benchmark: { kind: 'return', release: path.join(folder, 'release') },
      models: [
        {
          ...common,
          id: 'lane',
          model: 'm',
          modalities: ['V', 'A'],
          maxInFlight: 32,
          settings: { stream: false },
        },
      ],
      judge: { ...common, model: 'judge' },
    });
    const usageFile = path.join(folder, 'usage.json');

    const ended = await turnsweep(['run', sweep, '--out', path.join(folder, 'out')], {
      env: {
        NODE_OPTIONS: `--max-old-space-size=${heapMebibytes} --import ${path.join(projectRoot, 'bench/usage-at-exit.ts')}`,
        TURNSWEEP_USAGE_FILE: usageFile,
      },
    });

    expect(ended).toMatchObject({ code: 0, stderr: '' });
    expect(ended.stdout).toContain(`${views} of ${views} views valid`);
    peaks.push((JSON.parse(readFileSync(usageFile, 'utf8')) as { peakMebibytes: number }).peakMebibytes);
    mock.reset();
  }
  const [small, large] = peaks as [number, number];
  console.info(`peak memory: ${peaks.map(Math.round).join(' and ')} MiB`);
  expect(large / small).toBeLessThan(1.7);
}, 300_000);
