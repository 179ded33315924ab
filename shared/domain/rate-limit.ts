import type { Backoff } from './backoff.ts';

/** Limits that a provider states for a model or an account; left out: none that we know of. */
export interface RateLimits {
  requestsPerMinute?: number;
  /** Tokens of prompts and replies together. */
  tokensPerMinute?: number;
}

export interface LaneLimiterOptions {
  /** Calls in flight at most, whatever the server would take. */
  maxInFlight: number;
  /** Calls in flight before the first reply is there. */
  startAt?: number;
  limits?: RateLimits;
  /** Waits of the whole lane while the server takes nothing at all. */
  backoff: Backoff;
}

export interface CallWish {
  /** Tokens of prompt and reply together that the call can take at most. */
  tokensAtMost: number;
  /** False: may start only where others have just been served, since one more 429 would cost too much. */
  mayProbe: boolean;
}

/** A call in flight. */
export interface StartedCall {
  /** Calls in flight at its start, itself included. */
  level: number;
  order: number;
  startedMs: number;
  tokensAtMost: number;
  tokensExpected: number;
}

export interface CallEnd {
  /** `failed`: anything that says nothing about the rate, server errors and time-outs included. */
  status: 'served' | 'rate_limited' | 'failed' | 'not_made';
  retryAfterSeconds?: number | null;
  /** Tokens that it took; null where nobody said. */
  tokens?: number | null;
}

export interface LimiterState {
  limit: number;
  inFlight: number;
  /** Times that the server turned calls away; 429s of calls from before a decrease belong to the same time. */
  episodes: number;
  /** No call starts before this moment; null where nothing holds the lane. */
  heldUntilMs: number | null;
}

export interface LaneLimiter {
  /** Starts a call now, or tells when to ask again; `Infinity`: after the end of another call. */
  start(nowMs: number, wish: CallWish): StartedCall | { askAtMs: number };
  end(call: StartedCall, nowMs: number, end: CallEnd): void;
  state(nowMs: number): LimiterState;
}

const usualStart = 4;
/** Between two looks above a limit that has failed: each look costs about one 429. */
const servedBetweenProbes = { atLeast: 100, perSlot: 10, atMost: 200 };
/** Where a 429 holds the lane as well, a look above the limit may cost 1/20 of the time. */
const holdsBetweenProbes = 20;
/** A server that turns a call away does so within this time, however long calls take that it serves. */
const longestClimbMs = 1000;
/** Share of the calls in flight that stays where a refusal does not tell which of them were too many. */
const keptFirst = 0.75;
/** Weight of the newest call in what is expected of the next one. */
const newest = 0.2;

/**
 * How many calls of a lane may be in flight, learnt from what the server does with them; time is passed in.
 *
 * - Up: the limit doubles once a call that filled it was served (slow start), up to just below the level that failed
 *   last; there it tries one more slot every 100 to 200 served calls. A slot that then holds for a whole round
 *   makes the failed level a thing of the past. Calls above what has been served so far start spaced over a call's time,
 *   so that the first refusal stops the climb.
 * - Down: once per episode, to below the refused level; at the second refusal in a row by a quarter, then by halves. All
 *   429s of calls that began before a decrease are of its episode. Server errors and time-outs change nothing.
 * - Hold: until the longest Retry-After is over; and where refusals follow each other with no call served between them,
 *   for the lane's back-off, longer each time.
 * - Per minute: no 60 seconds have more requests than the provider allows; tokens are taken at the expected count
 *   (the most a call can take, times the share that calls took lately) and corrected by the real one.
 */
export const createLaneLimiter = (options: LaneLimiterOptions): LaneLimiter => {
  const { maxInFlight, backoff, limits = {} } = options;
  let limit = Math.min(maxInFlight, options.startAt ?? usualStart);
  let inFlight = 0;
  let order = 0;
  /** Highest level at which a call was served since the last decrease. */
  let proven = 0;
  /** Highest level at which a call has started since; what is above is climbed, one call after the other. */
  let reached = 0;
  let failedAt: number | null = null;
  /** Calls from before this one belong to an episode that is over. */
  let decreasedAtOrder = 0;
  /** The limit before the latest episode. */
  let limitBefore = limit;
  let episodes = 0;
  /** Episodes since a call from after the decrease was served. */
  let episodesInARow = 0;
  /** Episodes since any call was served. */
  let barrenEpisodes = 0;
  let servedSinceEpisode = 0;
  let servedAboveFailed = 0;
  let heldUntilMs = Number.NEGATIVE_INFINITY;
  let probeNotBeforeMs = Number.NEGATIVE_INFINITY;
  let climbedAtMs = Number.NEGATIVE_INFINITY;
  let callMs: number | null = null;
  let tokenShare = 1;
  const requests = limits.requestsPerMinute === undefined ? null : createBucket(limits.requestsPerMinute);
  const tokens = limits.tokensPerMinute === undefined ? null : createBucket(limits.tokensPerMinute);

  /** When the next call may start where it is not known that the server takes it. */
  const climbAtMs = (): number => {
    if (callMs === null) return climbedAtMs;
    const steps = episodesInARow > 0 ? limit : Math.max(1, limit - proven);
    return climbedAtMs + Math.min(callMs / steps, longestClimbMs);
  };

  const hold = (nowMs: number, seconds: number): void => {
    heldUntilMs = Math.max(heldUntilMs, nowMs + seconds * 1000);
    probeNotBeforeMs = Math.max(probeNotBeforeMs, nowMs + holdsBetweenProbes * seconds * 1000);
  };

  /** What a refusal says of the server's limit: one call less, unless others have overtaken the call on their way. */
  const levelBelow = (call: StartedCall): number =>
    Math.max(1, call.level > inFlight / 2 ? call.level - 1 : Math.floor(inFlight * keptFirst));

  const setLimit = (to: number, call: StartedCall): void => {
    limit = to;
    // One slot stays, whatever has failed: a call served in it shows that the server is back.
    failedAt = to === 1 ? call.level : Math.max(call.level, to + 1);
    proven = Math.min(proven, limit);
    reached = Math.min(reached, limit);
  };

  const decrease = (call: StartedCall): void => {
    episodes += 1;
    episodesInARow += 1;
    barrenEpisodes += 1;
    limitBefore = limit;
    const kept = episodesInARow === 1 ? 1 : episodesInARow === 2 ? 0.75 : 0.5;
    setLimit(Math.max(1, Math.min(Math.floor(limit * kept), levelBelow(call))), call);
    if (episodesInARow > 1) [proven, reached] = [0, 0];
    decreasedAtOrder = order;
    servedSinceEpisode = 0;
    servedAboveFailed = 0;
  };

  const turnedAway = (call: StartedCall, nowMs: number, retryAfterSeconds: number | null): void => {
    if (call.order >= decreasedAtOrder) decrease(call);
    // Of the same episode, and it tells more exactly where the server's limit is.
    else if (levelBelow(call) < limit && levelBelow(call) >= limitBefore / 2)
      setLimit(levelBelow(call), call);
    if (retryAfterSeconds !== null) hold(nowMs, retryAfterSeconds);
    else if (barrenEpisodes > 2) {
      hold(nowMs, Math.min(backoff.maxSeconds, backoff.baseSeconds * 2 ** (barrenEpisodes - 3)));
    }
  };

  const served = (call: StartedCall, nowMs: number): void => {
    const took = nowMs - call.startedMs;
    callMs = callMs === null ? took : callMs + newest * (took - callMs);
    barrenEpisodes = 0;
    servedSinceEpisode += 1;
    if (call.order < decreasedAtOrder) return;
    episodesInARow = 0;
    proven = Math.max(proven, Math.min(call.level, limit));
    if (failedAt !== null && call.level >= failedAt) {
      servedAboveFailed += 1;
      if (servedAboveFailed >= limit) failedAt = null;
    }
    if (proven >= limit && limit < maxInFlight) grow(nowMs);
  };

  const grow = (nowMs: number): void => {
    if (failedAt === null) limit = Math.min(maxInFlight, 2 * limit);
    else if (limit < failedAt - 1) limit = Math.min(maxInFlight, 2 * limit, failedAt - 1);
    else if (limit < failedAt) {
      const { atLeast, perSlot, atMost } = servedBetweenProbes;
      const wanted = Math.min(atMost, Math.max(atLeast, perSlot * limit));
      if (servedSinceEpisode >= wanted && nowMs >= probeNotBeforeMs) limit += 1;
    }
  };

  return {
    start(nowMs, { tokensAtMost, mayProbe }) {
      if (nowMs < heldUntilMs) return { askAtMs: heldUntilMs };
      if (inFlight >= limit) return { askAtMs: Number.POSITIVE_INFINITY };
      const level = inFlight + 1;
      if (level > proven && !mayProbe && inFlight > 0) return { askAtMs: Number.POSITIVE_INFINITY };
      const isClimb = level > reached || episodesInARow > 0;
      if (isClimb && nowMs < climbAtMs()) return { askAtMs: climbAtMs() };
      const tokensExpected = tokensAtMost * tokenShare;
      const askAtMs = Math.max(
        requests?.hasAtMs(1, nowMs) ?? nowMs,
        tokens?.hasAtMs(tokensExpected, nowMs) ?? nowMs,
      );
      if (askAtMs > nowMs) return { askAtMs };
      requests?.take(1);
      tokens?.take(tokensExpected);
      if (isClimb) [reached, climbedAtMs] = [Math.max(reached, level), nowMs];
      inFlight = level;
      const call = { level, order, startedMs: nowMs, tokensAtMost, tokensExpected };
      order += 1;
      return call;
    },
    end(call, nowMs, { status, retryAfterSeconds = null, tokens: used = null }) {
      if (status === 'not_made') {
        inFlight -= 1;
        requests?.give(1);
        tokens?.give(call.tokensExpected);
        return;
      }
      if (used !== null) {
        tokens?.give(call.tokensExpected - used);
        if (call.tokensAtMost > 0) tokenShare += newest * (used / call.tokensAtMost - tokenShare);
      } else if (status === 'rate_limited') tokens?.give(call.tokensExpected);
      if (status === 'rate_limited') turnedAway(call, nowMs, retryAfterSeconds);
      else if (status === 'served') served(call, nowMs);
      inFlight -= 1;
    },
    state: (nowMs) => ({ limit, inFlight, episodes, heldUntilMs: heldUntilMs > nowMs ? heldUntilMs : null }),
  };
};

/** Part of a minute's amount that may be taken at once after a pause. */
const burstShare = 1 / 20;

/** Amounts of which any 60 seconds have at most `perMinute`, as a bucket that fills evenly. */
const createBucket = (perMinute: number) => {
  const most = Math.max(1, Math.floor(perMinute * burstShare));
  // A full bucket and what then runs in make up the minute; the last unit comes as it ends.
  const perMs = (perMinute - most + 1) / 60_000;
  let level = most;
  let filledAtMs: number | null = null;
  return {
    /** When `amount` is there; an amount larger than the bucket has to wait for a full one. */
    hasAtMs: (amount: number, nowMs: number): number => {
      if (filledAtMs !== null) level = Math.min(most, level + (nowMs - filledAtMs) * perMs);
      filledAtMs = nowMs;
      // In whole milliseconds, so that asking then does find it.
      const missing = Math.min(amount, most) - level;
      return missing <= 1e-9 ? nowMs : nowMs + Math.ceil(missing / perMs);
    },
    take: (amount: number): void => {
      level -= amount;
    },
    give: (amount: number): void => {
      level = Math.min(most, level + amount);
    },
  };
};
