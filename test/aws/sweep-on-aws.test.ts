import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { startMockProvider } from '../../mock/server.ts';
import { startAwsEmulator } from '../support/aws-emulator.ts';
import { projectRoot, temporaryFolder, turnsweep } from '../support/command-line.ts';
import { resultFiles } from '../support/result-files.ts';

const example = path.join(projectRoot, 'examples', 'small-return');
const lanes = ['persona-attentive', 'persona-current-clip', 'persona-forgetful'];

const cdk = (args: readonly string[], environment: Readonly<Record<string, string>>) =>
  new Promise<{ code: number | null; output: string }>((resolve, reject) => {
    const command = path.join(projectRoot, 'node_modules', '.bin', 'cdk');
    const child = spawn(process.execPath, [command, ...args], {
      cwd: projectRoot,
      env: { ...process.env, ...environment, CI: 'true' },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => (output += text));
    }
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, output }));
  });

/** The app as `cdk deploy --all` makes it, with the example's lanes, in an emulator of its own. */
const deployExample = async (folder: string) => {
  const emulator = await startAwsEmulator();
  onTestFinished(() => emulator.stop());
  const lanesFile = path.join(folder, 'lanes.json');
  const slots = { maxInFlight: 4, timeoutSeconds: 60 };
  writeFileSync(
    lanesFile,
    JSON.stringify({ judge: slots, lanes: lanes.map((id) => ({ id, kind: 'hosted', ...slots })) }),
  );
  const schedules = path.join(folder, 'schedules.json');
  writeFileSync(schedules, '[]');
  const bootstrapped = await cdk(['bootstrap'], emulator.environment);
  expect(bootstrapped.code, bootstrapped.output).toBe(0);
  const deployed = await cdk(
    [
      'deploy',
      '--all',
      '--require-approval',
      'never',
      '--context',
      `lanes=${lanesFile}`,
      '--output',
      path.join(folder, 'cdk.out'),
    ],
    emulator.environment,
  );
  expect(deployed.code, deployed.output.slice(-4000)).toBe(0);
  return emulator;
};

const startExampleProvider = async () => {
  const mock = await startMockProvider({ scenario: path.join(example, 'scenario.json') });
  onTestFinished(() => mock.close());
  return mock;
};

describe('the example sweep on AWS', () => {
  it('gives the files of the embedded run, and joins what is recorded when it is run again', async () => {
    const folder = temporaryFolder();
    const mock = await startExampleProvider();
    const emulator = await deployExample(folder);
    const sweep = path.join(example, 'sweep.yaml');
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
  }, 400_000);
});
