import { z } from 'zod';
import type { CallOutcome, ErrorKind } from '../../domain/outcome.ts';
import { unknownUsage } from '../../domain/outcome.ts';
import type { ClipCounts, ResolvedRequest } from '../../domain/request.ts';
import { errorNames, type Problem, TurnsweepError } from '../../errors.ts';
import type { ModelClient } from '../../ports/model-client.ts';
import { cleanMessage } from '../chat-completions/errors.ts';
import { readUsage } from '../chat-completions/usage.ts';

const recordedRow = z.object({
  request_id: z.string(),
  status: z.enum(['ok', 'error', 'blocked']),
  raw_text: z.string().nullish(),
  error: z.unknown().optional(),
  finish_reason: z.string().nullish(),
  usage: z.unknown().optional(),
  input_tokens: z.unknown().optional(),
  response_id: z.string().nullish(),
  model: z.string().nullish(),
  native_history: z.array(z.object({ request_id: z.string(), raw_text: z.string() })).nullish(),
  consumed_media_counts: z.object({ audio: z.number().optional(), video: z.number().optional() }).nullish(),
});
type RecordedRow = z.infer<typeof recordedRow>;

const namedKind =
  /^(length_truncated|empty_response|incomplete_stream|provider_refusal|connect_failed|connection_reset|timeout|protocol_error|invalid_response|worker_lost|http_\d{3}|finish_[a-z0-9_]+|recorded_[a-z0-9_]+)$/;

const errorKind = (error: unknown): ErrorKind => {
  const name = typeof error === 'string' ? error : error == null ? 'error' : JSON.stringify(error);
  if (namedKind.test(name)) return name as ErrorKind;
  const plain = name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '_')
    .slice(0, 60);
  return `recorded_${plain.replace(/^_+|_+$/g, '') || 'error'}`;
};

const outcomeOf = (row: RecordedRow): CallOutcome => {
  const facts = {
    httpStatus: null,
    responseId: row.response_id ?? null,
    servedModel: row.model ?? null,
    finishReason: row.finish_reason ?? null,
    usage: row.usage == null ? { ...unknownUsage, ...inputOnly(row.input_tokens) } : readUsage(row.usage),
  };
  const failed = (kind: ErrorKind, message: string): CallOutcome => ({
    status: 'failed',
    kind,
    message,
    ...facts,
  });
  if (row.status === 'blocked') return failed('blocked', 'the recording holds no reply: its history failed');
  if (row.status === 'error') {
    const kind = errorKind(row.error);
    const message = cleanMessage(`the recording holds an error: ${JSON.stringify(row.error)}`, null);
    return kind === 'provider_refusal'
      ? { status: 'refused', kind, message, ...facts }
      : failed(kind, message);
  }
  if (row.finish_reason === 'length')
    return failed('length_truncated', 'the recorded reply was cut by its token cap');
  const text = row.raw_text ?? '';
  if (text.trim() === '') return failed('empty_response', 'the recorded reply has no text');
  return { status: 'ok', text, ...facts };
};

const inputOnly = (tokens: unknown) => ({ inputTokens: readUsage({ prompt_tokens: tokens }).inputTokens });

const sameReply = (a: RecordedRow, b: RecordedRow): boolean =>
  a.status === b.status && a.raw_text === b.raw_text && JSON.stringify(a.error) === JSON.stringify(b.error);

/** Reads a recording whole; every line that cannot be used is told, with its 1-based number. */
const readRecording = async (lines: Lines) => {
  const rows = new Map<string, RecordedRow>();
  const problems: { line: number; message: string }[] = [];
  let line = 0;
  const fault = (message: string) => problems.push({ line, message });
  for await (const text of lines) {
    line += 1;
    if (text.trim() === '') continue;
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch {
      fault('recording has a line that is not JSON');
      continue;
    }
    const parsed = recordedRow.safeParse(value);
    if (!parsed.success) {
      const issue = parsed.error.issues[0];
      fault(`recorded reply is not valid: ${issue?.path.join('.')}: ${issue?.message}`);
      continue;
    }
    const row = parsed.data;
    const first = rows.get(row.request_id);
    if (first && !sameReply(first, row)) fault(`recording has two different replies to ${row.request_id}`);
    rows.set(row.request_id, first ?? row);
  }
  return { rows, problems };
};

type Lines = Iterable<string> | AsyncIterable<string>;

/** Faults of a recording, to be told before a run begins; empty for one that can be replayed. */
export const recordingProblems = async (origin: string, lines: Lines): Promise<Problem[]> =>
  (await readRecording(lines)).problems.map((problem) => ({ file: origin, ...problem }));

const loadRecording = async (lines: Lines, origin: string): Promise<Map<string, RecordedRow>> => {
  const { rows, problems } = await readRecording(lines);
  const [first] = problems;
  if (first === undefined) return rows;
  throw new TurnsweepError(errorNames.benchmarkInvalid, first.message, { where: `${origin}:${first.line}` });
};

const clipsOf = (request: ResolvedRequest): ClipCounts => {
  const parts = request.messages.flatMap((message) => (message.role === 'user' ? message.content : []));
  const count = (type: 'audio' | 'video') => parts.filter((part) => part.type === type).length;
  return { audio: count('audio'), video: count('video') };
};

/** A recorded reply belongs to the history that it was given after, and to no other. */
const followsHistory = (row: RecordedRow, request: ResolvedRequest): boolean => {
  if (!row.native_history) return true;
  const shown = request.messages.flatMap((message) => (message.role === 'assistant' ? [message.text] : []));
  return (
    shown.length === row.native_history.length &&
    row.native_history.every(({ raw_text }, index) => raw_text === shown[index])
  );
};

/**
 * Model client that answers from a recording (`predictions.jsonl` of a release), matched by request id. The file is
 * read once, at the first call. Throws `BenchmarkInvalid`, with file and line, for a recording that cannot be read or
 * holds two different replies to one request. A reply that is missing, or was given after another history, is
 * `recording_missing`, never a guess.
 */
export const createRecordedClient = (options: {
  lines: () => AsyncIterable<string>;
  /** Name of the recording in errors. */
  origin: string;
}): ModelClient => {
  let recording: Promise<Map<string, RecordedRow>> | null = null;
  const missing = (message: string): CallOutcome => ({
    status: 'failed',
    kind: 'recording_missing',
    message: cleanMessage(message, null),
    httpStatus: null,
    responseId: null,
    servedModel: null,
    finishReason: null,
    usage: unknownUsage,
  });
  return {
    call: async (request) => {
      recording ??= loadRecording(options.lines(), options.origin);
      const row = (await recording).get(request.requestId);
      if (!row) {
        const outcome = missing(`${options.origin} has no reply to ${request.requestId}`);
        return { ...outcome, consumed: { audio: 0, video: 0 } };
      }
      const seen = row.consumed_media_counts;
      const consumed = seen ? { audio: seen.audio ?? 0, video: seen.video ?? 0 } : clipsOf(request);
      if (!followsHistory(row, request)) {
        const outcome = missing(
          `the reply of ${options.origin} to ${request.requestId} follows another history`,
        );
        return { ...outcome, consumed };
      }
      return { ...outcomeOf(row), consumed };
    },
    close: async () => {},
  };
};
