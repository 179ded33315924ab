import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { startMockProvider } from '../../mock/server.ts';
import { startAwsEmulator } from '../support/aws-emulator.ts';
import { projectRoot } from '../support/command-line.ts';

const example = path.join(projectRoot, 'examples', 'small-return');
export const exampleSweep = path.join(example, 'sweep.yaml');
/** Lanes of the example's sweep file. */
export const exampleLanes = ['persona-attentive', 'persona-current-clip', 'persona-forgetful'];

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
export const deployExample = async (folder: string) => {
  const emulator = await startAwsEmulator();
  onTestFinished(() => emulator.stop());
  const lanesFile = path.join(folder, 'lanes.json');
  const slots = { maxInFlight: 4, timeoutSeconds: 60 };
  writeFileSync(
    lanesFile,
    JSON.stringify({ judge: slots, lanes: exampleLanes.map((id) => ({ id, kind: 'hosted', ...slots })) }),
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

/** The example's models and judge on a port of their own. */
export const startExampleProvider = async () => {
  const mock = await startMockProvider({ scenario: path.join(example, 'scenario.json') });
  onTestFinished(() => mock.close());
  return mock;
};
