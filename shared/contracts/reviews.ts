import { z } from 'zod';

/** One distinct answer to judge. Holds nothing that tells model, condition or task. */
export const reviewItem = z.strictObject({
  /** sha256 of the review identity. */
  key: z.string(),
  question: z.string(),
  gold: z.string(),
  aliases: z.array(z.string()),
  options: z.array(z.string()),
  candidate: z.string(),
  answerType: z.string(),
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

export const review = z.strictObject({
  v: z.literal(1),
  key: z.string(),
  verdict: z.enum(['equivalent', 'incorrect', 'uncertain']),
  formatCompliant: z.boolean(),
  reason: z.string(),
  judge: z.string(),
});
export type Review = z.infer<typeof review>;
