import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { RunSummary } from '../../functions/aggregate-run/aggregate-run.ts';
import { openRunFolder } from '../../local/home.ts';
import { createProgress, laneState } from '../../local/progress.ts';
import { type ConnectedDeployment, connectDeployment } from '../../shared/adapters/aws/connect.ts';
import { storedContract } from '../../shared/contracts/run.ts';
import { errorNames, ProblemsFound, TurnsweepError } from '../../shared/errors.ts';
import { keys } from '../../shared/keys.ts';
import { parseRunId } from '../../shared/naming.ts';
import type { ExecutionDescription } from '../../shared/ports/workflow.ts';
import { extensionOf } from '../../shared/stages/clip-source.ts';
import { readAhead } from '../../shared/stages/read-ahead.ts';
import { exitCodes } from '../exit-codes.ts';
import type { PreparedRun } from '../prepare-run.ts';
import { claimRunFolder, findRun } from '../run-folder.ts';
import { showResult } from '../show-result.ts';
import { jsonLine, print, printable, warn } from '../terminal.ts';
import { uploadRun } from '../upload-run.ts';
import { downloadRun } from './download-run.ts';
import { startOrJoin } from './starts.ts';

export interface AwsRunOptions {
  deployment: string;
  retryErrors: boolean;
  json: boolean;
}

/** Seconds between two looks at a running execution. */
const lookSeconds = Number(process.env.TURNSWEEP_LOOK_SECONDS ?? 15);

/**
 * Runs a prepared sweep on a deployment: uploads what is not there, starts the state machine (or joins the
 * start that is running), shows how far it is, and brings the run folder home. Ending this process does not
 * end the run.
 */
export const runOnAws = async (
  prepared: PreparedRun,
  directory: string,
  options: AwsRunOptions,
): Promise<number> => {
  const aws = await connectDeployment(options.deployment);
  checkLanes(prepared, aws);
  warnOfLimits(prepared);
  const lock = await claimRunFolder(directory);
  try {
    await uploadMedia(prepared, aws);
    await uploadRun(aws.store, prepared);
    return await startAndFollow(prepared, aws, directory, options);
  } finally {
    await lock.release();
  }
};

/**
 * Starts a run that the deployment has already (or joins the start that is running): groups that failed or were
 * left open go on, nothing recorded is asked again. The way for runs that a schedule has made.
 */
export const redriveOnAws = async (
  run: string,
  directory: string,
  options: AwsRunOptions,
): Promise<number> => {
  const { aws, ...stored } = await findRunOnAws(run, options.deployment);
  return withFolderOf(run, directory, () => startAndFollow(stored, aws, directory, options));
};

/** Brings what a run has so far to a folder, whether it is running, has ended or was cancelled. */
export const fetchFromAws = async (run: string, directory: string, deployment: string): Promise<number> => {
  const { aws, contract } = await findRunOnAws(run, deployment);
  return withFolderOf(run, directory, () => downloadRun(aws.store, run, contract.benchmark.id, directory));
};

/** Does work on a folder that is this run's, or is going to be. */
const withFolderOf = async <Result>(
  run: string,
  directory: string,
  work: () => Promise<Result>,
): Promise<Result> => {
  const lock = await claimRunFolder(directory);
  try {
    const existing = findRun(directory);
    if (existing !== null && existing.run !== run) {
      throw new TurnsweepError(errorNames.contractDiffers, `the folder holds run ${existing.run}`, {
        where: directory,
        remedy: 'choose another folder with --out',
      });
    }
    return await work();
  } finally {
    await lock.release();
  }
};

type StoredRun = Pick<PreparedRun, 'run' | 'contract'>;

const startAndFollow = async (
  { run, contract }: StoredRun,
  aws: ConnectedDeployment,
  directory: string,
  { retryErrors, json }: AwsRunOptions,
): Promise<number> => {
  const executionId = await startOrJoin(run, retryErrors, aws);
  const ended = await follow({ run, contract }, executionId, aws, json);
  if (ended === null) {
    warn(`the run goes on in AWS: look with \`turnsweep status ${run} --on aws\`, run again to join it`);
    return exitCodes.interrupted;
  }
  const files = await downloadRun(aws.store, run, contract.benchmark.id, directory);
  if (!json) print(`${files} files brought to ${directory}`);
  if (ended.status !== 'SUCCEEDED') throw endedBadly(ended);
  const { summary } = ended.output as { summary: RunSummary };
  const store = openRunFolder(directory, run);
  return showResult({ store, directory, run, contract }, createProgress([]), summary, json);
};

/** The functions of a deployment share no memory: nobody counts a minute's calls there. */
const warnOfLimits = ({ settings }: PreparedRun): void => {
  const limited = settings.lanes.filter(({ limits }) => limits !== undefined).map(({ id }) => id);
  if (settings.judge?.limits !== undefined) limited.push('judge');
  for (const id of limited) {
    warn(
      `"limits" of ${id} hold on one machine only; here its maxInFlight in infra/config/lanes.json has to keep them`,
    );
  }
};

const checkLanes = (prepared: PreparedRun, { deployment }: ConnectedDeployment): void => {
  const known = deployment.lanes.map(({ id }) => id).join(', ');
  const faults = prepared.contract.lanes.flatMap(({ id, baseUrl }) => {
    const found = deployment.lanes.find((lane) => lane.id === id);
    if (found === undefined) {
      return `no lane "${id}" in deployment ${deployment.name} (it has ${known}); add it and deploy again`;
    }
    const server = `http://127.0.0.1:${found.serverPort}`;
    if (found.serverPort === null || (baseUrl !== null && new URL(baseUrl).origin === server)) return [];
    return `lane "${id}" runs on GPUs of the deployment, beside its model server: set its baseUrl to ${server}/v1`;
  });
  if (faults.length === 0) return;
  throw new ProblemsFound(
    errorNames.usage,
    'the deployment lacks what this sweep names',
    faults.map((message) => ({ file: 'infra/config/lanes.json', line: null, message })),
  );
};

/** Clips go up once, by content: what another run brought is not sent again, and a broken upload goes on. */
const uploadMedia = async (prepared: PreparedRun, { store }: ConnectedDeployment): Promise<void> => {
  const upload = async ([file, sha256]: [string, string]): Promise<boolean> => {
    const key = keys.media(sha256, extensionOf(file));
    if ((await store.tag(key)) !== null) return false;
    return store.putIfAbsent(key, await readFile(path.join(prepared.release.directory, file)));
  };
  for await (const _ of readAhead(prepared.media ?? [], upload));
};

const endedBadly = ({ status, error, cause }: ExecutionDescription): TurnsweepError =>
  new TurnsweepError(
    errorNames.contractViolated,
    `the run ended as ${status} in AWS: ${printable(`${error ?? ''} ${cause ?? ''}`.trim())}`,
    { remedy: 'see docs/runbook.md; run again to go on, what is recorded stays' },
  );

/** Shows how far the run is until it has ended; null where the user does not want to wait any longer. */
const follow = async (
  { run, contract }: StoredRun,
  executionId: string,
  { store, workflow, listQueueSwitches }: ConnectedDeployment,
  json: boolean,
): Promise<ExecutionDescription | null> => {
  const leaving = new AbortController();
  const leave = () => leaving.abort();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, leave);
  let shown = '';
  let wasPaused = false;
  try {
    for (;;) {
      const execution = await workflow.describe(executionId);
      const lanes = [];
      for (const { id } of contract.lanes) {
        const state = await laneState(store, run, id);
        if (state !== null)
          lanes.push({ lane: id, total: state.total, done: state.done, excluded: state.excluded });
      }
      const lines = lanes.map(
        ({ lane, total, done, excluded }) =>
          `${lane}  ${done}/${total}${excluded > 0 ? `  ${excluded} excluded` : ''}`,
      );
      if (json) print(jsonLine({ event: 'progress', time: new Date().toISOString(), lanes }));
      else if (lines.join('\n') !== shown) {
        shown = lines.join('\n');
        for (const line of lines) print(printable(line));
      }
      if (execution.status !== 'RUNNING') return execution;
      const isPaused = (await listQueueSwitches()).every(({ isOn }) => !isOn);
      if (isPaused && !wasPaused) warn('the deployment is paused; `turnsweep resume` lets the run go on');
      wasPaused = isPaused;
      await sleep(lookSeconds * 1000, undefined, { signal: leaving.signal }).catch(() => undefined);
      if (leaving.signal.aborted) return null;
    }
  } finally {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.removeListener(signal, leave);
  }
};

/** A run in the bucket by its id; throws where there is none. */
export const findRunOnAws = async (run: string, deployment: string) => {
  parseRunId(run);
  const aws = await connectDeployment(deployment);
  const text = await aws.store.getText(keys.run.contract(run));
  if (text === null) {
    throw new TurnsweepError(errorNames.usage, 'there is no such run in the deployment', {
      where: run,
      remedy: 'give a run id that `turnsweep plan SWEEP` or `turnsweep status --on aws` prints',
    });
  }
  // A scheduled run has the contract of the run that it repeats, and a name of its own.
  return { aws, run, contract: storedContract.parse(JSON.parse(text)).contract };
};
