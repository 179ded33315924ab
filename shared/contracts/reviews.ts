import { z } from 'zod';

/**
 * One distinct answer to judge; what it holds is the benchmark's affair. Holds nothing that tells model, condition or
 * task.
 */
export const reviewItem = z.looseObject({
  /** sha256 of what is judged: equal items, equal keys, whoever answered. */
  key: z.string(),
});
export type ReviewItem = z.infer<typeof reviewItem>;

export const judgeChunk = z.strictObject({
  v: z.literal(1),
  chunkId: z.string(),
  items: z.array(reviewItem).min(1),
});
export type JudgeChunk = z.infer<typeof judgeChunk>;

/** A chunk that this start of the judging is to settle, as `chunks.jsonl` lists them. */
export const openChunk = z.strictObject({
  chunkId: z.string(),
  /** Attempts of earlier starts: they do not count against the limit. */
  attemptsBefore: z.number().int().nonnegative(),
});
export type OpenChunk = z.infer<typeof openChunk>;

/** An item's verdict in the benchmark's own words, and whose it is. */
export const review = z.looseObject({
  v: z.literal(1),
  key: z.string(),
  judge: z.string(),
});
export type Review = z.infer<typeof review>;
