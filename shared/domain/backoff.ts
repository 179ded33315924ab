export interface Backoff {
  baseSeconds: number;
  maxSeconds: number;
}

/** A provider that wants us to wait longer than this cannot serve the lane now (seconds). */
export const longestWaitSeconds = 300;

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
  if (retryAfterSeconds !== null) return Math.ceil(Math.min(retryAfterSeconds, longestWaitSeconds));
  const ceiling = Math.min(backoff.maxSeconds, backoff.baseSeconds * 2 ** (attempt - 1));
  return Math.ceil(random * ceiling);
};
