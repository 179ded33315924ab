import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { GetQueueAttributesCommand, GetQueueUrlCommand, SQSClient } from '@aws-sdk/client-sqs';
import { expect, it, onTestFinished } from 'vitest';
import { parse } from 'yaml';
import { loadScenario } from '../../mock/scenario.ts';
import { startMockProvider } from '../../mock/server.ts';
import { projectRoot, startCommand, sweepFile, temporaryFolder, turnsweep } from '../support/command-line.ts';
import { resultFiles } from '../support/result-files.ts';
import { deployExample, example, exampleSweep } from './deployed-example.ts';

const engines = path.join(projectRoot, 'test', 'fixtures', 'model-server');
const worker = path.join(projectRoot, 'workers', 'dist', 'worker.mjs');
const lane = 'persona-forgetful';
const slots = 4;

const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  return port;
};

/** Processes whose command line has all of the words. */
const processes = (...words: string[]): number[] =>
  execFileSync('ps', ['-eo', 'pid=,args='], { encoding: 'utf8' })
    .split('\n')
    .filter((line) => words.every((word) => line.includes(word)))
    .map((line) => Number.parseInt(line, 10));

const until = async (holds: () => boolean | Promise<boolean>, what: string, seconds = 240): Promise<void> => {
  const giveUpAt = Date.now() + seconds * 1000;
  while (!(await holds())) {
    if (Date.now() > giveUpAt) throw new Error(`not within ${seconds} s: ${what}`);
    await sleep(100);
  }
};

it('a lane on its own GPUs outlives killed and reclaimed workers, and gives the files of the embedded run', async () => {
  const folder = temporaryFolder();
  const port = await freePort();
  const scenario = loadScenario(path.join(example, 'scenario.json'));
  // Slow enough to be killed at work.
  scenario.models[lane]!.latencyMs = 150;
  const mock = await startMockProvider({ scenario });
  onTestFinished(() => mock.close());
  const sweep = parse(readFileSync(exampleSweep, 'utf8'));
  sweep.benchmark.release = path.join(path.dirname(exampleSweep), 'release');
  for (const model of sweep.models) {
    model.maxInFlight = slots;
    if (model.id === lane) model.baseUrl = `http://127.0.0.1:${port}/v1`;
  }
  const file = sweepFile(folder, sweep);
  const upstream = { UPSTREAM_URL: mock.url };
  const embedded = await withEngine(port, upstream, () =>
    turnsweep(['run', file, '--out', path.join(folder, 'embedded')], { env: { MOCK_BASE_URL: mock.url } }),
  );
  expect(embedded).toMatchObject({ code: 0, stderr: '' });
  const asked = mock.stats().requestsByFingerprint;
  mock.reset();
  execFileSync(process.execPath, [path.join(projectRoot, 'scripts', 'bundle-worker.ts')]);
  const emulator = await deployExample(folder, {
    gpuLane: { id: lane, port },
    emulator: {
      jobCommand: [process.execPath, worker],
      handlerEnvironment: {
        ...upstream,
        PATH: [engines, path.dirname(process.execPath), '/usr/bin', '/bin'].join(':'),
      },
    },
  });
  const run = (out: string) =>
    startCommand(['run', file, '--on', 'aws', '--out', path.join(folder, out)], {
      env: { ...emulator.environment, MOCK_BASE_URL: mock.url, TURNSWEEP_LOOK_SECONDS: '1' },
    });
  const served = () => mock.stats().byModel[lane]?.replies ?? 0;

  // Its server is inside the job: another address is refused before anything is uploaded.
  const elsewhere = structuredClone(sweep);
  elsewhere.models.at(-1).baseUrl = 'http://127.0.0.1:1/v1';
  const refused = await turnsweep(['run', sweepFile(folder, elsewhere, 'elsewhere.yaml'), '--on', 'aws'], {
    cwd: folder,
    env: { ...emulator.environment, MOCK_BASE_URL: mock.url },
  });
  expect(refused.code).toBe(1);
  expect(refused.stderr).toContain(
    `lane "${lane}" runs on GPUs of the deployment, beside its model server: set its baseUrl to http://127.0.0.1:${port}/v1`,
  );

  // The host goes away, engine and all: Batch starts the job again.
  const first = run('aws');
  await until(() => served() >= 20, 'twenty replies of the first job');
  const killed = processes(worker);
  expect(killed).toHaveLength(1);
  for (const pid of [...killed, ...processes('vllm', String(port))]) process.kill(pid, 'SIGKILL');
  const servedByFirst = served();
  await until(() => served() >= servedByFirst + 20, 'twenty replies of the second job');

  // The engine dies: the job fails for good, the lane stops with its views open, the others go on.
  for (const pid of processes('vllm', String(port))) process.kill(pid, 'SIGKILL');
  const stopped = await first.ended;
  expect({ code: stopped.code, stderr: stopped.stderr }, emulator.output().slice(-6000)).toMatchObject({
    code: 2,
  });
  expect(stopped.stderr).toMatch(
    /persona-forgetful.* stopped: workers_failed: .*exit code 1; \d+ views left open/s,
  );
  expect(processes(worker)).toEqual([]);
  const sqs = new SQSClient({ ...emulator.clientOptions, useQueueUrlAsEndpoint: false });
  const { QueueUrl } = await sqs.send(new GetQueueUrlCommand({ QueueName: `turnsweep-lane-${lane}` }));
  const hidden = async () => {
    const counts = { QueueUrl, AttributeNames: ['ApproximateNumberOfMessagesNotVisible' as const] };
    const { Attributes } = await sqs.send(new GetQueueAttributesCommand(counts));
    return Number(Attributes!.ApproximateNumberOfMessagesNotVisible);
  };
  await until(async () => (await hidden()) === 0, 'all messages given back, or shown again after the kill');

  // Running again goes on with what is open; its job ends with the lane.
  const again = await run('aws').ended;
  expect({ code: again.code, stderr: again.stderr }, emulator.output().slice(-6000)).toEqual({
    code: 0,
    stderr: '',
  });
  expect(again.stdout).toContain('192 of 192 views valid');
  const [files, expected] = ['aws', 'embedded'].map((out) => conclusions(path.join(folder, out)));
  expect(Object.keys(files!).length).toBeGreaterThan(20);
  expect(files).toEqual(expected);
  await until(() => processes(worker).length === 0, 'the end of the job');
  expect(processes('vllm', String(port))).toEqual([]);

  const ofModels = (counts: Record<string, number>) =>
    Object.entries(counts).filter(([key]) => key.startsWith('persona-'));
  const nowAsked = new Map(ofModels(mock.stats().requestsByFingerprint));
  expect([...nowAsked.keys()].sort()).toEqual(
    ofModels(asked)
      .map(([key]) => key)
      .sort(),
  );
  const more = ofModels(asked).map(([key, times]) => ({ key, times: nowAsked.get(key)! - times }));
  expect(more.filter(({ key, times }) => times !== 0 && !key.startsWith(lane))).toEqual([]);
  // Two deaths, each with at most one call in flight for each slot.
  expect(more.reduce((sum, { times }) => sum + times, 0)).toBeLessThanOrEqual(2 * slots);
}, 900_000);

/** Calls and tokens: those of the deaths are counted too, and what goes to the judge together depends on the time. */
const filesOfCalls = ['costs.csv', 'summary.json', 'index.html'].map((name) => `report/${name}`);
const conclusions = (out: string): Record<string, string> =>
  Object.fromEntries(Object.entries(resultFiles(out)).filter(([file]) => !filesOfCalls.includes(file)));

/** The lane's engine as a user of one machine would have it running. */
const withEngine = async <Result>(
  port: number,
  environment: Record<string, string>,
  work: () => Promise<Result>,
): Promise<Result> => {
  const command = ['serve', 'a/model', '--host', '127.0.0.1', '--port', String(port)];
  const engine = spawn(process.execPath, [path.join(engines, 'vllm'), ...command], {
    env: { ...process.env, ...environment },
    stdio: 'inherit',
  });
  try {
    const isHealthy = () =>
      fetch(`http://127.0.0.1:${port}/health`).then(
        ({ ok }) => ok,
        () => false,
      );
    await until(isHealthy, 'a healthy engine');
    return await work();
  } finally {
    engine.kill('SIGTERM');
    await once(engine, 'exit');
  }
};
