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
});

export const lanePrice = z.strictObject({
  inputPerMTok: z.number().nonnegative(),
  outputPerMTok: z.number().nonnegative(),
  cachedInputPerMTok: z.number().nonnegative().optional(),
});

/** The part of a lane that makes its replies what they are: part of the run contract. */
export const laneContract = z.strictObject({
  id: z.string(),
  provider: z.string(),
  model: z.string(),
  baseUrl: z.string().nullable(),
  recordingSha256: z.string().nullable(),
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
  deadlineSeconds: z.number().positive(),
  backoff,
  price: lanePrice.nullable(),
});
export type JudgeSettings = z.infer<typeof judgeSettings>;

/** What the judging stage is told: nothing of lanes, conditions or tasks. */
export const judgeAssignment = z.strictObject({
  v: z.literal(1),
  benchmarkKind: z.string(),
  judge: z.string(),
  settings: judgeSettings,
});
export type JudgeAssignment = z.infer<typeof judgeAssignment>;

/** The part of a run that may change between attempts without touching any reply. */
export const runSettings = z.strictObject({
  v: z.literal(1),
  run: z.string(),
  seed: z.number().int(),
  taskIds: z.array(z.string()),
  budgetMicroUsd: z.number().int().nonnegative().nullable(),
  lanes: z.array(
    z.strictObject({
      id: z.string(),
      displayName: z.string(),
      family: z.string().nullable(),
      apiKeyEnv: z.string().nullable(),
      attempts: z.number().int().positive(),
      maxInFlight: z.number().int().positive(),
      deadlineSeconds: z.number().positive(),
      backoff,
      price: lanePrice.nullable(),
      budgetMicroUsd: z.number().int().nonnegative().nullable(),
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
