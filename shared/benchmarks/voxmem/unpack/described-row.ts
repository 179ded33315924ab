import { z } from 'zod';
import {
  type AnswerRow,
  type ContextLength,
  contextLengths,
  evidenceTypes,
  memoryOperations,
} from '../format.ts';
import { quoted } from './problem-list.ts';

const text = z.string().min(1);

/** Whole numbers come as 64-bit integers from Parquet, some writers make them floating. */
const count = z.preprocess(
  (value) => (typeof value === 'bigint' ? Number(value) : value),
  z.number().int().nonnegative(),
);

const contextLength = z.preprocess(
  (value) => (typeof value === 'string' ? value.toLowerCase() : value),
  z.enum(contextLengths),
);

/** Everything about an item but its speech. */
const describedRow = z.object({
  item_id: text,
  question_id: text,
  context_length: contextLength,
  family_id: z
    .string()
    .nullish()
    .transform((value) => value ?? ''),
  evidence_type: z.enum(evidenceTypes),
  memory_operation: z.enum(memoryOperations),
  subtype: z
    .string()
    .nullish()
    .transform((value) => value ?? ''),
  question_text: text,
  expected_response: z.enum(['answer', 'insufficient_evidence']),
  gold_json: z.string().nullish(),
  answer_type: z.string(),
  answer_normalization: z
    .string()
    .nullish()
    .transform((value) => value ?? null),
  session_count: count,
  evidence_session_count: count,
  samekey_haystack_session_count: z.preprocess((value) => value ?? 0, count),
  query_timestamp: text,
});

const optional = new Set(['family_id', 'subtype', 'answer_normalization', 'samekey_haystack_session_count']);

/** Columns read before any audio. */
export const describedColumns = Object.keys(describedRow.shape).map((name) => ({
  name,
  isRequired: !optional.has(name),
}));

/** An item as it was described, and when its question is put. */
export interface Described {
  answer: AnswerRow;
  queryTimestamp: string;
}

/** Members of any depth by their path; a message names a place as its reader would. */
const pathText = (path: readonly PropertyKey[]): string => path.map(String).join('.');

const described = (error: z.ZodError, fields: Record<string, unknown>): string[] =>
  error.issues.map(({ path, message, code, ...issue }) => {
    const given = fields[String(path[0])];
    if (given === undefined || given === null) return `${pathText(path)} is missing`;
    const known = code === 'invalid_value' && 'values' in issue ? issue.values : null;
    const what = Array.isArray(known) ? `not one of ${known.join(', ')}` : message;
    return `${pathText(path)} ${quoted(given)}: ${what}`;
  });

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const parsed = (json: string): { value: unknown } | { fault: string } => {
  try {
    return { value: JSON.parse(json) as unknown };
  } catch (error) {
    return { fault: error instanceof Error ? error.message : String(error) };
  }
};

/**
 * The list that an answer is one of. The protocol does not say where it stands; our reading: under `options` of the gold
 * answer, or else under `options` of `answer_normalization` where that is a JSON object.
 */
const optionsOf = (
  gold: unknown,
  normalization: string | null,
): { options: string[] } | { fault: string } => {
  const fromNormalization = normalization?.trim().startsWith('{') ? parsed(normalization) : null;
  const holders: [string, unknown][] = [
    ['gold_json', gold],
    [
      'answer_normalization',
      fromNormalization !== null && 'value' in fromNormalization ? fromNormalization.value : null,
    ],
  ];
  for (const [name, holder] of holders) {
    if (!isRecord(holder) || holder.options === undefined || holder.options === null) continue;
    const checked = z.array(text).safeParse(holder.options);
    return checked.success ? { options: checked.data } : { fault: `${name}.options is no list of texts` };
  }
  return { options: [] };
};

/** Checks what a row says of its item. All faults come at once, each with its field. */
export const readDescribed = (
  fields: Record<string, unknown>,
): { described: Described } | { faults: string[] } => {
  const checked = describedRow.safeParse(fields);
  if (!checked.success) return { faults: described(checked.error, fields) };
  const { gold_json: goldJson, query_timestamp: queryTimestamp, ...row } = checked.data;
  const faults: string[] = [];
  const isRefusal = row.memory_operation === 'answer_refusal';
  if (isRefusal !== (row.expected_response === 'insufficient_evidence')) {
    faults.push(
      `expected_response ${quoted(row.expected_response)} does not belong to memory_operation ${quoted(row.memory_operation)}`,
    );
  }
  if (row.evidence_type === 'speech_semantics' && row.memory_operation === 'information_extraction') {
    faults.push('memory_operation: information_extraction has no items of speech_semantics');
  }
  for (const name of ['evidence_session_count', 'samekey_haystack_session_count'] as const) {
    if (row[name] > row.session_count) {
      faults.push(`${name} ${row[name]} is larger than session_count ${row.session_count}`);
    }
  }
  let gold: unknown = null;
  if (goldJson !== undefined && goldJson !== null) {
    const result = parsed(goldJson);
    if ('fault' in result) faults.push(`gold_json is not valid JSON: ${quoted(result.fault)}`);
    else gold = result.value;
  }
  if (!isRefusal && gold === null && faults.length === 0) faults.push('gold_json is missing');
  const options = optionsOf(gold, row.answer_normalization);
  if ('fault' in options) faults.push(options.fault);
  if (faults.length > 0 || 'fault' in options) return { faults };
  const {
    session_count,
    evidence_session_count,
    samekey_haystack_session_count,
    answer_type,
    answer_normalization,
    ...head
  } = row;
  return {
    described: {
      queryTimestamp,
      answer: {
        ...head,
        gold: isRefusal ? null : gold,
        answer_type,
        answer_normalization,
        options: isRefusal ? [] : options.options,
        session_count,
        evidence_session_count,
        samekey_haystack_session_count,
      },
    },
  };
};

export const lengthRank = (length: ContextLength): number => contextLengths.indexOf(length);
