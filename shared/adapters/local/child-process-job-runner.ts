import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { constants } from 'node:os';
import { StringDecoder } from 'node:string_decoder';
import { errorNames, TurnsweepError } from '../../errors.ts';
import type { Clock } from '../../ports/clock.ts';
import type { JobRunner } from '../../ports/job-runner.ts';

export interface ChildProcessJobRunnerOptions {
  clock: Pick<Clock, 'sleep'>;
  /** Told about output as it comes, both streams, not cut at line ends. */
  onOutput?: (jobName: string, text: string) => void;
  /** Between SIGTERM and SIGKILL; 10 unless given. */
  killAfterSeconds?: number;
}

const tailCharacters = 8192;
/** A child of the job may hold its output open for ever. */
const outputAfterExitMs = 1000;

/**
 * Runs a job's command as a child process with this process's environment and the job's on top. An abort
 * sends SIGTERM, then SIGKILL, and rejects with the signal's reason once the process is gone. A process
 * ended by a signal has exit code 128 + the signal's number, as in a shell.
 *
 * Throws `UsageWrong` if the command cannot be started.
 */
export const createChildProcessJobRunner = (options: ChildProcessJobRunnerOptions): JobRunner => {
  const { clock, killAfterSeconds = 10 } = options;
  return {
    async run(job, signal) {
      signal?.throwIfAborted();
      const [file = '', ...parameters] = job.command;
      const child = spawn(file, parameters, {
        env: { ...process.env, ...job.environment },
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      let outputTail = '';
      for (const stream of [child.stdout, child.stderr]) {
        const decoder = new StringDecoder('utf8');
        stream.on('data', (chunk: Buffer) => {
          const text = decoder.write(chunk);
          outputTail = (outputTail + text).slice(-tailCharacters);
          options.onOutput?.(job.name, text);
        });
      }

      const ended = new AbortController();
      const stop = () => {
        child.kill('SIGTERM');
        clock.sleep(killAfterSeconds * 1000, ended.signal).then(
          () => child.kill('SIGKILL'),
          () => {}, // It ended by itself.
        );
      };
      signal?.addEventListener('abort', stop, { once: true });
      const closed = once(child, 'close', { signal: ended.signal }).catch(() => {});
      try {
        const [code, killedBy] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
        await Promise.race([closed, clock.sleep(outputAfterExitMs, ended.signal).catch(() => {})]);
        signal?.throwIfAborted();
        return { exitCode: code ?? 128 + constants.signals[killedBy!], outputTail };
      } catch (error) {
        if (signal?.aborted) throw signal.reason;
        throw new TurnsweepError(errorNames.usage, `the job ${job.name} cannot be started`, {
          where: file,
          remedy: 'install the program or mend the command',
          cause: error,
        });
      } finally {
        signal?.removeEventListener('abort', stop);
        ended.abort();
        child.stdout.destroy();
        child.stderr.destroy();
      }
    },
  };
};
