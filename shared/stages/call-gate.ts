import { asksToWaitTooLong, type StoppingOutcome, stopsLane } from '../domain/backoff.ts';
import type { CallOutcome } from '../domain/outcome.ts';
import type { CallEnd, LaneLimiter, LimiterState, StartedCall } from '../domain/rate-limit.ts';
import { retryReasonOf } from '../domain/retry-reason.ts';
import type { CallGate, GateWish, Permit } from '../ports/call-gate.ts';
import type { Clock } from '../ports/clock.ts';
import type { Ledger } from '../ports/ledger.ts';
import type { Concurrency } from './queue-consumer.ts';

/** A request that was turned away this often starts only where calls are being served: attempts are few. */
const turnsBeforeCare = 2;

/** Also a fault inside a stream that had begun may be one of the rate. */
const isOfRate = (outcome: CallOutcome): boolean =>
  outcome.status === 'retry' && (outcome.httpStatus === 429 || outcome.kind === 'http_429');

/** Who asks for more than a worker may wait stops the lane, which nobody has to wait for. */
const wishOf = (outcome: CallOutcome): number | null => {
  const seconds = outcome.status === 'retry' ? outcome.retryAfterSeconds : null;
  return asksToWaitTooLong(seconds) ? null : seconds;
};

const endOf = (outcome: CallOutcome | null): CallEnd => {
  if (outcome === null) return { status: 'not_made' };
  const { inputTokens, outputTokens } = outcome.usage;
  const tokens =
    inputTokens === null && outputTokens === null ? null : (inputTokens ?? 0) + (outputTokens ?? 0);
  if (isOfRate(outcome)) {
    return { status: 'rate_limited', retryAfterSeconds: wishOf(outcome), tokens };
  }
  return { status: outcome.status === 'ok' || outcome.status === 'length' ? 'served' : 'failed', tokens };
};

export interface AdaptiveGate extends CallGate {
  /** How many messages a consumer may have at work. */
  readonly concurrency: Concurrency;
  state(): LimiterState;
  /** Sends everyone away who waits, now and later. */
  close(): void;
}

export interface AdaptiveGateOptions {
  limiter: LaneLimiter;
  /** Who would have to wait longer is told to come back. */
  longestWaitSeconds: number;
  clock: Pick<Clock, 'monotonic' | 'sleep'>;
}

interface Waiter {
  wish: GateWish;
  givesUpAtMs: number;
  resolve(entered: Permit | { waitSeconds: number }): void;
}

/** Messages at work beyond the calls allowed: while one writes its reply down, another uses its slot. */
const spareMessages = (limit: number): number => Math.max(4, Math.ceil(limit / 4));

/**
 * The gate of a lane whose calls all start in this process: who is first waits first, for as long as the limiter says. A
 * queue's consumer takes hardly more messages than calls are allowed, so that next to nothing waits here; what does
 * (after a decrease, or for its share of a minute) keeps its message at work for `longestWaitSeconds` at most.
 */
export const createAdaptiveGate = (options: AdaptiveGateOptions): AdaptiveGate => {
  const { limiter, clock } = options;
  const waiters = new Set<Waiter>();
  const wakers = new Set<() => void>();
  let timer: { atMs: number; abort: AbortController } | null = null;
  let isClosed = false;
  let allowedBefore = 0;

  const start = ({ tokensAtMost, timesTurnedAway }: GateWish): StartedCall | { askAtMs: number } =>
    limiter.start(clock.monotonic(), { tokensAtMost, mayProbe: timesTurnedAway < turnsBeforeCare });

  const permitOf = (call: StartedCall, hasWaited: boolean): Permit => ({
    hasWaited,
    leave: async (outcome) => {
      limiter.end(call, clock.monotonic(), endOf(outcome));
      serve();
    },
  });

  const serve = (): void => {
    const nowMs = clock.monotonic();
    let askAtMs = limiter.state(nowMs).heldUntilMs ?? Number.POSITIVE_INFINITY;
    let isOpen = true;
    for (const waiter of waiters) {
      const started: StartedCall | { askAtMs: number } | null =
        isOpen && !isClosed ? start(waiter.wish) : null;
      if (started !== null && 'order' in started) {
        waiters.delete(waiter);
        waiter.resolve(permitOf(started, true));
        continue;
      }
      if (started !== null) askAtMs = Math.min(askAtMs, started.askAtMs);
      // Careful ones may have to wait where others need not.
      isOpen &&= started !== null && waiter.wish.timesTurnedAway >= turnsBeforeCare;
      if (isClosed || waiter.givesUpAtMs <= nowMs) {
        waiters.delete(waiter);
        waiter.resolve({ waitSeconds: secondsToComeBack(nowMs) });
      } else askAtMs = Math.min(askAtMs, waiter.givesUpAtMs);
    }
    setTimer(askAtMs);
    const allowed = concurrency.allowed();
    if (allowed > allowedBefore) for (const wake of wakers) wake();
    allowedBefore = allowed;
  };

  const setTimer = (atMs: number): void => {
    if (timer !== null && timer.atMs <= atMs) return;
    timer?.abort.abort();
    timer = null;
    if (atMs === Number.POSITIVE_INFINITY || isClosed) return;
    const mine = { atMs, abort: new AbortController() };
    timer = mine;
    clock.sleep(atMs - clock.monotonic(), mine.abort.signal).then(
      () => {
        if (timer === mine) timer = null;
        serve();
      },
      (reason: unknown) => {
        if (!mine.abort.signal.aborted) throw reason;
      },
    );
  };

  const secondsToComeBack = (nowMs: number): number => {
    const { heldUntilMs } = limiter.state(nowMs);
    return Math.max(1, Math.ceil(((heldUntilMs ?? nowMs) - nowMs) / 1000));
  };

  const concurrency: Concurrency = {
    allowed: () => {
      const { limit, heldUntilMs } = limiter.state(clock.monotonic());
      if (heldUntilMs !== null) return 0;
      return limit + spareMessages(limit);
    },
    onGrowth: (wake) => {
      wakers.add(wake);
    },
  };

  return {
    concurrency,
    enter(wish) {
      const nowMs = clock.monotonic();
      const started = waiters.size > 0 || isClosed ? null : start(wish);
      if (started !== null && 'order' in started) return Promise.resolve(permitOf(started, false));
      const givesUpAtMs = nowMs + options.longestWaitSeconds * 1000;
      const { heldUntilMs } = limiter.state(nowMs);
      if (isClosed || (heldUntilMs !== null && heldUntilMs > givesUpAtMs)) {
        return Promise.resolve({ waitSeconds: secondsToComeBack(nowMs) });
      }
      return new Promise((resolve) => {
        waiters.add({ wish, givesUpAtMs, resolve });
        serve();
      });
    },
    state: () => limiter.state(clock.monotonic()),
    close: () => {
      isClosed = true;
      serve();
      timer?.abort.abort();
    },
  };
};

const freePermit: Permit = { hasWaited: false, leave: async () => {} };

/**
 * Asks for leave and, once it has it, looks whether the call is still wanted where time has passed: `stopped` then.
 * Without a gate everyone has leave.
 */
export const enterGate = async (
  gate: CallGate | undefined,
  wish: GateWish,
  isStopped: () => Promise<boolean>,
): Promise<Permit | { waitSeconds: number } | 'stopped'> => {
  const entered = gate === undefined ? freePermit : await gate.enter(wish);
  if ('waitSeconds' in entered || !entered.hasWaited) return entered;
  let stays = false;
  try {
    stays = !(await isStopped());
  } finally {
    if (!stays) await entered.leave(null);
  }
  return stays ? entered : 'stopped';
};

/** Makes a call with its permit; a word instead of an outcome says that none was made. */
export const callWithPermit = async <Result extends CallOutcome | string>(
  permit: Permit,
  call: () => Promise<Result>,
  markStopped: (outcome: StoppingOutcome) => Promise<void>,
): Promise<Result> => {
  let outcome: CallOutcome | null = null;
  try {
    const result = await call();
    if (typeof result !== 'string') {
      outcome = result;
      // Before the next one enters: it looks for the mark.
      if (stopsLane(result)) await markStopped(result as StoppingOutcome);
    }
    return result;
  } finally {
    await permit.leave(outcome);
  }
};

/** How often a request has been turned away for its rate. */
export const timesTurnedAway = (attempts: readonly { kind: string | null }[]): number =>
  attempts.filter(({ kind }) => kind !== null && retryReasonOf(kind) === 'rate_limit').length;

export interface SharedHoldOptions {
  ledger: Pick<Ledger, 'takeLease' | 'leaseOwner' | 'releaseLease'>;
  /** What all workers of the lane agree on, such as its account. */
  name: string;
  clock: Pick<Clock, 'now'>;
}

/** A second refusal in a row holds the lane for 2, 4, 8 … seconds where the provider names no time. */
const longestOwnHoldSeconds = 60;

/**
 * The gate of a lane whose workers share no memory: how many there are is somebody else's affair (on AWS the event source
 * mapping's MaximumConcurrency), but where the provider asks one of them to wait, all wait. So they do when a request
 * is turned away again that had waited already. The hold is a lease in the ledger whose owner is the moment at which
 * it ends; of two that come at once the longer one stays unless they cross, and then the provider says so again.
 */
export const createSharedHoldGate = ({ ledger, name, clock }: SharedHoldOptions): CallGate => {
  const key = `${name}/hold`;
  const hold = async (seconds: number): Promise<void> => {
    const untilMs = clock.now() + seconds * 1000;
    const current = await ledger.leaseOwner(key);
    if (current !== null) {
      if (Number(current) >= untilMs) return;
      await ledger.releaseLease(key, current);
    }
    await ledger.takeLease(key, String(untilMs), Math.ceil(seconds));
  };
  return {
    async enter({ timesTurnedAway }) {
      const heldUntilMs = Number((await ledger.leaseOwner(key)) ?? 0);
      const leftMs = heldUntilMs - clock.now();
      if (leftMs > 0) return { waitSeconds: Math.ceil(leftMs / 1000) };
      return {
        hasWaited: false,
        leave: async (outcome) => {
          if (outcome === null || !isOfRate(outcome)) return;
          const ownSeconds =
            timesTurnedAway === 0 ? 0 : Math.min(longestOwnHoldSeconds, 2 ** timesTurnedAway);
          const seconds = wishOf(outcome) ?? ownSeconds;
          if (seconds > 0) await hold(seconds);
        },
      };
    },
  };
};
