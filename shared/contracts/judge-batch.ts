import { z } from 'zod';

/**
 * A provider batch of judge chunks, from before it was submitted until its results are booked.
 *
 * - `submitting`: written before anything is sent; whether the provider has it shows by its tag.
 * - `open`: the provider works on it, or has results that nobody has fetched.
 * - `collected`: every chunk has its attempt and, where it was judged, its reviews.
 * - `void`: the provider has never made it.
 */
export const judgeBatch = z.strictObject({
  v: z.literal(1),
  state: z.enum(['submitting', 'open', 'collected', 'void']),
  tag: z.string(),
  /** Under this name the reviews are stored. */
  judge: z.string(),
  /** The provider's id; null until it is known. */
  batchId: z.string().nullable(),
  submittedUtc: z.string(),
  /** The most that it can cost, in millionths of a dollar: booked while it is open. */
  mostMicroUsd: z.number().nonnegative(),
  /** Why it failed as a whole, where it did. */
  kind: z.string().nullable(),
  chunks: z
    .array(
      z.strictObject({
        chunkId: z.string(),
        /** Number of this attempt in the chunk's log. */
        attempt: z.number().int().positive(),
        /** Null until collected; `failed` is not asked again in the same start. */
        outcome: z.enum(['done', 'retry', 'failed']).nullable(),
      }),
    )
    .min(1),
});
export type JudgeBatch = z.infer<typeof judgeBatch>;
