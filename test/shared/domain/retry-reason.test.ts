import { describe, expect, it } from 'vitest';
import { countsByReason, retryReasonOf } from '../../../shared/domain/retry-reason.ts';

describe('the reason for another call', () => {
  it('keeps a provider’s rate, its server, the way there and the deadline apart', () => {
    const kinds = [
      'http_429',
      'http_500',
      'http_503',
      'http_408',
      'connection_reset',
      'connect_failed',
      'timeout',
    ];

    expect(kinds.map(retryReasonOf)).toEqual([
      'rate_limit',
      'server',
      'server',
      'server',
      'network',
      'network',
      'timeout',
    ]);
  });

  it('is none where a failure is final', () => {
    expect(['http_400', 'http_403', 'provider_refusal', 'finish_content_filter'].map(retryReasonOf)).toEqual([
      null,
      null,
      null,
      null,
    ]);
  });

  it('sums counts of kinds', () => {
    const counts = { http_429: 3, http_500: 1, http_502: 2, timeout: 4, empty_response: 5, http_400: 9 };

    expect(countsByReason(counts)).toEqual({ rate_limit: 3, server: 3, network: 0, timeout: 4, reply: 5 });
  });
});
