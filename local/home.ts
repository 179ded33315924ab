import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { createAggregateRun, type RunSummary } from '../functions/aggregate-run/aggregate-run.ts';
import { createExcludeRequest } from '../functions/exclude-request/exclude-request.ts';
import { createGenerateTurns, type LaneAtWork } from '../functions/generate-turns/generate-turns.ts';
import { createJudgeAnswers, type JudgeAtWork } from '../functions/judge-answers/judge-answers.ts';
import { createPlanJudging } from '../functions/plan-judging/plan-judging.ts';
import { createPlanSweep } from '../functions/plan-sweep/plan-sweep.ts';
import { createPublishReport } from '../functions/publish-report/publish-report.ts';
import { createStopLane } from '../functions/stop-lane/stop-lane.ts';
import { environmentSecrets } from '../shared/adapters/local/environment-secrets.ts';
import { createFileObjectStore } from '../shared/adapters/local/file-object-store.ts';
import {
  createMemoryStageQueue,
  type MemoryStageQueue,
} from '../shared/adapters/local/memory-stage-queue.ts';
import { scopeObjectStore } from '../shared/adapters/local/scoped-object-store.ts';
import { createSeededRandom } from '../shared/adapters/local/seeded-random.ts';
import { createSqliteLedger } from '../shared/adapters/local/sqlite-ledger.ts';
import { createSystemClock } from '../shared/adapters/local/system-clock.ts';
import { benchmarkOf } from '../shared/benchmarks/registry.ts';
import { judgeAssignment, laneOf } from '../shared/contracts/run.ts';
import {
  generateTurnsMessage,
  type JudgeOutcome,
  judgeAnswersMessage,
  type TurnOutcome,
} from '../shared/contracts/stage-messages.ts';
import { errorNames, TurnsweepError } from '../shared/errors.ts';
import { keys } from '../shared/keys.ts';
import { judgeQueue, laneQueue, parseQueue } from '../shared/naming.ts';
import type { ObjectStore } from '../shared/ports/object-store.ts';
import { createChatCallerFor, createModelClient } from '../shared/providers/registry.ts';
import { type StageName, scopes } from '../shared/scopes.ts';
import { openAccounts } from '../shared/stages/budget.ts';
import { createClipSource, extensionOf } from '../shared/stages/clip-source.ts';
import { type QueueConsumer, startQueueConsumer } from '../shared/stages/queue-consumer.ts';
import { createQueueStage } from '../shared/stages/queue-stage.ts';
import { loadRun } from '../shared/stages/run-context.ts';
import { objectDamaged, readStored } from '../shared/stages/stored-json.ts';
import { type AslIntegrations, createAslRuntime, loadStateMachine } from './asl/runtime.ts';
import type { Progress } from './progress.ts';

const machinesDirectory = path.join(import.meta.dirname, '..', 'state-machines');
const bucket = 'local';
const maxReceiveCount = 8;
/** A delivery may work this much longer than one call's deadline before it counts as lost. */
const visibilityPerDeadline = 6;
const longestVisibilitySeconds = 43_200;

const machineFiles = { sweep: 'sweep', viewGroup: 'view-group', judging: 'judging' } as const;

/** Lambda names are stage names; machine names are file names. */
const substitutions: Record<string, Record<string, string>> = {
  sweep: {
    PlanSweepFunction: 'plan-sweep',
    StopLaneFunction: 'stop-lane',
    Bucket: bucket,
    ViewGroupStateMachine: machineFiles.viewGroup,
    JudgingStateMachine: machineFiles.judging,
  },
  'view-group': { ExcludeRequestFunction: 'exclude-request' },
  judging: {
    PlanJudgingFunction: 'plan-judging',
    AggregateRunFunction: 'aggregate-run',
    PublishReportFunction: 'publish-report',
    Bucket: bucket,
  },
};

/** The run folder as a bucket: `runs/<run>/` is the folder itself, reviews may be shared between runs. */
export const openRunFolder = (
  directory: string,
  run: string,
  options: { reviewsDirectory?: string | undefined; media?: ReadonlyMap<string, string> } = {},
): ObjectStore =>
  createFileObjectStore({
    root: directory,
    mounts: [
      { prefix: keys.run.root(run), directory },
      ...(options.reviewsDirectory === undefined
        ? []
        : [{ prefix: 'reviews/', directory: options.reviewsDirectory }]),
    ],
    aliases: options.media,
  });

/** Keys of clips that stay where the release has them. */
export const mediaAliases = (
  releaseDirectory: string,
  media: ReadonlyMap<string, string>,
): ReadonlyMap<string, string> =>
  new Map(
    [...media].map(([file, sha256]) => [
      keys.media(sha256, extensionOf(file)),
      path.join(releaseDirectory, file),
    ]),
  );

export interface LocalHome {
  /** Runs the whole sweep. Resolves when it has ended; throws what ended it early. */
  sweep(options: { retryErrors: boolean }): Promise<RunSummary>;
  /** Runs scoring, judging (or not) and the report alone. */
  judging(options: { judge: boolean }): Promise<RunSummary>;
  /** Aggregates and publishes from what is scored. */
  report(): Promise<RunSummary>;
  /** Takes no new message, lets the calls in flight end and be recorded, then gives everything back. */
  drain(): Promise<void>;
  close(): Promise<void>;
}

export interface LocalHomeOptions {
  store: ObjectStore;
  directory: string;
  run: string;
  progress: Progress;
  /** Fault injection for tests: every message is delivered twice. */
  deliverTwice?: boolean;
}

/**
 * One machine as the whole cloud: the state machines of `state-machines/` run unchanged in this process,
 * queues and event sources in memory, the run folder as the bucket. What a kill leaves behind is the
 * folder, and that is all that a resumed run needs.
 */
export const createLocalHome = async (options: LocalHomeOptions): Promise<LocalHome> => {
  const { store, run, progress } = options;
  const clock = createSystemClock();
  const context = await loadRun(store, run);
  const random = createSeededRandom(context.settings.seed);
  const ledger = createSqliteLedger(path.join(options.directory, 'ledger.sqlite'), { clock });
  // The run folder's lock says that nobody else is at work: what is held belongs to a dead process.
  await ledger.dropAllLeases();
  await openAccounts(ledger, context.settings);
  const scoped = (stage: StageName): ObjectStore => scopeObjectStore(store, scopes[stage]);

  const { promise: failed, reject } = Promise.withResolvers<never>();
  failed.catch(() => {}); // Its rejection is seen by whoever waits in `runMachine`.
  const fail = (error: unknown) => {
    // People look for a file, not for a key.
    if (error instanceof TurnsweepError) {
      error.message = error.message.replaceAll(keys.run.root(run), path.join(options.directory, '/'));
    }
    reject(error);
  };

  const closers: (() => Promise<void>)[] = [];
  const secrets = environmentSecrets();
  const keyOf = async (name: string | null) => (name === null ? null : await secrets.get(name));
  const hasRunBudget = context.settings.budgetMicroUsd !== null;

  const lanesAtWork = new Map<string, Promise<LaneAtWork>>();
  const openLane = async (laneId: string): Promise<LaneAtWork> => {
    const contract = context.contract.lanes.find((lane) => lane.id === laneId)!;
    const settings = laneOf(context.settings, laneId);
    const laneStore = scoped('generate-turns');
    const recording = contract.recordingSha256;
    const recordingKey = recording && keys.benchmark.recording(context.contract.benchmark.id, recording);
    const client = createModelClient(
      { ...contract, maxInFlight: settings.maxInFlight },
      {
        apiKey: await keyOf(settings.apiKeyEnv),
        clips: createClipSource(laneStore),
        recording: recordingKey
          ? { lines: () => laneStore.lines(recordingKey), origin: `the recording of lane ${laneId}` }
          : null,
      },
    );
    closers.push(() => client.close());
    return { contract, settings, client, hasBudget: hasRunBudget || settings.budgetMicroUsd !== null };
  };
  const laneAtWork = (_run: string, laneId: string): Promise<LaneAtWork> => {
    const found = lanesAtWork.get(laneId) ?? openLane(laneId);
    lanesAtWork.set(laneId, found);
    return found;
  };

  let judging: Promise<JudgeAtWork> | null = null;
  const openJudge = async (): Promise<JudgeAtWork> => {
    const key = keys.judging.judge(run);
    const assignment = await readStored(scoped('judge-answers'), key, judgeAssignment);
    if (assignment === null) throw objectDamaged(key, 'it is gone');
    const caller = createChatCallerFor(assignment.settings, await keyOf(assignment.settings.apiKeyEnv));
    closers.push(() => caller.close());
    return {
      judge: assignment.judge,
      settings: assignment.settings,
      caller,
      prompts: benchmarkOf(assignment.benchmarkKind).judge,
      hasBudget: hasRunBudget,
    };
  };

  const queues = new Map<string, MemoryStageQueue>();
  const queueOf = (name: string): MemoryStageQueue => {
    const found = queues.get(name);
    if (found !== undefined) return found;
    const queue = createMemoryStageQueue(
      { visibilitySeconds: longestVisibilitySeconds, maxReceiveCount },
      { clock, deliverTwice: options.deliverTwice },
    );
    queues.set(name, queue);
    return queue;
  };
  const queueUrl = (name: string) => name;

  const functions: Record<string, (payload: unknown) => Promise<unknown>> = {
    'plan-sweep': createPlanSweep({
      store: scoped('plan-sweep'),
      benchmarkOf,
      queueUrl,
      // Every queue has its event source in this process, whatever serves the model.
      workersOf: () => null,
    }),
    'exclude-request': createExcludeRequest({ store: scoped('exclude-request') }),
    'stop-lane': createStopLane({ store: scoped('stop-lane'), clock }),
    'plan-judging': createPlanJudging({ store: scoped('plan-judging'), benchmarkOf, queueUrl }),
    'aggregate-run': createAggregateRun({ store: scoped('aggregate-run'), benchmarkOf }),
    'publish-report': createPublishReport({ store: scoped('publish-report') }),
  };

  const atWork = new Set<Promise<unknown>>();
  const integrations: AslIntegrations = {
    async invokeFunction(name, payload) {
      const working = functions[name]!(payload);
      atWork.add(working);
      try {
        return await working;
      } catch (error) {
        // A function's failure fails the execution; what people should read is the error itself.
        fail(error);
        throw error;
      } finally {
        atWork.delete(working);
      }
    },
    async sendMessage(url, body, { delaySeconds }) {
      return { messageId: await queueOf(url).send(body, { delaySeconds }) };
    },
    submitJob() {
      throw new TurnsweepError(errorNames.usage, 'this run has no GPU lane');
    },
    readLines: (_bucket, key) => store.lines(key),
    writeLines: async (_bucket, key, lines) => {
      await store.putLines(key, lines);
    },
  };
  const machines = Object.fromEntries(
    await Promise.all(
      Object.values(machineFiles).map(async (name) => {
        const text = await readFile(path.join(machinesDirectory, `${name}.asl.json`), 'utf8');
        return [name, loadStateMachine(text, substitutions[name]!)] as const;
      }),
    ),
  );
  const runtime = createAslRuntime({ machines, integrations, clock, random });

  const onError = (error: unknown, where: { stage: string; messageId: string; receiveCount: number }) => {
    progress.fault(where.stage, error);
    // A broken disk, a damaged file or a missing key does not heal by redelivery: stop at once, what is recorded stays.
    if (error instanceof TurnsweepError) fail(error);
  };
  const visibilityOf = (deadlineSeconds: number) =>
    Math.min(longestVisibilitySeconds, Math.ceil(deadlineSeconds * visibilityPerDeadline));

  const generateTurns = createGenerateTurns({
    store: scoped('generate-turns'),
    ledger,
    clock,
    random,
    laneAtWork,
    hasTimeLeft: () => !draining,
    onCall: progress.call,
  });
  const countedTurns = async (message: Parameters<typeof generateTurns>[0]): Promise<TurnOutcome> => {
    const outcome = await generateTurns(message);
    progress.turns(message.lane, message.viewId, outcome);
    return outcome;
  };
  const judgeAnswers = createJudgeAnswers({
    store: scoped('judge-answers'),
    ledger,
    clock,
    random,
    judgeAtWork: () => {
      judging ??= openJudge();
      return judging;
    },
    onCall: progress.judgeCall,
  });
  const countedJudging = async (message: Parameters<typeof judgeAnswers>[0]): Promise<JudgeOutcome> => {
    const outcome = await judgeAnswers(message);
    progress.judged(outcome);
    return outcome;
  };

  let draining = false;
  let sources: QueueConsumer[] = [];
  const openSources = (names: readonly string[]) => {
    for (const name of names) {
      const queue = parseQueue(name);
      const settings = queue.kind === 'lane' ? laneOf(context.settings, queue.lane) : context.settings.judge;
      if (settings === null) continue;
      const visibilitySeconds = visibilityOf(settings.deadlineSeconds);
      const edge = { workflow: runtime, ledger, visibilitySeconds, maxReceiveCount, onError };
      sources.push(
        startQueueConsumer({
          clock,
          queue: queueOf(name),
          concurrency: settings.maxInFlight,
          handler:
            queue.kind === 'lane'
              ? createQueueStage({
                  ...edge,
                  stage: 'generate-turns',
                  schema: generateTurnsMessage,
                  core: countedTurns,
                })
              : createQueueStage({
                  ...edge,
                  stage: 'judge-answers',
                  schema: judgeAnswersMessage,
                  core: countedJudging,
                }),
          onFault: fail,
        }),
      );
    }
  };
  const drain = async () => {
    draining = true;
    const open = sources;
    sources = [];
    const drained = Promise.all(open.map((source) => source.drain()));
    for (const queue of queues.values()) queue.close();
    await drained;
    // What the last answers lead to (an exclusion) and a function at work end before the folder is given free.
    do {
      await new Promise((resolve) => setImmediate(resolve));
      await Promise.allSettled(atWork);
    } while (atWork.size > 0);
  };

  const runMachine = async (machine: string, input: unknown): Promise<RunSummary> => {
    const id = await runtime.start(machine, `${run.slice(-40)}-${clock.now().toString(36)}`, input);
    const ended = await Promise.race([runtime.result(id), failed]);
    if (ended.status !== 'SUCCEEDED') {
      throw new TurnsweepError(
        errorNames.contractViolated,
        `the ${machine} state machine ended as ${ended.status}`,
        {
          where: ended.error ?? undefined,
          remedy: ended.cause ?? undefined,
        },
      );
    }
    return (ended.output as { summary: RunSummary }).summary;
  };

  return {
    async sweep({ retryErrors }) {
      openSources([...context.contract.lanes.map((lane) => laneQueue(lane.id)), judgeQueue]);
      return runMachine(machineFiles.sweep, { run, retryErrors });
    },
    async judging({ judge }) {
      if (judge) openSources([judgeQueue]);
      return runMachine(machineFiles.judging, { run, judge });
    },
    async report() {
      const { summary } = (await functions['aggregate-run']!({ run })) as { summary: RunSummary };
      await functions['publish-report']!({ run });
      return summary;
    },
    drain,
    async close() {
      await drain();
      await runtime.close();
      await Promise.all(closers.map((closer) => closer()));
      ledger.close();
    },
  };
};
