import type { CallOutcome } from './outcome.ts';

export interface Backoff {
  baseSeconds: number;
  maxSeconds: number;
}

const longestWaitSeconds = 300;

/** True where the provider wants us to wait so long (a daily quota) that it cannot serve now: stop, do not hold on. */
export const asksToWaitTooLong = (retryAfterSeconds: number | null): boolean =>
  retryAfterSeconds !== null && retryAfterSeconds > longestWaitSeconds;

/**
 * Whole seconds to wait before attempt `attempt` + 1. The provider's own wish counts where it has one;
 * else exponential with full jitter: uniform in [0, min(max, base · 2^(attempt − 1))], rounded up.
 */
export const waitBeforeRetrySeconds = (
  attempt: number,
  retryAfterSeconds: number | null,
  backoff: Backoff,
  random: number,
): number => {
  if (retryAfterSeconds !== null) return Math.ceil(retryAfterSeconds);
  const ceiling = Math.min(backoff.maxSeconds, backoff.baseSeconds * 2 ** (attempt - 1));
  return Math.ceil(random * ceiling);
};

export type StoppingOutcome = Extract<CallOutcome, { status: 'stop_lane' | 'retry' }>;

/** True where no further call can succeed for now: the lane, or the judge, stops with this outcome's message. */
export const stopsLane = (outcome: CallOutcome): boolean =>
  outcome.status === 'stop_lane' ||
  (outcome.status === 'retry' && asksToWaitTooLong(outcome.retryAfterSeconds));
