import { randomUUID } from 'node:crypto';
import type { JudgeBatch } from '../../shared/contracts/judge-batch.ts';
import { openChunk } from '../../shared/contracts/reviews.ts';
import { type JudgeBatchOutcome, judgeBatchInput } from '../../shared/contracts/stage-messages.ts';
import { asksToWaitTooLong, waitBeforeRetrySeconds } from '../../shared/domain/backoff.ts';
import { keys } from '../../shared/keys.ts';
import { runAccount } from '../../shared/naming.ts';
import type { BatchFault } from '../../shared/ports/chat-batch.ts';
import type { Ledger } from '../../shared/ports/ledger.ts';
import type { ObjectStore } from '../../shared/ports/object-store.ts';
import {
  isOpen,
  type JudgeBatchAtWork,
  type JudgeBatchPorts,
  mostOfChunk,
  pollWaitSeconds,
  readBatches,
  type StoredBatch,
} from '../../shared/stages/judge-batches.ts';
import { chunkRequest, loadChunk, stopJudging } from '../../shared/stages/judge-chunks.ts';
import { readAhead } from '../../shared/stages/read-ahead.ts';
import { readAttempts } from '../../shared/stages/records.ts';
import { readStoredLines } from '../../shared/stages/stored-json.ts';

/** Chunks in one batch at most, whatever the provider takes: the stage that collects them has limited time. */
const chunksAtMost = 10_000;

interface PendingChunk {
  chunkId: string;
  attempt: number;
}

interface Load {
  chunks: PendingChunk[];
  lines: Buffer[];
  mostMicroUsd: number;
}

/**
 * Hands every chunk that has no verdicts and attempts left to the provider as a batch, or several. A batch is
 * written down before anything is sent and carries a tag, so that one which a kill has left half submitted is found
 * again instead of being made and paid twice. Nothing is submitted while a batch of this judge is open.
 */
export const createSubmitJudgeBatch =
  (ports: JudgeBatchPorts) =>
  async (rawInput: unknown): Promise<JudgeBatchOutcome> => {
    const { run, tries } = judgeBatchInput.parse(rawInput);
    const { store, ledger } = ports;
    const outcome = (
      status: JudgeBatchOutcome['status'],
      more: Partial<JudgeBatchOutcome> = {},
    ): JudgeBatchOutcome => ({ status, kind: null, waitSeconds: 0, polls: 0, tries: 0, ...more });
    const atWork = await ports.judgeBatchAtWork(run);
    const { batch, judge, settings } = atWork;
    if (settings.batch === null) return outcome('done');

    const stored = await readBatches(store, run);
    const ofJudge = stored.filter((found) => found.batch.judge === judge);
    if (ofJudge.some(isOpen)) return outcome('waiting');
    const pending = await pendingChunks(store, run, settings.attempts, ofJudge);
    if (pending.length === 0) return outcome('done');

    const accounts = atWork.hasBudget ? [runAccount(run)] : [];
    const tooLarge = smallestTooLarge(ofJudge);
    const requestsAtMost = Math.min(
      chunksAtMost,
      batch.requestsAtMost,
      Math.max(1, Math.floor(tooLarge / 2)),
    );
    const submittedUtc = new Date(ports.clock.now()).toISOString();
    let roomMicroUsd = await roomOf(ledger, accounts);
    let submitted = 0;
    let fault: BatchFault | null = null;
    for (let at = 0; at < pending.length; ) {
      const wanted = pending.slice(at, at + requestsAtMost);
      const load = await loadOf(store, run, atWork, wanted, { roomMicroUsd, timeUtc: submittedUtc });
      if (load.chunks.length === 0) break;
      const tag = randomUUID();
      if (accounts.length > 0 && !(await ledger.reserve(accounts, tag, load.mostMicroUsd))) break;
      const name = String(stored.length + submitted + 1).padStart(6, '0');
      const key = keys.judging.batch(run, name);
      const intent: JudgeBatch = {
        v: 1,
        state: 'submitting',
        tag,
        judge,
        batchId: null,
        submittedUtc,
        mostMicroUsd: load.mostMicroUsd,
        kind: null,
        chunks: load.chunks.map((chunk) => ({ ...chunk, outcome: null })),
      };
      // Somebody else is submitting for this run: whatever it is, it is waited for.
      if (!(await store.putIfAbsent(key, JSON.stringify(intent)))) {
        await ledger.settle(accounts, tag, 0);
        return outcome('waiting', { waitSeconds: pollWaitSeconds(settings.batch, 0) });
      }
      const made = await batch.submit(load.lines, tag);
      if ('fault' in made && !made.mayExist) {
        await ledger.settle(accounts, tag, 0);
        await store.put(key, JSON.stringify({ ...intent, state: 'void', kind: made.fault.kind }));
        fault = made.fault;
        break;
      }
      submitted += 1;
      // Whether it was made is for the next look to find out; until then the reservation holds the money.
      if ('fault' in made) break;
      // The provider will charge it whatever happens here, so its most counts as spent until it is collected.
      await ledger.settle(accounts, tag, load.mostMicroUsd);
      await store.put(key, JSON.stringify({ ...intent, state: 'open', batchId: made.job.id }));
      at += load.chunks.length;
      roomMicroUsd -= load.mostMicroUsd;
      // More at once than the account may queue would only fail again.
      if (tooLarge < Number.POSITIVE_INFINITY) break;
    }
    if (submitted > 0) return outcome('waiting', { waitSeconds: pollWaitSeconds(settings.batch, 0) });
    if (fault === null) return outcome('budget');

    const triesNow = tries + 1;
    const { kind, message } = fault;
    const retryAfterSeconds = fault.status === 'retry' ? fault.retryAfterSeconds : null;
    const mayTryAgain = fault.status === 'retry' && triesNow < settings.attempts;
    if (!mayTryAgain || asksToWaitTooLong(retryAfterSeconds)) {
      await stopJudging(store, run, { kind, message, timeUtc: new Date(ports.clock.now()).toISOString() });
      return outcome('stopped', { kind });
    }
    const waitSeconds = waitBeforeRetrySeconds(
      triesNow,
      retryAfterSeconds,
      settings.backoff,
      ports.random.next(),
    );
    return outcome('retry', { kind, waitSeconds, tries: triesNow });
  };

/** Chunks of this start without verdicts that may be asked about once more. */
const pendingChunks = async (
  store: ObjectStore,
  run: string,
  attemptsAtMost: number,
  batches: readonly StoredBatch[],
): Promise<PendingChunk[]> => {
  const opened = await Array.fromAsync(readStoredLines(store, keys.judging.chunks(run), openChunk));
  const failedAt = new Map<string, number>();
  for (const { chunkId, attempt, outcome } of batches.flatMap(({ batch }) => batch.chunks)) {
    if (outcome === 'failed') failedAt.set(chunkId, Math.max(attempt, failedAt.get(chunkId) ?? 0));
  }
  const pending: PendingChunk[] = [];
  const read = ({ chunkId }: { chunkId: string }) =>
    readAttempts(store, keys.judging.chunkAttempts(run, chunkId));
  for await (const [{ chunkId, attemptsBefore }, { attempts }] of readAhead(opened, read)) {
    const isJudged = attempts.some((attempt) => attempt.kind === null);
    const hasFailed = (failedAt.get(chunkId) ?? 0) > attemptsBefore;
    if (isJudged || hasFailed || attempts.length - attemptsBefore >= attemptsAtMost) continue;
    pending.push({ chunkId, attempt: attempts.length + 1 });
  }
  return pending;
};

/** Size of the smallest batch that was more than the account may queue. */
const smallestTooLarge = (batches: readonly StoredBatch[]): number =>
  Math.min(
    ...batches
      .filter(({ batch }) => batch.kind === 'batch_too_large')
      .map(({ batch }) => batch.chunks.length),
    Number.POSITIVE_INFINITY,
  );

const roomOf = async (ledger: Pick<Ledger, 'balance'>, accounts: readonly string[]): Promise<number> => {
  const balances = await Promise.all(accounts.map((account) => ledger.balance(account)));
  return Math.min(
    ...balances.map(({ limitMicroUsd, spentMicroUsd, reservedMicroUsd }) =>
      limitMicroUsd === null ? Number.POSITIVE_INFINITY : limitMicroUsd - spentMicroUsd - reservedMicroUsd,
    ),
    Number.POSITIVE_INFINITY,
  );
};

/** As many of the chunks, from the first on, as one file and the money left have room for. */
const loadOf = async (
  store: ObjectStore,
  run: string,
  atWork: JudgeBatchAtWork,
  wanted: readonly PendingChunk[],
  { roomMicroUsd, timeUtc }: { roomMicroUsd: number; timeUtc: string },
): Promise<Load> => {
  const load: Load = { chunks: [], lines: [], mostMicroUsd: 0 };
  let bytes = 0;
  const read = ({ chunkId }: PendingChunk) => loadChunk(store, run, chunkId);
  for await (const [pending, chunk] of readAhead(wanted, read)) {
    const { request, promptTokensAtMost } = chunkRequest(chunk, atWork.protocol, atWork.settings);
    const line = atWork.batch.encode(pending.chunkId, request);
    const most = mostOfChunk(atWork, promptTokensAtMost, timeUtc);
    bytes += line.length + 1;
    if (load.mostMicroUsd + most > roomMicroUsd) break;
    if (bytes > atWork.batch.bytesAtMost && load.chunks.length > 0) break;
    load.chunks.push(pending);
    load.lines.push(line);
    load.mostMicroUsd += most;
  }
  return load;
};
