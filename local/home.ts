import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import path from 'node:path';
import { createAggregateRun, type RunSummary } from '../functions/aggregate-run/aggregate-run.ts';
import { createExcludeRequest } from '../functions/exclude-request/exclude-request.ts';
import { createGenerateTurns, type LaneAtWork } from '../functions/generate-turns/generate-turns.ts';
import { createJudgeAnswers, type JudgeAtWork } from '../functions/judge-answers/judge-answers.ts';
import { createPlanJudging } from '../functions/plan-judging/plan-judging.ts';
import { createPlanSweep } from '../functions/plan-sweep/plan-sweep.ts';
import { createPollJudgeBatch } from '../functions/poll-judge-batch/poll-judge-batch.ts';
import { createPrepareMedia } from '../functions/prepare-media/prepare-media.ts';
import { createPublishReport } from '../functions/publish-report/publish-report.ts';
import { createStopLane } from '../functions/stop-lane/stop-lane.ts';
import { createSubmitJudgeBatch } from '../functions/submit-judge-batch/submit-judge-batch.ts';
import { environmentSecrets } from '../shared/adapters/local/environment-secrets.ts';
import { createFfmpegMediaTool } from '../shared/adapters/local/ffmpeg-media-tool.ts';
import {
  createMemoryStageQueue,
  type MemoryStageQueue,
} from '../shared/adapters/local/memory-stage-queue.ts';
import { createPackedObjectStore } from '../shared/adapters/local/packed-object-store.ts';
import { scopeObjectStore } from '../shared/adapters/local/scoped-object-store.ts';
import { createSeededRandom } from '../shared/adapters/local/seeded-random.ts';
import { createSqliteLedger } from '../shared/adapters/local/sqlite-ledger.ts';
import { createSystemClock } from '../shared/adapters/local/system-clock.ts';
import { benchmarkOf } from '../shared/benchmarks/registry.ts';
import {
  type JudgeAssignment,
  judgeAssignment,
  type LaneRunSettings,
  laneOf,
} from '../shared/contracts/run.ts';
import {
  generateTurnsMessage,
  type JudgeOutcome,
  judgeAnswersMessage,
  type TurnOutcome,
} from '../shared/contracts/stage-messages.ts';
import { createLaneLimiter } from '../shared/domain/rate-limit.ts';
import { errorNames, TurnsweepError } from '../shared/errors.ts';
import { keys } from '../shared/keys.ts';
import { judgeQueue, laneQueue, parseQueue } from '../shared/naming.ts';
import type { Clock } from '../shared/ports/clock.ts';
import type { ObjectStore } from '../shared/ports/object-store.ts';
import {
  createChatBatchFor,
  createChatCallerFor,
  createModelClient,
  providerOf,
} from '../shared/providers/registry.ts';
import { type StageName, scopes } from '../shared/scopes.ts';
import { openAccounts } from '../shared/stages/budget.ts';
import { type AdaptiveGate, createAdaptiveGate } from '../shared/stages/call-gate.ts';
import { createClipSource, extensionOf, mediaUrlVariable, urlsBelow } from '../shared/stages/clip-source.ts';
import type { JudgeBatchAtWork, JudgeBatchPorts } from '../shared/stages/judge-batches.ts';
import {
  type QueueConsumer,
  returnSecondsAfter,
  startQueueConsumer,
} from '../shared/stages/queue-consumer.ts';
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
/** Longer than that a message is not kept at work without a call: it comes back later. */
const longestWaitAtGateSeconds = 30;
/** Longest conversion of one clip. */
const conversionSeconds = 600;

const machineFiles = { sweep: 'sweep', viewGroup: 'view-group', judging: 'judging' } as const;

/** Lambda names are stage names; machine names are file names. */
const substitutions: Record<string, Record<string, string>> = {
  sweep: {
    PlanSweepFunction: 'plan-sweep',
    PrepareMediaFunction: 'prepare-media',
    StopLaneFunction: 'stop-lane',
    Bucket: bucket,
    ViewGroupStateMachine: machineFiles.viewGroup,
    JudgingStateMachine: machineFiles.judging,
  },
  'view-group': { ExcludeRequestFunction: 'exclude-request' },
  judging: {
    PlanJudgingFunction: 'plan-judging',
    SubmitJudgeBatchFunction: 'submit-judge-batch',
    PollJudgeBatchFunction: 'poll-judge-batch',
    AggregateRunFunction: 'aggregate-run',
    PublishReportFunction: 'publish-report',
    Bucket: bucket,
  },
};

/**
 * The run folder as a bucket: `runs/<run>/` is the folder itself; reviews and clips made may be shared between
 * runs. The request records of a lane, by far the most objects, are one file.
 */
export const openRunFolder = (
  directory: string,
  run: string,
  options: {
    reviewsDirectory?: string | undefined;
    derivedDirectory?: string | undefined;
    media?: ReadonlyMap<string, string>;
  } = {},
): ObjectStore =>
  createPackedObjectStore({
    root: directory,
    mounts: [
      { prefix: keys.run.root(run), directory },
      ...(options.reviewsDirectory === undefined
        ? []
        : [{ prefix: 'reviews/', directory: options.reviewsDirectory }]),
      ...(options.derivedDirectory === undefined
        ? []
        : [{ prefix: 'derived/', directory: options.derivedDirectory }]),
    ],
    aliases: options.media,
    packs: [
      keys.lane.requests(run, '*'),
      keys.judging.chunkFiles(run),
      keys.judging.attempts(run),
      // A folder that runs share is written by several processes, which a pack does not bear.
      ...(options.reviewsDirectory === undefined ? [keys.reviews.judge('*')] : []),
    ],
  });

/** A text with keys of a run, naming the files instead in which people find them. */
export const withFilesForKeys = (text: string, run: string, directory: string): string =>
  text
    .replaceAll(keys.run.root(run), path.join(directory, path.sep))
    .replaceAll(
      /([^\s(]*\/(?:requests|chunks|attempts|reviews\/[^\s/]+))\/([0-9a-f-]{8,64}\.json)/g,
      (file, folder, name) => (existsSync(file) ? file : `${folder}.pack, the line of ${name}`),
    );

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
  /** Fault injection for tests: messages come in any order. */
  outOfOrder?: boolean;
  /** What waits, holds and leases go by; the machine's clock by default. */
  clock?: Clock;
}

/**
 * One machine as the whole cloud: the state machines of `state-machines/` run unchanged in this process,
 * queues and event sources in memory, the run folder as the bucket. What a kill leaves behind is the
 * folder, and that is all that a resumed run needs.
 */
export const createLocalHome = async (options: LocalHomeOptions): Promise<LocalHome> => {
  const { store, run, progress } = options;
  const clock = options.clock ?? createSystemClock();
  const context = await loadRun(store, run);
  const random = createSeededRandom(context.settings.seed);
  // Leases end with this process, so that they can go by the clock that does not jump: one that ran out too early
  // would let both deliveries of a message make its calls.
  const ledger = createSqliteLedger(path.join(options.directory, 'ledger.sqlite'), {
    clock: { now: clock.monotonic },
  });
  await openAccounts(ledger, context.settings);
  const scoped = (stage: StageName): ObjectStore => scopeObjectStore(store, scopes[stage]);

  const { promise: failed, reject } = Promise.withResolvers<never>();
  failed.catch(() => {}); // Its rejection is seen by whoever waits in `runMachine`.
  const fail = (error: unknown) => {
    // People look for a file, not for a key.
    if (error instanceof TurnsweepError) {
      error.message = withFilesForKeys(error.message, run, options.directory);
    }
    reject(error);
    // What cannot be recorded is not asked for: no call begins any more.
    void stopSources();
  };

  const closers: (() => Promise<void>)[] = [];
  const secrets = environmentSecrets();
  const keyOf = async (name: string | null) => (name === null ? null : await secrets.get(name));
  const hasRunBudget = context.settings.budgetMicroUsd !== null;

  const gates = new Map<string, AdaptiveGate>();
  /** The gate of a queue: a lane's or the judge's. */
  const gateOf = (
    queue: string,
    settings: Pick<LaneRunSettings, 'maxInFlight' | 'limits' | 'backoff' | 'deadlineSeconds'>,
  ): AdaptiveGate => {
    const found = gates.get(queue);
    if (found !== undefined) return found;
    const { maxInFlight, limits, backoff, deadlineSeconds } = settings;
    const gate = createAdaptiveGate({
      limiter: createLaneLimiter({ maxInFlight, limits, backoff }),
      longestWaitSeconds: Math.min(longestWaitAtGateSeconds, deadlineSeconds / 2),
      clock,
    });
    gates.set(queue, gate);
    return gate;
  };

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
        clips: createClipSource({ store: laneStore, urlOf: urlsBelow(process.env[mediaUrlVariable]) }),
        recording: recordingKey
          ? { lines: () => laneStore.lines(recordingKey), origin: `the recording of lane ${laneId}` }
          : null,
      },
    );
    closers.push(() => client.close());
    const gate = gateOf(laneQueue(laneId), settings);
    const provider = providerOf(contract.provider, laneId);
    const media = {
      forms: provider.clipForms(contract),
      capabilities: provider.capabilities(contract.model),
    };
    return {
      contract,
      settings,
      client,
      gate,
      media,
      hasBudget: hasRunBudget || settings.budgetMicroUsd !== null,
    };
  };
  const laneAtWork = (_run: string, laneId: string): Promise<LaneAtWork> => {
    const found = lanesAtWork.get(laneId) ?? openLane(laneId);
    lanesAtWork.set(laneId, found);
    return found;
  };

  const readAssignment = async (stage: StageName): Promise<JudgeAssignment> => {
    const key = keys.judging.judge(run);
    const assignment = await readStored(scoped(stage), key, judgeAssignment);
    if (assignment === null) throw objectDamaged(key, 'it is gone');
    return assignment;
  };
  let judging: Promise<JudgeAtWork> | null = null;
  const openJudge = async (): Promise<JudgeAtWork> => {
    const assignment = await readAssignment('judge-answers');
    const caller = createChatCallerFor(assignment.settings, await keyOf(assignment.settings.apiKeyEnv));
    closers.push(() => caller.close());
    return {
      judge: assignment.judge,
      settings: assignment.settings,
      caller,
      protocol: benchmarkOf(assignment.benchmarkKind).judge(assignment.prompts),
      gate: gateOf(judgeQueue, assignment.settings),
      hasBudget: hasRunBudget,
    };
  };

  let judgingInBatches: Promise<JudgeBatchAtWork> | null = null;
  const openJudgeBatch = async (): Promise<JudgeBatchAtWork> => {
    const { judge, settings, benchmarkKind, prompts } = await readAssignment('submit-judge-batch');
    const batch = createChatBatchFor(settings, await keyOf(settings.apiKeyEnv));
    closers.push(() => batch.close());
    const protocol = benchmarkOf(benchmarkKind).judge(prompts);
    return { judge, settings, batch, protocol, hasBudget: hasRunBudget };
  };
  const judgeBatchPorts = (stage: StageName): JudgeBatchPorts => ({
    store: scoped(stage),
    ledger,
    clock,
    random,
    judgeBatchAtWork: () => {
      judgingInBatches ??= openJudgeBatch();
      return judgingInBatches;
    },
    onCall: progress.judgeCall,
  });
  const countedBatch = (stage: ReturnType<typeof createSubmitJudgeBatch>) => async (payload: unknown) => {
    const outcome = await stage(payload);
    progress.judged(outcome);
    return outcome;
  };

  const queues = new Map<string, MemoryStageQueue>();
  const queueOf = (name: string): MemoryStageQueue => {
    const found = queues.get(name);
    if (found !== undefined) return found;
    const queue = createMemoryStageQueue(
      { visibilitySeconds: longestVisibilitySeconds, maxReceiveCount },
      {
        clock,
        deliverTwice: options.deliverTwice,
        outOfOrder: options.outOfOrder ? createSeededRandom(context.settings.seed) : undefined,
      },
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
      clipFormsOf: (lane) => providerOf(lane.provider, lane.id).clipForms(lane),
      clipsAtOnce: availableParallelism(),
    }),
    'prepare-media': createPrepareMedia({
      store: scoped('prepare-media'),
      tool: createFfmpegMediaTool({
        ffmpeg: process.env.TURNSWEEP_FFMPEG || null,
        remedy: 'install ffmpeg (such as `apt-get install ffmpeg`), or name the program in TURNSWEEP_FFMPEG',
        deadlineSeconds: conversionSeconds,
      }),
    }),
    'exclude-request': createExcludeRequest({ store: scoped('exclude-request') }),
    'stop-lane': createStopLane({ store: scoped('stop-lane'), clock }),
    'plan-judging': createPlanJudging({ store: scoped('plan-judging'), benchmarkOf, queueUrl }),
    'submit-judge-batch': countedBatch(createSubmitJudgeBatch(judgeBatchPorts('submit-judge-batch'))),
    'poll-judge-batch': countedBatch(createPollJudgeBatch(judgeBatchPorts('poll-judge-batch'))),
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

  const onError = (error: unknown, { stage, receiveCount }: { stage: string; receiveCount: number }) => {
    // A broken disk, a damaged file or a missing key does not heal by redelivery: stop at once, what is recorded stays.
    if (error instanceof TurnsweepError) return fail(error);
    const againSeconds = receiveCount < maxReceiveCount ? returnSecondsAfter(receiveCount) : null;
    progress.fault({ stage, error, tries: receiveCount, againSeconds });
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
  const sources: QueueConsumer[] = [];
  const openSources = (names: readonly string[]) => {
    for (const name of names) {
      const queue = parseQueue(name);
      const settings = queue.kind === 'lane' ? laneOf(context.settings, queue.lane) : context.settings.judge;
      if (settings === null) continue;
      const visibilitySeconds = visibilityOf(settings.deadlineSeconds);
      const gate = gateOf(name, settings);
      if (queue.kind === 'lane') {
        progress.watchRate(queue.lane, () => {
          const { heldUntilMs, ...state } = gate.state();
          const heldSeconds = heldUntilMs === null ? 0 : Math.ceil((heldUntilMs - clock.monotonic()) / 1000);
          return { ...state, heldSeconds };
        });
      }
      const edge = { workflow: runtime, ledger, visibilitySeconds, maxReceiveCount, onError };
      sources.push(
        startQueueConsumer({
          clock,
          queue: queueOf(name),
          concurrency: gate.concurrency,
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
  let sourcesStopped: Promise<unknown> | null = null;
  const stopSources = (): Promise<unknown> => {
    if (sourcesStopped !== null) return sourcesStopped;
    draining = true;
    sourcesStopped = Promise.all(sources.map((source) => source.drain()));
    sourcesStopped.catch(() => {}); // Its rejection is seen by whoever drains.
    for (const queue of queues.values()) queue.close();
    for (const gate of gates.values()) gate.close();
    return sourcesStopped;
  };
  const drain = async () => {
    await stopSources();
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
      return runMachine(machineFiles.judging, { run, judge, round: 1 });
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
