import { describe, expect, it } from 'vitest';
import type { Attempt } from '../../../shared/contracts/records.ts';
import { bookAsReplayed, bookAttempts, bookReuse, emptyTally } from '../../../shared/domain/cost-tally.ts';
import { unknownUsage } from '../../../shared/domain/outcome.ts';

const attemptWith = (attempt: Partial<Attempt>): Attempt => ({
  attempt: 1,
  timeUtc: '2026-11-30T09:00:00.000Z',
  maxTokens: 64,
  httpStatus: 200,
  responseId: null,
  kind: null,
  message: null,
  elapsedSeconds: 1,
  usage: { ...unknownUsage, inputTokens: 100, outputTokens: 10 },
  costMicroUsd: 0.1,
  ...attempt,
});

describe('a tally of costs', () => {
  it('sums without noise, and keeps what is known beside a sum that is not', () => {
    const tally = emptyTally('lane', 'generate');

    bookAttempts(tally, [attemptWith({}), attemptWith({}), attemptWith({})]);
    expect(tally).toMatchObject({ calls: 3, costMicroUsd: 0.3, knownCostMicroUsd: 0.3, unpricedCalls: 0 });

    bookAttempts(tally, [attemptWith({ costMicroUsd: null })]);
    expect(tally).toMatchObject({ calls: 4, costMicroUsd: null, knownCostMicroUsd: 0.3, unpricedCalls: 1 });
  });

  it('counts a reused reply as a call avoided at what the reply had cost, retries left out', () => {
    const tally = emptyTally('lane', 'generate');
    const attempts = [
      attemptWith({ kind: 'http_500', costMicroUsd: null }),
      attemptWith({ costMicroUsd: 7 }),
    ];

    bookReuse(tally, attempts, 3);
    bookReuse(tally, attempts, 0);

    expect(tally).toMatchObject({ calls: 0, reused: 3, costMicroUsd: 0, avoidedMicroUsd: 21 });
  });

  it('does not guess what a reply of unknown cost has avoided', () => {
    const tally = emptyTally('lane', 'generate');

    bookReuse(tally, [attemptWith({ costMicroUsd: null })], 1);

    expect(tally).toMatchObject({ reused: 1, avoidedMicroUsd: null, costMicroUsd: 0 });
  });

  it('takes nothing for replayed replies', () => {
    const tally = emptyTally('lane', 'generate');
    bookAttempts(tally, [attemptWith({ costMicroUsd: 5 })]);
    bookReuse(tally, [attemptWith({ costMicroUsd: 5 })], 1);

    bookAsReplayed(tally);

    expect(tally).toMatchObject({ calls: 1, costMicroUsd: 0, knownCostMicroUsd: 0, avoidedMicroUsd: 10 });
  });
});
