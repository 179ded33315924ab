import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, inject, onTestFinished, vi } from 'vitest';
import type { Schedule } from '../../infra/config/schedules.ts';
import { startMockProvider } from '../../mock/server.ts';
import { type AwsEmulator, type AwsEmulatorOptions, startAwsEmulator } from '../support/aws-emulator.ts';
import { projectRoot } from '../support/command-line.ts';

export const example = path.join(projectRoot, 'examples', 'small-return');
export const exampleSweep = path.join(example, 'sweep.yaml');
/** Lanes of the example's sweep file. */
export const exampleLanes = ['persona-attentive', 'persona-current-clip', 'persona-forgetful'];

export const spokenExample = path.join(projectRoot, 'examples', 'small-voxmem');
/** Lanes of the sweep file of the spoken example. */
export const spokenLanes = ['persona-listener', 'persona-wordbound', 'always-abstains'];

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

/**
 * The app synthesized with these lanes and no schedule. Bundling its functions is most of what a deployment costs:
 * whichever suite comes first does it, the others wait for it.
 */
const assemblyOf = async (lanes: object): Promise<string> => {
  const content = JSON.stringify(lanes);
  const name = createHash('sha256').update(content).digest('hex').slice(0, 16);
  const inFolder = (file: string) => path.join(inject('assemblies'), name, file);
  const [assembly, ended] = [inFolder('cdk.out'), inFolder('ended.json')];
  const isFirst = mkdirSync(inFolder(''), { recursive: true }) !== undefined;
  if (isFirst) {
    writeFileSync(inFolder('lanes.json'), content);
    writeFileSync(inFolder('schedules.json'), '[]');
    const context = ['lanes', 'schedules'].flatMap((key) => [
      '--context',
      `${key}=${inFolder(`${key}.json`)}`,
    ]);
    const result = await cdk(['synth', '--quiet', ...context, '--output', assembly], {});
    writeFileSync(`${ended}.part`, JSON.stringify(result));
    renameSync(`${ended}.part`, ended);
  } else await vi.waitUntil(() => existsSync(ended), { interval: 100, timeout: 300_000 });
  const { code, output } = JSON.parse(readFileSync(ended, 'utf8'));
  expect(code, output).toBe(0);
  return assembly;
};

const withoutApproval = ['--require-approval', 'never'];

type AtEnd = (stop: () => Promise<void>) => void;

/**
 * The app as `cdk deploy --all` makes it, with the example's lanes, in an emulator of its own. It ends with
 * the test, or when `atEnd` says so: a deployment takes long enough to be shared by the tests of a file.
 */
export const deployExample = async (
  folder: string,
  options: {
    atEnd?: AtEnd;
    gpuLane?: { id: string; port: number };
    moreLanes?: readonly string[];
    emulator?: AwsEmulatorOptions;
  } = {},
) => {
  const { atEnd = onTestFinished, gpuLane, moreLanes = [] } = options;
  const emulator = await startAwsEmulator(options.emulator);
  atEnd(() => emulator.stop());
  const slots = { maxInFlight: 4, timeoutSeconds: 60 };
  const server = { engine: 'vllm', model: 'a/model', imageTag: 'test-1', port: gpuLane?.port };
  const lanes = [...exampleLanes, ...moreLanes].map((id) =>
    id === gpuLane?.id
      ? { id, kind: 'gpu', ...slots, gpuMemory: '24GB', server }
      : { id, kind: 'hosted', ...slots },
  );
  const config = { judge: slots, lanes };
  writeFileSync(path.join(folder, 'lanes.json'), JSON.stringify(config));
  const assembly = await assemblyOf(config);
  for (const command of [['bootstrap'], ['deploy', '--all', ...withoutApproval]]) {
    const ended = await cdk([...command, '--app', assembly], emulator.environment);
    expect(ended.code, ended.output.slice(-4000)).toBe(0);
  }
  return emulator;
};

/** Deploys the schedules of a deployed example anew; nothing else changes. */
export const deploySchedules = async (
  folder: string,
  { environment }: AwsEmulator,
  schedules: readonly Schedule[],
): Promise<void> => {
  const inFolder = (file: string) => path.join(folder, file);
  writeFileSync(inFolder('schedules.json'), JSON.stringify(schedules));
  const context = ['lanes', 'schedules'].flatMap((key) => ['--context', `${key}=${inFolder(`${key}.json`)}`]);
  const ended = await cdk(
    ['deploy', 'Schedule', '--exclusively', ...withoutApproval, ...context, '--output', inFolder('cdk.out')],
    environment,
  );
  expect(ended.code, ended.output.slice(-4000)).toBe(0);
};

/** The example's models and judge on a port of their own. */
export const startExampleProvider = async (of = example) => {
  const mock = await startMockProvider({ scenario: path.join(of, 'scenario.json') });
  onTestFinished(() => mock.close());
  return mock;
};
