import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, onTestFinished } from 'vitest';
import type { Schedule } from '../../infra/config/schedules.ts';
import { startMockProvider } from '../../mock/server.ts';
import { type AwsEmulator, type AwsEmulatorOptions, startAwsEmulator } from '../support/aws-emulator.ts';
import { projectRoot } from '../support/command-line.ts';

export const example = path.join(projectRoot, 'examples', 'small-return');
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

type AtEnd = (stop: () => Promise<void>) => void;

/**
 * The app as `cdk deploy --all` makes it, with the example's lanes, in an emulator of its own. It ends with
 * the test, or when `atEnd` says so: a deployment takes long enough to be shared by the tests of a file.
 */
export const deployExample = async (
  folder: string,
  options: { atEnd?: AtEnd; gpuLane?: { id: string; port: number }; emulator?: AwsEmulatorOptions } = {},
) => {
  const { atEnd = onTestFinished, gpuLane } = options;
  const emulator = await startAwsEmulator(options.emulator);
  atEnd(() => emulator.stop());
  const lanesFile = path.join(folder, 'lanes.json');
  const slots = { maxInFlight: 4, timeoutSeconds: 60 };
  const server = { engine: 'vllm', model: 'a/model', imageTag: 'test-1', port: gpuLane?.port };
  const lanes = exampleLanes.map((id) =>
    id === gpuLane?.id
      ? { id, kind: 'gpu', ...slots, gpuMemory: '24GB', server }
      : { id, kind: 'hosted', ...slots },
  );
  writeFileSync(lanesFile, JSON.stringify({ judge: slots, lanes }));
  const bootstrapped = await cdk(
    ['bootstrap', '--output', path.join(folder, 'cdk.out')],
    emulator.environment,
  );
  expect(bootstrapped.code, bootstrapped.output).toBe(0);
  await deploy(folder, emulator, ['--all'], []);
  return emulator;
};

/** Deploys the schedules of a deployed example anew; nothing else changes. */
export const deploySchedules = (
  folder: string,
  emulator: AwsEmulator,
  schedules: readonly Schedule[],
): Promise<void> => deploy(folder, emulator, ['Schedule', '--exclusively'], schedules);

const deploy = async (
  folder: string,
  { environment }: AwsEmulator,
  stacks: readonly string[],
  schedules: readonly Schedule[],
): Promise<void> => {
  const schedulesFile = path.join(folder, 'schedules.json');
  writeFileSync(schedulesFile, JSON.stringify(schedules));
  const context = [`lanes=${path.join(folder, 'lanes.json')}`, `schedules=${schedulesFile}`];
  const deployed = await cdk(
    [
      'deploy',
      ...stacks,
      '--require-approval',
      'never',
      ...context.flatMap((pair) => ['--context', pair]),
      '--output',
      path.join(folder, 'cdk.out'),
    ],
    environment,
  );
  expect(deployed.code, deployed.output.slice(-4000)).toBe(0);
};

/** The example's models and judge on a port of their own. */
export const startExampleProvider = async () => {
  const mock = await startMockProvider({ scenario: path.join(example, 'scenario.json') });
  onTestFinished(() => mock.close());
  return mock;
};
