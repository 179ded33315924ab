import { errorNames, isNamed } from '../../shared/errors.ts';
import { startName } from '../../shared/naming.ts';
import { exitCodes } from '../exit-codes.ts';
import { print } from '../terminal.ts';

/** Loaded on use only: one machine needs no SDK. */
const connect = async (deployment: string) =>
  (await import('../../shared/adapters/aws/connect.ts')).connectDeployment(deployment);

interface AwsOptions {
  deployment: string;
}

/** No stage takes a message any more; calls at work end and are recorded, nothing is lost. */
export const pause = async ({ deployment }: AwsOptions): Promise<number> => {
  const aws = await connect(deployment);
  print(`${await aws.switchQueues(false)} queues of ${deployment} paused`);
  return exitCodes.complete;
};

export const resume = async ({ deployment }: AwsOptions): Promise<number> => {
  const aws = await connect(deployment);
  print(`${await aws.switchQueues(true)} queues of ${deployment} resumed`);
  return exitCodes.complete;
};

/** Stops a run's executions; what is recorded stays, and `run` goes on from there. */
export const cancel = async (run: string, { deployment }: AwsOptions): Promise<number> => {
  const { findRunOnAws } = await import('../aws/run-on-aws.ts');
  const { aws } = await findRunOnAws(run, deployment);
  const prefix = aws.deployment.sweepMachine.replace(':stateMachine:', ':execution:');
  let stopped = 0;
  for (let start = 1; ; start += 1) {
    const executionId = `${prefix}:${startName(run, start)}`;
    const known = await aws.workflow.describe(executionId).catch((error: unknown) => {
      if (isNamed(error, errorNames.objectMissing)) return null;
      throw error;
    });
    if (known === null) break;
    if (known.status !== 'RUNNING') continue;
    await aws.workflow.stop(executionId, 'cancelled with turnsweep cancel');
    stopped += 1;
  }
  print(stopped === 0 ? `run ${run} is not running` : `run ${run} cancelled; run it again to go on`);
  return exitCodes.complete;
};
