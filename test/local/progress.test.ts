import { expect, it } from 'vitest';
import { createProgress } from '../../local/progress.ts';

it('counts retries apart by what was wrong, and tells for how long a lane is held', () => {
  const progress = createProgress([{ lane: 'a', total: 3, done: 0, excluded: 0, openViews: new Set() }]);
  progress.watchRate('a', () => ({ limit: 2, inFlight: 0, episodes: 1, heldSeconds: 45 }));
  const kinds = [
    'http_429',
    'http_429',
    'http_500',
    'http_503',
    'http_504',
    'connection_reset',
    'timeout',
    'empty_response',
    'http_400',
    null,
  ];

  for (const kind of kinds) progress.call({ lane: 'a', kind, costMicroUsd: null });

  const [lane] = progress.snapshot().lanes;
  expect(lane).toMatchObject({
    calls: 10,
    retries: { http_429: 2, http_500: 1, http_400: 1 },
    rate: { heldSeconds: 45 },
  });
  // A bad request is no reason to ask again.
  expect(lane!.retriesByReason).toEqual({ rate_limit: 2, server: 3, network: 1, timeout: 1, reply: 1 });
});
