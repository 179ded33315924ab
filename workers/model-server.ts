import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Clock } from '../shared/ports/clock.ts';

export interface ModelServerOptions {
  /** Program and arguments. */
  command: readonly string[];
  /** Answers 200 once the model is loaded. */
  healthUrl: string;
  startSeconds: number;
  /** Ends the wait for the server, and the server with it. */
  signal: AbortSignal;
  clock: Pick<Clock, 'monotonic' | 'sleep'>;
}

export interface ModelServer {
  /** Resolves with what ended the server, in words. */
  ended: Promise<string>;
  stop(): Promise<void>;
}

const lookMs = 500;
const stopSeconds = 10;

/**
 * Starts the model's server as a child process and waits until it is healthy. Its output goes to ours: the log of the
 * job has both. Rejects where it ends before, cannot be started or takes longer than `startSeconds`.
 */
export const startModelServer = async (options: ModelServerOptions): Promise<ModelServer> => {
  const { clock } = options;
  const [program = '', ...parameters] = options.command;
  const child = spawn(program, parameters, { stdio: ['ignore', 'inherit', 'inherit'] });
  let ending: string | null = null;
  const ended = Promise.race([
    once(child, 'exit').then(([code, signal]) => `${program} ended with ${signal ?? `exit code ${code}`}`),
    once(child, 'error').then(([error]) => `${program} cannot be started: ${error.message}`),
  ]).then((words) => {
    ending = words;
    return words;
  });
  const stop = async () => {
    if (ending !== null) return;
    child.kill('SIGTERM');
    const patience = new AbortController();
    const killed = clock.sleep(stopSeconds * 1000, patience.signal).then(
      () => child.kill('SIGKILL'),
      () => {}, // It ended by itself.
    );
    await ended;
    patience.abort();
    await killed;
  };

  const giveUpAt = clock.monotonic() + options.startSeconds * 1000;
  while (!(await isHealthy(options.healthUrl))) {
    if (ending !== null) throw new Error(`the model server: ${ending}`);
    if (options.signal.aborted) {
      await stop();
      throw options.signal.reason;
    }
    if (clock.monotonic() > giveUpAt) {
      await stop();
      throw new Error(
        `the model server was not healthy after ${options.startSeconds} s (${options.healthUrl})`,
      );
    }
    await clock.sleep(lookMs);
  }
  return { ended, stop };
};

const isHealthy = async (url: string): Promise<boolean> => {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(5000) });
    await response.arrayBuffer();
    return response.ok;
  } catch {
    return false; // Not listening yet, or busy loading: the caller asks again.
  }
};
