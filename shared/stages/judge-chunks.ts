import type { JudgeProtocol, Verdict } from '../benchmarks/benchmark.ts';
import type { Attempt } from '../contracts/records.ts';
import { type JudgeChunk, judgeChunk, type Review } from '../contracts/reviews.ts';
import type { JudgeSettings } from '../contracts/run.ts';
import type { CallOutcome } from '../domain/outcome.ts';
import { errorNames, TurnsweepError } from '../errors.ts';
import { keys } from '../keys.ts';
import type { ChatRequest } from '../ports/chat-caller.ts';
import type { ObjectStore } from '../ports/object-store.ts';
import { readStored } from './stored-json.ts';

/** A chunk to judge. Throws `ObjectMissing` where there is none. */
export const loadChunk = async (
  store: Pick<ObjectStore, 'getText'>,
  run: string,
  chunkId: string,
): Promise<JudgeChunk> => {
  const key = keys.judging.chunk(run, chunkId);
  const chunk = await readStored(store, key, judgeChunk);
  if (chunk === null)
    throw new TurnsweepError(errorNames.objectMissing, 'no such judge chunk', { where: key });
  return chunk;
};

/** What the judge is asked about a chunk: the same however it is sent. `promptTokensAtMost` is for its cost. */
export const chunkRequest = (
  chunk: JudgeChunk,
  protocol: JudgeProtocol,
  settings: Pick<JudgeSettings, 'maxTokens' | 'reasoningEffort'>,
): {
  request: Pick<ChatRequest, 'messages' | 'maxTokens' | 'reasoningEffort'>;
  promptTokensAtMost: number;
} => {
  const { system, user } = protocol.buildRequest(chunk.items);
  return {
    request: {
      messages: [
        { role: 'system', content: system },
        { role: 'user', content: user },
      ],
      maxTokens: settings.maxTokens,
      reasoningEffort: settings.reasoningEffort ?? undefined,
    },
    promptTokensAtMost: Buffer.byteLength(system) + Buffer.byteLength(user),
  };
};

export interface ReadReply {
  /** What is wrong with the reply; null where nothing is. */
  kind: string | null;
  message: string | null;
  /** Null: the chunk has none yet. */
  verdicts: Map<string, Verdict> | null;
  /** Asking again may help. */
  isPassing: boolean;
}

/**
 * What a judge's reply says. One whose ids or words do not match exactly voids the whole chunk; on the last attempt
 * the benchmark may have verdicts that say so.
 */
export const readJudgeReply = (
  called: CallOutcome,
  chunk: JudgeChunk,
  protocol: JudgeProtocol,
  isLastAttempt: boolean,
): ReadReply => {
  if (called.status === 'ok') {
    const parsed = protocol.parseReply(called.text, chunk.items);
    if (parsed.ok) return { kind: null, message: null, verdicts: parsed.verdicts, isPassing: false };
    const { kind, message } = parsed;
    const verdicts = (isLastAttempt && protocol.unreadable?.(chunk.items)) || null;
    return { kind, message, verdicts, isPassing: verdicts === null };
  }
  const none = { verdicts: null, isPassing: called.status === 'retry' };
  if (called.status === 'length') {
    return { ...none, kind: 'length_truncated', message: 'the judge was cut by its token cap' };
  }
  return { ...none, kind: called.kind, message: called.message };
};

export const writeReviews = async (
  store: Pick<ObjectStore, 'putIfAbsent'>,
  judge: string,
  verdicts: Map<string, Verdict>,
): Promise<void> => {
  for (const [key, verdict] of verdicts) {
    const review: Review = { v: 1, key, judge, ...verdict };
    await store.putIfAbsent(keys.reviews.review(judge, key), JSON.stringify(review));
  }
};

/** Writes a chunk's attempts. After its reviews: a success entry says that all of them are there. */
export const writeChunkAttempts = async (
  store: Pick<ObjectStore, 'put'>,
  run: string,
  chunkId: string,
  attempts: readonly Attempt[],
): Promise<void> =>
  store.put(keys.judging.chunkAttempts(run, chunkId), JSON.stringify({ v: 1, requestId: chunkId, attempts }));

/** Notes for people and for the rest of this start that the judge cannot go on; gone at the next start. */
export const stopJudging = async (
  store: Pick<ObjectStore, 'put'>,
  run: string,
  why: { kind: string; message: string; timeUtc: string },
): Promise<void> => store.put(keys.judging.stopped(run), JSON.stringify({ v: 1, ...why }));
