import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { S3Client } from '@aws-sdk/client-s3';
import { SecretsManagerClient } from '@aws-sdk/client-secrets-manager';
import { SFNClient } from '@aws-sdk/client-sfn';
import { SQSClient } from '@aws-sdk/client-sqs';
import type { z } from 'zod';
import type { JudgeProtocol } from '../../benchmarks/benchmark.ts';
import { benchmarkOf } from '../../benchmarks/registry.ts';
import {
  type JudgeAssignment,
  type JudgeSettings,
  judgeAssignment,
  type LaneContract,
  type LaneRunSettings,
  laneOf,
} from '../../contracts/run.ts';
import { stageEnvironment } from '../../contracts/stage-environment.ts';
import {
  type GenerateTurnsMessage,
  generateTurnsMessage,
  type JudgeAnswersMessage,
  judgeAnswersMessage,
  type LaneWorkers,
  type TurnOutcome,
} from '../../contracts/stage-messages.ts';
import type { Capabilities } from '../../domain/capabilities.ts';
import type { ClipForms } from '../../domain/media.ts';
import { keys } from '../../keys.ts';
import { judgeDimension, metricNames, metricNamespace } from '../../metric-names.ts';
import {
  deployedName,
  jobDefinitionName,
  judgeAccount,
  laneAccount,
  laneQueue,
  queueResourceName,
  queueUrlOf,
  runAccount,
  secretResourceName,
} from '../../naming.ts';
import type { CallGate } from '../../ports/call-gate.ts';
import type { ChatCaller } from '../../ports/chat-caller.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Ledger } from '../../ports/ledger.ts';
import type { MediaTool } from '../../ports/media-tool.ts';
import type { ModelClient } from '../../ports/model-client.ts';
import type { ObjectStore } from '../../ports/object-store.ts';
import type { Random } from '../../ports/random.ts';
import type { StageQueue } from '../../ports/stage-queue.ts';
import type { Workflow } from '../../ports/workflow.ts';
import {
  createChatBatchFor,
  createChatCallerFor,
  createModelClient,
  providerOf,
} from '../../providers/registry.ts';
import { type StageName, scopes } from '../../scopes.ts';
import { openAccounts } from '../../stages/budget.ts';
import { createSharedHoldGate } from '../../stages/call-gate.ts';
import { createClipSource } from '../../stages/clip-source.ts';
import type { JudgeBatchAtWork, JudgeBatchPorts } from '../../stages/judge-batches.ts';
import { type BatchResponse, createQueueStage, type QueueEvent } from '../../stages/queue-stage.ts';
import { loadRun } from '../../stages/run-context.ts';
import { objectDamaged, readStored } from '../../stages/stored-json.ts';
import { createFfmpegMediaTool } from '../local/ffmpeg-media-tool.ts';
import { scopeObjectStore } from '../local/scoped-object-store.ts';
import { createSystemClock } from '../local/system-clock.ts';
import { createDynamodbLedger } from './dynamodb-ledger.ts';
import { createEmfMetrics } from './emf-metrics.ts';
import { createS3ObjectStore } from './s3-object-store.ts';
import { createS3Presigner } from './s3-presigner.ts';
import { createSecretsManagerSecrets } from './secrets-manager-secrets.ts';
import { createSqsStageQueue } from './sqs-stage-queue.ts';
import { createStepFunctionsWorkflow } from './step-functions-workflow.ts';
import { createStructuredLog, type StructuredLog } from './structured-log.ts';

/** What the Lambda runtime tells of an invocation, as far as a stage needs it. */
export interface Invocation {
  getRemainingTimeInMillis(): number;
}

/** An SQS event as Lambda delivers it; the receipt lets a failed message come back sooner. */
export interface DeliveredEvent extends QueueEvent {
  Records: readonly (QueueEvent['Records'][number] & { receiptHandle: string; eventSourceARN: string })[];
}

/** Left over after a call for recording its reply and answering the token. */
const recordingMs = 15_000;
/** Settings of a run may change between two starts: a warm function looks again after this time. */
const settingsKeptMs = 300_000;
/** Encoded clips in a small function's memory. */
const clipCacheBytes = 24 * 1024 * 1024;
/** Clips made at the same time: a function each, a small part of what an account may have at work. */
const clipsAtOnce = 20;

const environment = stageEnvironment.parse(process.env);
const clock: Clock = createSystemClock();
const random: Random = { next: Math.random };

// Made at load where a stage uses them; what it does not use stays out of its bundle.
/* @__NO_SIDE_EFFECTS__ */
const once = <T>(make: () => T): (() => T) => {
  let made: { value: T } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
};
// An endpoint of one's own (an emulator, a private link) has no names for single buckets.
const s3 = once(() => new S3Client({ forcePathStyle: process.env.AWS_ENDPOINT_URL !== undefined }));
const bucket = once(() => createS3ObjectStore({ client: s3(), bucket: environment.TURNSWEEP_BUCKET }));
const ledgerTable = once(() =>
  createDynamodbLedger({ client: new DynamoDBClient(), table: environment.TURNSWEEP_LEDGER_TABLE, clock }),
);
const stepFunctions = once(() => createStepFunctionsWorkflow({ client: new SFNClient() }));
const secretsManager = once(() =>
  createSecretsManagerSecrets({
    client: new SecretsManagerClient(),
    nameOf: (name: string) => secretResourceName(environment.TURNSWEEP_DEPLOYMENT, name),
    clock,
  }),
);
// The URL of a queue may name another host than an endpoint of one's own.
const sqs = once(() => new SQSClient({ useQueueUrlAsEndpoint: process.env.AWS_ENDPOINT_URL === undefined }));
const metrics = once(() => createEmfMetrics({ namespace: metricNamespace, clock }));
const log = once(() => createStructuredLog({ clock }));

/** The bucket as the stage's role sees it: a breach fails here first, with the key's name. */
const storeOf = (stage: StageName): ObjectStore => scopeObjectStore(bucket(), scopes[stage]);
/** Read anew whenever a client is made: that is when a rotated key is wanted. */
const keyOf = async (name: string | null): Promise<string | null> =>
  name === null ? null : secretsManager().refresh(name);

/** What planners need beside the bucket. */
export const planningPorts = {
  benchmarkOf,
  queueUrl: (queue: string): string => queueUrlOf(environment.TURNSWEEP_QUEUE_URL_PREFIX, queue),
};

/** For stages that write down when something happened. */
export const clockPort = { clock };

/** The job that empties the queue of a lane with its own GPUs. */
const workersOf = (run: string, lane: string): LaneWorkers | null => {
  const jobQueue = environment.TURNSWEEP_GPU_LANES?.[lane];
  if (jobQueue === undefined) return null;
  return {
    jobName: `${queueResourceName(laneQueue(lane))}-${run}`,
    jobQueue,
    jobDefinition: jobDefinitionName(environment.TURNSWEEP_DEPLOYMENT, lane),
  };
};
// A function, so that providers stay out of the bundles of stages that plan no sweep.
const sweepPlanningPorts = () => ({
  ...planningPorts,
  workersOf,
  clipFormsOf: (lane: LaneContract): ClipForms => providerOf(lane.provider, lane.id).clipForms(lane),
  clipsAtOnce,
});

/** Handler of a stage that Step Functions invokes. */
export const taskHandler = <Extra extends object, Result>(
  stage: StageName,
  create: (ports: { store: ObjectStore } & Extra) => (input: unknown) => Promise<Result>,
  extra?: Extra,
): ((input: unknown) => Promise<Result>) => create({ store: storeOf(stage), ...(extra as Extra) });

/** The planner of a sweep also sets what the run and its lanes may spend, before anything is asked. */
export const planSweepHandler = <Result>(
  create: (
    ports: { store: ObjectStore } & ReturnType<typeof sweepPlanningPorts>,
  ) => (input: unknown) => Promise<Result>,
): ((input: { run: string }) => Promise<Result>) => {
  const store = storeOf('plan-sweep');
  const plan = create({ store, ...sweepPlanningPorts() });
  return async (input) => {
    const { settings } = await loadRun(store, input.run);
    await openAccounts(ledgerTable(), settings);
    return plan(input);
  };
};

/** The stage that makes clips. Each look into a file and each conversion has less than half of the function's time. */
export const prepareMediaHandler = <Result>(
  create: (ports: { store: ObjectStore; tool: MediaTool }) => (input: unknown) => Promise<Result>,
): ((input: unknown) => Promise<Result>) =>
  create({
    store: storeOf('prepare-media'),
    tool: createFfmpegMediaTool({
      ffmpeg: process.env.TURNSWEEP_FFMPEG || null,
      remedy: 'run scripts/build-media-layer.sh and deploy again: the function has no layer with ffmpeg',
      deadlineSeconds: Math.floor(environment.TURNSWEEP_TIMEOUT_SECONDS * 0.45),
    }),
  });

/** The stage that starts sweeps: the state machine's name is its own affair. */
export const startSweepHandler = <Result>(
  create: (ports: {
    store: ObjectStore;
    workflow: Pick<Workflow, 'start'>;
    machine: string;
  }) => (input: unknown) => Promise<Result>,
): ((input: unknown) => Promise<Result>) =>
  create({
    store: storeOf('start-sweep'),
    workflow: stepFunctions(),
    machine: environment.TURNSWEEP_SWEEP_MACHINE ?? '',
  });

type Called = { status: string; kind: string | null };

const countCall = (lane: string, { kind }: Called): void => {
  metrics().put(
    { lane },
    { [metricNames.calls]: 1, [metricNames.throttledCalls]: kind === 'http_429' ? 1 : 0 },
  );
};

/** Deadline of a call: the function's own time is the outer limit. */
const callSeconds = (deadlineSeconds: number): number =>
  Math.min(deadlineSeconds, environment.TURNSWEEP_TIMEOUT_SECONDS - recordingMs / 1000);

/** Kept for a while, then made again; closed when its time is over. One message is at work at a time. */
const keptFor = <Made>(
  keptMs: number,
  make: (...names: string[]) => Promise<Made>,
  close: (made: Made) => unknown,
) => {
  const kept = new Map<string, { made: Promise<Made>; until: number }>();
  return {
    get: async (...names: string[]): Promise<Made> => {
      const key = names.join('/');
      const found = kept.get(key);
      if (found !== undefined && found.until > clock.monotonic()) return found.made;
      if (found !== undefined) found.made.then(close, () => {});
      const made = make(...names);
      kept.set(key, { made, until: clock.monotonic() + keptMs });
      made.catch(() => kept.delete(key));
      return made;
    },
    forget: (...names: string[]): void => {
      const key = names.join('/');
      const found = kept.get(key);
      kept.delete(key);
      found?.made.then(close, () => {});
    },
  };
};

/** Instances share no memory: how many there are is the mapping's affair, when nobody may call is in the ledger. */
const holdGate = (name: string): CallGate => createSharedHoldGate({ ledger: ledgerTable(), name, clock });

/** A lane as the generating stage needs it. */
interface LaneAtWork {
  contract: LaneContract;
  settings: LaneRunSettings;
  client: ModelClient;
  media: { forms: ClipForms; capabilities: Capabilities };
  gate?: CallGate;
  hasBudget: boolean;
}

/** `maxInFlight` messages are at work at a time, each with one call. */
const openLane = (store: ObjectStore, maxInFlight: number) => {
  const urlOf = createS3Presigner({ client: s3(), bucket: environment.TURNSWEEP_BUCKET });
  const clips = createClipSource({ store, urlOf, cacheBytes: clipCacheBytes });
  return async (run?: string, laneId?: string): Promise<LaneAtWork> => {
    const context = await loadRun(store, run!);
    const contract = context.contract.lanes.find((lane) => lane.id === laneId)!;
    const settings = laneOf(context.settings, laneId!);
    const recording = contract.recordingSha256;
    const recordingKey = recording && keys.benchmark.recording(context.contract.benchmark.id, recording);
    const client = createModelClient(
      { ...contract, maxInFlight },
      {
        apiKey: await keyOf(settings.apiKeyEnv),
        clips,
        recording: recordingKey
          ? { lines: () => store.lines(recordingKey), origin: `the recording of lane ${laneId}` }
          : null,
      },
    );
    const provider = providerOf(contract.provider, contract.id);
    return {
      contract,
      client,
      media: { forms: provider.clipForms(contract), capabilities: provider.capabilities(contract.model) },
      settings: { ...settings, deadlineSeconds: callSeconds(settings.deadlineSeconds) },
      hasBudget: context.settings.budgetMicroUsd !== null || settings.budgetMicroUsd !== null,
    };
  };
};

interface CallingPorts {
  store: ObjectStore;
  ledger: Ledger;
  clock: Clock;
  random: Random;
}

type CreateGenerateTurns = (
  ports: CallingPorts & {
    laneAtWork(run: string, lane: string): Promise<LaneAtWork>;
    hasTimeLeft(): boolean;
    signal?: AbortSignal;
    onCall(event: { run: string; lane: string } & Called): void;
  },
) => (message: GenerateTurnsMessage) => Promise<TurnOutcome>;

/**
 * The same stage for a worker that empties a lane's queue itself, many messages at once. `handBack` breaks off what
 * is at work: its messages go to another worker.
 */
export const turnsWorker = (
  create: CreateGenerateTurns,
  options: {
    queueUrl: string;
    maxInFlight: number;
    hiddenSeconds: number;
    hasTimeLeft(): boolean;
    handBack: AbortSignal;
  },
): {
  queue: StageQueue;
  stage: (event: QueueEvent) => Promise<BatchResponse>;
  clock: Clock;
  log: StructuredLog;
} => {
  const { handBack, hasTimeLeft } = options;
  const store = storeOf('generate-turns');
  // Not closed: calls may be in flight, and idle connections close by themselves.
  const lanes = keptFor(settingsKeptMs, openLane(store, options.maxInFlight), () => {});
  const core = create({
    store,
    ledger: ledgerTable(),
    clock,
    random,
    laneAtWork: (run, lane) => lanes.get(run, lane),
    hasTimeLeft,
    signal: handBack,
    onCall: ({ run, lane, ...called }) => countCall(lane, called),
  });
  const stage = createQueueStage({
    stage: 'generate-turns',
    schema: generateTurnsMessage,
    core: async (message) => {
      const outcome = await core(message);
      await noteBudget(message.run);
      return outcome;
    },
    workflow: stepFunctions(),
    ledger: ledgerTable(),
    visibilitySeconds: options.hiddenSeconds,
    renewal: clock,
    handBack,
    maxReceiveCount: environment.TURNSWEEP_MAX_RECEIVE_COUNT,
    onError: (error, { messageId, receiveCount }) =>
      log().error('delivery-failed', { stage: 'generate-turns', messageId, receiveCount }, error),
  });
  return {
    queue: createSqsStageQueue({ client: sqs(), queueUrl: options.queueUrl }),
    stage,
    clock,
    log: log(),
  };
};

/** Handler of the stage that calls evaluated models. */
export const generateTurnsHandler = (create: CreateGenerateTurns): DeliveryHandler => {
  const store = storeOf('generate-turns');
  const lanes = keptFor(settingsKeptMs, openLane(store, 1), (lane) => lane.client.close());
  let invocation: Invocation | null = null;
  let deadlineSeconds = 0;
  const core = create({
    store,
    ledger: ledgerTable(),
    clock,
    random,
    laneAtWork: async (run, lane) => {
      const atWork = await lanes.get(run, lane);
      deadlineSeconds = atWork.settings.deadlineSeconds;
      return { ...atWork, gate: holdGate(laneAccount(run, lane)) };
    },
    hasTimeLeft: () =>
      invocation !== null && invocation.getRemainingTimeInMillis() > deadlineSeconds * 1000 + recordingMs,
    onCall: ({ run, lane, ...called }) => {
      countCall(lane, called);
      // The key may have been changed since this function has read it.
      if (called.kind === 'http_401') lanes.forget(run, lane);
    },
  });
  const stage = queueHandler('generate-turns', generateTurnsMessage, async (message) => {
    const outcome = await core(message);
    await noteBudget(message.run);
    return outcome;
  });
  return (event, context) => {
    invocation = context;
    return stage(event, context);
  };
};

/** Handler of the stage that calls the judge. It knows nothing of the run but its judge. */
export const judgeAnswersHandler = (
  create: (
    ports: CallingPorts & {
      judgeAtWork(run: string): Promise<JudgeAtWork>;
      onCall(event: { run: string } & Called): void;
    },
  ) => (message: JudgeAnswersMessage) => Promise<unknown>,
): DeliveryHandler => {
  const store = storeOf('judge-answers');
  const judges = keptFor(settingsKeptMs, openJudge(store), (judge) => judge.caller.close());
  const ports = {
    store,
    ledger: ledgerTable(),
    clock,
    random,
    judgeAtWork: (run: string) => judges.get(run),
    onCall: ({ run, ...called }: { run: string } & Called) => {
      countCall(judgeDimension, called);
      if (called.kind === 'http_401') judges.forget(run);
    },
  };
  // Anew for each message: what stopped the judge of one run must not stop that of the next.
  return queueHandler('judge-answers', judgeAnswersMessage, (message) => create(ports)(message));
};

interface JudgeAtWork {
  judge: string;
  settings: JudgeSettings;
  caller: ChatCaller;
  protocol: JudgeProtocol;
  gate?: CallGate;
  hasBudget: boolean;
}

const readAssignment = async (store: ObjectStore, run: string): Promise<JudgeAssignment> => {
  const key = keys.judging.judge(run);
  const assignment = await readStored(store, key, judgeAssignment);
  if (assignment === null) throw objectDamaged(key, 'it is gone');
  return assignment;
};

const openJudge =
  (store: ObjectStore) =>
  async (run?: string): Promise<JudgeAtWork> => {
    const assignment = await readAssignment(store, run!);
    const { settings } = assignment;
    return {
      judge: assignment.judge,
      settings: { ...settings, deadlineSeconds: callSeconds(settings.deadlineSeconds) },
      caller: createChatCallerFor({ ...settings, maxInFlight: 1 }, await keyOf(settings.apiKeyEnv)),
      gate: holdGate(judgeAccount(run!)),
      protocol: benchmarkOf(assignment.benchmarkKind).judge(assignment.prompts),
      // Whether the run has a limit is not for this stage to read; the ledger knows, and says yes where it has none.
      hasBudget: true,
    };
  };

/** Handler of a stage that talks to the judge's batch interface. It knows as little as the one that calls the judge. */
export const judgeBatchHandler = <Result>(
  stage: StageName,
  create: (ports: JudgeBatchPorts) => (input: unknown) => Promise<Result>,
): ((input: unknown) => Promise<Result>) => {
  const store = storeOf(stage);
  const openBatch = async (run: string): Promise<JudgeBatchAtWork> => {
    const { judge, settings, benchmarkKind, prompts } = await readAssignment(store, run);
    const batch = createChatBatchFor(settings, await keyOf(settings.apiKeyEnv));
    const protocol = benchmarkOf(benchmarkKind).judge(prompts);
    return { judge, settings, batch, protocol, hasBudget: true };
  };
  return async (input) => {
    // Anew each time: these stages are called once in minutes, and a changed key is wanted.
    let opened: Promise<JudgeBatchAtWork> | null = null;
    const core = create({
      store,
      ledger: ledgerTable(),
      clock,
      random,
      judgeBatchAtWork: (run) => {
        opened ??= openBatch(run);
        return opened;
      },
      onCall: ({ run: _, ...called }) => countCall(judgeDimension, called),
    });
    try {
      return await core(input);
    } finally {
      await (opened as Promise<JudgeBatchAtWork> | null)?.then(({ batch }) => batch.close());
    }
  };
};

/** The share of the run's money that is spent or reserved, for the alarm that comes before the end. */
const noteBudget = async (run: string): Promise<void> => {
  const { spentMicroUsd, reservedMicroUsd, limitMicroUsd } = await ledgerTable().balance(runAccount(run));
  if (limitMicroUsd === null || limitMicroUsd === 0) return;
  const percent = (100 * (spentMicroUsd + reservedMicroUsd)) / limitMicroUsd;
  metrics().put({ stage: 'generate-turns' }, { [metricNames.budgetUsedPercent]: percent });
};

export type DeliveryHandler = (event: DeliveredEvent, context: Invocation) => Promise<BatchResponse>;

/** A queue stage whose messages come back soon after an exception, and only late after a crash. */
const queueHandler = <Message extends { taskToken: string; run: string }>(
  stage: StageName,
  schema: z.ZodType<Message>,
  core: (message: Message) => Promise<unknown>,
): DeliveryHandler => {
  const returnSeconds = environment.TURNSWEEP_RETURN_SECONDS;
  const failed = new Map<string, number>();
  const handle = createQueueStage({
    stage,
    schema,
    core,
    workflow: stepFunctions(),
    ledger: ledgerTable(),
    // After that the function that took the lease is certainly gone.
    visibilitySeconds: environment.TURNSWEEP_TIMEOUT_SECONDS,
    maxReceiveCount: environment.TURNSWEEP_MAX_RECEIVE_COUNT,
    onError: (error, { messageId, receiveCount }) => {
      log().error('delivery-failed', { stage, messageId, receiveCount }, error);
      failed.set(messageId, receiveCount);
    },
  });
  return async (event) => {
    failed.clear();
    const response = await handle(event);
    for (const { messageId, receiptHandle, eventSourceARN } of event.Records) {
      const receiveCount = failed.get(messageId);
      if (receiveCount === undefined) continue;
      const seconds = returnSeconds[Math.min(receiveCount, returnSeconds.length) - 1]!;
      await createSqsStageQueue({ client: sqs(), queueUrl: urlOfArn(eventSourceARN) }).extend(
        receiptHandle,
        seconds,
      );
    }
    return response;
  };
};

const urlOfArn = (arn: string): string =>
  `${environment.TURNSWEEP_QUEUE_URL_PREFIX}${arn.split(':').at(-1)!.slice(deployedName(environment.TURNSWEEP_DEPLOYMENT, '').length)}`;
