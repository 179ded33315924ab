import { z } from 'zod';

const counts = z.strictObject({ audio: z.number().int(), video: z.number().int() });
const tokens = z.number().int().nonnegative().nullable();

export const usage = z.strictObject({
  inputTokens: tokens,
  outputTokens: tokens,
  cachedInputTokens: tokens,
  reasoningTokens: tokens,
  audioInputTokens: tokens,
  videoInputTokens: tokens,
  /** Absent in records of earlier versions. */
  imageInputTokens: tokens.default(null),
  textInputTokens: tokens,
});

/** One call, successful or not. Money and tokens of every call are kept, also of those that failed. */
export const attempt = z.strictObject({
  attempt: z.number().int().positive(),
  timeUtc: z.string(),
  maxTokens: z.number().int(),
  httpStatus: z.number().int().nullable(),
  responseId: z.string().nullable(),
  /** Null on success. */
  kind: z.string().nullable(),
  message: z.string().nullable(),
  elapsedSeconds: z.number(),
  usage,
  costMicroUsd: z.number().nullable(),
});
export type Attempt = z.infer<typeof attempt>;

/** The reply to a request. Written once, never replaced. */
export const requestRecord = z.strictObject({
  v: z.literal(1),
  requestId: z.string(),
  rawText: z.string().min(1),
  finishReason: z.string().nullable(),
  provider: z.string(),
  model: z.string(),
  servedModel: z.string().nullable(),
  decodeMaxTokens: z.number().int(),
  offered: counts,
  consumed: counts,
  userTurns: z.number().int(),
  /** Ids of the requests whose replies stand in the history, in order. */
  history: z.array(z.string()),
  /** Hash of exactly what was shown, media by content. */
  promptSha256: z.string(),
  /** How the system prompt was sent; left out for requests without one. */
  systemPromptDelivery: z.enum(['native', 'folded']).optional(),
  attempts: z.array(attempt).min(1),
});
export type RequestRecord = z.infer<typeof requestRecord>;

/** Why a request has no reply. Never scored, never shown to a model. */
export const failureRecord = z.strictObject({
  v: z.literal(1),
  requestId: z.string(),
  status: z.enum(['error', 'blocked']),
  kind: z.string(),
  message: z.string(),
  /** For `blocked`: the request whose failure is the cause. */
  blockedBy: z.string().nullable(),
  /** Provider refusals are never asked again, other errors when the user asks for it. */
  refusal: z.boolean(),
  attempts: z.array(attempt),
});
export type FailureRecord = z.infer<typeof failureRecord>;

export const attemptLog = z.strictObject({
  v: z.literal(1),
  requestId: z.string(),
  attempts: z.array(attempt),
  /** So many of the first attempts do not count against the limit: errors asked again, calls of a stopped lane. */
  forgiven: z.number().int().nonnegative().default(0),
});
export type AttemptLog = z.infer<typeof attemptLog>;

export const viewRow = z.strictObject({
  viewId: z.string(),
  taskId: z.string(),
  interface: z.string(),
  /** `open`: neither replied nor failed (budget, stopped lane, interruption). */
  outcome: z.enum(['done', 'excluded', 'open']),
  reason: z.string().nullable(),
  /** The request that decided it. */
  requestId: z.string().nullable(),
});
export type ViewRow = z.infer<typeof viewRow>;
