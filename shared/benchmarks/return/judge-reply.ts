import { isDeepStrictEqual } from 'node:util';
import { findJson, type JsonObject, type JsonValue } from '../json-in-prose.ts';
import { quoted } from '../read-rows.ts';
import { type Verdict, verdicts } from './release-format.ts';

export interface JudgeVerdict {
  verdict: Verdict;
  formatCompliant: boolean;
  reason: string;
}

/**
 * Why a judge's reply counts for none of its items (the chunk is void and asked again):
 *
 * - `judge_unparsed`: no JSON, broken JSON, or several that differ.
 * - `judge_item_invalid`: JSON of another form than asked for, e.g. an unknown verdict.
 * - `judge_ids_differ`: ids missing, added or repeated.
 */
export type JudgeReplyFault = 'judge_unparsed' | 'judge_item_invalid' | 'judge_ids_differ';

export type JudgeReply =
  | { ok: true; verdicts: Map<string, JudgeVerdict> }
  | { ok: false; kind: JudgeReplyFault; message: string };

const isVerdict = (value: unknown): value is Verdict => verdicts.some((verdict) => verdict === value);

/** The list of judgments: the value itself, or the only member of an object. */
function judgmentsOf(value: JsonValue): JsonValue[] | null {
  if (Array.isArray(value)) return value;
  if (!(value instanceof Map) || value.size !== 1) return null;
  const [only] = value.values();
  return Array.isArray(only) ? only : null;
}

const itemKeys = ['id', 'verdict', 'format_compliant', 'reason'];

function readItem(item: JsonObject): { id: string; verdict: JudgeVerdict } | string {
  const unknown = [...item.keys()].find((key) => !itemKeys.includes(key));
  if (unknown !== undefined) return `unknown key ${quoted(unknown)}`;
  const [id, verdict, formatCompliant, reason] = itemKeys.map((key) => item.get(key));
  if (typeof id !== 'string') return 'id is not a string';
  if (!isVerdict(verdict)) return `verdict ${quoted(verdict)} is not one of ${verdicts.join(', ')}`;
  if (typeof formatCompliant !== 'boolean') return 'format_compliant is not true or false';
  if (typeof reason !== 'string') return 'reason is not a string';
  return { id, verdict: { verdict, formatCompliant, reason } };
}

/**
 * Reads a judge's reply to one chunk (return-protocol §5). Prose and code fences around one JSON value
 * are fine, a value repeated unchanged too; anything less clear voids the chunk: a verdict is never guessed.
 */
export function parseJudgeReply(text: string | null, expectedIds: Iterable<string>): JudgeReply {
  const fault = (kind: JudgeReplyFault, message: string): JudgeReply => ({ ok: false, kind, message });

  const found = findJson(text ?? '');
  if ('broken' in found) return fault('judge_unparsed', `broken JSON: ${found.broken}`);
  const [value, ...others] = found.values;
  if (value === undefined) return fault('judge_unparsed', 'no JSON in the reply');
  if (others.some((other) => !isDeepStrictEqual(other, value))) {
    return fault('judge_unparsed', `${found.values.length} JSON values that differ`);
  }

  const items = judgmentsOf(value);
  if (items === null) return fault('judge_item_invalid', 'neither an array nor an object with one array');
  const expected = new Set(expectedIds);
  const judged = new Map<string, JudgeVerdict>();
  for (const [index, item] of items.entries()) {
    const read = item instanceof Map ? readItem(item) : 'is not an object';
    if (typeof read === 'string') return fault('judge_item_invalid', `judgment ${index + 1}: ${read}`);
    if (!expected.has(read.id)) return fault('judge_ids_differ', `id ${quoted(read.id)} was not asked for`);
    if (judged.has(read.id)) return fault('judge_ids_differ', `id ${quoted(read.id)} is there twice`);
    judged.set(read.id, read.verdict);
  }
  if (judged.size !== expected.size) {
    return fault('judge_ids_differ', `${judged.size} of ${expected.size} items judged`);
  }
  return { ok: true, verdicts: judged };
}
