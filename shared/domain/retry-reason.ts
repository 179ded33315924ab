export const retryReasons = ['rate_limit', 'server', 'network', 'timeout', 'reply'] as const;
export type RetryReason = (typeof retryReasons)[number];

const networkKinds: readonly string[] = [
  'connect_failed',
  'connection_reset',
  'protocol_error',
  'incomplete_stream',
];

/**
 * Why a call that failed is (or was) worth another one: the provider's rate, its server, the way there, the deadline,
 * or a reply that cannot be used. What is final at once (refusals, 4xx) has no such reason: null.
 */
export const retryReasonOf = (kind: string): RetryReason | null => {
  if (kind === 'http_429') return 'rate_limit';
  if (/^http_(5\d\d|408|409|425)$/.test(kind)) return 'server';
  if (networkKinds.includes(kind)) return 'network';
  if (kind === 'timeout') return 'timeout';
  return ['empty_response', 'invalid_response', 'length_truncated'].includes(kind) ? 'reply' : null;
};

/** Counts by kind, summed by reason; kinds without one are left out. */
export const countsByReason = (counts: Readonly<Record<string, number>>): Record<RetryReason, number> => {
  const sums = Object.fromEntries(retryReasons.map((reason) => [reason, 0])) as Record<RetryReason, number>;
  for (const [kind, times] of Object.entries(counts)) {
    const reason = retryReasonOf(kind);
    if (reason !== null) sums[reason] += times;
  }
  return sums;
};
