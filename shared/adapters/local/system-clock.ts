import type { Clock } from '../../ports/clock.ts';

/** Node's timers cannot wait longer at once. */
const longestTimerMs = 2 ** 31 - 1;

/** The machine's clock. A sleep of zero still lets the event loop turn. */
export const createSystemClock = (): Clock => ({
  now: () => Date.now(),
  monotonic: () => performance.now(),
  async sleep(ms, signal) {
    let leftMs = Math.max(0, Math.ceil(ms));
    for (; leftMs > longestTimerMs; leftMs -= longestTimerMs) await wait(longestTimerMs, signal);
    await wait(leftMs, signal);
  },
});

// Not the one of node:timers/promises: its rejection wraps the signal's reason.
const wait = (ms: number, signal: AbortSignal | undefined): Promise<void> =>
  new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason);
      return;
    }
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop);
      resolve();
    }, ms);
    signal?.addEventListener('abort', stop, { once: true });
  });
