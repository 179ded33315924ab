import { describe, expect, it } from 'vitest';
import type { JobRunner } from '../../shared/ports/job-runner.ts';

/** A job whose program is this JavaScript. */
export type MakeJob = (
  script: string,
  environment?: Record<string, string>,
) => { name: string; command: readonly string[]; environment: Readonly<Record<string, string>> };

/** What every JobRunner does. */
export const jobRunnerContract = (
  name: string,
  makeRunner: () => Promise<{ runner: JobRunner; job: MakeJob }>,
): void => {
  describe(`JobRunner contract: ${name}`, () => {
    it('gives the exit code and the end of both outputs, and passes the environment on', async () => {
      const { runner, job } = await makeRunner();

      const result = await runner.run(
        job(`console.log('model', process.env.MODEL); console.error('grüße'); process.exitCode = 3;`, {
          MODEL: 'qwen',
        }),
      );

      expect(result.exitCode).toBe(3);
      expect(result.outputTail).toContain('model qwen\n');
      expect(result.outputTail).toContain('grüße\n');
    });

    it('keeps only the last lines of long output', async () => {
      const { runner, job } = await makeRunner();

      const result = await runner.run(
        job(`for (let at = 0; at < 50000; at += 1) console.log('line ' + at);`),
      );

      expect(result).toMatchObject({ exitCode: 0 });
      expect(result.outputTail.length).toBeLessThan(100_000);
      expect(result.outputTail.endsWith('line 49998\nline 49999\n')).toBe(true);
    });

    it('runs jobs side by side, each with its own end', async () => {
      const { runner, job } = await makeRunner();

      const results = await Promise.all(
        [0, 1, 2].map((code) => runner.run(job(`console.log('job ${code}'); process.exitCode = ${code};`))),
      );

      expect(results).toEqual([0, 1, 2].map((code) => ({ exitCode: code, outputTail: `job ${code}\n` })));
    });

    it('ends a job on an abort and gives its reason', async () => {
      const { runner, job } = await makeRunner();
      const [reason, stop] = [new Error('run stopped'), new AbortController()];
      const running = runner.run(job('setTimeout(() => {}, 60000);'), stop.signal);

      stop.abort(reason);

      await expect(running).rejects.toBe(reason);
    });

    it('starts nothing after an abort', async () => {
      const { runner, job } = await makeRunner();
      const reason = new Error('run stopped');

      await expect(runner.run(job(`console.log('up')`), AbortSignal.abort(reason))).rejects.toBe(reason);
    });
  });
};
