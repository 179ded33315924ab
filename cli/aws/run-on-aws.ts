import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { RunSummary } from '../../functions/aggregate-run/aggregate-run.ts';
import { openRunFolder } from '../../local/home.ts';
import { createProgress, laneState } from '../../local/progress.ts';
import { type ConnectedDeployment, connectDeployment } from '../../shared/adapters/aws/connect.ts';
import { storedContract } from '../../shared/contracts/run.ts';
import { errorNames, isNamed, ProblemsFound, TurnsweepError } from '../../shared/errors.ts';
import { keys } from '../../shared/keys.ts';
import { runId, startName } from '../../shared/naming.ts';
import type { ExecutionDescription } from '../../shared/ports/workflow.ts';
import { extensionOf } from '../../shared/stages/clip-source.ts';
import { readAhead } from '../../shared/stages/read-ahead.ts';
import { exitCodes } from '../exit-codes.ts';
import type { PreparedRun } from '../prepare-run.ts';
import { claimRunFolder } from '../run-folder.ts';
import { showResult } from '../show-result.ts';
import { jsonLine, print, printable, warn } from '../terminal.ts';
import { uploadRun } from '../upload-run.ts';
import { downloadRun } from './download-run.ts';

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
  const lock = await claimRunFolder(directory);
  try {
    await uploadMedia(prepared, aws);
    await uploadRun(aws.store, prepared);
    const executionId = await startOrJoin(prepared.run, options.retryErrors, aws);
    const ended = await follow(prepared, executionId, aws, options.json);
    if (ended === null) {
      warn(
        `the run goes on in AWS: look with \`turnsweep status ${prepared.run} --on aws\`, run again to join it`,
      );
      return exitCodes.interrupted;
    }
    const files = await downloadRun(aws.store, prepared.run, prepared.contract.benchmark.id, directory);
    if (!options.json) print(`${files} files brought to ${directory}`);
    if (ended.status !== 'SUCCEEDED') throw endedBadly(ended);
    const { summary } = ended.output as { summary: RunSummary };
    const store = openRunFolder(directory, prepared.run);
    const shown = { store, directory, run: prepared.run, contract: prepared.contract };
    return await showResult(shown, createProgress([]), summary, options.json);
  } finally {
    await lock.release();
  }
};

const checkLanes = (prepared: PreparedRun, { deployment }: ConnectedDeployment): void => {
  const unknown = prepared.contract.lanes.filter((lane) => !deployment.lanes.includes(lane.id));
  if (unknown.length === 0) return;
  throw new ProblemsFound(
    errorNames.usage,
    'the deployment lacks lanes of this sweep',
    unknown.map((lane) => ({
      file: 'infra/config/lanes.json',
      line: null,
      message: `no lane "${lane.id}" in deployment ${deployment.name} (it has ${deployment.lanes.join(', ')}); add it and deploy again`,
    })),
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

/** Joins the run's latest start while it runs; else begins the next one. */
const startOrJoin = async (
  run: string,
  retryErrors: boolean,
  { deployment, workflow }: ConnectedDeployment,
) => {
  const executionOf = (start: number): string =>
    `${deployment.sweepMachine.replace(':stateMachine:', ':execution:')}:${startName(run, start)}`;
  let start = 1;
  for (; ; start += 1) {
    const known = await workflow.describe(executionOf(start)).catch((error: unknown) => {
      if (isNamed(error, errorNames.objectMissing)) return null;
      throw error;
    });
    if (known === null) break;
    if (known.status === 'RUNNING') return executionOf(start);
  }
  return workflow.start(deployment.sweepMachine, startName(run, start), { run, retryErrors });
};

const endedBadly = ({ status, error, cause }: ExecutionDescription): TurnsweepError =>
  new TurnsweepError(
    errorNames.contractViolated,
    `the run ended as ${status} in AWS: ${printable(`${error ?? ''} ${cause ?? ''}`.trim())}`,
    { remedy: 'see docs/runbook.md; run again to go on, what is recorded stays' },
  );

/** Shows how far the run is until it has ended; null where the user does not want to wait any longer. */
const follow = async (
  prepared: PreparedRun,
  executionId: string,
  { store, workflow }: ConnectedDeployment,
  json: boolean,
): Promise<ExecutionDescription | null> => {
  const leaving = new AbortController();
  const leave = () => leaving.abort();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, leave);
  let shown = '';
  try {
    for (;;) {
      const execution = await workflow.describe(executionId);
      const lanes = [];
      for (const { id } of prepared.contract.lanes) {
        const state = await laneState(store, prepared.run, id);
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
      await sleep(lookSeconds * 1000, undefined, { signal: leaving.signal }).catch(() => undefined);
      if (leaving.signal.aborted) return null;
    }
  } finally {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.removeListener(signal, leave);
  }
};

/** A run in the bucket by its id; throws where there is none. */
export const findRunOnAws = async (run: string, deployment: string) => {
  const aws = await connectDeployment(deployment);
  const text = await aws.store.getText(keys.run.contract(run));
  if (text === null) {
    throw new TurnsweepError(errorNames.usage, 'there is no such run in the deployment', {
      where: run,
      remedy: 'give the run id that `turnsweep plan` prints',
    });
  }
  const { contract, hash } = storedContract.parse(JSON.parse(text));
  return { aws, contract, run: runId(contract.name, hash) };
};
