import { describe, expect, it } from 'vitest';
import { createChildProcessJobRunner } from '../../../../shared/adapters/local/child-process-job-runner.ts';
import { createSystemClock } from '../../../../shared/adapters/local/system-clock.ts';
import { jobRunnerContract } from '../../../contracts/job-runner.contract.ts';

const job = (script: string, environment: Record<string, string> = {}) => ({
  name: 'serve-model',
  command: [process.execPath, '-e', script],
  environment,
});
const runnerWith = (options: { killAfterSeconds?: number } = {}) => {
  const said: string[] = [];
  const runner = createChildProcessJobRunner({
    clock: createSystemClock(),
    onOutput: (name, text) => said.push(`${name}: ${text}`),
    ...options,
  });
  return { runner, said };
};

jobRunnerContract('child processes', async () => ({ runner: runnerWith().runner, job }));

describe('jobs as child processes', () => {
  it('tell what they write as they write it', async () => {
    const { runner, said } = runnerWith();

    await runner.run(job(`console.log('model', process.env.MODEL);`, { MODEL: 'qwen' }));

    expect(said.join('')).toContain('serve-model: model qwen\n');
  });

  it('keep only the tail of long output', async () => {
    const { runner } = runnerWith();

    const result = await runner.run(job(`for (let at = 0; at < 50000; at += 1) console.log('line ' + at);`));

    expect(result.outputTail.length).toBe(8192);
    expect(result.outputTail.endsWith('line 49998\nline 49999\n')).toBe(true);
  });

  it('have the exit code of a shell when a signal ends them', async () => {
    const { runner } = runnerWith();

    const result = await runner.run(
      job(`process.kill(process.pid, 'SIGKILL'); setTimeout(() => {}, 60000);`),
    );

    expect(result.exitCode).toBe(128 + 9);
  });

  it('are asked to end on an abort', async () => {
    const { runner, said } = runnerWith();
    const [reason, stop] = [new Error('run stopped'), new AbortController()];
    const running = runner.run(
      job(`process.on('SIGTERM', () => { console.log('asked'); process.exit(0); });
           console.log('up'); setTimeout(() => {}, 60000);`),
      stop.signal,
    );
    await expect.poll(() => said.join(''), { timeout: 20_000 }).toContain('up');

    stop.abort(reason);

    await expect(running).rejects.toBe(reason);
    expect(said.join('')).toContain('asked');
  });

  it('are killed when they do not end', async () => {
    const { runner, said } = runnerWith({ killAfterSeconds: 0.2 });
    const [reason, stop] = [new Error('run stopped'), new AbortController()];
    const running = runner.run(
      job(
        `process.on('SIGTERM', () => console.log('no')); console.log('pid', process.pid, 'up'); setInterval(() => {}, 1000);`,
      ),
      stop.signal,
    );
    await expect.poll(() => said.join(''), { timeout: 20_000 }).toContain('up');

    stop.abort(reason);

    await expect(running).rejects.toBe(reason);
    const pid = Number(/pid (\d+)/.exec(said.join(''))![1]);
    expect(() => process.kill(pid, 0)).toThrow('ESRCH');
  });

  it('are not started after an abort', async () => {
    const { runner, said } = runnerWith();
    const reason = new Error('run stopped');

    const running = runner.run(job(`console.log('up')`), AbortSignal.abort(reason));

    await expect(running).rejects.toBe(reason);
    expect(said).toEqual([]);
  });

  it('say so when their program is missing', async () => {
    const { runner } = runnerWith();

    const running = runner.run({ name: 'serve-model', command: ['no-such-program'], environment: {} });

    await expect(running).rejects.toMatchObject({
      name: 'UsageWrong',
      message:
        'the job serve-model cannot be started (no-such-program); install the program or mend the command',
    });
  });

  it('end though a child of theirs holds on to the output', async () => {
    const { runner } = runnerWith();

    const result = await runner.run(
      job(`const { spawn } = require('node:child_process');
           const left = spawn(process.execPath, ['-e', 'setTimeout(() => {}, 5000)'], { stdio: 'inherit', detached: true });
           left.unref(); console.log('left'); process.exit(0);`),
    );

    expect(result).toEqual({ exitCode: 0, outputTail: 'left\n' });
  });
});
