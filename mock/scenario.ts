import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { parse as parseYaml } from 'yaml';
import { z } from 'zod';
import type { Problem } from '../shared/errors.ts';
import { errorNames, ProblemsFound, TurnsweepError } from '../shared/errors.ts';
import { batchPlan } from './batches.ts';
import { isOutcomeId } from './faults.ts';

const faultKinds = [
  'reset',
  'hang',
  'cut_stream',
  'no_finish_reason',
  'empty',
  'length',
  'content_filter',
  'refusal',
  'bad_json',
  'html_200',
  'error_200',
  'rubbish',
  'missing_id',
  'fenced',
] as const;

const fault = z
  .strictObject({
    kind: z.union([
      z.enum(faultKinds),
      z
        .string()
        .refine((kind) => /^http_[345]\d\d$/.test(kind) || isOutcomeId(kind), 'unknown kind of fault'),
    ]),
    /** Share of the attempts that meet the fault, drawn by a seeded hash. */
    rate: z.number().min(0).max(1).optional(),
    /** The fault meets the first n attempts of every request. */
    firstAttempts: z.number().int().nonnegative().optional(),
    retryAfterSeconds: z.number().nonnegative().optional(),
    /** `error.code` of the body. */
    code: z.string().optional(),
    /** `length` only: a cap of so many tokens is enough. */
    succeedAtMaxTokens: z.number().int().positive().optional(),
    match: z
      .union([z.strictObject({ lastText: z.string() }), z.strictObject({ fingerprint: z.string() })])
      .optional(),
  })
  .refine((value) => (value.rate === undefined) !== (value.firstAttempts === undefined), {
    message: 'give either rate or firstAttempts',
  });
export type ScenarioFault = z.infer<typeof fault>;

const model = z.strictObject({
  reply: z.union([
    z.strictObject({ text: z.string().min(1) }),
    z.strictObject({ echo: z.literal(true) }),
    /** What the server understood of the request: `turns=2;media=video,audio;sha=<8 hex digits>`. */
    z.strictObject({ digest: z.literal(true) }),
    z.strictObject({ table: z.string().min(1), fallback: z.string().min(1).optional() }),
    z.strictObject({ judge: z.enum(['aliases', 'verdict']) }),
  ]),
  latencyMs: z
    .union([
      z.number().nonnegative(),
      z
        .strictObject({ min: z.number().nonnegative(), max: z.number().nonnegative() })
        .refine(({ min, max }) => min <= max, { message: 'min is above max' }),
    ])
    .default(0),
  /** Calls in flight at once; one more is answered 429. */
  capacity: z.number().int().positive().nullable().default(null),
  /** Retry-After of the 429s that `capacity` causes; null sends none. */
  retryAfterSeconds: z.number().nonnegative().nullable().default(null),
  /** Token counts to report instead of estimates. */
  tokens: z
    .strictObject({ input: z.number().int().nonnegative(), output: z.number().int().nonnegative() })
    .partial()
    .default({}),
  faults: z.array(fault).default([]),
});
export type ScenarioModel = z.infer<typeof model>;

const scenario = z.strictObject({
  seed: z.number().int().default(0),
  /** By name on the wire; `*` stands for every other name. */
  models: z.record(z.string(), model),
  /** What becomes of batches. */
  batch: batchPlan.optional(),
});
export type Scenario = z.infer<typeof scenario>;
/** A scenario as people write it, defaults left out. */
export type ScenarioInput = z.input<typeof scenario>;

const tableRow = z.union([
  z.strictObject({ model: z.string().optional(), fingerprint: z.string(), reply: z.string().min(1) }),
  z.strictObject({ model: z.string().optional(), lastText: z.string(), reply: z.string().min(1) }),
]);

/** Scripted replies of one table. */
export interface ReplyTable {
  byFingerprint: ReadonlyMap<string, string>;
  byLastText: ReadonlyMap<string, string>;
}

/** Key of a table row; a row without a model is for every model. */
export const tableKey = (modelName: string | null, content: string): string =>
  `${modelName ?? '*'}\n${content}`;

const readFileOrThrow = (path: string, what: string): string => {
  try {
    return readFileSync(path, 'utf8');
  } catch (cause) {
    throw new TurnsweepError(errorNames.usage, `${what} cannot be read`, { where: path, cause });
  }
};

/** Reads a table of replies. Throws `ProblemsFound` with every bad line; two replies to one key are bad. */
export const loadTable = (path: string): ReplyTable => {
  const byFingerprint = new Map<string, string>();
  const byLastText = new Map<string, string>();
  const problems: Problem[] = [];
  readFileOrThrow(path, 'reply table')
    .split('\n')
    .forEach((line, index) => {
      if (line.trim() === '') return;
      const problem = (message: string) => problems.push({ file: path, line: index + 1, message });
      let value: unknown;
      try {
        value = JSON.parse(line);
      } catch {
        problem('not JSON');
        return;
      }
      const row = tableRow.safeParse(value);
      if (!row.success) {
        problem('not a row {model?, fingerprint | lastText, reply}');
        return;
      }
      const { data } = row;
      const [rows, content] =
        'fingerprint' in data ? [byFingerprint, data.fingerprint] : [byLastText, data.lastText];
      const key = tableKey(data.model ?? null, content);
      if ((rows.get(key) ?? data.reply) !== data.reply)
        problem('a second, different reply to the same request');
      rows.set(key, data.reply);
    });
  if (problems.length > 0) {
    throw new ProblemsFound(errorNames.usage, `reply table has ${problems.length} bad lines`, problems);
  }
  return { byFingerprint, byLastText };
};

/** Checks a scenario. Throws `UsageWrong` that names the first fault and its place in the scenario. */
export const parseScenario = (value: unknown, origin = 'scenario'): Scenario => {
  const parsed = scenario.safeParse(value);
  if (parsed.success) return parsed.data;
  const { path, message } = parsed.error.issues[0]!;
  throw new TurnsweepError(errorNames.usage, `scenario is not valid: ${message}`, {
    where: [origin, path.join('.')].filter((text) => text !== '').join(': '),
    remedy: 'see mock/README.md',
  });
};

/** Reads a scenario file (JSON or YAML); paths of tables in it are relative to the file. */
export const loadScenario = (path: string): Scenario => {
  let value: unknown;
  try {
    value = parseYaml(readFileOrThrow(path, 'scenario'));
  } catch (cause) {
    if (cause instanceof TurnsweepError) throw cause;
    throw new TurnsweepError(errorNames.usage, 'scenario is neither JSON nor YAML', { where: path, cause });
  }
  const found = parseScenario(value, path);
  for (const { reply } of Object.values(found.models)) {
    if ('table' in reply) reply.table = resolve(dirname(path), reply.table);
  }
  return found;
};
