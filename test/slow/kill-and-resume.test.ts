import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { startMockProvider } from '../../mock/server.ts';
import { createSeededRandom } from '../../shared/adapters/local/seeded-random.ts';
import { startCommand, sweepFile, temporaryFolder, turnsweep } from '../support/command-line.ts';
import { recordNames } from '../support/packed-records.ts';
import { releaseOnDisk } from '../support/release-on-disk.ts';
import { resultFiles } from '../support/result-files.ts';

const kills = 30;
const callsInFlight = 3;
/** A start that is in no hurry: kills are to come at every point of it. */
const compilesAnew = { NODE_DISABLE_COMPILE_CACHE: '1' };
const judgeCallsInFlight = 2;

const sweepAgainst = (folder: string, baseUrl: string): string =>
  sweepFile(folder, {
    name: 'killed',
    benchmark: { kind: 'return', release: path.join(folder, 'release') },
    models: ['first', 'second'].map((id) => ({
      id,
      family: 'Omni',
      modalities: ['V', 'A'],
      provider: 'openai-compatible',
      model: id,
      baseUrl,
      maxTokens: 64,
      maxInFlight: callsInFlight,
      price: { inputPerMTok: 1, outputPerMTok: 2 },
    })),
    judge: {
      provider: 'openai-compatible',
      model: 'judge',
      baseUrl,
      itemsPerRequest: 5,
      maxInFlight: judgeCallsInFlight,
      price: { inputPerMTok: 1, outputPerMTok: 2 },
    },
  });

const startProvider = async () => {
  const mock = await startMockProvider({
    scenario: {
      seed: 1,
      models: {
        first: { reply: { echo: true }, latencyMs: 90 },
        second: { reply: { text: 'a hammer, or B' }, latencyMs: 60 },
        judge: { reply: { judge: 'aliases' }, latencyMs: 150 },
      },
    },
  });
  onTestFinished(() => mock.close());
  return mock;
};

describe('a sweep that is killed again and again', () => {
  it(`ends with the files of an undisturbed one after ${kills} kills, and asks nothing twice but what was in flight`, async () => {
    const folder = temporaryFolder();
    releaseOnDisk(path.join(folder, 'release'), { roots: 6, seed: 3 });
    const mock = await startProvider();
    const sweep = sweepAgainst(folder, mock.url);
    const calm = path.join(folder, 'calm');
    const killed = path.join(folder, 'killed');
    expect((await turnsweep(['run', sweep, '--out', calm])).code).toBe(0);
    const undisturbed = mock.stats().requestsByFingerprint;
    mock.reset();

    const random = createSeededRandom(20261130);
    let done = 0;
    let finished = 0;
    while (done < kills) {
      const command = startCommand(['run', sweep, '--out', killed], { env: compilesAnew });
      const timer = setTimeout(() => command.kill('SIGKILL'), 350 + random.next() * 900);
      const { signal, code, stderr } = await command.ended;
      clearTimeout(timer);
      if (signal === 'SIGKILL') done += 1;
      else {
        expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
        finished += 1;
        if (finished > kills) break;
      }
    }
    const last = await turnsweep(['run', sweep, '--out', killed]);

    expect(last).toMatchObject({ code: 0, stderr: '' });
    expect(done).toBe(kills);
    expect(resultFiles(killed)).toEqual(resultFiles(calm));
    const disturbed = mock.stats().requestsByFingerprint;
    expect(Object.keys(disturbed).sort()).toEqual(Object.keys(undisturbed).sort());
    const twice = Object.entries(disturbed).reduce((sum, [key, count]) => sum + count - undisturbed[key]!, 0);
    expect(twice).toBeGreaterThanOrEqual(0);
    expect(twice).toBeLessThanOrEqual(kills * (2 * callsInFlight + judgeCallsInFlight));
    console.info(`${kills} kills, ${finished} starts that ended first; ${twice} requests asked twice`);
    for (const lane of ['first', 'second'])
      expect(recordNames(killed, lane)).toEqual(recordNames(calm, lane));
  }, 300_000);

  it('comes to the same result when every message is delivered twice', async () => {
    const folder = temporaryFolder();
    releaseOnDisk(path.join(folder, 'release'), { roots: 2, seed: 4 });
    const mock = await startProvider();
    const sweep = sweepAgainst(folder, mock.url);
    const once = await turnsweep(['run', sweep, '--out', path.join(folder, 'once')]);
    const asked = mock.stats().requestsByFingerprint;
    mock.reset();

    const twice = await turnsweep(['run', sweep, '--out', path.join(folder, 'twice')], {
      env: { TURNSWEEP_FAULT: 'deliver-twice' },
    });

    expect([once.code, twice.code]).toEqual([0, 0]);
    expect(resultFiles(path.join(folder, 'twice'))).toEqual(resultFiles(path.join(folder, 'once')));
    expect(mock.stats().requestsByFingerprint).toEqual(asked);
  }, 120_000);
});
