import { z } from 'zod';
import type { Problem } from '../../errors.ts';
import { canonicalJson, sha256 } from '../../naming.ts';
import type { JudgeProtocol, Lines, Prompts } from '../benchmark.ts';
import { findJson, type JsonValue } from '../json-in-prose.ts';
import { createProblemLog, quoted, readRows } from '../read-rows.ts';
import type { AnswerRow } from './format.ts';
import { promptText, rubrics } from './prompts.ts';

const key = z.string().regex(/^[0-9a-f]{64}$/, 'is not a SHA-256 in hexadecimal');

/** All that the judge may know of a response (voxmem-protocol §4); `key` is the SHA-256 of everything else in it. */
export const verdictItem = z.discriminatedUnion('rubric', [
  z.strictObject({
    key,
    rubric: z.literal('answerable'),
    question: z.string(),
    /** As `goldText` writes it. */
    gold: z.string(),
    answerType: z.string(),
    normalization: z.string().nullable(),
    options: z.array(z.string()),
    response: z.string(),
  }),
  z.strictObject({
    key,
    rubric: z.literal('refusal'),
    question: z.string(),
    response: z.string(),
  }),
]);
export type VerdictItem = z.infer<typeof verdictItem>;

/** Gold as a judge and a table read it: text as it is, yes or no for a truth value, all else as JSON. */
export const goldText = (gold: unknown): string => {
  if (typeof gold === 'string') return gold;
  if (typeof gold === 'boolean') return gold ? 'yes' : 'no';
  return canonicalJson(gold ?? null);
};

/** The item to judge for a response. Equal items have equal keys, whoever answered and at whatever length. */
export const toVerdictItem = (answer: AnswerRow, response: string): VerdictItem => {
  if (answer.expected_response === 'insufficient_evidence') {
    const item = { rubric: 'refusal' as const, question: answer.question_text, response };
    return { key: sha256(canonicalJson(item)), ...item };
  }
  const item = {
    rubric: 'answerable' as const,
    question: answer.question_text,
    gold: goldText(answer.gold),
    answerType: answer.answer_type,
    normalization: answer.answer_normalization,
    options: answer.options,
    response,
  };
  return { key: sha256(canonicalJson(item)), ...item };
};

/** Names the wording of both rubrics: another rubric is another judge, whose verdicts are not mixed with these. */
export const promptVersion = (prompts: Prompts): string =>
  `voxmem-${sha256(canonicalJson(rubrics.map((name) => promptText(prompts, name)))).slice(0, 12)}`;

/**
 * Asks the judge about one response: the rubric as the system turn, the item as one JSON object and nothing beside it, so
 * that no text of a model or of the data set can leave its string. Throws `BenchmarkInvalid` for a missing rubric.
 */
export const buildRequest = (item: VerdictItem, prompts: Prompts): { system: string; user: string } => {
  const { question, response } = item;
  const shown =
    item.rubric === 'refusal'
      ? { question, response }
      : {
          question,
          gold: item.gold,
          answer_type: item.answerType,
          normalization: item.normalization,
          options: item.options,
          response,
        };
  return { system: promptText(prompts, `rubric-${item.rubric}`), user: JSON.stringify(shown) };
};

export type VerdictWord = 'correct' | 'incorrect';

/** What every member named `verdict` holds, at any depth. */
const verdictsIn = (value: JsonValue): JsonValue[] => {
  if (Array.isArray(value)) return value.flatMap(verdictsIn);
  if (!(value instanceof Map)) return [];
  return Array.from(value).flatMap(([name, inner]) =>
    name.trim().toLowerCase() === 'verdict' ? [inner] : verdictsIn(inner),
  );
};

const wordOf = (value: JsonValue | undefined): VerdictWord | null => {
  const word = typeof value === 'string' ? value.trim().toLowerCase() : null;
  return word === 'correct' || word === 'incorrect' ? word : null;
};

/**
 * The verdict of a judge's reply (voxmem-protocol §4), or null where there is none that can be read. It has to stand in
 * JSON, under `verdict`: prose, fences, other members and other objects around it are fine, and so is any case of
 * the word. Verdicts that stand there several times must all be the same. Broken or cut JSON, a member given twice, and
 * any other value make the reply unreadable, whatever else is in it: a verdict is never guessed.
 */
export const parseVerdict = (text: string | null): VerdictWord | null => {
  const found = findJson(text ?? '');
  if ('broken' in found) return null;
  const [first, ...others] = found.values.flatMap(verdictsIn).map(wordOf);
  return first !== undefined && others.every((other) => other === first) ? first : null;
};

/** `unreadable`: the judge gave no verdict on its last attempt either. */
export const itemVerdict = z.strictObject({ verdict: z.enum(['correct', 'incorrect', 'unreadable']) });
export type ItemVerdict = z.infer<typeof itemVerdict>;

/** How responses are judged: one a request, since each rubric asks for one verdict. */
export const verdictProtocol = (prompts: Prompts): JudgeProtocol => ({
  promptVersion: promptVersion(prompts),
  itemsPerRequestAtMost: 1,
  buildRequest(items) {
    const [item, ...others] = items.map((one) => verdictItem.parse(one));
    if (item === undefined || others.length > 0) throw new Error(`${items.length} items in one request`);
    return buildRequest(item, prompts);
  },
  parseReply(text, items) {
    const verdict = parseVerdict(text);
    return verdict === null
      ? { ok: false, kind: 'judge_unparsed', message: `no single verdict in ${quoted(text)}` }
      : { ok: true, verdicts: new Map(items.map((item) => [item.key, { verdict }])) };
  },
  unreadable: (items) => new Map(items.map((item) => [item.key, { verdict: 'unreadable' }])),
});

const importedReview = z.strictObject({
  v: z.literal(1).optional(),
  key,
  ...itemVerdict.shape,
  judge: z.string().optional(),
});

/** Reads verdicts made elsewhere, JSON lines of `{key, verdict}`. Two that differ on one key are a problem. */
export async function importReviews(
  file: string,
  lines: Lines,
): Promise<{ reviews: Map<string, ItemVerdict>; problems: Problem[] }> {
  const log = createProblemLog();
  const reviews = new Map<string, ItemVerdict>();
  await readRows({ file, lines }, importedReview, log, ({ key: itemKey, verdict }, line) => {
    const earlier = reviews.get(itemKey);
    if (earlier === undefined) reviews.set(itemKey, { verdict });
    else if (earlier.verdict !== verdict) {
      log.add(
        file,
        line,
        `"${verdict}" for key ${quoted(itemKey)}, but an earlier line says "${earlier.verdict}"`,
      );
    }
  });
  return { reviews, problems: log.list() };
}
