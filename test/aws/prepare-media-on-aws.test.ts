import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { parse } from 'yaml';
import { startMockProvider } from '../../mock/server.ts';
import { sweepFile, temporaryFolder, turnsweep } from '../support/command-line.ts';
import { resultFiles } from '../support/result-files.ts';
import { deployExample, example, exampleSweep } from './deployed-example.ts';

describe('clips in another form on AWS', () => {
  it('are made by their stage before the lanes begin, and change nothing but what is sent', async () => {
    const folder = temporaryFolder();
    const mock = await startMockProvider({
      scenario: { models: { 'persona-attentive': { reply: { text: 'It might be a trombone.' } } } },
    });
    onTestFinished(() => mock.close());
    const emulator = await deployExample(folder);
    const content = parse(readFileSync(exampleSweep, 'utf8'));
    const [lane] = content.models;
    delete content.judge;
    const sweep = sweepFile(folder, {
      ...content,
      benchmark: { ...content.benchmark, release: path.join(example, 'release') },
      // This provider gets videos made by ffmpeg; 240 px are half of what the example has.
      models: [
        { ...lane, provider: 'vllm', family: 'LVLM', modalities: ['V'], settings: { videoMaxSide: 240 } },
      ],
    });
    const run = (out: string, args: readonly string[], env: Record<string, string> = {}) =>
      turnsweep(['run', sweep, '--limit', '4', '--out', path.join(folder, out), ...args], {
        env: { MOCK_BASE_URL: mock.url, ...env },
      });

    const embedded = await run('embedded', []);
    const asked = mock.stats().requestsByFingerprint;
    mock.reset();
    const ran = await run('aws', ['--on', 'aws'], { ...emulator.environment, TURNSWEEP_LOOK_SECONDS: '1' });

    // Nothing was excluded; without a judge the reviews are pending.
    expect(embedded).toMatchObject({ code: 2, stderr: '' });
    expect({ code: ran.code, stderr: ran.stderr }, emulator.output().slice(-6000)).toEqual({
      code: 2,
      stderr: '',
    });
    expect(Object.keys(asked).length).toBeGreaterThan(8);
    // Fingerprints hold the clips as they were sent: both homes made the same bytes.
    expect(mock.stats().requestsByFingerprint).toEqual(asked);
    expect(resultFiles(path.join(folder, 'aws'))).toEqual(resultFiles(path.join(folder, 'embedded')));
    expect(existsSync(path.join(folder, 'embedded', 'derived'))).toBe(true);
  });
});
