import path from 'node:path';
import { exitCodes } from '../exit-codes.ts';
import { print } from '../terminal.ts';

// Loaded on use only: one machine needs no SDK.
const connect = async (deployment: string) =>
  (await import('../../shared/adapters/aws/connect.ts')).connectDeployment(deployment);
const loadRunOnAws = () => import('../aws/run-on-aws.ts');
const loadStarts = () => import('../aws/starts.ts');

interface AwsOptions {
  deployment: string;
}

interface FolderOptions extends AwsOptions {
  out?: string;
}

/**
 * Stops every run of the deployment: no stage takes a message any more. Messages at work end, which for a view
 * is at most its lane's time limit, and are recorded; the others wait.
 */
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

/** Stops a run's executions; what is recorded stays, and `run` or `redrive` goes on from there. */
export const cancel = async (run: string, { deployment }: AwsOptions): Promise<number> => {
  const { aws } = await (await loadRunOnAws()).findRunOnAws(run, deployment);
  const starts = await (await loadStarts()).findStarts(run, aws);
  const running = starts.filter(({ execution }) => execution.status === 'RUNNING');
  for (const { executionId } of running)
    await aws.workflow.stop(executionId, 'cancelled with turnsweep cancel');
  print(
    running.length === 0
      ? `run ${run} is not running`
      : `run ${run} cancelled; \`turnsweep redrive ${run}\` goes on`,
  );
  return exitCodes.complete;
};

const folderOf = (run: string, out: string | undefined): string =>
  path.resolve(out ?? path.join('runs', run));

/** Starts a run that is in the deployment again; what failed or was left open goes on. */
export const redrive = async (
  run: string,
  {
    out,
    deployment,
    retryErrors = false,
    json = false,
  }: FolderOptions & { retryErrors?: boolean; json?: boolean },
): Promise<number> =>
  (await loadRunOnAws()).redriveOnAws(run, folderOf(run, out), { deployment, retryErrors, json });

/** Brings a run's folder home as it is now. */
export const download = async (run: string, { out, deployment }: FolderOptions): Promise<number> => {
  const directory = folderOf(run, out);
  const files = await (await loadRunOnAws()).fetchFromAws(run, directory, deployment);
  print(`${files} files brought to ${directory}`);
  return exitCodes.complete;
};
