import type { Benchmark, Verdict } from '../../shared/benchmarks/benchmark.ts';
import type { Attempt } from '../../shared/contracts/records.ts';
import { type JudgeChunk, judgeChunk, type Review } from '../../shared/contracts/reviews.ts';
import type { JudgeSettings } from '../../shared/contracts/run.ts';
import type { JudgeAnswersMessage, JudgeOutcome } from '../../shared/contracts/stage-messages.ts';
import { asksToWaitTooLong, waitBeforeRetrySeconds } from '../../shared/domain/backoff.ts';
import { callCostMicroUsd } from '../../shared/domain/cost.ts';
import type { CallOutcome } from '../../shared/domain/outcome.ts';
import { errorNames, TurnsweepError } from '../../shared/errors.ts';
import { keys } from '../../shared/keys.ts';
import { runAccount } from '../../shared/naming.ts';
import type { ChatCaller } from '../../shared/ports/chat-caller.ts';
import type { Clock } from '../../shared/ports/clock.ts';
import type { Ledger } from '../../shared/ports/ledger.ts';
import type { ObjectStore } from '../../shared/ports/object-store.ts';
import type { Random } from '../../shared/ports/random.ts';
import { callWithinBudget, secondsUntilMoneyIsFree } from '../../shared/stages/budget.ts';
import { readAttempts } from '../../shared/stages/records.ts';
import { readStored } from '../../shared/stages/stored-json.ts';

export interface JudgeAtWork {
  judge: string;
  settings: JudgeSettings;
  caller: ChatCaller;
  prompts: Benchmark['judge'];
  /** True where the run has a budget: then money is reserved before each call. */
  hasBudget: boolean;
}

export interface JudgeAnswersPorts {
  store: ObjectStore;
  ledger: Ledger;
  clock: Clock;
  random: Random;
  judgeAtWork(run: string): Promise<JudgeAtWork>;
  onCall?(event: { run: string; status: CallOutcome['status']; kind: string | null }): void;
}

/**
 * The stage that talks to the judge. It reads chunks of review items and writes reviews, nothing else: it
 * cannot learn whose answers they are. A reply whose ids or words do not match exactly voids the chunk.
 */
export const createJudgeAnswers =
  (ports: JudgeAnswersPorts) =>
  async (message: JudgeAnswersMessage): Promise<JudgeOutcome> => {
    const { store } = ports;
    const { run, chunkId } = message;
    const facts = { chunkId, kind: null, attempt: 0, waitSeconds: 0 };
    // Another worker may have stopped, and a later start lets it go on: the store knows.
    if ((await store.getText(keys.judging.stopped(run))) !== null) return { ...facts, status: 'stopped' };
    const chunk = await loadChunk(store, run, chunkId);
    const logKey = keys.judging.chunkAttempts(run, chunkId);
    const { attempts: earlier } = await readAttempts(store, logKey);
    if (earlier.some((attempt) => attempt.kind === null)) return { ...facts, status: 'done' };

    const atWork = await ports.judgeAtWork(run);
    const { system, user } = atWork.prompts.buildRequest(chunk.items);
    const startedMs = ports.clock.now();
    const startedMonotonic = ports.clock.monotonic();
    const { maxTokens } = atWork.settings;
    const called = await callWithinBudget({
      ledger: ports.ledger,
      accounts: atWork.hasBudget ? [runAccount(run)] : [],
      price: atWork.settings.price,
      promptTokensAtMost: Buffer.byteLength(system) + Buffer.byteLength(user),
      maxTokens,
      call: () =>
        atWork.caller.complete({
          messages: [
            { role: 'system', content: system },
            { role: 'user', content: user },
          ],
          maxTokens,
          deadlineMs: atWork.settings.deadlineSeconds * 1000,
          reasoningEffort: atWork.settings.reasoningEffort ?? undefined,
        }),
    });
    const attemptsBefore = earlier.length - message.attemptsBefore;
    if (called === 'spent') return { ...facts, status: 'budget', attempt: attemptsBefore };
    if (called === 'held') {
      return { ...facts, status: 'retry', attempt: attemptsBefore, waitSeconds: secondsUntilMoneyIsFree };
    }
    const read = readReply(called, chunk, atWork.prompts);
    ports.onCall?.({ run, status: called.status, kind: read.kind });
    if (read.kind === null) await writeReviews(store, atWork.judge, read.verdicts);
    const attempt: Attempt = {
      attempt: earlier.length + 1,
      timeUtc: new Date(startedMs).toISOString(),
      maxTokens,
      httpStatus: called.httpStatus,
      responseId: called.responseId,
      kind: read.kind,
      message: read.message,
      elapsedSeconds: Math.round(ports.clock.monotonic() - startedMonotonic) / 1000,
      usage: called.usage,
      costMicroUsd: callCostMicroUsd(called.usage, atWork.settings.price),
    };
    // After the reviews: its success entry says that all of them are there.
    await store.put(logKey, JSON.stringify({ v: 1, requestId: chunkId, attempts: [...earlier, attempt] }));

    const attemptsNow = attempt.attempt - message.attemptsBefore;
    if (read.kind === null) return { ...facts, status: 'done', attempt: attemptsNow };
    const retryAfterSeconds = called.status === 'retry' ? called.retryAfterSeconds : null;
    const stops = called.status === 'stop_lane' || asksToWaitTooLong(retryAfterSeconds);
    if (stops) {
      const marker = { v: 1, kind: read.kind, message: read.message, timeUtc: attempt.timeUtc };
      await store.put(keys.judging.stopped(run), JSON.stringify(marker));
    }
    const status = stops ? 'stopped' : read.isPassing ? 'retry' : 'failed';
    const waitSeconds = waitBeforeRetrySeconds(
      attemptsNow,
      retryAfterSeconds,
      atWork.settings.backoff,
      ports.random.next(),
    );
    return { chunkId, status, kind: read.kind, attempt: attemptsNow, waitSeconds };
  };

const loadChunk = async (store: ObjectStore, run: string, chunkId: string): Promise<JudgeChunk> => {
  const key = keys.judging.chunk(run, chunkId);
  const chunk = await readStored(store, key, judgeChunk);
  if (chunk === null)
    throw new TurnsweepError(errorNames.objectMissing, 'no such judge chunk', { where: key });
  return chunk;
};

type ReadReply =
  | { kind: null; message: null; verdicts: Map<string, Verdict> }
  | { kind: string; message: string; isPassing: boolean };

const readReply = (called: CallOutcome, chunk: JudgeChunk, prompts: Benchmark['judge']): ReadReply => {
  if (called.status === 'ok') {
    const parsed = prompts.parseReply(called.text, chunk.items);
    if (parsed.ok) return { kind: null, message: null, verdicts: parsed.verdicts };
    return { kind: parsed.kind, message: parsed.message, isPassing: true };
  }
  if (called.status === 'length') {
    return { kind: 'length_truncated', message: 'the judge was cut by its token cap', isPassing: false };
  }
  return { kind: called.kind, message: called.message, isPassing: called.status === 'retry' };
};

const writeReviews = async (
  store: ObjectStore,
  judge: string,
  verdicts: Map<string, Verdict>,
): Promise<void> => {
  for (const [key, verdict] of verdicts) {
    const review: Review = { v: 1, key, judge, ...verdict };
    await store.putIfAbsent(keys.reviews.review(judge, key), JSON.stringify(review));
  }
};
