import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { temporaryFolder, turnsweep } from '../support/command-line.ts';
import { resultFiles } from '../support/result-files.ts';
import { deployExample, exampleSweep, startExampleProvider } from './deployed-example.ts';

describe('the example sweep on AWS', () => {
  it('gives the files of the embedded run, and joins what is recorded when it is run again', async () => {
    const folder = temporaryFolder();
    const mock = await startExampleProvider();
    const emulator = await deployExample(folder);
    const sweep = exampleSweep;
    const onAws = { ...emulator.environment, MOCK_BASE_URL: mock.url, TURNSWEEP_LOOK_SECONDS: '1' };
    const embedded = await turnsweep(['run', sweep, '--out', path.join(folder, 'embedded')], {
      env: { MOCK_BASE_URL: mock.url },
    });
    const asked = mock.stats().requestsByFingerprint;
    mock.reset();

    const ran = await turnsweep(['run', sweep, '--on', 'aws', '--out', path.join(folder, 'aws')], {
      env: onAws,
    });

    expect(embedded).toMatchObject({ code: 0, stderr: '' });
    expect({ code: ran.code, stderr: ran.stderr }, emulator.output().slice(-6000)).toEqual({
      code: 0,
      stderr: '',
    });
    expect(ran.stdout).toContain('192 of 192 views valid');
    expect(resultFiles(path.join(folder, 'aws'))).toEqual(resultFiles(path.join(folder, 'embedded')));
    expect(mock.stats().requestsByFingerprint).toEqual(asked);

    mock.reset();
    const again = await turnsweep(['run', sweep, '--on', 'aws', '--out', path.join(folder, 'again')], {
      env: onAws,
    });
    expect(again.code).toBe(0);
    expect(mock.stats().requests).toBe(0);
    expect(resultFiles(path.join(folder, 'again'))).toEqual(resultFiles(path.join(folder, 'aws')));
  });
});
