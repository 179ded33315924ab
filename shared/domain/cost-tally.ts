import type { CostTally } from '../contracts/costs.ts';
import type { Attempt } from '../contracts/records.ts';
import { mayBeCharged, roundMicroUsd } from './cost.ts';

const tokenFields = [
  'inputTokens',
  'outputTokens',
  'cachedInputTokens',
  'reasoningTokens',
  'audioInputTokens',
  'videoInputTokens',
  'imageInputTokens',
  'textInputTokens',
] as const;

export const emptyTally = (lane: string, phase: CostTally['phase']): CostTally => ({
  lane,
  phase,
  calls: 0,
  reused: 0,
  retries: {},
  inputTokens: 0,
  outputTokens: 0,
  cachedInputTokens: 0,
  reasoningTokens: 0,
  audioInputTokens: 0,
  videoInputTokens: 0,
  imageInputTokens: 0,
  textInputTokens: 0,
  costMicroUsd: 0,
  unmeteredCalls: 0,
  knownCostMicroUsd: 0,
  unpricedCalls: 0,
  avoidedMicroUsd: 0,
});

/** Sum that stays unknown once a part is unknown. */
const add = (sum: number | null, part: number | null): number | null =>
  sum === null || part === null ? null : sum + part;

const addMoney = (sum: number | null, part: number | null): number | null => {
  const added = add(sum, part);
  return added === null ? null : roundMicroUsd(added);
};

/** Books the attempts of one request: each is a call; those that failed are counted by kind. */
export const bookAttempts = (tally: CostTally, attempts: readonly Attempt[]): void => {
  for (const attempt of attempts) {
    tally.calls += 1;
    if (attempt.kind !== null) {
      tally.retries[attempt.kind] = (tally.retries[attempt.kind] ?? 0) + 1;
      if (attempt.usage.inputTokens === null && attempt.usage.outputTokens === null) {
        if (mayBeCharged(attempt)) tally.unmeteredCalls += 1;
        continue;
      }
    }
    for (const field of tokenFields) tally[field] = add(tally[field], attempt.usage[field]);
    tally.costMicroUsd = addMoney(tally.costMicroUsd, attempt.costMicroUsd);
    if (attempt.costMicroUsd === null) tally.unpricedCalls += 1;
    else tally.knownCostMicroUsd = roundMicroUsd(tally.knownCostMicroUsd + attempt.costMicroUsd);
  }
};

/** Books needs that a reply already there has served: each is a call that was not made, at what it had cost. */
export const bookReuse = (tally: CostTally, attempts: readonly Attempt[], times: number): void => {
  if (times === 0) return;
  tally.reused += times;
  const cost = attempts.find((attempt) => attempt.kind === null)?.costMicroUsd ?? null;
  tally.avoidedMicroUsd = addMoney(tally.avoidedMicroUsd, cost === null ? null : cost * times);
};

/** Books a phase whose calls were replayed from a file: nothing was paid, and what it would have cost was avoided. */
export const bookAsReplayed = (tally: CostTally): void => {
  tally.avoidedMicroUsd = addMoney(tally.avoidedMicroUsd, tally.costMicroUsd);
  Object.assign(tally, { costMicroUsd: 0, knownCostMicroUsd: 0, unpricedCalls: 0, unmeteredCalls: 0 });
};
