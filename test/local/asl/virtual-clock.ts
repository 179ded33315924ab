import { setImmediate } from 'node:timers/promises';
import type { Clock } from '../../../shared/ports/clock.ts';

interface Sleeper {
  readonly dueMs: number;
  wake(): void;
}

export interface VirtualClock extends Clock {
  /** Passes time, waking sleepers in the order in which they are due. */
  advance(ms: number): Promise<void>;
  /** Lets everything run that needs no time to pass. */
  settle(): Promise<void>;
  sleepers(): number;
}

export const virtualEpochMs = Date.parse('2030-01-01T00:00:00Z');

/** Time that stands still unless a test advances it. */
export const createVirtualClock = (): VirtualClock => {
  let elapsedMs = 0;
  const sleepers = new Set<Sleeper>();
  const settle = async () => {
    for (let round = 0; round < 10; round += 1) await setImmediate();
  };
  return {
    now: () => virtualEpochMs + elapsedMs,
    monotonic: () => elapsedMs,
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        if (signal?.aborted) {
          reject(signal.reason);
          return;
        }
        const onAbort = () => {
          sleepers.delete(sleeper);
          reject(signal?.reason);
        };
        const sleeper: Sleeper = {
          dueMs: elapsedMs + ms,
          wake: () => {
            sleepers.delete(sleeper);
            signal?.removeEventListener('abort', onAbort);
            resolve();
          },
        };
        sleepers.add(sleeper);
        signal?.addEventListener('abort', onAbort, { once: true });
      }),
    advance: async (ms) => {
      const untilMs = elapsedMs + ms;
      await settle();
      for (;;) {
        const next = [...sleepers].sort((left, right) => left.dueMs - right.dueMs)[0];
        if (next === undefined || next.dueMs > untilMs) break;
        elapsedMs = Math.max(elapsedMs, next.dueMs);
        next.wake();
        await settle();
      }
      elapsedMs = untilMs;
      await settle();
    },
    settle,
    sleepers: () => sleepers.size,
  };
};
