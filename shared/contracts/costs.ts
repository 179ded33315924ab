import { z } from 'zod';

/** Calls, tokens and money of one phase of one lane. Null: at least one call's figure is unknown. */
export const costTally = z.strictObject({
  lane: z.string(),
  phase: z.enum(['generate', 'judge']),
  calls: z.number().int(),
  /**
   * Needs that were served without a call: by the reply to another view, or in judging by a verdict that was there
   * (of another run, imported, or on the same answer in another place). They cost nothing.
   */
  reused: z.number().int(),
  retries: z.record(z.string(), z.number().int()),
  inputTokens: z.number().int().nullable(),
  outputTokens: z.number().int().nullable(),
  cachedInputTokens: z.number().int().nullable(),
  reasoningTokens: z.number().int().nullable(),
  audioInputTokens: z.number().int().nullable(),
  videoInputTokens: z.number().int().nullable(),
  imageInputTokens: z.number().int().nullable().default(null),
  textInputTokens: z.number().int().nullable().default(null),
  costMicroUsd: z.number().nullable(),
  /** Failed calls that may have been charged but came without token counts: missing from tokens and cost. */
  unmeteredCalls: z.number().int(),
  /** Sum of the calls whose cost is known, and how many others were made: what `costMicroUsd` is at the least. */
  knownCostMicroUsd: z.number().default(0),
  unpricedCalls: z.number().int().default(0),
  /** What the reused replies cost when they were made, had each need been a call of its own. */
  avoidedMicroUsd: z.number().nullable().default(null),
});
export type CostTally = z.infer<typeof costTally>;
