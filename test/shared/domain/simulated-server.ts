import { type Backoff, waitBeforeRetrySeconds } from '../../../shared/domain/backoff.ts';
import {
  createLaneLimiter,
  type LaneLimiterOptions,
  type StartedCall,
} from '../../../shared/domain/rate-limit.ts';

export interface Simulation {
  /** Calls that the server takes at once, at a moment and after so many served calls. */
  capacity: (atMs: number, served: number) => number;
  /** Milliseconds that a call is at the server; one number, or a draw. */
  latencyMs: () => number;
  requests: number;
  limiter: Partial<LaneLimiterOptions> & { maxInFlight: number };
  /** Way to the server and back, each. */
  wayMs?: number;
  retryAfterSeconds?: number | null;
  /** Of the calls that the server takes, those that end in a server error: by their number. */
  failsAt?: (call: number) => boolean;
  backoff?: Backoff;
  /** Requests at work or waiting at once; further ones follow as these end. */
  atOnce?: number;
}

export interface Seen {
  atMs: number;
  served: number;
  limit: number;
  episodes: number;
}

/** Uniform numbers in [0, 1) that a seed decides (Numerical Recipes' linear congruence). */
export const seededDraws = (seed: number) => {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
};

/**
 * A lane whose requests are called with leave of the limiter, against a server with so many slots, in time that is only
 * counted. A request that was turned away waits as the state machine makes it wait and comes back last.
 */
export const simulate = (simulation: Simulation) => {
  const { wayMs = 1, retryAfterSeconds = null, backoff = { baseSeconds: 1, maxSeconds: 60 } } = simulation;
  const limiter = createLaneLimiter({ backoff, ...simulation.limiter });
  const draw = seededDraws(1);
  const events: { atMs: number; order: number; run: () => void }[] = [];
  const queue: { turnedAway: number; attempts: number }[] = [];
  const seen: Seen[] = [];
  const startsAtMs: number[] = [];
  let [nowMs, order, atServer, served, turnedAway, failed, calls, begun] = [0, 0, 0, 0, 0, 0, 0, 0];
  let [peakAtServer, mostAttempts, wakeAtMs] = [0, 0, Number.POSITIVE_INFINITY];

  const at = (atMs: number, run: () => void) => {
    order += 1;
    events.push({ atMs, order, run });
  };
  const look = () => seen.push({ atMs: nowMs, served, ...limiter.state(nowMs) });
  const begin = () => {
    if (begun >= simulation.requests) return;
    begun += 1;
    queue.push({ turnedAway: 0, attempts: 0 });
  };
  const end = (call: StartedCall, end: Parameters<typeof limiter.end>[2]) => {
    limiter.end(call, nowMs, end);
    look();
    pump();
  };
  const pump = () => {
    for (let index = 0; index < queue.length; ) {
      const request = queue[index]!;
      const mayProbe = request.turnedAway < 2;
      const call = limiter.start(nowMs, { tokensAtMost: 10, mayProbe });
      if ('askAtMs' in call) {
        if (call.askAtMs < wakeAtMs) {
          wakeAtMs = call.askAtMs;
          at(wakeAtMs, () => {
            wakeAtMs = Number.POSITIVE_INFINITY;
            pump();
          });
        }
        if (mayProbe) return;
        index += 1;
        continue;
      }
      queue.splice(index, 1);
      calls += 1;
      const number = calls;
      request.attempts += 1;
      mostAttempts = Math.max(mostAttempts, request.attempts);
      startsAtMs.push(nowMs);
      at(nowMs + wayMs, () => {
        if (atServer >= simulation.capacity(nowMs, served)) {
          at(nowMs + wayMs, () => {
            turnedAway += 1;
            request.turnedAway += 1;
            const waitSeconds = waitBeforeRetrySeconds(request.attempts, retryAfterSeconds, backoff, draw());
            at(nowMs + waitSeconds * 1000, () => {
              queue.push(request);
              pump();
            });
            end(call, { status: 'rate_limited', retryAfterSeconds });
          });
          return;
        }
        atServer += 1;
        peakAtServer = Math.max(peakAtServer, atServer);
        at(nowMs + simulation.latencyMs(), () => {
          atServer -= 1;
          at(nowMs + wayMs, () => {
            const hasFailed = simulation.failsAt?.(number) ?? false;
            if (hasFailed) {
              failed += 1;
              queue.push(request);
            } else {
              served += 1;
              begin();
            }
            end(call, { status: hasFailed ? 'failed' : 'served' });
          });
        });
      });
    }
  };

  for (let index = 0; index < (simulation.atOnce ?? 3 * simulation.limiter.maxInFlight); index += 1) begin();
  look();
  pump();
  while (served < simulation.requests) {
    let next = 0;
    for (let index = 1; index < events.length; index += 1) {
      const [a, b] = [events[index]!, events[next]!];
      if (a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order)) next = index;
    }
    const [event] = events.splice(next, 1);
    if (event === undefined) throw new Error('nothing is going on any more');
    nowMs = event.atMs;
    event.run();
  }
  return {
    elapsedMs: nowMs,
    served,
    turnedAway,
    failed,
    calls,
    peakAtServer,
    mostAttempts,
    seen,
    startsAtMs,
  };
};
