import { z } from 'zod';

/** What the planner, the workers and the reports read about a run. */

export const channels = z.array(z.enum(['V', 'A'])).min(1);

export const laneSettings = z.strictObject({
  temperature: z.number().optional(),
  topP: z.number().optional(),
  seed: z.number().int().optional(),
  reasoningEffort: z.string().optional(),
  thinking: z.boolean().optional(),
  stream: z.boolean().optional(),
  fps: z.number().positive().optional(),
  videoMaxSide: z.number().int().positive().optional(),
  /** How the benchmark's system prompt is sent; left out: as a turn of its own where the provider has such. */
  systemPrompt: z.enum(['native', 'folded']).optional(),
});

const rate = z.number().nonnegative();

/** A price as people write it; see `Rates` for what is left out. */
export const sweepPrice = z.strictObject({
  inputPerMTok: rate,
  outputPerMTok: rate,
  cachedInputPerMTok: rate.optional(),
  audioInputPerMTok: rate.optional(),
  imageInputPerMTok: rate.optional(),
  videoInputPerMTok: rate.optional(),
  outputAfterMediaPerMTok: rate.optional(),
  batchMultiplier: rate.max(1).optional(),
});

const rates = {
  inputPerMTok: rate.nullable(),
  outputPerMTok: rate.nullable(),
  cachedInputPerMTok: rate.nullable().optional(),
  audioInputPerMTok: rate.nullable().optional(),
  imageInputPerMTok: rate.nullable().optional(),
  videoInputPerMTok: rate.nullable().optional(),
  outputAfterMediaPerMTok: rate.nullable().optional(),
};

const priceList = {
  ...rates,
  tiers: z.array(z.strictObject({ aboveInputTokens: z.number().int(), ...rates })).optional(),
  batchMultiplier: rate.nullable().optional(),
};

/** A price as a run was planned with it: from the sweep file, or from the price book. */
export const lanePrice = z.strictObject({
  ...priceList,
  changes: z.array(z.strictObject({ from: z.string(), ...priceList })).optional(),
  source: z.string().optional(),
  seen: z.string().optional(),
  note: z.string().optional(),
});

/** What a lane was expected to use and cost at the most, before its first call. */
export const laneProjection = z.strictObject({
  /** Prompt tokens of all requests, with clips and with every reply in a history at the lane's first cap. */
  promptTokens: z.number().int(),
  /** Those of the prompt tokens that are clips. */
  mediaTokens: z.number().int(),
  /** Every reply at the first cap. */
  replyTokens: z.number().int(),
  /** Null where the price is not known. */
  costMicroUsd: z.number().nullable(),
  /** What the figures rest on where no rule of the provider tells. */
  assumptions: z.array(z.string()),
});
export type LaneProjection = z.infer<typeof laneProjection>;

/** What a provider allows in a minute, to a model or to an account. */
export const rateLimits = z.strictObject({
  requestsPerMinute: z.number().positive().optional(),
  /** Prompts and replies together. */
  tokensPerMinute: z.number().positive().optional(),
});

/** The part of a lane that makes its replies what they are: part of the run contract. */
export const laneContract = z.strictObject({
  id: z.string(),
  provider: z.string(),
  model: z.string(),
  baseUrl: z.string().nullable(),
  recordingSha256: z.string().nullable(),
  /** What every request is answered with; left out where replies come from elsewhere. */
  reply: z.string().optional(),
  modalities: channels,
  maxTokens: z.number().int().positive(),
  retryMaxTokens: z.number().int().positive().nullable(),
  settings: laneSettings,
});
export type LaneContract = z.infer<typeof laneContract>;

/** Changing any of this makes another run (return-protocol §4.4). */
export const runContract = z.strictObject({
  v: z.literal(1),
  name: z.string(),
  benchmark: z.strictObject({
    kind: z.string(),
    /** Content address of inputs and answers. */
    id: z.string(),
    interfaces: z.array(z.string()).min(1),
    taskCount: z.number().int(),
    taskIdsSha256: z.string(),
    /** Hash of the media manifest's rows that the selection needs; null where media were not verified. */
    mediaSha256: z.string().nullable(),
    /** Hash of each text that shapes the requests; left out where the benchmark has none. */
    promptsSha256: z.record(z.string(), z.string()).optional(),
  }),
  lanes: z.array(laneContract).min(1),
  reuseIdenticalRequests: z.boolean(),
});
export type RunContract = z.infer<typeof runContract>;

export const storedContract = z.strictObject({ hash: z.string(), contract: runContract });

const backoff = z.strictObject({
  baseSeconds: z.number().nonnegative(),
  maxSeconds: z.number().nonnegative(),
});

/** How a judge works through its provider's batch interface. */
export const batchSettings = z.strictObject({
  /** Wait before the first look at a batch, growing to the longest. */
  poll: backoff,
});
export type BatchSettings = z.infer<typeof batchSettings>;

export const judgeSettings = z.strictObject({
  provider: z.string(),
  model: z.string(),
  baseUrl: z.string().nullable(),
  apiKeyEnv: z.string().nullable(),
  reasoningEffort: z.string().nullable(),
  itemsPerRequest: z.number().int().positive(),
  maxTokens: z.number().int().positive(),
  attempts: z.number().int().positive(),
  maxInFlight: z.number().int().positive(),
  limits: rateLimits.optional(),
  deadlineSeconds: z.number().positive(),
  backoff,
  price: lanePrice.nullable(),
  /** Null: one call for each chunk. Absent in settings of earlier versions. */
  batch: batchSettings.nullable().default(null),
});
export type JudgeSettings = z.infer<typeof judgeSettings>;

/** What the judging stage is told: nothing of lanes, conditions or tasks. */
export const judgeAssignment = z.strictObject({
  v: z.literal(1),
  benchmarkKind: z.string(),
  judge: z.string(),
  /** Texts of the benchmark that its judge is asked with. Absent in runs of earlier versions. */
  prompts: z.record(z.string(), z.string()).default({}),
  settings: judgeSettings,
});
export type JudgeAssignment = z.infer<typeof judgeAssignment>;

/** The part of a run that may change between attempts without touching any reply. */
export const runSettings = z.strictObject({
  v: z.literal(1),
  run: z.string(),
  seed: z.number().int(),
  taskIds: z.array(z.string()),
  /** The sweep's options of the benchmark, and its texts by name. Absent in settings of earlier versions. */
  options: z.record(z.string(), z.unknown()).default({}),
  prompts: z.record(z.string(), z.string()).default({}),
  budgetMicroUsd: z.number().int().nonnegative().nullable(),
  lanes: z.array(
    z.strictObject({
      id: z.string(),
      displayName: z.string(),
      family: z.string().nullable(),
      apiKeyEnv: z.string().nullable(),
      attempts: z.number().int().positive(),
      maxInFlight: z.number().int().positive(),
      limits: rateLimits.optional(),
      deadlineSeconds: z.number().positive(),
      backoff,
      price: lanePrice.nullable(),
      budgetMicroUsd: z.number().int().nonnegative().nullable(),
      /** Most tokens of one clip, for reservations; absent in settings of earlier versions. */
      clipTokensAtMost: z.strictObject({ audio: z.number().int(), video: z.number().int() }).optional(),
      projection: laneProjection.optional(),
    }),
  ),
  judge: judgeSettings.nullable(),
});
export type RunSettings = z.infer<typeof runSettings>;
export type LaneRunSettings = RunSettings['lanes'][number];

export const laneOf = (settings: RunSettings, lane: string): LaneRunSettings => {
  const found = settings.lanes.find((candidate) => candidate.id === lane);
  if (!found) throw new Error(`no lane ${lane} in run ${settings.run}`);
  return found;
};
