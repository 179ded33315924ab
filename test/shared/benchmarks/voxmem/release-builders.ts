import type {
  AnswerRow,
  ContextLength,
  ItemRow,
  SessionRow,
  TranscriptRow,
} from '../../../../shared/benchmarks/voxmem/format.ts';
import type { ReleaseTexts } from '../../../../shared/benchmarks/voxmem/read.ts';
import type { FailureRecord, RequestRecord } from '../../../../shared/contracts/records.ts';
import { unknownUsage } from '../../../../shared/domain/outcome.ts';

const digestOf = (name: string): string => Buffer.from(name).toString('hex').padEnd(64, '0').slice(0, 64);

/** Path of a clip whose content is told by a name. */
export const clip = (name: string): string => `media/${digestOf(name)}.wav`;

/** Turns by the first letter: `u:clip` or `a:text`. */
export const aSession = (key: string, timestamp: string, ...turns: string[]): SessionRow => ({
  session_key: key,
  timestamp,
  turns: turns.map((turn) =>
    turn.startsWith('u:')
      ? { role: 'user' as const, audio: clip(turn.slice(2)) }
      : { role: 'assistant' as const, text: turn.slice(2) },
  ),
});

export const anItem = (
  questionId: string,
  length: ContextLength,
  changes: Partial<ItemRow> = {},
): ItemRow => ({
  item_id: `${questionId}_${length}`,
  question_id: questionId,
  context_length: length,
  session_keys: ['s1'],
  query_timestamp: '2025-12-15 00:49',
  question_audio: clip(`ask-${questionId}`),
  ...changes,
});

export const anAnswer = (
  questionId: string,
  length: ContextLength,
  changes: Partial<AnswerRow> = {},
): AnswerRow => ({
  item_id: `${questionId}_${length}`,
  question_id: questionId,
  context_length: length,
  family_id: 'f1',
  evidence_type: 'speaker_information',
  memory_operation: 'information_extraction',
  subtype: 'who',
  question_text: 'Who spoke about the boat?',
  expected_response: 'answer',
  gold: 'the sister',
  answer_type: 'categorical',
  answer_normalization: 'case-insensitive',
  options: [],
  session_count: 1,
  evidence_session_count: 1,
  samekey_haystack_session_count: 0,
  ...changes,
});

export const aRefusal = (
  questionId: string,
  length: ContextLength,
  changes: Partial<AnswerRow> = {},
): AnswerRow =>
  anAnswer(questionId, length, {
    memory_operation: 'answer_refusal',
    expected_response: 'insufficient_evidence',
    gold: null,
    answer_type: 'refusal',
    answer_normalization: null,
    ...changes,
  });

export const aReply = (requestId: string, rawText: string): RequestRecord => ({
  v: 1,
  requestId,
  rawText,
  finishReason: 'stop',
  provider: 'p',
  model: 'm',
  servedModel: null,
  decodeMaxTokens: 64,
  offered: { audio: 1, video: 0 },
  consumed: { audio: 1, video: 0 },
  userTurns: 1,
  history: [],
  promptSha256: 'x',
  attempts: [
    {
      attempt: 1,
      timeUtc: '2026-01-01T00:00:00Z',
      maxTokens: 64,
      httpStatus: 200,
      responseId: null,
      kind: null,
      message: null,
      elapsedSeconds: 1,
      usage: unknownUsage,
      costMicroUsd: null,
    },
  ],
});

export const aFailure = (
  requestId: string,
  kind: string,
  changes: Partial<FailureRecord> = {},
): FailureRecord => ({
  v: 1,
  requestId,
  status: 'error',
  kind,
  message: `${kind} it was`,
  blockedBy: null,
  refusal: false,
  attempts: [],
  ...changes,
});

export const files = {
  media: 'data/media.json',
  sessions: 'data/sessions.jsonl',
  items: 'data/items.jsonl',
  answers: 'data/answers.jsonl',
  transcripts: 'data/transcripts.jsonl',
};

const manifestOf = (paths: readonly string[]): string =>
  JSON.stringify(
    Object.fromEntries(paths.map((path) => [path, { sha256: path.slice(6, 70), bytes: 32_044, seconds: 1 }])),
  );

export interface Rows {
  sessions: readonly (SessionRow | Record<string, unknown> | string)[];
  items: readonly (ItemRow | Record<string, unknown> | string)[];
  answers?: readonly (AnswerRow | Record<string, unknown> | string)[];
  transcripts?: readonly (TranscriptRow | Record<string, unknown>)[];
  /** Paths, or the manifest's text. */
  media?: readonly string[] | string;
}

/** The texts of a release as its reader gets them. */
export const textsOf = ({ sessions, items, answers, transcripts, media }: Rows): ReleaseTexts => {
  const text = (file: string, rows: readonly unknown[]) => ({
    file,
    lines: rows.map((row) => (typeof row === 'string' ? row : JSON.stringify(row))),
  });
  return {
    sessions: text(files.sessions, sessions),
    items: text(files.items, items),
    answers: answers === undefined ? null : text(files.answers, answers),
    transcripts: transcripts === undefined ? null : text(files.transcripts, transcripts),
    media:
      media === undefined
        ? null
        : { file: files.media, text: typeof media === 'string' ? media : manifestOf(media) },
  };
};
