import {
  BatchClient,
  DescribeJobsCommand,
  type JobDetail,
  SubmitJobCommand,
  TerminateJobCommand,
} from '@aws-sdk/client-batch';
import { describe, expect, it } from 'vitest';
import { createBatchJobRunner } from '../../../../shared/adapters/aws/batch-job-runner.ts';
import { createVirtualClock } from '../../../../shared/adapters/local/virtual-clock.ts';

/** A Batch whose job goes through these stations, one a look; it stays at the last. */
const batchWith = (stations: Partial<JobDetail>[]) => {
  const requests: object[] = [];
  const client = new BatchClient({ region: 'eu-west-1' });
  client.send = (async (command: { input: object }) => {
    requests.push(command);
    if (command instanceof SubmitJobCommand) return { jobId: 'job-1' };
    if (command instanceof TerminateJobCommand) return {};
    const seen = stations.length > 1 ? stations.shift() : stations[0];
    return { jobs: seen === undefined ? [] : [seen] };
  }) as never;
  const clock = createVirtualClock(0);
  const runner = createBatchJobRunner({
    client,
    clock,
    jobQueue: 'gpus',
    jobDefinition: 'worker',
    pollSeconds: 30,
  });
  return { runner, clock, requests };
};
const job = { name: 'lane-a', command: ['node', 'worker.js'], environment: { LANE: 'a' } };

describe('jobs in AWS Batch', () => {
  it('are submitted with their command and environment and awaited', async () => {
    const { runner, clock, requests } = batchWith([
      { status: 'RUNNABLE' },
      { status: 'RUNNING' },
      { status: 'SUCCEEDED', container: { exitCode: 0, logStreamName: 'worker/1' } },
    ]);

    const running = runner.run(job);
    await clock.advance(60_000);

    expect(await running).toEqual({ exitCode: 0, outputTail: 'log stream worker/1' });
    expect((requests[0] as SubmitJobCommand).input).toEqual({
      jobName: 'lane-a',
      jobQueue: 'gpus',
      jobDefinition: 'worker',
      containerOverrides: {
        command: ['node', 'worker.js'],
        environment: [{ name: 'LANE', value: 'a' }],
      },
    });
    expect(requests.filter((request) => request instanceof DescribeJobsCommand)).toHaveLength(3);
  });

  it.each([
    ['its own exit code', { exitCode: 3, reason: 'CUDA' }, 3, 'Essential container exited; CUDA'],
    ['exit code 1 where the host was lost', undefined, 1, 'Host EC2 terminated.'],
  ])('end with %s when they fail', async (_, container, exitCode, outputTail) => {
    const statusReason = container === undefined ? 'Host EC2 terminated.' : 'Essential container exited';
    const { runner } = batchWith([{ status: 'FAILED', statusReason, container }]);

    expect(await runner.run(job)).toEqual({ exitCode, outputTail });
  });

  it('are terminated when their starter aborts', async () => {
    const { runner, clock, requests } = batchWith([{ status: 'RUNNING' }]);
    const aborter = new AbortController();

    const running = runner.run(job, aborter.signal);
    const ended = expect(running).rejects.toThrow('enough');
    await clock.advance(45_000);
    aborter.abort(new Error('enough'));

    await ended;
    expect((requests.at(-1) as TerminateJobCommand).input).toMatchObject({ jobId: 'job-1' });
  });

  it('that Batch has forgotten are missing objects', async () => {
    const { runner } = batchWith([]);

    await expect(runner.run(job)).rejects.toMatchObject({ name: 'ObjectMissing', where: 'job-1' });
  });
});
