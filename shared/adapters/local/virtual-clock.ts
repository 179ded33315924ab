import type { Clock } from '../../ports/clock.ts';
import { createOrderedHeap } from './ordered-heap.ts';

export interface VirtualClock extends Clock {
  /** Lets `ms` pass: wakes every sleeper whose time comes, in order, each with its consequences done. */
  advance(ms: number): Promise<void>;
  /** Lets time pass until nobody sleeps any more, at most `limitMs`. Returns the milliseconds that passed. */
  runUntilIdle(limitMs?: number): Promise<number>;
  /** Lets time pass, as much as it takes, until `work` is settled; gives its result. */
  runUntilSettled<Result>(work: Promise<Result>): Promise<Result>;
  /** How many sleep now. */
  sleepers(): number;
}

/** Turns of the event loop in which what a wake-up started comes to rest. */
const turnsPerStep = 3;

/**
 * A clock that stands still until told. Between two wake-ups all microtasks and a few turns of the event
 * loop run; work on real sockets or in the thread pool may take longer than that.
 */
export const createVirtualClock = (startMs = 0): VirtualClock => {
  const sleeping = createOrderedHeap<() => void>();
  let passedMs = 0;

  const settle = async (): Promise<void> => {
    for (let turn = 0; turn < turnsPerStep; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  };

  /** Wakes the next sleeper due by `untilMs`; false if there is none. */
  const step = async (untilMs: number): Promise<boolean> => {
    await settle();
    const next = sleeping.first();
    if (next === undefined || next.order > untilMs) return false;
    sleeping.remove(next);
    passedMs = Math.max(passedMs, next.order);
    next.value();
    return true;
  };

  return {
    now: () => startMs + passedMs,
    monotonic: () => passedMs,
    sleep(ms, signal) {
      return new Promise((resolve, reject) => {
        if (signal?.aborted) {
          reject(signal.reason);
          return;
        }
        const stop = () => {
          sleeping.remove(entry);
          reject(signal?.reason);
        };
        const entry = sleeping.push(passedMs + Math.max(0, ms), () => {
          signal?.removeEventListener('abort', stop);
          resolve();
        });
        signal?.addEventListener('abort', stop, { once: true });
      });
    },
    async advance(ms) {
      const untilMs = passedMs + ms;
      while (await step(untilMs));
      passedMs = Math.max(passedMs, untilMs);
    },
    async runUntilIdle(limitMs = Number.POSITIVE_INFINITY) {
      const startedMs = passedMs;
      while (await step(startedMs + limitMs));
      if (sleeping.size > 0) passedMs = startedMs + limitMs;
      return passedMs - startedMs;
    },
    async runUntilSettled(work) {
      let isSettled = false;
      const end = () => {
        isSettled = true;
      };
      work.then(end, end);
      await settle();
      while (!isSettled) await step(Number.POSITIVE_INFINITY);
      return work;
    },
    sleepers: () => sleeping.size,
  };
};
