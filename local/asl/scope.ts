import type { Clock } from '../../shared/ports/clock.ts';
import { StatesError } from './states-error.ts';

/**
 * A stretch of work that can be stopped, with everything inside it. Children are kept in a set rather than as
 * listeners of the parent's signal: ten thousand parallel items must not cost ten thousand steps each.
 */
export interface Scope {
  readonly signal: AbortSignal;
  abort(reason: unknown): void;
  child(): Scope;
  /** Leaves the parent; call it when the work is over. */
  end(): void;
}

export const createScope = (leave: (self: Scope) => void = () => {}): Scope => {
  const controller = new AbortController();
  const children = new Set<Scope>();
  const scope: Scope = {
    signal: controller.signal,
    abort: (reason) => {
      controller.abort(reason);
      for (const child of children) child.abort(reason);
      children.clear();
    },
    child: () => {
      const child = createScope((self) => children.delete(self));
      if (controller.signal.aborted) child.abort(controller.signal.reason);
      else children.add(child);
      return child;
    },
    end: () => leave(scope),
  };
  return scope;
};

/** Longest delay that a 32-bit timer can hold, in milliseconds. */
const longestSleepMs = 2 ** 31 - 1;

export const sleep = async (clock: Clock, ms: number, signal: AbortSignal): Promise<void> => {
  let leftMs = ms;
  for (; leftMs > longestSleepMs; leftMs -= longestSleepMs) await clock.sleep(longestSleepMs, signal);
  await clock.sleep(leftMs, signal);
};

const over = new Error('the task is over');

/** Deadlines of one task attempt, in milliseconds. */
export interface Deadlines {
  readonly timeoutMs: number;
  readonly heartbeat: { readonly withinMs: number; readonly lastBeatMs: () => number } | null;
}

/**
 * Runs one task attempt until it ends, its deadline passes or the parent is stopped, whichever comes first.
 * The signal given to `work` is aborted in the latter two cases; no timer outlives the attempt.
 */
export const withDeadlines = async (
  clock: Clock,
  parent: Scope,
  deadlines: Deadlines,
  work: (signal: AbortSignal) => Promise<unknown>,
): Promise<unknown> => {
  const scope = parent.child();
  scope.signal.throwIfAborted();
  const timers = new AbortController();
  const outcome = Promise.withResolvers<unknown>();
  scope.signal.addEventListener('abort', () => outcome.reject(scope.signal.reason), { once: true });
  const watch = (timer: Promise<StatesError>) => {
    timer.then(
      (error) => scope.abort(error),
      (error) => {
        if (!timers.signal.aborted) outcome.reject(error);
      },
    );
  };
  const timeOut = async (): Promise<StatesError> => {
    await sleep(clock, deadlines.timeoutMs, timers.signal);
    return new StatesError('States.Timeout', `no result within ${deadlines.timeoutMs / 1000} s`);
  };
  const missBeat = async ({ withinMs, lastBeatMs }: NonNullable<Deadlines['heartbeat']>) => {
    for (;;) {
      const leftMs = lastBeatMs() + withinMs - clock.monotonic();
      if (leftMs <= 0)
        return new StatesError('States.HeartbeatTimeout', `no heartbeat within ${withinMs / 1000} s`);
      await sleep(clock, leftMs, timers.signal);
    }
  };
  watch(timeOut());
  if (deadlines.heartbeat !== null) watch(missBeat(deadlines.heartbeat));
  work(scope.signal).then(outcome.resolve, outcome.reject);
  try {
    return await outcome.promise;
  } finally {
    timers.abort(over);
    scope.end();
  }
};
