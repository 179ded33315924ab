import { describe, expect, it } from 'vitest';
import { createLaneLimiter, type LaneLimiter, type StartedCall } from '../../../shared/domain/rate-limit.ts';
import { type Seen, seededDraws, simulate } from './simulated-server.ts';

const backoff = { baseSeconds: 1, maxSeconds: 60 };
const plain = { tokensAtMost: 0, mayProbe: true };

const started = (limiter: LaneLimiter, nowMs: number, wish = plain): StartedCall => {
  const call = limiter.start(nowMs, wish);
  if ('askAtMs' in call) throw new Error(`no call may start before ${call.askAtMs}`);
  return call;
};
/** Starts calls until the limiter wants to be asked later. */
const startAll = (limiter: LaneLimiter, nowMs: number): StartedCall[] => {
  const calls: StartedCall[] = [];
  for (;;) {
    const call = limiter.start(nowMs, plain);
    if ('askAtMs' in call) return calls;
    calls.push(call);
  }
};

/** Episodes from the last look before `from` to the first one after it that fits. */
const episodesUntil = (
  seen: readonly Seen[],
  from: (look: Seen) => boolean,
  fits: (limit: number) => boolean,
) => {
  const first = seen.findIndex(from);
  const there = seen.findIndex(({ limit }, index) => index >= first && fits(limit));
  return there === -1 ? Number.POSITIVE_INFINITY : seen[there]!.episodes - seen[first]!.episodes;
};

describe('a lane limiter at a server with a fixed number of slots', () => {
  const latencies = {
    constant: () => () => 100,
    jittered: () => {
      const draw = seededDraws(3);
      return () => 50 + 100 * draw();
    },
    'long-tailed': () => {
      const draw = seededDraws(5);
      return () => 20 - 80 * Math.log(1 - draw());
    },
  };
  for (const [name, latency] of Object.entries(latencies)) {
    for (const capacity of [8, 32, 100]) {
      it(`wastes at most 2 % of its calls at ${capacity} slots of ${name} latency, and leaves few of them empty`, () => {
        const run = simulate({
          capacity: () => capacity,
          latencyMs: latency(),
          requests: 100 * capacity,
          limiter: { maxInFlight: 128 },
        });

        expect(run.turnedAway / run.calls).toBeLessThanOrEqual(0.02);
        // All latencies have a mean of 100 ms, and the way takes 2.
        const idealMs = 100 * 102;
        expect(idealMs / run.elapsedMs).toBeGreaterThanOrEqual(0.8);
        expect(run.mostAttempts).toBeLessThanOrEqual(3);
      });
    }
  }

  it('uses every slot that it may have, also 300 of them', () => {
    const run = simulate({
      capacity: () => Number.POSITIVE_INFINITY,
      latencyMs: () => 100,
      requests: 10_000,
      limiter: { maxInFlight: 300 },
      wayMs: 0,
    });

    expect(run.peakAtServer).toBe(300);
    expect(run.turnedAway).toBe(0);
  });

  it('is never above the number of calls that it may have in flight', () => {
    const run = simulate({
      capacity: () => Number.POSITIVE_INFINITY,
      latencyMs: () => 100,
      requests: 500,
      limiter: { maxInFlight: 3 },
    });

    expect(run.peakAtServer).toBe(3);
    expect(Math.max(...run.seen.map(({ limit }) => limit))).toBe(3);
  });
});

describe('a lane limiter at a server whose slots change', () => {
  it('follows from 32 to 8 and to 64 within a few episodes', () => {
    const run = simulate({
      capacity: (_, served) => (served < 1000 ? 32 : served < 2000 ? 8 : 64),
      latencyMs: () => 100,
      requests: 6000,
      limiter: { maxInFlight: 128 },
    });

    const fall = episodesUntil(
      run.seen,
      ({ served }) => served >= 1000,
      (limit) => limit <= 12,
    );
    const rise = episodesUntil(
      run.seen,
      ({ served }) => served >= 2000,
      (limit) => limit >= 0.8 * 64,
    );
    const late = run.seen.filter(({ served }) => served > 4000);
    expect(fall).toBeLessThanOrEqual(5);
    expect(rise).toBeLessThanOrEqual(3);
    expect(late.every(({ limit }) => limit >= 0.8 * 64 && limit <= 66)).toBe(true);
    expect(run.turnedAway / run.calls).toBeLessThanOrEqual(0.02);
  });

  it('comes down from 64 to at most 12 at 8 slots, and up again when there are 64', () => {
    const run = simulate({
      capacity: (_, served) => (served < 1000 ? 8 : 64),
      latencyMs: () => 100,
      requests: 4000,
      limiter: { maxInFlight: 64, startAt: 64 },
    });

    expect(
      episodesUntil(
        run.seen,
        () => true,
        (limit) => limit <= 12,
      ),
    ).toBeLessThanOrEqual(5);
    expect(run.seen.filter(({ served }) => served > 2500).every(({ limit }) => limit >= 52)).toBe(true);
  });

  it('loses no request where the slots become few: none needs its last attempt', () => {
    const run = simulate({
      capacity: (_, served) => (served < 1000 ? 64 : 2),
      latencyMs: () => 100,
      requests: 2000,
      limiter: { maxInFlight: 128 },
    });

    expect(run.mostAttempts).toBeLessThanOrEqual(4);
  });

  it('asks ever more rarely while the server takes nothing, and is back soon after', () => {
    const [downMs, upMs] = [3_000, 603_000];
    const run = simulate({
      capacity: (atMs) => (atMs > downMs && atMs < upMs ? 0 : 32),
      latencyMs: () => 100,
      requests: 3000,
      limiter: { maxInFlight: 64 },
      atOnce: 192,
    });

    const asked = run.startsAtMs.filter((atMs) => atMs > downMs + 10_000 && atMs < upMs);
    // Ten minutes of at most one call a minute once the waits have grown, 2 + 4 + 8 … before.
    expect(asked.length).toBeLessThanOrEqual(16);
    expect(run.mostAttempts).toBeLessThanOrEqual(4);
    expect(run.elapsedMs).toBeLessThan(upMs + 60_000 + 12_000);
  });
});

describe('a 429', () => {
  it('lowers the limit once for all calls that had begun before', () => {
    const limiter = createLaneLimiter({ maxInFlight: 64, startAt: 10, backoff });
    const calls = startAll(limiter, 0);

    limiter.end(calls[9]!, 5, { status: 'rate_limited' });
    const after = limiter.state(5);
    for (const call of calls.slice(5, 9)) limiter.end(call, 6, { status: 'rate_limited' });

    expect(calls).toHaveLength(10);
    expect(after).toMatchObject({ limit: 9, episodes: 1 });
    // The lowest of them tells where the limit of the server is.
    expect(limiter.state(6)).toMatchObject({ limit: 5, inFlight: 5, episodes: 1 });
  });

  it('holds the lane until its Retry-After is over, the longest of several', () => {
    const limiter = createLaneLimiter({ maxInFlight: 4, backoff });
    const [first, second, third] = startAll(limiter, 0);

    limiter.end(first!, 1000, { status: 'rate_limited', retryAfterSeconds: 20 });
    limiter.end(second!, 1000, { status: 'rate_limited', retryAfterSeconds: 5 });
    limiter.end(third!, 2000, { status: 'served' });

    expect(limiter.state(2000).heldUntilMs).toBe(21_000);
    expect(limiter.start(20_999, plain)).toEqual({ askAtMs: 21_000 });
    expect(limiter.start(21_000, plain)).toMatchObject({ startedMs: 21_000 });
    expect(limiter.state(21_000).heldUntilMs).toBeNull();
  });

  it('without any call served between holds the lane longer each time, for the lane’s back-off at most', () => {
    const limiter = createLaneLimiter({ maxInFlight: 1, backoff: { baseSeconds: 1, maxSeconds: 6 } });
    const holds: number[] = [];
    let nowMs = 0;
    for (let round = 0; round < 7; round += 1) {
      limiter.end(started(limiter, nowMs), nowMs + 10, { status: 'rate_limited' });
      const until = limiter.state(nowMs + 10).heldUntilMs ?? nowMs + 10;
      holds.push((until - nowMs - 10) / 1000);
      nowMs = until;
    }

    expect(holds).toEqual([0, 0, 1, 2, 4, 6, 6]);
  });
});

describe('what is not a 429', () => {
  it('leaves the limit as it is: server errors and time-outs', () => {
    const run = simulate({
      capacity: () => Number.POSITIVE_INFINITY,
      latencyMs: () => 100,
      requests: 1000,
      limiter: { maxInFlight: 32 },
      failsAt: (call) => call % 2 === 0,
    });
    const limits = run.seen.map(({ limit }) => limit);

    expect(run.failed).toBeGreaterThan(900);
    expect(limits.every((limit, index) => index === 0 || limit >= limits[index - 1]!)).toBe(true);
    expect(run.peakAtServer).toBe(32);
  });

  it('counts for nothing where no call was made', () => {
    const limiter = createLaneLimiter({
      maxInFlight: 8,
      limits: { requestsPerMinute: 1, tokensPerMinute: 100 },
      backoff,
    });
    const call = started(limiter, 0, { tokensAtMost: 100, mayProbe: true });
    const before = limiter.start(0, plain);

    limiter.end(call, 0, { status: 'not_made' });

    expect(before).toEqual({ askAtMs: 60_000 });
    expect(limiter.start(0, plain)).toMatchObject({ startedMs: 0 });
  });
});

describe('a request that was turned away before', () => {
  it('starts only where others have been served, and alone where nobody is', () => {
    const limiter = createLaneLimiter({ maxInFlight: 8, startAt: 8, backoff });
    const careful = { tokensAtMost: 0, mayProbe: false };

    const alone = started(limiter, 0, careful);
    const besideOne = limiter.start(0, careful);
    const others = [started(limiter, 0), started(limiter, 0)];
    limiter.end(others[1]!, 100, { status: 'served' });
    const afterProof = limiter.start(100, careful);

    expect(alone.level).toBe(1);
    expect(besideOne).toEqual({ askAtMs: Number.POSITIVE_INFINITY });
    expect(afterProof).toMatchObject({ level: 3 });
  });
});

describe('limits of a minute', () => {
  /** Starts as many calls as it may over so long, each of which takes no time. */
  const startsOver = (
    limiter: LaneLimiter,
    ms: number,
    tokensAtMost = 0,
    used: number | null = null,
  ): number[] => {
    const starts: number[] = [];
    for (let nowMs = 0; nowMs < ms; ) {
      const call = limiter.start(nowMs, { tokensAtMost, mayProbe: true });
      if ('askAtMs' in call) {
        nowMs = Math.max(nowMs + 1, call.askAtMs);
        continue;
      }
      starts.push(nowMs);
      limiter.end(call, nowMs, { status: 'served', tokens: used });
    }
    return starts;
  };
  const mostInAMinute = (starts: readonly number[]): number =>
    Math.max(...starts.map((from) => starts.filter((at) => at >= from && at < from + 60_000).length));

  for (const requestsPerMinute of [1, 10, 60, 600]) {
    it(`keeps any 60 seconds at ${requestsPerMinute} requests at most, and uses nine tenths of them`, () => {
      const limiter = createLaneLimiter({ maxInFlight: 50, limits: { requestsPerMinute }, backoff });

      const starts = startsOver(limiter, 600_000);

      expect(mostInAMinute(starts)).toBeLessThanOrEqual(requestsPerMinute);
      expect(starts.length).toBeGreaterThanOrEqual(0.9 * 10 * requestsPerMinute);
    });
  }

  it('takes tokens at what calls really used of the most that they could', () => {
    const limiter = createLaneLimiter({ maxInFlight: 50, limits: { tokensPerMinute: 60_000 }, backoff });

    const starts = startsOver(limiter, 600_000, 2000, 200);

    // 300 calls of 200 tokens a minute; reserved at their most it would be 30.
    expect(mostInAMinute(starts)).toBeLessThanOrEqual(300);
    expect(starts.length).toBeGreaterThanOrEqual(0.9 * 10 * 300);
  });

  it('lets a call through that is larger than the bucket, and makes the next one wait for what it took', () => {
    const limiter = createLaneLimiter({ maxInFlight: 50, limits: { tokensPerMinute: 1000 }, backoff });
    const large = { tokensAtMost: 500, mayProbe: true };

    const first = started(limiter, 0, large);
    limiter.end(first, 0, { status: 'served', tokens: 500 });
    const second = limiter.start(0, large);

    // The bucket holds 50 and fills with 951 a minute: from −450 to 50.
    expect(second).toEqual({ askAtMs: Math.ceil(500 / (951 / 60_000)) });
  });
});
