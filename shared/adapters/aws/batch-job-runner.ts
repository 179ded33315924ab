import {
  type BatchClient,
  DescribeJobsCommand,
  type JobDetail,
  SubmitJobCommand,
  TerminateJobCommand,
} from '@aws-sdk/client-batch';
import { errorNames, TurnsweepError } from '../../errors.ts';
import type { Clock } from '../../ports/clock.ts';
import type { JobRunner } from '../../ports/job-runner.ts';
import { asked } from './service-errors.ts';

export interface BatchJobRunnerOptions {
  client: BatchClient;
  clock: Pick<Clock, 'sleep'>;
  /** Name or ARN. */
  jobQueue: string;
  jobDefinition: string;
  /** Between two looks at a job; 30 unless given. */
  pollSeconds?: number;
}

/**
 * Runs a job in AWS Batch and waits for its end. An abort terminates the job and rejects with the signal's
 * reason. The output's tail is Batch's own account of the end and the name of the log stream: the log itself
 * is in CloudWatch. A job that ended without an exit code (host lost, image missing) has exit code 1.
 *
 * Throws `StorageFailed` or `AccessDenied` for what the service answers, `ObjectMissing` if Batch has
 * forgotten the job.
 */
export const createBatchJobRunner = (options: BatchJobRunnerOptions): JobRunner => {
  const { client, clock, jobQueue, jobDefinition, pollSeconds = 30 } = options;

  const look = async (jobId: string): Promise<JobDetail> => {
    const { jobs } = await asked('describe', jobId, client.send(new DescribeJobsCommand({ jobs: [jobId] })));
    if (jobs?.[0] !== undefined) return jobs[0];
    throw new TurnsweepError(errorNames.objectMissing, 'there is no such job', { where: jobId });
  };

  return {
    async run(job, signal) {
      signal?.throwIfAborted();
      const request = new SubmitJobCommand({
        jobName: job.name,
        jobQueue,
        jobDefinition,
        containerOverrides: {
          command: [...job.command],
          environment: Object.entries(job.environment).map(([name, value]) => ({ name, value })),
        },
      });
      const { jobId } = await asked('submit', job.name, client.send(request));
      try {
        for (;;) {
          const seen = await look(jobId!);
          if (seen.status === 'SUCCEEDED' || seen.status === 'FAILED') return resultOf(seen);
          await clock.sleep(pollSeconds * 1000, signal);
        }
      } catch (error) {
        if (signal?.aborted) {
          const reason = 'stopped by its starter';
          await asked('stop', jobId!, client.send(new TerminateJobCommand({ jobId, reason })));
        }
        throw error;
      }
    },
  };
};

const resultOf = (job: JobDetail) => ({
  exitCode: job.container?.exitCode ?? (job.status === 'SUCCEEDED' ? 0 : 1),
  outputTail: [
    job.statusReason,
    job.container?.reason,
    job.container?.logStreamName && `log stream ${job.container.logStreamName}`,
  ]
    .filter(Boolean)
    .join('; '),
});
