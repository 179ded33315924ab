import { randomUUID } from 'node:crypto';
import type { Clock } from '../../shared/ports/clock.ts';
import { StatesError } from './states-error.ts';

/** One task that waits for its token to be answered. */
export interface OpenToken {
  readonly token: string;
  readonly answer: Promise<unknown>;
  /** Monotonic milliseconds of the last heartbeat, at first of the opening. */
  lastBeatMs(): number;
  /** From here on nobody waits. */
  close(): void;
}

export interface Tokens {
  open(): OpenToken;
  /** These three return false where nobody waits for the token (any more). */
  succeed(token: string, output: unknown): boolean;
  fail(token: string, error: string, cause: string): boolean;
  heartbeat(token: string): boolean;
}

interface Waiting {
  lastBeatMs: number;
  resolve(output: unknown): void;
  reject(error: StatesError): void;
}

export const createTokens = (clock: Clock): Tokens => {
  const waiting = new Map<string, Waiting>();
  const settle = (token: string, answer: (task: Waiting) => void): boolean => {
    const task = waiting.get(token);
    if (task === undefined) return false;
    waiting.delete(token);
    answer(task);
    return true;
  };
  return {
    open: () => {
      const token = randomUUID();
      const { promise, resolve, reject } = Promise.withResolvers<unknown>();
      promise.catch(() => {
        // The task may have ended before it began to wait; then nobody else sees this answer.
      });
      const task: Waiting = { lastBeatMs: clock.monotonic(), resolve, reject };
      waiting.set(token, task);
      return {
        token,
        answer: promise,
        lastBeatMs: () => task.lastBeatMs,
        close: () => {
          waiting.delete(token);
        },
      };
    },
    succeed: (token, output) => settle(token, (task) => task.resolve(output)),
    fail: (token, error, cause) => settle(token, (task) => task.reject(new StatesError(error, cause))),
    heartbeat: (token) => {
      const task = waiting.get(token);
      if (task === undefined) return false;
      task.lastBeatMs = clock.monotonic();
      return true;
    },
  };
};
