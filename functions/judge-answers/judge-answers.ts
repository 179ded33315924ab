import type { JudgeProtocol } from '../../shared/benchmarks/benchmark.ts';
import type { Attempt } from '../../shared/contracts/records.ts';
import type { JudgeSettings } from '../../shared/contracts/run.ts';
import type { JudgeAnswersMessage, JudgeOutcome } from '../../shared/contracts/stage-messages.ts';
import { type StoppingOutcome, stopsLane, waitBeforeRetrySeconds } from '../../shared/domain/backoff.ts';
import { callCostMicroUsd } from '../../shared/domain/cost.ts';
import type { CallOutcome } from '../../shared/domain/outcome.ts';
import { keys } from '../../shared/keys.ts';
import { runAccount } from '../../shared/naming.ts';
import type { CallGate } from '../../shared/ports/call-gate.ts';
import type { ChatCaller } from '../../shared/ports/chat-caller.ts';
import type { Clock } from '../../shared/ports/clock.ts';
import type { Ledger } from '../../shared/ports/ledger.ts';
import type { ObjectStore } from '../../shared/ports/object-store.ts';
import type { Random } from '../../shared/ports/random.ts';
import { callWithinBudget, secondsUntilMoneyIsFree } from '../../shared/stages/budget.ts';
import { callWithPermit, enterGate, timesTurnedAway } from '../../shared/stages/call-gate.ts';
import {
  chunkRequest,
  loadChunk,
  readJudgeReply,
  stopJudging,
  writeChunkAttempts,
  writeReviews,
} from '../../shared/stages/judge-chunks.ts';
import { readAttempts } from '../../shared/stages/records.ts';

export interface JudgeAtWork {
  judge: string;
  settings: JudgeSettings;
  caller: ChatCaller;
  protocol: JudgeProtocol;
  /** Every call asks it for leave; without one all calls start at once. */
  gate?: CallGate;
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
    const { request, promptTokensAtMost } = chunkRequest(chunk, atWork.protocol, atWork.settings);
    const { maxTokens } = request;
    const attemptsBefore = earlier.length - message.attemptsBefore;
    const permit = await enterGate(
      atWork.gate,
      {
        tokensAtMost: promptTokensAtMost + maxTokens,
        timesTurnedAway: timesTurnedAway(earlier.slice(message.attemptsBefore)),
      },
      async () => (await store.getText(keys.judging.stopped(run))) !== null,
    );
    if (permit === 'stopped') return { ...facts, status: 'stopped' };
    if ('waitSeconds' in permit) {
      return { ...facts, status: 'retry', attempt: attemptsBefore, waitSeconds: permit.waitSeconds };
    }
    const startedMs = ports.clock.now();
    const startedMonotonic = ports.clock.monotonic();
    const billed = { holdsMedia: false, timeUtc: new Date(startedMs).toISOString() };
    const markStopped = ({ kind, message: why }: StoppingOutcome) =>
      stopJudging(store, run, { kind, message: why, timeUtc: billed.timeUtc });
    const makeIt = () =>
      callWithinBudget({
        ledger: ports.ledger,
        accounts: atWork.hasBudget ? [runAccount(run)] : [],
        price: atWork.settings.price,
        promptTokensAtMost,
        maxTokens,
        billed,
        call: () =>
          atWork.caller.complete({ ...request, deadlineMs: atWork.settings.deadlineSeconds * 1000 }),
      });
    const called = await callWithPermit(permit, makeIt, markStopped);
    if (called === 'spent') return { ...facts, status: 'budget', attempt: attemptsBefore };
    if (called === 'held') {
      return { ...facts, status: 'retry', attempt: attemptsBefore, waitSeconds: secondsUntilMoneyIsFree };
    }
    const attemptsNow = attemptsBefore + 1;
    const read = readJudgeReply(called, chunk, atWork.protocol, attemptsNow >= atWork.settings.attempts);
    ports.onCall?.({ run, status: called.status, kind: read.kind });
    if (read.verdicts !== null) await writeReviews(store, atWork.judge, read.verdicts);
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
      costMicroUsd: callCostMicroUsd(called.usage, atWork.settings.price, billed),
    };
    await writeChunkAttempts(store, run, chunkId, [...earlier, attempt]);

    if (read.verdicts !== null) return { ...facts, status: 'done', attempt: attemptsNow };
    const retryAfterSeconds = called.status === 'retry' ? called.retryAfterSeconds : null;
    const stops = stopsLane(called);
    const status = stops ? 'stopped' : read.isPassing ? 'retry' : 'failed';
    const waitSeconds = waitBeforeRetrySeconds(
      attemptsNow,
      retryAfterSeconds,
      atWork.settings.backoff,
      ports.random.next(),
    );
    return { chunkId, status, kind: read.kind, attempt: attemptsNow, waitSeconds };
  };
