import type { JudgeBatch } from '../../shared/contracts/judge-batch.ts';
import type { Attempt } from '../../shared/contracts/records.ts';
import { type JudgeBatchOutcome, judgeBatchInput } from '../../shared/contracts/stage-messages.ts';
import { callCostMicroUsd, mayBeCharged } from '../../shared/domain/cost.ts';
import { type CallOutcome, unknownUsage } from '../../shared/domain/outcome.ts';
import { keys } from '../../shared/keys.ts';
import { runAccount } from '../../shared/naming.ts';
import type { BatchFault, BatchJob } from '../../shared/ports/chat-batch.ts';
import {
  batchPrice,
  isOpen,
  type JudgeBatchAtWork,
  type JudgeBatchPorts,
  mostOfChunk,
  pollWaitSeconds,
  readBatches,
  type StoredBatch,
} from '../../shared/stages/judge-batches.ts';
import {
  chunkRequest,
  loadChunk,
  readJudgeReply,
  stopJudging,
  writeChunkAttempts,
  writeReviews,
} from '../../shared/stages/judge-chunks.ts';
import { readAttempts } from '../../shared/stages/records.ts';

/** Looks in a row that may fail in passing: with the usual waits some four hours of a provider's outage. */
const faultsAtMost = 20;
/** Providers end a batch within a day; one that has not ended in two is for people. */
const overdueMs = 48 * 3_600_000;
/** Chunks written at once. */
const writtenAtOnce = 32;

type BatchChunk = JudgeBatch['chunks'][number];

interface Settled {
  outcome: NonNullable<BatchChunk['outcome']>;
  costMicroUsd: number;
  /** Nothing that this judge is asked can succeed, and why. */
  stop: { kind: string; message: string } | null;
}

/**
 * Looks at every open batch, and books one that has ended: by the ids of its chunks alone, each reply through the
 * same reader as a call's, a missing or expired one as a failed attempt. It may be interrupted anywhere: what is
 * booked carries its attempt's number and is not booked again.
 */
export const createPollJudgeBatch =
  (ports: JudgeBatchPorts) =>
  async (rawInput: unknown): Promise<JudgeBatchOutcome> => {
    const { run, polls, tries } = judgeBatchInput.parse(rawInput);
    const { store } = ports;
    const atWork = await ports.judgeBatchAtWork(run);
    const poll = atWork.settings.batch?.poll ?? usualPoll;
    const timeUtc = new Date(ports.clock.now()).toISOString();
    const stopped = async (kind: string, message: string): Promise<JudgeBatchOutcome> => {
      await stopJudging(store, run, { kind, message, timeUtc });
      return { status: 'stopped', kind, waitSeconds: 0, polls: 0, tries: 0 };
    };
    const faulted = async (fault: BatchFault): Promise<JudgeBatchOutcome> => {
      const { kind, message } = fault;
      if (fault.status !== 'retry' || tries + 1 >= faultsAtMost) return stopped(kind, message);
      const waitSeconds = Math.max(
        pollWaitSeconds({ poll }, polls + 1),
        Math.ceil(Math.min(fault.retryAfterSeconds ?? 0, poll.maxSeconds)),
      );
      return { status: 'waiting', kind, waitSeconds, polls: polls + 1, tries: tries + 1 };
    };

    const open = (await readBatches(store, run)).filter(
      (found) => found.batch.judge === atWork.judge && isOpen(found),
    );
    let working = 0;
    for (const [index, stored] of open.entries()) {
      const seen = await lookAt(atWork, stored);
      if ('fault' in seen) return faulted(seen.fault);
      if (seen.job === null) {
        await store.put(stored.key, JSON.stringify({ ...stored.batch, state: 'void' }));
        await ports.ledger.settle(accountsOf(run, atWork), stored.batch.tag, 0);
        continue;
      }
      const { job } = seen;
      const batch = await opened(ports, run, atWork, stored, job);
      if (job.state === 'working') {
        if (ports.clock.now() - Date.parse(batch.submittedUtc) > overdueMs) {
          return stopped('batch_overdue', `batch ${job.id} has not ended after two days`);
        }
        working += 1;
        continue;
      }
      const collected = await collect(ports, run, atWork, { ...stored, batch }, job);
      if (collected.fault !== null) return faulted(collected.fault);
      if (collected.stop !== null) return stopped(collected.stop.kind, collected.stop.message);
      // The others have their own time.
      const isLast = index === open.length - 1 && working === 0;
      if (!isLast) return { status: 'waiting', kind: null, waitSeconds: 0, polls: 0, tries: 0 };
      const waitSeconds = job.state === 'failed' ? poll.maxSeconds : 0;
      return { status: 'collected', kind: job.failure?.kind ?? null, waitSeconds, polls: 0, tries: 0 };
    }
    if (working === 0) return { status: 'collected', kind: null, waitSeconds: 0, polls: 0, tries: 0 };
    const waitSeconds = pollWaitSeconds({ poll }, polls + 1);
    return { status: 'waiting', kind: null, waitSeconds, polls: polls + 1, tries: 0 };
  };

/** For a batch of an earlier start whose judge is not to use the interface any more. */
const usualPoll = { baseSeconds: 30, maxSeconds: 900 };

const accountsOf = (run: string, { hasBudget }: JudgeBatchAtWork): string[] =>
  hasBudget ? [runAccount(run)] : [];

const lookAt = async (
  { batch: provider }: JudgeBatchAtWork,
  { batch }: StoredBatch,
): Promise<{ job: BatchJob | null } | { fault: BatchFault }> =>
  batch.batchId === null ? provider.find(batch.tag) : provider.look(batch.batchId);

/** The batch with its id on record, its most booked. */
const opened = async (
  { store, ledger }: JudgeBatchPorts,
  run: string,
  atWork: JudgeBatchAtWork,
  { key, batch }: StoredBatch,
  job: BatchJob,
): Promise<JudgeBatch> => {
  if (batch.state === 'open') return batch;
  await ledger.settle(accountsOf(run, atWork), batch.tag, batch.mostMicroUsd);
  const found: JudgeBatch = { ...batch, state: 'open', batchId: job.id };
  await store.put(key, JSON.stringify(found));
  return found;
};

const collect = async (
  ports: JudgeBatchPorts,
  run: string,
  atWork: JudgeBatchAtWork,
  { key, batch }: StoredBatch,
  job: BatchJob,
): Promise<{ fault: BatchFault | null; stop: Settled['stop'] }> => {
  const waiting = new Map(batch.chunks.map((chunk) => [chunk.chunkId, chunk]));
  const settled = new Map<string, Settled>();
  let writing: Promise<unknown>[] = [];
  const settle = async (chunk: BatchChunk, called: CallOutcome) => {
    waiting.delete(chunk.chunkId);
    const work = settleChunk(ports, run, atWork, batch, chunk, called).then((result) =>
      settled.set(chunk.chunkId, result),
    );
    // Its rejection is thrown where it is waited for; until then it must not count as unhandled.
    work.catch(() => {});
    writing.push(work);
    if (writing.length < writtenAtOnce) return;
    await Promise.all(writing);
    writing = [];
  };

  const { fault } = await atWork.batch.results(job, async (id, called) => {
    const chunk = waiting.get(id);
    // An id that is not ours, or comes a second time, says nothing.
    if (chunk !== undefined) await settle(chunk, called);
  });
  if (fault === null && !wasNeverRun(job, batch)) {
    for (const chunk of [...waiting.values()]) await settle(chunk, job.failure ?? noResult(job));
  }
  await Promise.all(writing);
  if (fault !== null) return { fault, stop: null };

  const done: JudgeBatch = {
    ...batch,
    state: 'collected',
    kind: job.failure?.kind ?? null,
    chunks: batch.chunks.map((chunk) => ({
      ...chunk,
      outcome: settled.get(chunk.chunkId)?.outcome ?? 'retry',
    })),
  };
  await ports.store.put(key, JSON.stringify(done));
  // Last: interrupted before it, the run has spent too much on the books, never too little.
  const cost = [...settled.values()].reduce((sum, { costMicroUsd }) => sum + costMicroUsd, 0);
  await ports.ledger.settle(accountsOf(run, atWork), `${batch.tag}/collected`, cost - batch.mostMicroUsd);
  const stop = [...settled.values()].find((result) => result.stop !== null)?.stop ?? null;
  if (job.failure !== null && job.failure.status !== 'retry') return { fault: null, stop: job.failure };
  if (job.state !== 'cancelled') return { fault: null, stop };
  // Somebody wanted it to end: the next start may ask again, this one must not.
  return { fault: null, stop: { kind: 'batch_cancelled', message: `batch ${job.id} was cancelled` } };
};

/** True where fewer chunks at once are to be tried: that is no attempt at any of them. */
const wasNeverRun = (job: BatchJob, batch: JudgeBatch): boolean =>
  job.failure?.kind === 'batch_too_large' && batch.chunks.length > 1;

const noResult = ({ id, state }: BatchJob): BatchFault => {
  const kind =
    state === 'expired' ? 'batch_expired' : state === 'cancelled' ? 'batch_cancelled' : 'batch_missing';
  return {
    status: 'retry',
    kind,
    message: `batch ${id} has no result for this request`,
    retryAfterSeconds: null,
    httpStatus: null,
    responseId: null,
    servedModel: null,
    finishReason: null,
    usage: unknownUsage,
  };
};

const settleChunk = async (
  ports: JudgeBatchPorts,
  run: string,
  atWork: JudgeBatchAtWork,
  batch: JudgeBatch,
  { chunkId, attempt: number }: BatchChunk,
  called: CallOutcome,
): Promise<Settled> => {
  const { store } = ports;
  const { judge, protocol, settings } = atWork;
  const chunk = await loadChunk(store, run, chunkId);
  const { attempts: earlier } = await readAttempts(store, keys.judging.chunkAttempts(run, chunkId));
  const read = readJudgeReply(called, chunk, protocol, number >= settings.attempts);
  const { submittedUtc: timeUtc } = batch;
  const costMicroUsd = callCostMicroUsd(called.usage, batchPrice(atWork), {
    holdsMedia: false,
    batched: true,
    timeUtc,
  });
  const isCharged = mayBeCharged({ httpStatus: called.httpStatus, kind: read.kind });
  const { promptTokensAtMost } = chunkRequest(chunk, protocol, settings);
  const settled: Settled = {
    outcome: read.verdicts !== null ? 'done' : read.isPassing ? 'retry' : 'failed',
    costMicroUsd: costMicroUsd ?? (isCharged ? mostOfChunk(atWork, promptTokensAtMost, timeUtc) : 0),
    stop: called.status === 'stop_lane' ? { kind: called.kind, message: called.message } : null,
  };
  // Booked before an interruption.
  if (earlier.length >= number) return settled;
  if (read.verdicts !== null) await writeReviews(store, judge, read.verdicts);
  const attempt: Attempt = {
    attempt: number,
    timeUtc,
    maxTokens: settings.maxTokens,
    httpStatus: called.httpStatus,
    responseId: called.responseId,
    kind: read.kind,
    message: read.message,
    elapsedSeconds: Math.max(0, Math.round(ports.clock.now() - Date.parse(timeUtc)) / 1000),
    usage: called.usage,
    costMicroUsd,
  };
  await writeChunkAttempts(store, run, chunkId, [...earlier, attempt]);
  ports.onCall?.({ run, status: called.status, kind: read.kind });
  return settled;
};
