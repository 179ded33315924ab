import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { CloudFormationClient } from '@aws-sdk/client-cloudformation';
import { InvokeCommand, LambdaClient } from '@aws-sdk/client-lambda';
import { S3Client } from '@aws-sdk/client-s3';
import {
  DescribeExecutionCommand,
  paginateListExecutions,
  SFNClient,
  StopExecutionCommand,
} from '@aws-sdk/client-sfn';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { parse as parseYaml } from 'yaml';
import { type MockProvider, startMockProvider } from '../../mock/server.ts';
import { findDeployment } from '../../shared/adapters/aws/deployment.ts';
import { createS3ObjectStore } from '../../shared/adapters/aws/s3-object-store.ts';
import { keys, requestHash } from '../../shared/keys.ts';
import type { ObjectStore } from '../../shared/ports/object-store.ts';
import type { AwsEmulator } from '../support/aws-emulator.ts';
import { type RunningCommand, startCommand, sweepFile, turnsweep } from '../support/command-line.ts';
import { recordNames } from '../support/packed-records.ts';
import { resultFiles } from '../support/result-files.ts';
import { deployExample, deploySchedules, example, exampleLanes, exampleSweep } from './deployed-example.ts';

// One deployment for all: each test has a sweep and a judge of its own, and so its own run.

const price = { inputPerMTok: 1, outputPerMTok: 4 };
/** Calls of a lane at once, as the example is deployed. */
const slots = 4;

const atEnd: (() => unknown)[] = [];
let folder: string;
let emulator: AwsEmulator;
let store: ObjectStore;
let stepFunctions: SFNClient;
let lambda: LambdaClient;

afterAll(async () => {
  for (const end of atEnd.reverse()) await end();
});

const until = (isReached: () => boolean | Promise<boolean>) =>
  vi.waitUntil(isReached, { interval: 100, timeout: 240_000 });

const judgeOf = (sweep: string): string => `judge-of-${sweep}`;

/** Reviews are shared by the runs of a bucket, but not between judges. */
const startProvider = async (sweeps: readonly string[], latencyMs: number): Promise<MockProvider> => {
  const table = path.join(example, 'replies.jsonl');
  const lanes = exampleLanes.map((lane) => [lane, { reply: { table }, latencyMs }]);
  const judges = sweeps.map((sweep) => [judgeOf(sweep), { reply: { judge: 'aliases' } }]);
  const mock = await startMockProvider({ scenario: { models: Object.fromEntries([...lanes, ...judges]) } });
  atEnd.push(() => mock.close());
  return mock;
};

/** A part of the example under a name of its own, and what an undisturbed run of it on one machine gives. */
const sweepOf = async (
  name: string,
  mock: MockProvider,
  {
    tasks,
    interfaces = ['openqa', 'mcq'],
    budgetUsd,
  }: { tasks: number; interfaces?: readonly string[]; budgetUsd?: number },
) => {
  const content = parseYaml(readFileSync(exampleSweep, 'utf8'));
  const sweep = {
    ...content,
    name,
    benchmark: { ...content.benchmark, release: path.join(example, 'release') },
    interfaces,
    models: content.models.map((model: object) => ({ ...model, price })),
    ...(budgetUsd !== undefined && { budget: { usd: budgetUsd } }),
    judge: { ...content.judge, model: judgeOf(name), price },
  };
  const file = sweepFile(folder, sweep, `${name}.yaml`);
  const env = { MOCK_BASE_URL: mock.url };
  const embedded = path.join(folder, `${name}-embedded`);
  const run = ['run', file, '--limit', String(tasks)];
  mock.reset();
  expect(await turnsweep([...run, '--out', embedded], { env })).toMatchObject({ code: 0, stderr: '' });
  const asked = mock.stats().requestsByFingerprint;
  mock.reset();
  const out = path.join(folder, name);
  const onAws = { env: { ...env, ...emulator.environment, TURNSWEEP_LOOK_SECONDS: '0.5' } };
  return {
    file,
    run: JSON.parse(readFileSync(path.join(embedded, 'settings.json'), 'utf8')).run as string,
    out,
    /** Result files and calls of the run on one machine. */
    expected: resultFiles(embedded),
    asked,
    requestHashes: (lane: string) => recordNames(embedded, lane).map((name) => path.parse(name).name),
    start: (): RunningCommand => startCommand([...run, '--on', 'aws', '--out', out], onAws),
  };
};

/** A command on the deployment, which must end well; gives what it said. */
const operate = async (...args: string[]): Promise<string> => {
  const ended = await turnsweep(args, {
    env: { ...emulator.environment, TURNSWEEP_LOOK_SECONDS: '0.5' },
  });
  expect(ended).toMatchObject({ code: 0, stderr: '' });
  return ended.stdout;
};

const sum = (counts: readonly number[]): number => counts.reduce((total, count) => total + count, 0);

const callsOf = (mock: MockProvider): number =>
  sum(exampleLanes.map((lane) => mock.stats().byModel[lane]?.requests ?? 0));

/** Waits until the calls in flight have ended, and then for two seconds that no other begins. */
const expectNoMoreCalls = async (mock: MockProvider): Promise<void> => {
  let last = -1;
  await until(async () => {
    const before = last;
    last = mock.stats().requests;
    await sleep(1_000);
    return before === last && mock.stats().inFlight === 0;
  });
  await sleep(2_000);
  expect(mock.stats().requests).toBe(last);
};

const recordedHashes = async (run: string, lane: string): Promise<string[]> => {
  const prefix = keys.lane.requests(run, lane);
  const found = await Array.fromAsync(store.list(prefix));
  return found.map((key) => path.parse(key.slice(prefix.length)).name);
};

const recordedCount = async (run: string): Promise<number> =>
  sum(await Promise.all(exampleLanes.map(async (lane) => (await recordedHashes(run, lane)).length)));

/** What the recorded calls cost, by their tokens. */
const recordedCostUsd = async (run: string): Promise<number> => {
  const prefixes = exampleLanes.map((lane) => keys.lane.requests(run, lane));
  const found = await Promise.all(prefixes.map((prefix) => Array.fromAsync(store.list(prefix))));
  const records = await Promise.all(found.flat().map(async (key) => JSON.parse((await store.getText(key))!)));
  const usages = records.flatMap(({ attempts }) => attempts.map(({ usage }: { usage: Usage }) => usage));
  return sum(
    usages.map(
      ({ inputTokens, outputTokens }) =>
        (inputTokens * price.inputPerMTok + outputTokens * price.outputPerMTok) / 1e6,
    ),
  );
};

interface Usage {
  inputTokens: number;
  outputTokens: number;
}

interface PlannedView {
  viewId: string;
  targetRequestIds: string[];
  requestIds: string[];
}

const linesOf = async <Row>(key: string): Promise<Row[]> =>
  (await Array.fromAsync(store.lines(key))).map((line) => JSON.parse(line));

/** Executions of a machine that are at work for a run, with what they were given. */
const atWorkFor = async (machine: string, run: string) => {
  const arn = `arn:aws:states:${emulator.region}:${emulator.accountId}:stateMachine:turnsweep-${machine}`;
  const found: {
    executionArn: string;
    input: { run: string; lane: string; groupId: string; viewIds: string[] };
  }[] = [];
  const pages = paginateListExecutions(
    { client: stepFunctions },
    { stateMachineArn: arn, statusFilter: 'RUNNING' },
  );
  for await (const { executions } of pages) {
    for (const { executionArn } of executions ?? []) {
      const { input } = await stepFunctions.send(new DescribeExecutionCommand({ executionArn }));
      const given = JSON.parse(input!);
      if (given.run === run) found.push({ executionArn: executionArn!, input: given });
    }
  }
  return found;
};

/** Groups that the map says have failed: what the runbook tells people to look at. */
const failedGroups = async (run: string): Promise<{ lane: string; groupId: string }[]> => {
  const files = await Promise.all(
    exampleLanes.map((lane) => Array.fromAsync(store.list(`${keys.lane.mapResults(run, lane)}/`))),
  );
  const failed = files.flat().filter((key) => /\/FAILED_\d+\.json$/.test(key));
  const rows = await Promise.all(failed.map(async (key) => JSON.parse((await store.getText(key))!)));
  return rows.flat().map(({ Input }: { Input: string }) => JSON.parse(Input));
};

const withoutJudge = (asked: Readonly<Record<string, number>>): Record<string, number> =>
  Object.fromEntries(Object.entries(asked).filter(([id]) => !id.startsWith('judge-of-')));

/** A second start judges what the first one has left: in other chunks. */
const withoutCosts = (files: Readonly<Record<string, string>>) =>
  Object.fromEntries(
    Object.entries(files).filter(([file]) => !/^report\/(costs\.csv|index\.html|summary\.json)$/.test(file)),
  );

/** The minute in which the schedule below is due; it has to be a future one when it is deployed. */
let dueAt: Date;
let weekly: Awaited<ReturnType<typeof sweepOf>>;
let weeklyMock: MockProvider;

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'turnsweep-'));
  atEnd.push(() => rmSync(folder, { recursive: true, force: true }));
  emulator = await deployExample(folder, { atEnd: (stop) => atEnd.push(stop) });
  const deployment = await findDeployment(new CloudFormationClient(emulator.clientOptions), 'turnsweep');
  store = createS3ObjectStore({ client: new S3Client(emulator.clientOptions), bucket: deployment.bucket });
  stepFunctions = new SFNClient(emulator.clientOptions);
  lambda = new LambdaClient(emulator.clientOptions);

  // The clock goes on while the other tests run; the last one looks at what it has started.
  weeklyMock = await startProvider(['weekly'], 5);
  weekly = await sweepOf('weekly', weeklyMock, { tasks: 2 });
  expect(await weekly.start().ended).toMatchObject({ code: 0, stderr: '' });
  dueAt = new Date(Math.ceil((Date.now() + 75_000) / 60_000) * 60_000);
  const [minute, hour, day, month] = [
    dueAt.getUTCMinutes(),
    dueAt.getUTCHours(),
    dueAt.getUTCDate(),
    dueAt.getUTCMonth() + 1,
  ];
  await deploySchedules(folder, emulator, [
    {
      name: 'weekly',
      cron: `${minute} ${hour} ${day} ${month} ? ${dueAt.getUTCFullYear()}`,
      timezone: 'UTC',
      isEnabled: true,
      run: weekly.run,
    },
  ]);
});

describe('a run on AWS', () => {
  it('makes no call while it is paused, says so, and goes on when it is resumed', async () => {
    const mock = await startProvider(['paused'], 200);
    const sweep = await sweepOf('paused', mock, { tasks: 6, budgetUsd: 50 });
    const command = sweep.start();
    await until(() => callsOf(mock) >= 20);

    const running = JSON.parse(await operate('status', sweep.run, '--on', 'aws', '--json'));
    expect(await operate('pause')).toBe('4 queues of turnsweep paused\n');
    await expectNoMoreCalls(mock);
    const calls = callsOf(mock);
    const asText = await operate('status', sweep.run, '--on', 'aws');
    const asJson = JSON.parse(await operate('status', sweep.run, '--on', 'aws', '--json'));
    const spentUsd = await recordedCostUsd(sweep.run);
    const recordedThen = await Promise.all(exampleLanes.map((lane) => recordedHashes(sweep.run, lane)));
    await until(() => command.output().stderr !== '');
    expect(await operate('resume')).toBe('4 queues of turnsweep resumed\n');
    const ended = await command.ended;

    expect(calls).toBeLessThan(sum(Object.values(withoutJudge(sweep.asked))));
    expect(running.aws).toEqual({ state: 'running', starts: 1, reason: null, queues: 4, queuesOff: 0 });
    for (const lane of running.lanes) expect(lane.viewsPerSecond).toBeGreaterThan(0);
    expect(running.secondsLeft).toBeGreaterThan(0);
    expect(asJson.secondsLeft).toBeNull();
    expect(asJson.aws).toEqual({ state: 'paused', starts: 1, reason: null, queues: 4, queuesOff: 4 });
    const views = await Promise.all(
      exampleLanes.map((lane) => linesOf<PlannedView>(keys.run.laneViews(sweep.run, lane))),
    );
    expect(asJson.total).toBe(views.flat().length);
    // Every call so far was answered and recorded, and no other has been made.
    expect(sum(asJson.lanes.map((lane: { replies: number }) => lane.replies))).toBe(calls);
    expect([asJson.failed, asJson.excluded]).toEqual([0, 0]);
    expect(asJson.spend).toEqual({ spentUsd: expect.closeTo(spentUsd, 9), limitUsd: 50 });
    expect(spentUsd).toBeGreaterThan(0);
    expect(asJson.lanes).toHaveLength(3);
    for (const lane of asJson.lanes) expect(lane.done + lane.open).toBe(12);
    // A view is done when both of its replies are there.
    const done = views.map((planned, index) => {
      const recorded = new Set(recordedThen[index]);
      return planned.filter(({ targetRequestIds }) =>
        targetRequestIds.every((id) => recorded.has(requestHash(id))),
      ).length;
    });
    expect(asJson.lanes.map((lane: { done: number }) => lane.done)).toEqual(done);
    expect(asJson.done).toBe(sum(done));
    expect(asJson.done).toBeLessThan(36);
    expect(asText).toContain(`run ${sweep.run}: paused, ${asJson.done} of 36 views settled`);
    expect(asText).toContain(`spent $${spentUsd.toFixed(4)} of $50.00`);
    expect(asText).toContain('4 of 4 queues are off: `turnsweep resume` lets them go on');
    expect(ended).toMatchObject({
      code: 0,
      stderr: 'the deployment is paused; `turnsweep resume` lets the run go on\n',
    });
    expect(mock.stats().requestsByFingerprint).toEqual(sweep.asked);
    expect(resultFiles(sweep.out)).toEqual(sweep.expected);
  });

  it('is cancelled with all that it has started, keeps what is recorded, and goes on from there', async () => {
    const mock = await startProvider(['cancelled'], 200);
    const sweep = await sweepOf('cancelled', mock, { tasks: 6 });
    const command = sweep.start();
    await until(() => callsOf(mock) >= 20);

    await operate('pause');
    await expectNoMoreCalls(mock);
    const calls = callsOf(mock);
    expect(await operate('cancel', sweep.run)).toBe(
      `run ${sweep.run} cancelled; \`turnsweep redrive ${sweep.run}\` goes on\n`,
    );
    const cancelled = await command.ended;
    // The messages that wait in the queues are nobody's any more: they must not cost a call.
    await operate('resume');
    await expectNoMoreCalls(mock);
    const atWork = await Promise.all(
      ['sweep', 'view-group', 'judging'].map((machine) => atWorkFor(machine, sweep.run)),
    );
    const recorded = await recordedCount(sweep.run);
    const status = await operate('status', sweep.run, '--on', 'aws');

    expect(callsOf(mock)).toBe(calls);
    expect(cancelled.code).toBe(1);
    expect(cancelled.stderr).toContain('the run ended as ABORTED');
    expect(atWork).toEqual([[], [], []]);
    expect(recorded).toBe(calls);
    expect(calls).toBeLessThan(sum(Object.values(withoutJudge(sweep.asked))));
    expect(status).toContain(`run ${sweep.run}: cancelled, `);
    expect(await operate('cancel', sweep.run)).toBe(`run ${sweep.run} is not running\n`);

    const again = await sweep.start().ended;
    expect(again).toMatchObject({ code: 0, stderr: '' });
    expect(mock.stats().requestsByFingerprint).toEqual(sweep.asked);
    expect(resultFiles(sweep.out)).toEqual(sweep.expected);
  });

  it('shares the slots of its lanes with another run, and nothing else', async () => {
    const mock = await startProvider(['first', 'second'], 100);
    const first = await sweepOf('first', mock, { tasks: 6, interfaces: ['openqa'] });
    const second = await sweepOf('second', mock, { tasks: 4 });

    const ended = await Promise.all([first.start().ended, second.start().ended]);

    expect(ended).toMatchObject([
      { code: 0, stderr: '' },
      { code: 0, stderr: '' },
    ]);
    for (const sweep of [first, second]) {
      expect(resultFiles(sweep.out)).toEqual(sweep.expected);
      for (const lane of exampleLanes) {
        const recorded = await recordedHashes(sweep.run, lane);
        expect(recorded.toSorted()).toEqual(sweep.requestHashes(lane).toSorted());
      }
    }
    // What both need is asked for by both: a run takes no reply of another one.
    const ids = new Set([...Object.keys(first.asked), ...Object.keys(second.asked)]);
    expect(ids.size).toBeLessThan(Object.keys(first.asked).length + Object.keys(second.asked).length);
    expect(mock.stats().requestsByFingerprint).toEqual(
      Object.fromEntries([...ids].map((id) => [id, (first.asked[id] ?? 0) + (second.asked[id] ?? 0)])),
    );
    const peaks = exampleLanes.map((lane) => mock.stats().byModel[lane]!.peakInFlight);
    expect(Math.max(...peaks)).toBeLessThanOrEqual(slots);
    expect(Math.min(...peaks)).toBeGreaterThan(1);
  });

  it('ends without the groups that failed, and a redrive does those and no others', async () => {
    const mock = await startProvider(['broken'], 200);
    const sweep = await sweepOf('broken', mock, { tasks: 6 });
    // While nothing is called, no group can end before it is stopped.
    await operate('pause');
    const command = sweep.start();
    await until(async () => (await atWorkFor('view-group', sweep.run)).length >= 2);

    const stopped = (await atWorkFor('view-group', sweep.run)).slice(0, 2);
    for (const { executionArn } of stopped)
      await stepFunctions.send(new StopExecutionCommand({ executionArn }));
    await operate('resume');
    const incomplete = await command.ended;
    const before = callsOf(mock);
    const recorded = await recordedCount(sweep.run);
    const status = await operate('status', sweep.run, '--on', 'aws');

    const failedViews = sum(stopped.map(({ input }) => input.viewIds.length));
    expect(incomplete.code).toBe(2);
    expect(incomplete.stdout).toContain(`${36 - failedViews} of 36 views valid`);
    expect(incomplete.stderr).toContain('views left open; run again to go on');
    expect(status).toContain(`run ${sweep.run}: ended, ${36 - failedViews} of 36 views settled`);
    expect(status).toContain(`${failedViews} views are open: \`turnsweep redrive ${sweep.run}\``);

    const out = path.join(folder, 'redriven');
    await operate('redrive', sweep.run, '--out', out);

    const namesOf = (groups: readonly { lane: string; groupId: string }[]): string[] =>
      groups.map(({ lane, groupId }) => `${lane} ${groupId}`).toSorted();
    const pending = await Promise.all(
      exampleLanes.map(async (lane) =>
        (await linesOf<{ groupId: string }>(keys.run.lanePending(sweep.run, lane))).map(({ groupId }) => ({
          lane,
          groupId,
        })),
      ),
    );
    expect(namesOf(pending.flat())).toEqual(namesOf(stopped.map(({ input }) => input)));
    expect(namesOf(await failedGroups(sweep.run))).toEqual(namesOf(pending.flat()));
    const missing = sum(exampleLanes.map((lane) => sweep.requestHashes(lane).length)) - recorded;
    expect(missing).toBeGreaterThan(0);
    expect(callsOf(mock) - before).toBe(missing);
    expect(mock.stats().requestsByFingerprint).toMatchObject(withoutJudge(sweep.asked));
    expect(withoutCosts(resultFiles(out))).toEqual(withoutCosts(sweep.expected));
  });
});

describe('a schedule', () => {
  it('starts the stored run anew under the name of the tick, once', async () => {
    const tick = dueAt
      .toISOString()
      .replace(/[-:]|\.\d+/g, '')
      .toLowerCase();
    const run = weekly.run.replace(/(-[0-9a-f]{12})$/, `-${tick}$1`);
    const listed = async () => JSON.parse(await operate('status', '--on', 'aws', '--json'));
    const startsOf = async () =>
      (await listed()).filter((start: { run: string }) => start.run === run) as { status: string }[];
    await until(async () => (await startsOf()).some(({ status }) => status === 'SUCCEEDED'));
    const asked = weeklyMock.stats().requestsByFingerprint;

    const again = await lambda.send(
      new InvokeCommand({
        FunctionName: 'turnsweep-start-sweep',
        Payload: JSON.stringify({ run: weekly.run, scheduledTime: dueAt.toISOString() }),
      }),
    );
    await expectNoMoreCalls(weeklyMock);

    // Once by the run that the schedule repeats, once more by the tick; the judge's verdicts are reused.
    const twice = Object.keys(withoutJudge(weekly.asked)).map((id) => [id, 2]);
    expect(asked).toEqual({ ...weekly.asked, ...Object.fromEntries(twice) });
    expect(again.FunctionError).toBeUndefined();
    expect(JSON.parse(Buffer.from(again.Payload!).toString())).toMatchObject({ run });
    expect(await startsOf()).toMatchObject([{ run, start: 1, status: 'SUCCEEDED' }]);
    expect(weeklyMock.stats().requestsByFingerprint).toEqual(asked);

    const status = await operate('status', run, '--on', 'aws');
    expect(status).toContain(`run ${run}: ended, 12 of 12 views settled`);
    const out = path.join(folder, 'tick');
    await operate('download', run, '--out', out);
    const report = await operate('report', out);
    expect(report).toContain('12 of 12 views valid');
    expect(JSON.parse(resultFiles(out)['report/summary.json']!).run).toBe(run);
    // The run that the schedule repeats has the same contract, and still is another run.
    const mixed = await turnsweep(['run', weekly.file, '--limit', '2', '--out', out], {
      env: { MOCK_BASE_URL: weeklyMock.url },
    });
    expect(mixed.code).toBe(1);
    expect(mixed.stderr).toContain(`the folder holds the scheduled run ${run}`);
  });
});
