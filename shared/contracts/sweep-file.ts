import { z } from 'zod';
import { channels, laneSettings, rateLimits, sweepPrice } from './run.ts';

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
  'fixed-reply',
] as const;

export const benchmarkKinds = ['return', 'voxmem'] as const;

/** Text that may be shown on a terminal and put into a report as it is. */
const plainText = z
  .string()
  .min(1)
  .regex(/^[^\p{Cc}\p{Cf}\p{Zl}\p{Zp}]*$/u, 'must not hold control or invisible characters');

const baseUrl = z
  .url({ protocol: /^https?$/, error: 'must be an http or https address such as https://host/v1' })
  .refine((address) => !/^https?:\/*[^/?#]*@/i.test(address), {
    error: 'must not carry a user name or password; name the variable of the key in "apiKeyEnv"',
  });

const apiKeyEnv = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'must be the name of an environment variable, not the key itself');

/** Lanes are folders beside files of these names. */
const isFileOfTheRun = (id: string): boolean => /^groups$|\.(json|jsonl|csv|html)$/i.test(id);

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
    .regex(
      /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/,
      'must consist of letters, digits, dots, dashes and underscores (at most 64, the first a letter or digit)',
    )
    .refine((id) => !isFileOfTheRun(id), { error: 'must not be the name of a file of the run' }),
  displayName: plainText.optional(),
  family: z.enum(['Omni', 'LVLM', 'LALM']).optional(),
  modalities: channels,
  provider: z.enum(providers),
  model: plainText,
  baseUrl: baseUrl.optional(),
  apiKeyEnv: apiKeyEnv.optional(),
  recording: z.string().min(1).optional(),
  /** What provider `fixed-reply` answers to every request. */
  reply: z
    .string()
    .refine((text) => text.trim() !== '', { error: 'must hold text; an empty reply counts as none' })
    .optional(),
  maxTokens: z.number().int().positive().default(1024),
  retryMaxTokens: z.number().int().positive().optional(),
  attempts: z.number().int().positive().max(20).default(5),
  maxInFlight: z.number().int().positive().max(10_000).default(8),
  limits: rateLimits.optional(),
  deadlineSeconds: z.number().positive().default(600),
  backoff,
  settings: laneSettings.default({}),
  price: sweepPrice.optional(),
  budget: budget.optional(),
});

const judge = z.strictObject({
  provider: z.enum(providers),
  model: plainText,
  baseUrl: baseUrl.optional(),
  apiKeyEnv: apiKeyEnv.optional(),
  reasoningEffort: z.string().min(1).optional(),
  itemsPerRequest: z.number().int().min(1).max(20).default(20),
  maxTokens: z.number().int().positive().default(8192),
  attempts: z.number().int().positive().max(20).default(5),
  maxInFlight: z.number().int().positive().max(1000).default(4),
  limits: rateLimits.optional(),
  deadlineSeconds: z.number().positive().default(600),
  backoff,
  price: sweepPrice.optional(),
  /** Through the provider's batch interface: answers within a day, for less money. */
  batch: z.boolean().default(false),
  batchPoll: z
    .strictObject({
      baseSeconds: z.number().min(1).default(30),
      maxSeconds: z.number().min(1).default(900),
    })
    .default({ baseSeconds: 30, maxSeconds: 900 }),
  reviewCache: z.array(z.string().min(1)).default([]),
});

export const sweepFile = z.strictObject({
  name: z
    .string()
    .max(80)
    .regex(
      /^(?!\.{1,2}$)[^\p{C}\p{Zl}\p{Zp}/\\]+$/u,
      'must be usable as the name of a folder: no slashes, no control characters',
    ),
  benchmark: z.strictObject({
    kind: z.enum(benchmarkKinds),
    release: z.string().min(1),
    manifest: z.string().min(1).optional(),
    verifyMedia: z.boolean().default(true),
    reuseIdenticalRequests: z.literal(false).default(false),
    /** What the benchmark itself can be told; its own schema checks it. */
    options: z.record(z.string(), z.unknown()).default({}),
    /** Files that replace texts of the benchmark, by the text's name; paths count from the sweep file's folder. */
    prompts: z.record(z.string(), z.string().min(1)).default({}),
  }),
  interfaces: z.array(z.string()).min(1).optional(),
  models: z.array(lane).min(1),
  judge: judge.optional(),
  budget: budget.optional(),
  seed: z.number().int().nonnegative().default(53126),
});
export type SweepFile = z.infer<typeof sweepFile>;
