import type { CostTally } from '../contracts/costs.ts';
import type { Attempt } from '../contracts/records.ts';
import { mayBeCharged } from './cost.ts';

const tokenFields = [
  'inputTokens',
  'outputTokens',
  'cachedInputTokens',
  'reasoningTokens',
  'audioInputTokens',
  'videoInputTokens',
  'imageInputTokens',
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
  costMicroUsd: 0,
  unmeteredCalls: 0,
});

/** Sum that stays unknown once a part is unknown. */
const add = (sum: number | null, part: number | null): number | null =>
  sum === null || part === null ? null : sum + part;

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
    tally.costMicroUsd = add(tally.costMicroUsd, attempt.costMicroUsd);
  }
};
