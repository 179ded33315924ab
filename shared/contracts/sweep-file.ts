import { z } from 'zod';
import { channels, lanePrice, laneSettings } from './run.ts';

/** The sweep file as people write it. Unknown keys are errors; defaults stand here and nowhere else. */

export const providers = [
  'openai',
  'openai-compatible',
  'dashscope',
  'ark',
  'stepfun',
  'gemini',
  'bedrock',
  'vllm',
  'sglang',
  'llamacpp',
  'recorded',
] as const;

const backoff = z
  .strictObject({
    baseSeconds: z.number().nonnegative().default(1),
    maxSeconds: z.number().nonnegative().default(60),
  })
  .default({ baseSeconds: 1, maxSeconds: 60 });

const budget = z.strictObject({ usd: z.number().positive() });

const lane = z.strictObject({
  id: z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, 'use letters, digits, dots, dashes and underscores (at most 64)'),
  displayName: z.string().min(1).optional(),
  family: z.enum(['Omni', 'LVLM', 'LALM']).optional(),
  modalities: channels,
  provider: z.enum(providers),
  model: z.string().min(1),
  baseUrl: z.url({ protocol: /^https?$/ }).optional(),
  apiKeyEnv: z.string().min(1).optional(),
  recording: z.string().min(1).optional(),
  maxTokens: z.number().int().positive().default(1024),
  retryMaxTokens: z.number().int().positive().optional(),
  attempts: z.number().int().positive().max(20).default(5),
  maxInFlight: z.number().int().positive().max(10_000).default(8),
  deadlineSeconds: z.number().positive().default(600),
  backoff,
  settings: laneSettings.default({}),
  price: lanePrice.optional(),
  budget: budget.optional(),
});

const judge = z.strictObject({
  provider: z.enum(['openai', 'openai-compatible', 'vllm', 'sglang', 'llamacpp']),
  model: z.string().min(1),
  baseUrl: z.url({ protocol: /^https?$/ }).optional(),
  apiKeyEnv: z.string().min(1).optional(),
  reasoningEffort: z.string().min(1).optional(),
  itemsPerRequest: z.number().int().min(1).max(20).default(20),
  maxTokens: z.number().int().positive().default(8192),
  attempts: z.number().int().positive().max(20).default(5),
  maxInFlight: z.number().int().positive().max(1000).default(4),
  deadlineSeconds: z.number().positive().default(600),
  backoff,
  price: lanePrice.optional(),
  reviewCache: z.array(z.string().min(1)).default([]),
});

export const sweepFile = z.strictObject({
  name: z.string().min(1).max(80),
  benchmark: z.strictObject({
    kind: z.enum(['return']),
    release: z.string().min(1),
    manifest: z.string().min(1).optional(),
    verifyMedia: z.boolean().default(true),
    reuseIdenticalRequests: z.literal(false).default(false),
  }),
  interfaces: z.array(z.string()).min(1).optional(),
  models: z.array(lane).min(1),
  judge: judge.optional(),
  budget: budget.optional(),
  seed: z.number().int().nonnegative().default(53126),
});
export type SweepFile = z.infer<typeof sweepFile>;
