import { z } from 'zod';

/** Calls, tokens and money of one phase of one lane. Null: at least one call's figure is unknown. */
export const costTally = z.strictObject({
  lane: z.string(),
  phase: z.enum(['generate', 'judge']),
  calls: z.number().int(),
  /** Needs of views that a reply made for another view served: calls that were not paid. */
  reused: z.number().int(),
  retries: z.record(z.string(), z.number().int()),
  inputTokens: z.number().int().nullable(),
  outputTokens: z.number().int().nullable(),
  cachedInputTokens: z.number().int().nullable(),
  reasoningTokens: z.number().int().nullable(),
  audioInputTokens: z.number().int().nullable(),
  videoInputTokens: z.number().int().nullable(),
  imageInputTokens: z.number().int().nullable().default(null),
  costMicroUsd: z.number().nullable(),
  /** Failed calls that may have been charged but came without token counts: missing from tokens and cost. */
  unmeteredCalls: z.number().int(),
});
export type CostTally = z.infer<typeof costTally>;
