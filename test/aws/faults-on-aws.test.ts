import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { CloudFormationClient } from '@aws-sdk/client-cloudformation';
import {
  GetFunctionConfigurationCommand,
  LambdaClient,
  UpdateFunctionConfigurationCommand,
  waitUntilFunctionUpdatedV2,
} from '@aws-sdk/client-lambda';
import { S3Client } from '@aws-sdk/client-s3';
import {
  GetQueueUrlCommand,
  PurgeQueueCommand,
  SetQueueAttributesCommand,
  SQSClient,
} from '@aws-sdk/client-sqs';
import { parse } from 'csv-parse/sync';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { parse as parseYaml } from 'yaml';
import type { ScenarioInput } from '../../mock/scenario.ts';
import { startMockProvider } from '../../mock/server.ts';
import { type Deployment, findDeployment } from '../../shared/adapters/aws/deployment.ts';
import { createS3ObjectStore } from '../../shared/adapters/aws/s3-object-store.ts';
import { createSqsStageQueue } from '../../shared/adapters/aws/sqs-stage-queue.ts';
import type { GroupRow } from '../../shared/contracts/plan.ts';
import type { AttemptLog, FailureRecord, RequestRecord, ViewRow } from '../../shared/contracts/records.ts';
import type { Review } from '../../shared/contracts/reviews.ts';
import { keys } from '../../shared/keys.ts';
import {
  deadLetterName,
  deployedName,
  judgeQueue,
  laneQueue,
  queueResourceName,
} from '../../shared/naming.ts';
import type { ObjectStore } from '../../shared/ports/object-store.ts';
import type { StageQueue } from '../../shared/ports/stage-queue.ts';
import type { AwsEmulator } from '../support/aws-emulator.ts';
import { startCommand, sweepFile, temporaryFolder, turnsweep } from '../support/command-line.ts';
import { resultFiles } from '../support/result-files.ts';
import { deployExample, example, exampleLanes, exampleSweep } from './deployed-example.ts';

// One deployment for all: each test has a sweep, a provider and a judge of its own, and so its own run.

type Models = ScenarioInput['models'];
type Fault = NonNullable<Models[string]['faults']>[number];

const deploymentName = 'turnsweep';
const [attentive, currentClip, forgetful] = exampleLanes as [string, string, string];

/** Three roots: 5 groups, 12 views and 27 requests a lane, and answers that only a judge can tell. */
const tasks = ['001', '002', '009', '010', '017', '018'].map((number) => `example-${number}`);
const groups = 5;
const views = 12;
const requests = 27;

/** A lease is held that long after a kill; a message comes back after it. A call may take half of it. */
const functionSeconds = 30;
const visibilitySeconds = 34;
const deadlineSeconds = 10;
const returnSeconds = '1';

let emulator: AwsEmulator;
let deployment: Deployment;
let store: ObjectStore;
const atEnd: (() => unknown)[] = [];

beforeAll(async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'turnsweep-'));
  atEnd.push(() => rmSync(folder, { recursive: true, force: true }));
  emulator = await deployExample(folder, { atEnd: (stop) => atEnd.push(stop) });
  deployment = await findDeployment(new CloudFormationClient(emulator.clientOptions), deploymentName);
  store = createS3ObjectStore({ client: new S3Client(emulator.clientOptions), bucket: deployment.bucket });
  await shortenTimes();
});
afterAll(async () => {
  for (const end of atEnd.reverse()) await end();
});

/** What takes minutes and hours on AWS takes seconds here; the functions start anew with it. */
const shortenTimes = async () => {
  const lambda = new LambdaClient(emulator.clientOptions);
  for (const FunctionName of deployment.queueFunctions) {
    const { Environment } = await lambda.send(new GetFunctionConfigurationCommand({ FunctionName }));
    await lambda.send(
      new UpdateFunctionConfigurationCommand({
        FunctionName,
        Timeout: functionSeconds,
        Environment: {
          Variables: {
            ...Environment!.Variables,
            TURNSWEEP_TIMEOUT_SECONDS: String(functionSeconds),
            TURNSWEEP_RETURN_SECONDS: returnSeconds,
          },
        },
      }),
    );
    await waitUntilFunctionUpdatedV2({ client: lambda, maxWaitTime: 30, minDelay: 1 }, { FunctionName });
  }
  for (const queue of [judgeQueue, ...exampleLanes.map(laneQueue)]) await hideFor(queue, visibilitySeconds);
};

const urlOf = async (name: string): Promise<string> => {
  const client = new SQSClient(emulator.clientOptions);
  return (await client.send(new GetQueueUrlCommand({ QueueName: deployedName(deploymentName, name) })))
    .QueueUrl!;
};

const hideFor = async (queue: string, seconds: number): Promise<void> => {
  await new SQSClient(emulator.clientOptions).send(
    new SetQueueAttributesCommand({
      QueueUrl: await urlOf(queueResourceName(queue)),
      Attributes: { VisibilityTimeout: String(seconds) },
    }),
  );
};

const openQueue = async (queue: string): Promise<StageQueue> =>
  createSqsStageQueue({
    client: new SQSClient(emulator.clientOptions),
    queueUrl: await urlOf(queueResourceName(queue)),
    deadLetterQueueUrl: await urlOf(deadLetterName(queue)),
  });

const until = (isReached: () => boolean | Promise<boolean>) =>
  vi.waitUntil(isReached, { interval: 100, timeout: 240_000 });

const emptyDeadLetters = async (lane: string): Promise<void> => {
  const QueueUrl = await urlOf(deadLetterName(laneQueue(lane)));
  await new SQSClient(emulator.clientOptions).send(new PurgeQueueCommand({ QueueUrl }));
};

const isEmpty = async (queue: StageQueue): Promise<boolean> => {
  const { visible, hidden } = await queue.depth();
  return visible + hidden === 0;
};

/** Processes in which the emulator runs a function: it tells them the function's name and its own port. */
const handlersOf = (functionName: string): number[] => {
  const marks = [
    `GATEWAY_PORT=${new URL(emulator.endpoint).port}`,
    `AWS_LAMBDA_FUNCTION_NAME=${functionName}`,
  ];
  const environmentOf = (pid: string): string[] => {
    try {
      return readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0');
    } catch {
      return []; // Another user's, or gone since.
    }
  };
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      const variables = environmentOf(pid);
      return marks.every((mark) => variables.includes(mark));
    })
    .map(Number);
};

/** All that a run found out, less how many calls it took: those that failed count too. */
const findings = (files: Record<string, string>) => {
  const { 'report/costs.csv': _, 'report/index.html': __, 'report/summary.json': summary, ...rest } = files;
  const { costs, counts, tables, ...found } = JSON.parse(summary!);
  const { views, valid, excluded, pending, open } = counts;
  return {
    ...rest,
    summary: {
      ...found,
      counts: { views, valid, excluded, pending, open },
      tables: tables.filter(({ title }: { title: string }) => title !== 'Cost'),
    },
  };
};

const costsOf = (files: Record<string, string>): Record<string, string>[] =>
  parse(files['report/costs.csv']!, { columns: true });

/** A lane's sweep, its provider, and what an undisturbed run on one machine came to. */
const sweepOnAws = async (
  name: string,
  lane: string,
  options: { judge?: object; latencyMs?: number } = {},
) => {
  const folder = temporaryFolder();
  cpSync(path.join(example, 'release'), path.join(folder, 'release'), { recursive: true });
  writeFileSync(path.join(folder, 'release', 'selection.json'), JSON.stringify({ task_ids: tasks }));
  // Reviews are shared by the runs of a bucket, but not between judges.
  const judge = `judge-of-${name}`;
  const calm: Models = {
    [lane]: { reply: { table: path.join(example, 'replies.jsonl') }, latencyMs: options.latencyMs ?? 5 },
    [judge]: { reply: { judge: 'aliases' } },
  };
  const mock = await startMockProvider({ scenario: { models: calm } });
  onTestFinished(() => mock.close());
  // What a test leaves there is not the next one's.
  onTestFinished(() => emptyDeadLetters(lane));
  const content = parseYaml(readFileSync(exampleSweep, 'utf8'));
  const file = sweepFile(folder, {
    ...content,
    name,
    benchmark: { ...content.benchmark, manifest: 'selection.json' },
    models: content.models
      .filter(({ id }: { id: string }) => id === lane)
      .map((model: object) => ({ ...model, deadlineSeconds, attempts: 20 })),
    judge: { ...content.judge, model: judge, ...options.judge },
  });
  const env = { MOCK_BASE_URL: mock.url };
  const undisturbed = path.join(folder, 'undisturbed');
  const ended = await turnsweep(['run', file, '--out', undisturbed], { env });
  expect(ended).toMatchObject({ code: 0, stderr: '' });
  const asked = mock.stats().requestsByFingerprint;
  mock.reset();

  const out = path.join(folder, 'out');
  const args = ['run', file, '--on', 'aws', '--out', out];
  const onAws = { env: { ...env, ...emulator.environment, TURNSWEEP_LOOK_SECONDS: '0.5' } };
  const { run } = JSON.parse(readFileSync(path.join(undisturbed, 'plan', 'summary.json'), 'utf8'));
  const documents = async <Document>(prefix: string): Promise<Document[]> => {
    const found: Document[] = [];
    for await (const key of store.list(prefix)) found.push(JSON.parse((await store.getText(key))!));
    return found;
  };
  const rows = (file: string): ViewRow[] =>
    file.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line)]));
  const resumeQueues = () => turnsweep(['resume'], onAws);
  const viewsFile = `lanes/${lane}/views.jsonl`;
  return {
    run: (...more: string[]) => turnsweep([...args, ...more], onAws),
    /** Starts the sweep with all queues paused, and gives it back once every group has its message there. */
    startPaused: async () => {
      await turnsweep(['pause'], onAws);
      onTestFinished(async () => void (await resumeQueues()));
      const running = startCommand(args, onAws);
      const queue = await openQueue(laneQueue(lane));
      await until(async () => (await queue.depth()).visible === groups);
      // What it says of the pause is no part of how it ends.
      const ended = running.ended.then((result) => ({
        ...result,
        stderr: result.stderr.replace(/^the deployment is paused.*\n/gm, ''),
      }));
      return { ended };
    },
    resumeQueues,
    mock,
    judge,
    runId: run as string,
    queue: await openQueue(laneQueue(lane)),
    mediaSha256: (file: string): string =>
      readFileSync(path.join(folder, 'release', 'data', 'media_sha256.txt'), 'utf8')
        .split('\n')
        .find((line) => line.endsWith(file))!
        .split(' ')[0]!,
    groupOf: (viewId: string): GroupRow =>
      readFileSync(path.join(undisturbed, 'plan', lane, 'groups.jsonl'), 'utf8')
        .split('\n')
        .filter((line) => line.includes(`"${viewId}"`))
        .map((line) => JSON.parse(line))[0]!,
    setFaults: (model: string, faults: Fault[]) =>
      mock.setScenario({ models: { ...calm, [model]: { ...calm[model]!, faults } } }),
    undisturbed: {
      asked,
      results: resultFiles(undisturbed),
      views: rows(resultFiles(undisturbed)[viewsFile]!),
    },
    results: () => resultFiles(out),
    views: () => rows(resultFiles(out)[viewsFile]!),
    records: () => documents<RequestRecord>(keys.lane.requests(run, lane)),
    failures: () => documents<FailureRecord>(keys.lane.failures(run, lane)),
    reviews: async (): Promise<Review[]> => {
      const { judging } = JSON.parse(resultFiles(undisturbed)['report/summary.json']!);
      return documents<Review>(keys.reviews.judge(judging.judge));
    },
    judgeAttempts: () => documents<AttemptLog>(keys.judging.attempts(run)),
    /** How often each request of a model was asked, by the model's name. */
    askedOf: (model: string, counts = mock.stats().requestsByFingerprint) =>
      Object.fromEntries(Object.entries(counts).filter(([key]) => key.startsWith(`${model} `))),
  };
};

const expectComplete = ({
  code,
  stderr,
  stdout,
}: {
  code: number | null;
  stderr: string;
  stdout: string;
}) => {
  expect({ code, stderr }, emulator.output().slice(-6000)).toEqual({ code: 0, stderr: '' });
  expect(stdout).toContain(`${views} of ${views} views valid, 0 excluded, 0 awaiting review`);
};

describe('a message that is delivered twice', () => {
  it('is worked on once, at the same time as well as later', async () => {
    const sweep = await sweepOnAws('delivered-twice', currentClip, { latencyMs: 300 });
    const { queue } = sweep;
    await hideFor(laneQueue(currentClip), 6);
    onTestFinished(() => hideFor(laneQueue(currentClip), visibilitySeconds));
    const running = await sweep.startPaused();
    const bodies: string[] = [];
    for (const { body, receipt } of await queue.receive(10, 0)) {
      bodies.push(body);
      await queue.send(body);
      await queue.send(body);
      await queue.delete(receipt);
    }
    await sweep.resumeQueues();

    const ended = await running.ended;

    expectComplete(ended);
    expect(bodies).toHaveLength(groups);
    expect(sweep.mock.stats().requestsByFingerprint).toEqual(sweep.undisturbed.asked);
    expect(sweep.results()).toEqual(sweep.undisturbed.results);

    for (const body of bodies) await queue.send(body);
    await until(() => isEmpty(queue));
    expect(sweep.mock.stats().requestsByFingerprint).toEqual(sweep.undisturbed.asked);
    expect(await queue.deadLetters()).toEqual([]);
  });
});

describe('handlers that are killed in the middle of a turn', () => {
  it('lose the calls in flight and nothing else', async () => {
    const sweep = await sweepOnAws('killed', attentive);
    // The last turn of every view: what came before it in the view is recorded.
    sweep.setFaults(
      attentive,
      ['my first question', 'first clip of this conversation'].map((lastText) => ({
        kind: 'hang',
        rate: 1,
        match: { lastText },
      })),
    );
    const running = sweep.run();
    // A lane has four slots, and nobody else is at work once all of them wait for the provider.
    await until(() => sweep.mock.stats().inFlight === 4);
    const recorded = (await sweep.records()).length;
    const before = sweep.mock.stats();
    const lost = Object.keys(before.requestsByFingerprint).filter(
      (key) => before.repliesByFingerprint[key] === undefined,
    );
    const killed = handlersOf(`${deploymentName}-generate-turns`);
    for (const pid of killed) process.kill(pid, 'SIGKILL');
    sweep.setFaults(attentive, []);

    const ended = await running;

    expectComplete(ended);
    expect(killed.length).toBeGreaterThanOrEqual(4);
    expect(lost).toHaveLength(4);
    expect(recorded).toBe(before.replies);
    expect(recorded).toBeGreaterThanOrEqual(2 * 4);
    const { requestsByFingerprint, repliesByFingerprint } = sweep.mock.stats();
    const { asked } = sweep.undisturbed;
    expect(requestsByFingerprint).toEqual({ ...asked, ...Object.fromEntries(lost.map((key) => [key, 2])) });
    expect(repliesByFingerprint).toEqual(asked);
    expect(sweep.results()).toEqual(sweep.undisturbed.results);
    expect(await sweep.records()).toHaveLength(requests);
    expect(await sweep.queue.deadLetters()).toEqual([]);
  });
});

describe('a poisoned message', () => {
  it('without a token goes to the dead letters of its queue, beside a run that it does not touch', async () => {
    const sweep = await sweepOnAws('garbage', forgetful);
    const garbage = ['not JSON', JSON.stringify({ v: 1, run: sweep.runId, lane: forgetful, cap: 'first' })];
    for (const body of garbage) await sweep.queue.send(body);

    const ended = await sweep.run();

    expectComplete(ended);
    expect(sweep.mock.stats().requestsByFingerprint).toEqual(sweep.undisturbed.asked);
    expect(sweep.results()).toEqual(sweep.undisturbed.results);
    await until(() => isEmpty(sweep.queue));
    expect((await sweep.queue.deadLetters()).toSorted()).toEqual(garbage.toSorted());
  });

  it('about a damaged plan leaves its views open; once mended, the run completes', async () => {
    const sweep = await sweepOnAws('damaged-plan', currentClip);
    const running = await sweep.startPaused();
    const { groupId, viewIds } = sweep.groupOf('example-task-v-animal::preserve::mcq');
    const planKey = keys.run.group(sweep.runId, groupId);
    const plan = (await store.getText(planKey))!;
    await store.put(planKey, plan.slice(0, plan.length / 2));
    await sweep.resumeQueues();

    const ended = await running.ended;

    expect({ code: ended.code, stderr: ended.stderr.trim() }).toEqual({
      code: 2,
      stderr: `lane ${currentClip} (${sweep.mock.url}): 2 views left open; run again to go on`,
    });
    expect(ended.stdout).toContain('10 of 12 views valid, 0 excluded, 2 left open');
    expect(sweep.views()).toEqual(
      sweep.undisturbed.views.map((row) =>
        viewIds.includes(row.viewId) ? { ...row, outcome: 'open', requestId: expect.anything() } : row,
      ),
    );
    const { asked } = sweep.undisturbed;
    const askedFirst = sweep.askedOf(currentClip);
    // Two views need five requests: they share the control.
    expect(Object.keys(askedFirst)).toHaveLength(requests - 5);
    expect(asked).toMatchObject(askedFirst);
    expect(await sweep.failures()).toEqual([]);
    await until(() => isEmpty(sweep.queue));
    const dead = (await sweep.queue.deadLetters()).map((body) => JSON.parse(body));
    // Views come one after the other: AWS ends with the first that fails, the emulator tries them all.
    expect(dead.length).toBeGreaterThan(0);
    expect(dead).toMatchObject(
      viewIds
        .slice(0, dead.length)
        .map((viewId) => ({ v: 1, run: sweep.runId, lane: currentClip, groupId, viewId, cap: 'first' })),
    );

    await store.put(planKey, plan);
    const mended = await sweep.run();

    expectComplete(mended);
    expect(sweep.askedOf(currentClip)).toEqual(sweep.askedOf(currentClip, asked));
    expect(findings(sweep.results())).toEqual(findings(sweep.undisturbed.results));
    expect(await sweep.queue.deadLetters()).toHaveLength(dead.length);
  });

  it('about a missing clip costs the requests that show it; with --retry-errors the run completes', async () => {
    const sweep = await sweepOnAws('missing-clip', forgetful);
    const running = await sweep.startPaused();
    const clipKey = keys.media(sweep.mediaSha256('data/media/clip-03.mp4'), 'mp4');
    await store.delete(clipKey);
    // Functions that run have seen the clip.
    await shortenTimes();
    await sweep.resumeQueues();

    const ended = await running.ended;

    const showing = ['openqa', 'mcq'].map((way) => `example-evidence-v-animal::short::retrieve::${way}`);
    expect({ code: ended.code, stderr: ended.stderr.trim() }).toEqual({
      code: 2,
      stderr: `lane ${forgetful} (${sweep.mock.url}): 2 views excluded (worker_lost×2); mend the cause and run with --retry-errors`,
    });
    expect(ended.stdout).toContain('10 of 12 views valid, 2 excluded');
    expect(sweep.views()).toEqual(
      sweep.undisturbed.views.map((row) =>
        showing.includes(row.viewId)
          ? { ...row, outcome: 'excluded', reason: 'worker_lost', requestId: row.viewId }
          : row,
      ),
    );
    const failures = await sweep.failures();
    expect(failures.map(({ requestId }) => requestId).toSorted()).toEqual(showing.toSorted());
    for (const failure of failures) {
      expect(failure).toMatchObject({ status: 'error', kind: 'worker_lost', refusal: false, attempts: [] });
      expect(failure.message).toMatch(/^MessagePoisoned: .*data\/media\/clip-03\.mp4/);
    }
    const { asked } = sweep.undisturbed;
    expect(Object.values(sweep.askedOf(forgetful))).toEqual(Array(requests - 2).fill(1));
    await until(() => isEmpty(sweep.queue));
    const dead = (await sweep.queue.deadLetters()).map((body) => JSON.parse(body));
    expect(dead.map(({ run, viewId }) => [run, viewId]).toSorted()).toEqual(
      showing.map((viewId) => [sweep.runId, viewId]).toSorted(),
    );

    // Uploads the clip again, but asks nothing.
    const before = sweep.mock.stats().requests;
    const again = await sweep.run();
    expect(again.code).toBe(2);
    expect(sweep.mock.stats().requests).toBe(before);
    expect(await store.tag(clipKey)).not.toBeNull();
    const retried = await sweep.run('--retry-errors');

    expectComplete(retried);
    expect(sweep.askedOf(forgetful)).toEqual(sweep.askedOf(forgetful, asked));
    expect(findings(sweep.results())).toEqual(findings(sweep.undisturbed.results));
    expect(await sweep.failures()).toEqual([]);
  });
});

describe('a provider that turns calls away', () => {
  it('is asked again after the time it names, until every view is done', async () => {
    const sweep = await sweepOnAws('throttled', attentive);
    sweep.setFaults(attentive, [{ kind: 'http_429', rate: 1, retryAfterSeconds: 1 }]);
    const running = sweep.run();
    await until(() => sweep.mock.stats().rateLimited >= 8);
    sweep.setFaults(attentive, []);

    const ended = await running;

    expectComplete(ended);
    const { rateLimited, repliesByFingerprint } = sweep.mock.stats();
    expect(repliesByFingerprint).toEqual(sweep.undisturbed.asked);
    const attempts = (await sweep.records()).map((record) => record.attempts);
    expect(attempts).toHaveLength(requests);
    for (const made of attempts) {
      expect(made.map(({ kind }) => kind)).toEqual([...Array(made.length - 1).fill('http_429'), null]);
      for (const [at, { timeUtc }] of made.slice(1).entries()) {
        expect(Date.parse(timeUtc) - Date.parse(made[at]!.timeUtc)).toBeGreaterThanOrEqual(1000);
      }
    }
    const ascending = (counts: number[]) => counts.toSorted((a, b) => a - b);
    expect(ascending(attempts.map((made) => made.length))).toEqual(
      ascending(Object.values(sweep.askedOf(attentive))),
    );
    expect(costsOf(sweep.results())[0]).toMatchObject({
      lane: attentive,
      calls: String(requests + rateLimited),
      retries: `http_429:${rateLimited}`,
    });
    expect(findings(sweep.results())).toEqual(findings(sweep.undisturbed.results));
    expect(await sweep.failures()).toEqual([]);
    expect(await sweep.queue.deadLetters()).toEqual([]);
  });
});

describe('a judge that answers rubbish', () => {
  it('leaves reviews pending; once it is well, only it is asked and the run completes', async () => {
    const attempts = 2;
    const sweep = await sweepOnAws('rubbish', attentive, {
      judge: { attempts, itemsPerRequest: 2, backoff: { baseSeconds: 0, maxSeconds: 0 } },
    });
    // Of 18 replies that count, the rules decide 9; among the others are 6 pairs of question and answer.
    const chunks = 3;
    sweep.setFaults(sweep.judge, [{ kind: 'rubbish', rate: 1 }]);

    const ended = await sweep.run();

    const { asked } = sweep.undisturbed;
    const timesEach = (times: number) => Array(chunks).fill(times);
    const judge = await openQueue(judgeQueue);
    const kindsOf = async () =>
      (await sweep.judgeAttempts()).map((log) => log.attempts.map(({ kind }) => kind));
    const rowsOf = (status: string) =>
      sweep
        .results()
        [`scores/${attentive}.jsonl`]!.split('\n')
        .filter((line) => line.includes(`"score_status":"${status}"`));
    expect({ code: ended.code, stderr: ended.stderr }).toEqual({ code: 2, stderr: '' });
    // All views but two have a control or a last reply among the 9.
    expect(ended.stdout).toContain('2 of 12 views valid, 0 excluded, 10 awaiting review');
    expect(rowsOf('review_pending')).toHaveLength(9);
    expect(rowsOf('scored')).toHaveLength(9);
    expect(sweep.views()).toEqual(sweep.undisturbed.views);
    expect(sweep.askedOf(attentive)).toEqual(sweep.askedOf(attentive, asked));
    expect(Object.values(sweep.askedOf(sweep.judge))).toEqual(timesEach(attempts));
    expect(await kindsOf()).toEqual(Array(chunks).fill(Array(attempts).fill('judge_unparsed')));
    expect(await sweep.reviews()).toEqual([]);

    sweep.setFaults(sweep.judge, []);
    const well = await sweep.run();

    expectComplete(well);
    expect(sweep.askedOf(attentive)).toEqual(sweep.askedOf(attentive, asked));
    expect(Object.keys(sweep.askedOf(sweep.judge)).toSorted()).toEqual(
      Object.keys(sweep.askedOf(sweep.judge, asked)).toSorted(),
    );
    expect(Object.values(sweep.askedOf(sweep.judge))).toEqual(timesEach(attempts + 1));
    expect(await sweep.reviews()).toHaveLength(6);
    expect(findings(sweep.results())).toEqual(findings(sweep.undisturbed.results));
    expect(costsOf(sweep.results())[1]).toMatchObject({
      lane: 'judge',
      calls: String(chunks * (attempts + 1)),
      retries: `judge_unparsed:${chunks * attempts}`,
    });
    await until(() => isEmpty(judge));
    expect(await judge.deadLetters()).toEqual([]);
  });
});
