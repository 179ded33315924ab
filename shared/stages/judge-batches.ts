import type { JudgeProtocol } from '../benchmarks/benchmark.ts';
import { type JudgeBatch, judgeBatch } from '../contracts/judge-batch.ts';
import type { BatchSettings, JudgeSettings } from '../contracts/run.ts';
import { type Price, type PriceList, reservationMicroUsd } from '../domain/cost.ts';
import type { CallOutcome } from '../domain/outcome.ts';
import { keys } from '../keys.ts';
import type { ChatBatch } from '../ports/chat-batch.ts';
import type { Clock } from '../ports/clock.ts';
import type { Ledger } from '../ports/ledger.ts';
import type { ObjectStore } from '../ports/object-store.ts';
import type { Random } from '../ports/random.ts';
import { readAhead } from './read-ahead.ts';
import { readStored } from './stored-json.ts';

/** The judge of a run as the two stages of the batch interface need it. */
export interface JudgeBatchAtWork {
  judge: string;
  settings: JudgeSettings;
  batch: ChatBatch;
  protocol: JudgeProtocol;
  /** True where the run may have a budget: then money is booked. */
  hasBudget: boolean;
}

export interface JudgeBatchPorts {
  store: ObjectStore;
  ledger: Ledger;
  clock: Clock;
  random: Random;
  judgeBatchAtWork(run: string): Promise<JudgeBatchAtWork>;
  onCall?(event: { run: string; status: CallOutcome['status']; kind: string | null }): void;
}

export interface StoredBatch {
  key: string;
  batch: JudgeBatch;
}

/** True while the provider may be at work on it: its chunks must not be asked about in another way. */
export const isOpen = ({ batch }: StoredBatch): boolean =>
  batch.state === 'submitting' || batch.state === 'open';

/** Every batch of a run in the order of submission. Throws `ObjectDamaged`. */
export const readBatches = async (
  store: Pick<ObjectStore, 'getText' | 'list'>,
  run: string,
): Promise<StoredBatch[]> => {
  const found = await Array.fromAsync(store.list(keys.judging.batches(run)));
  const read = (key: string) => readStored(store, key, judgeBatch);
  const batches: StoredBatch[] = [];
  for await (const [key, batch] of readAhead(found, read)) if (batch !== null) batches.push({ key, batch });
  return batches;
};

/** Whether a batch of an earlier start, with this judge, is still to be collected. */
export const hasOpenBatch = async (
  store: Pick<ObjectStore, 'getText' | 'list'>,
  run: string,
  judge: string,
): Promise<boolean> =>
  (await readBatches(store, run)).some((stored) => stored.batch.judge === judge && isOpen(stored));

/** The judge's price with what the provider's batch interface costs of it, unless the price itself says that. */
export const batchPrice = ({
  settings,
  batch,
}: Pick<JudgeBatchAtWork, 'settings' | 'batch'>): Price | null => {
  const { price } = settings;
  if (price === null) return null;
  const withShare = <List extends PriceList>(list: List): List => ({
    ...list,
    batchMultiplier: list.batchMultiplier ?? batch.priceMultiplier,
  });
  return { ...withShare(price), changes: price.changes?.map(withShare) };
};

/** The most that a chunk can cost in a batch, in millionths of a dollar; 0 where no price is known. */
export const mostOfChunk = (
  atWork: JudgeBatchAtWork,
  promptTokensAtMost: number,
  timeUtc: string,
): number => {
  const price = batchPrice(atWork);
  if (price === null) return 0;
  return reservationMicroUsd(promptTokensAtMost, atWork.settings.maxTokens, price, {
    batched: true,
    timeUtc,
  });
};

/** Growth of the wait between two looks at a batch. */
const pollGrowth = 1.5;

/** Whole seconds to wait before the look after `polls` looks. */
export const pollWaitSeconds = ({ poll }: BatchSettings, polls: number): number =>
  Math.ceil(Math.min(poll.maxSeconds, poll.baseSeconds * pollGrowth ** polls));
