import { z } from 'zod';

/**
 * VoxMem as turnsweep keeps it once it is unpacked (voxmem-protocol §2). What models are shown and what only judges and
 * reports may know lie in separate files: words of an operation, a transcript or a gold answer never stand in an input.
 */

export const contextLengths = ['8k', '16k', '32k', '64k'] as const;
export type ContextLength = (typeof contextLengths)[number];

export const evidenceTypes = [
  'speech_semantics',
  'speaker_information',
  'paralinguistic_information',
  'environmental_sound',
] as const;
export type EvidenceType = (typeof evidenceTypes)[number];

export const memoryOperations = [
  'information_extraction',
  'multi_session_reasoning',
  'temporal_evolution_tracking',
  'answer_refusal',
] as const;
export type MemoryOperation = (typeof memoryOperations)[number];

/** The short names of tables. */
export const operationCodes: Record<MemoryOperation, string> = {
  information_extraction: 'IE',
  multi_session_reasoning: 'MSR',
  temporal_evolution_tracking: 'TET',
  answer_refusal: 'AR',
};

export const itemsFile = 'data/items.jsonl';
export const sessionsFile = 'data/sessions.jsonl';
export const answersFile = 'data/answers.jsonl';
export const transcriptsFile = 'data/transcripts.jsonl';
export const mediaManifestFile = 'data/media.json';

/** What a model is asked. Clips are named by their path inside the unpacked release, `media/<sha256>.wav`. */
export const itemRow = z.strictObject({
  item_id: z.string().min(1),
  question_id: z.string().min(1),
  context_length: z.enum(contextLengths),
  /** Sessions of the history in order, by their key in `sessions.jsonl`. */
  session_keys: z.array(z.string().min(1)).min(1),
  query_timestamp: z.string().min(1),
  question_audio: z.string().min(1),
});
export type ItemRow = z.infer<typeof itemRow>;

const turn = z.union([
  z.strictObject({ role: z.literal('user'), audio: z.string().min(1) }),
  z.strictObject({ role: z.literal('assistant'), text: z.string().min(1) }),
]);

/** One session of a history; equal sessions of several items are kept once. */
export const sessionRow = z.strictObject({
  /** SHA-256 over timestamp and turns, clips by content. */
  session_key: z.string().min(1),
  timestamp: z.string().min(1),
  turns: z.array(turn).min(1),
});
export type SessionRow = z.infer<typeof sessionRow>;

/** What only judges, scores and reports may know of an item. */
export const answerRow = z.strictObject({
  item_id: z.string().min(1),
  question_id: z.string().min(1),
  context_length: z.enum(contextLengths),
  family_id: z.string(),
  evidence_type: z.enum(evidenceTypes),
  memory_operation: z.enum(memoryOperations),
  subtype: z.string(),
  question_text: z.string().min(1),
  expected_response: z.enum(['answer', 'insufficient_evidence']),
  /** `gold_json` of the data set, parsed; null for items to be refused. */
  gold: z.unknown(),
  answer_type: z.string(),
  answer_normalization: z.string().nullable(),
  /** Where the answer is one of a list; empty elsewhere. */
  options: z.array(z.string()),
  session_count: z.number().int().nonnegative(),
  evidence_session_count: z.number().int().nonnegative(),
  samekey_haystack_session_count: z.number().int().nonnegative(),
});
export type AnswerRow = z.infer<typeof answerRow>;

/** What was said in a session, for the auditor of errors: no evaluated model ever sees it. */
export const transcriptRow = z.strictObject({
  session_key: z.string().min(1),
  timestamp: z.string().min(1),
  turns: z.array(z.strictObject({ role: z.enum(['user', 'assistant']), text: z.string() })),
});
export type TranscriptRow = z.infer<typeof transcriptRow>;

/** `media.json`: by path inside the release. */
export const mediaManifest = z.record(
  z.string(),
  z.strictObject({ sha256: z.string().length(64), bytes: z.number().int(), seconds: z.number() }),
);
export type MediaManifest = z.infer<typeof mediaManifest>;

/**
 * What became of an item (voxmem-protocol §4).
 *
 * - `correct`, `incorrect`: as judged.
 * - `ungraded`: the judge gave no verdict that can be read; counts as incorrect.
 * - `failed`, `empty`: no reply came, or one without text; counts as incorrect, the reply is kept empty.
 * - `rejected`: the provider turned the request away before inference; leaves every denominator.
 * - `pending`: awaits the judge. `open`: not asked yet.
 */
export const itemStatuses = [
  'correct',
  'incorrect',
  'ungraded',
  'failed',
  'empty',
  'rejected',
  'pending',
  'open',
] as const;
export type ItemStatus = (typeof itemStatuses)[number];

/** One item of one lane, scored: what every figure of the report is computed from. */
export interface ScoredItem {
  itemId: string;
  questionId: string;
  contextLength: ContextLength;
  familyId: string;
  evidenceType: EvidenceType;
  memoryOperation: MemoryOperation;
  subtype: string;
  expectedResponse: 'answer' | 'insufficient_evidence';
  answerType: string;
  status: ItemStatus;
  /** Empty where no reply came. */
  response: string;
  /** Kind of the failure; null where a reply came. */
  failure: string | null;
  systemPromptDelivery: 'native' | 'folded' | null;
}
