import { z } from 'zod';

/** Name inside a release of the digests that media are checked against before any call. */
export const mediaDigestsFile = 'data/media_sha256.txt';

export const interfaces = ['openqa', 'mcq'] as const;
export type Interface = (typeof interfaces)[number];

export const horizons = ['short', 'long'] as const;
export type Horizon = (typeof horizons)[number];

/** Media-bearing user turns of a multi-turn request, the final one included (return-protocol §1). */
export const mediaTurns: Record<Horizon, number> = { short: 2, long: 5 };

export const operations = ['preserve', 'revise', 'retrieve', 'rebind'] as const;
export type Operation = (typeof operations)[number];

export type HistorySide = 'task' | 'evidence';
export type PairRole = 'reference' | 'conflict';

/** What an operation is inside its pair (return-protocol §1). */
export const operationRoles: Record<Operation, { side: HistorySide; role: PairRole }> = {
  preserve: { side: 'task', role: 'reference' },
  revise: { side: 'task', role: 'conflict' },
  retrieve: { side: 'evidence', role: 'reference' },
  rebind: { side: 'evidence', role: 'conflict' },
};

const requiredModality = z.enum(['V', 'A']);
export type RequiredModality = z.infer<typeof requiredModality>;

/** An id that is safe to print, to put into a file and to compare by eye. */
const id = z
  .string()
  .regex(
    /^[^\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]+$/u,
    'must be a non-empty id without control or invisible characters',
  );

/** A label: it ends up in tables and on terminals. */
const label = z
  .string()
  .regex(/^[^\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]*$/u, 'must not hold control or invisible characters');

function mediaPathFault(path: string): string | null {
  if (path === '') return 'is an empty path';
  if (/\p{Cc}/u.test(path)) return 'is a path with a control character';
  if (path.includes('\\')) return 'is a path with a backslash';
  if (path.startsWith('/') || /^[a-z][a-z0-9+.-]*:/i.test(path)) return 'is an absolute path';
  if (path.split('/').includes('..')) return 'is a path with ".."';
  return null;
}

/** A media path: relative to the release, forward slashes, never out of it (return-protocol §2). */
export const mediaPathSchema = z.string().superRefine((path, context) => {
  const fault = mediaPathFault(path);
  if (fault !== null) {
    context.addIssue({ code: 'custom', message: `${fault}; media paths are relative to the release` });
  }
});

const taskViewSchema = z.strictObject({
  view_id: id,
  control_request_id: id,
  history_request_id: id,
  native_dependency_request_ids: z.array(id),
});

/** A row of `data/tasks/tasks.jsonl`. */
export const taskRowSchema = z.strictObject({
  task_id: id,
  pair_id: id,
  source_root_id: id,
  operation: z.enum(operations),
  history_horizon: z.enum(horizons),
  required_modality: requiredModality,
  family: label,
  history_side: z.enum(['task', 'evidence']),
  split: label,
  adapt_split: label.nullable(),
  old_split: label.nullable(),
  views: z.strictObject({ openqa: taskViewSchema, mcq: taskViewSchema }),
});
export type TaskRow = z.infer<typeof taskRowSchema>;

const partSchema = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('text'), text: z.string() }),
  z.strictObject({ type: z.literal('audio'), audio: mediaPathSchema }),
  z.strictObject({ type: z.literal('video'), video: mediaPathSchema }),
]);

const messageSchema = z.discriminatedUnion('role', [
  z.strictObject({
    role: z.literal('user'),
    content: z.array(partSchema).min(1, 'is empty; a user message needs at least one part'),
  }),
  z.strictObject({
    role: z.literal('assistant'),
    content_binding: z.strictObject({ kind: z.literal('REQUEST_RAW'), request_id: id }),
  }),
]);

/** A row of `data/tasks/inputs.jsonl`. */
export const inputRowSchema = z.strictObject({
  request_id: id,
  interface: z.enum(interfaces),
  condition: z.enum(['C', 'H0', 'AUX']),
  operation: label,
  horizon: z.enum([...horizons, 'shared']),
  required_modality: requiredModality,
  messages: z.array(messageSchema).min(1, 'is empty; a request needs at least one message'),
});
export type InputRow = z.infer<typeof inputRowSchema>;

/** A row of `data/tasks/answers.jsonl`; only final requests (conditions C and H0) have one. */
export const answerRowSchema = z
  .strictObject({
    request_id: id,
    interface: z.enum(interfaces),
    condition: z.enum(['C', 'H0']),
    gold: z.string(),
    aliases: z.array(z.string()),
    choices: z.array(z.string()),
    scoring_question: z.string(),
  })
  .superRefine((row, context) => {
    const fault = (path: string, message: string) =>
      context.addIssue({ code: 'custom', path: [path], message });
    if (row.interface === 'mcq') {
      if (!/^[A-D]$/.test(row.gold)) fault('gold', 'must be one of the letters A, B, C, D');
      if (row.choices.length !== 4) fault('choices', `must be four options, not ${row.choices.length}`);
    } else if (row.gold.trim() === '') fault('gold', 'is empty');
    else if (!row.aliases.includes(row.gold)) fault('aliases', 'do not contain gold');
  });
export type AnswerRow = z.infer<typeof answerRowSchema>;

/** A selection of tasks, e.g. `data/quickstart_manifest.json`; its descriptive keys are free. */
export const selectionManifestSchema = z.looseObject({
  task_ids: z.array(id).min(1, 'is empty; a manifest names at least one task'),
});

/** A row of a recording (`predictions.jsonl`); keys not named here are kept. */
export const predictionRowSchema = z.looseObject({
  request_id: id,
  raw_text: z.string().nullish(),
  status: z.enum(['ok', 'error', 'blocked']),
  error: z.unknown(),
});
export type PredictionRow = z.infer<typeof predictionRowSchema>;

export const verdicts = ['equivalent', 'incorrect', 'uncertain'] as const;
export type Verdict = (typeof verdicts)[number];

const identityElements = z.union([
  z.tuple([z.string(), z.string(), z.array(z.string()), z.array(z.string()), z.enum(interfaces), z.string()]),
  z.tuple([
    z.string(),
    z.string(),
    z.array(z.string()),
    z.array(z.string()),
    z.enum(interfaces),
    z.string(),
    z.string(),
  ]),
]);

function isReviewIdentity(text: string): boolean {
  try {
    return identityElements.safeParse(JSON.parse(text)).success;
  } catch (error) {
    if (error instanceof SyntaxError) return false;
    throw error;
  }
}

/** A row of a `review_cache.jsonl`: one verdict under its review identity (return-protocol §5). */
export const reviewCacheRowSchema = z.looseObject({
  identity: z.string().refine(isReviewIdentity, 'is not a review identity (a JSON array of 6 or 7 elements)'),
  judgment: z.strictObject({
    id: z.string().optional(),
    verdict: z.enum(verdicts),
    format_compliant: z.boolean(),
    reason: z.string(),
  }),
  judge_model: z.string().nullish(),
});
export type ReviewCacheRow = z.infer<typeof reviewCacheRowSchema>;
