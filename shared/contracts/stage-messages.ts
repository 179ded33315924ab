import { z } from 'zod';

/** Bodies of queue messages and results that travel through the state machines: keys and counters only. */

export const generateTurnsMessage = z.strictObject({
  v: z.literal(1),
  taskToken: z.string(),
  run: z.string(),
  lane: z.string(),
  groupId: z.string(),
  viewId: z.string(),
  /** `raised` once a reply was cut at the first token cap. */
  cap: z.enum(['first', 'raised']),
});
export type GenerateTurnsMessage = z.infer<typeof generateTurnsMessage>;

export const turnOutcome = z.strictObject({
  status: z.enum(['done', 'continue', 'length', 'retry', 'refused', 'failed', 'budget', 'stopped']),
  /** The request that the outcome is about; null for `done`. */
  requestId: z.string().nullable(),
  /** Error kind where there is one. */
  kind: z.string().nullable(),
  cap: z.enum(['first', 'raised']),
  /** Attempts that this request has had, over all deliveries and resumed runs. */
  attempt: z.number().int().nonnegative(),
  waitSeconds: z.number().int().nonnegative(),
  /** Set with `done`: what the view came to. */
  view: z
    .strictObject({
      viewId: z.string(),
      outcome: z.enum(['done', 'excluded']),
      reason: z.string().nullable(),
    })
    .nullable(),
});
export type TurnOutcome = z.infer<typeof turnOutcome>;

/** The whole state of a view, of which the stage needs this much. */
export const excludeRequestInput = z.looseObject({
  run: z.string(),
  lane: z.string(),
  groupId: z.string(),
  viewId: z.string(),
  turn: z.looseObject({
    status: z.string().optional(),
    requestId: z.string().nullable().optional(),
    kind: z.string().nullable().optional(),
  }),
  /** Filled by the state machine where the worker itself was lost. */
  error: z.looseObject({ Error: z.string().optional(), Cause: z.string().optional() }),
});
export type ExcludeRequestInput = z.infer<typeof excludeRequestInput>;

export const judgeAnswersMessage = z.strictObject({
  v: z.literal(1),
  taskToken: z.string(),
  run: z.string(),
  chunkId: z.string(),
  /** Attempts that an earlier start of the judging spent on this chunk. */
  attemptsBefore: z.number().int().nonnegative(),
});
export type JudgeAnswersMessage = z.infer<typeof judgeAnswersMessage>;

export const judgeOutcome = z.strictObject({
  status: z.enum(['done', 'retry', 'failed', 'stopped', 'budget']),
  chunkId: z.string(),
  kind: z.string().nullable(),
  attempt: z.number().int().nonnegative(),
  waitSeconds: z.number().int().nonnegative(),
});
export type JudgeOutcome = z.infer<typeof judgeOutcome>;

export const planSweepInput = z.strictObject({
  run: z.string(),
  retryErrors: z.boolean(),
});

/** The Batch job that empties the queue of a lane with its own GPUs. */
export const laneWorkers = z.strictObject({
  jobName: z.string(),
  jobQueue: z.string(),
  jobDefinition: z.string(),
});
export type LaneWorkers = z.infer<typeof laneWorkers>;

export const stopLaneInput = z.strictObject({
  run: z.string(),
  lane: z.string(),
  error: z.looseObject({ Error: z.string(), Cause: z.string().optional() }),
});

export const planSweepResult = z.strictObject({
  run: z.string(),
  /** Clips to make before the lanes begin. */
  media: z.strictObject({
    pending: z.number().int().nonnegative(),
    pendingKey: z.string(),
    resultsPrefix: z.string(),
    maxConcurrency: z.number().int().positive(),
  }),
  lanes: z.array(
    z.strictObject({
      run: z.string(),
      lane: z.string(),
      pendingKey: z.string(),
      resultsPrefix: z.string(),
      queueUrl: z.string(),
      maxConcurrency: z.number().int().positive(),
      toleratedFailures: z.number().int().nonnegative(),
      limits: z.strictObject({ attempts: z.number().int(), hasRaisedCap: z.boolean() }),
      /** Null for lanes whose queue somebody empties all the time. */
      workers: laneWorkers.nullable(),
    }),
  ),
});
export type PlanSweepResult = z.infer<typeof planSweepResult>;

export const judgingRound = z.union([z.literal(1), z.literal(2)]);

export const planJudgingInput = z.strictObject({
  run: z.string(),
  /** False: score by rules and stored reviews only. */
  judge: z.boolean(),
  /** Round 2 asks about what the verdicts of round 1 give rise to. */
  round: judgingRound.default(1),
});

export const planJudgingResult = z.strictObject({
  run: z.string(),
  round: judgingRound,
  /** A round comes after this one. */
  hasNextRound: z.boolean(),
  chunks: z.number().int().nonnegative(),
  chunksKey: z.string(),
  resultsPrefix: z.string(),
  queueUrl: z.string(),
  maxConcurrency: z.number().int().positive(),
  limits: z.strictObject({ attempts: z.number().int() }),
  /**
   * `none`: each chunk is a call. `submit`: chunks go to the provider as a batch. `await`: a batch of an earlier start
   * is open, and only what it leaves is planned.
   */
  batch: z.enum(['none', 'submit', 'await']),
});
export type PlanJudgingResult = z.infer<typeof planJudgingResult>;

/** `polls` looks at the open batches so far, `tries` faults of the provider in a row. */
export const judgeBatchInput = z.strictObject({
  run: z.string(),
  polls: z.number().int().nonnegative(),
  tries: z.number().int().nonnegative(),
});

/**
 * - `waiting`: a batch is open; look at it after `waitSeconds`.
 * - `collected`: none is open any more; submit what is left.
 * - `retry`: nothing could be submitted, for a reason that may pass.
 * - `done`: no chunk is left that may be asked about.
 * - `budget`: the money left has no room for a single chunk.
 * - `stopped`: the judge cannot go on.
 */
export const judgeBatchOutcome = z.strictObject({
  status: z.enum(['waiting', 'collected', 'retry', 'done', 'budget', 'stopped']),
  kind: z.string().nullable(),
  waitSeconds: z.number().int().nonnegative(),
  polls: z.number().int().nonnegative(),
  tries: z.number().int().nonnegative(),
});
export type JudgeBatchOutcome = z.infer<typeof judgeBatchOutcome>;
