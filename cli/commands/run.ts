import path from 'node:path';
import type { RunSummary } from '../../functions/aggregate-run/aggregate-run.ts';
import { createLocalHome, type LocalHome, mediaAliases, openRunFolder } from '../../local/home.ts';
import { createProgress, laneState, type Progress } from '../../local/progress.ts';
import { errorNames, TurnsweepError } from '../../shared/errors.ts';
import { keys } from '../../shared/keys.ts';
import type { ObjectStore } from '../../shared/ports/object-store.ts';
import { checkApiKeys } from '../api-keys.ts';
import { exitCodes } from '../exit-codes.ts';
import { type PreparedRun, prepareRun } from '../prepare-run.ts';
import { type ProgressStyle, showProgress } from '../progress-view.ts';
import { readSweepFile } from '../read-sweep.ts';
import { claimRunFolder, findRun, withFileNames } from '../run-folder.ts';
import { type ShownRun, showResult } from '../show-result.ts';
import { warn } from '../terminal.ts';
import { checkSameContract, uploadRun } from '../upload-run.ts';

export interface RunOptions {
  out?: string;
  on?: 'local' | 'aws';
  resume?: boolean;
  retryErrors?: boolean;
  limit?: number;
  jobs?: number;
  reviews?: string;
  media?: string;
  deployment: string;
  json?: boolean;
}

export const run = async (sweepPath: string, options: RunOptions): Promise<number> => {
  const begun = await begin(sweepPath, options);
  if (typeof begun === 'number') return begun;
  const { lock, home, context } = begun;
  try {
    const sweep = () => home.sweep({ retryErrors: options.retryErrors ?? false });
    return await withFileNames(context, () => runToEnd(home, sweep, context));
  } finally {
    await lock.release();
  }
};

/**
 * Everything before the first call; on AWS the whole run, which gives its exit code. What was read of the benchmark
 * is in memory until this has returned, and no longer.
 */
const begin = async (sweepPath: string, options: RunOptions) => {
  const sweep = await readSweepFile(sweepPath);
  if (options.jobs !== undefined) {
    for (const lane of sweep.models) lane.maxInFlight = options.jobs;
    if (sweep.judge !== undefined) sweep.judge.maxInFlight = Math.min(options.jobs, 1_000);
  }
  const prepared = await prepareRun(sweep, sweepPath, {
    limit: options.limit ?? null,
    givesUrls: options.on === 'aws',
  });
  const directory = path.resolve(options.out ?? path.join('runs', sweep.name));
  const existing = findRun(directory);
  if (options.resume && existing === null) {
    throw new TurnsweepError(errorNames.usage, 'there is no run to resume', {
      where: directory,
      remedy: 'give its folder with --out, or leave --resume out to start one',
    });
  }
  checkSameContract(existing, prepared, directory);
  if (options.on === 'aws') {
    const { deployment, retryErrors = false, json = false } = options;
    // Loaded here only: one machine needs no SDK.
    const { runOnAws } = await import('../aws/run-on-aws.ts');
    return runOnAws(prepared, directory, { deployment, retryErrors, json });
  }
  checkApiKeys(sweep, sweepPath);
  const lock = await claimRunFolder(directory);
  try {
    // Another process may have started a run since.
    checkSameContract(findRun(directory), prepared, directory);
    const here = await withFileNames({ directory, run: prepared.run }, () =>
      beginHere(prepared, directory, options),
    );
    return { lock, ...here };
  } catch (error) {
    await lock.release();
    throw error;
  }
};

const beginHere = async (
  prepared: PreparedRun,
  directory: string,
  options: RunOptions,
): Promise<{ home: LocalHome; context: RunningContext }> => {
  const store = openRunFolder(directory, prepared.run, {
    reviewsDirectory: options.reviews,
    derivedDirectory: options.media && path.resolve(options.media),
    media: prepared.media === null ? undefined : mediaAliases(prepared.release.directory, prepared.media),
  });
  await uploadRun(store, prepared);
  const starts: Awaited<ReturnType<typeof startOf>>[] = [];
  // One after the other: each has the names of all its lane's records in memory for a while.
  for (const lane of prepared.contract.lanes) starts.push(await startOf(store, prepared, lane.id));
  const progress = createProgress(starts);
  const faults = (process.env.TURNSWEEP_FAULT ?? '').split(',');
  const home = await createLocalHome({
    store,
    directory,
    run: prepared.run,
    progress,
    deliverTwice: faults.includes('deliver-twice'),
    outOfOrder: faults.includes('out-of-order'),
  });
  const context = {
    store,
    directory,
    run: prepared.run,
    contract: prepared.contract,
    progress,
    json: options.json ?? false,
    repliesThere: starts.reduce((sum, { replies }) => sum + replies, 0),
  };
  return { home, context };
};

const startOf = async (store: ObjectStore, prepared: PreparedRun, lane: string) => {
  const planned = prepared.plans.get(lane)!.views;
  const state = await laneState(store, prepared.run, lane);
  return (
    state ?? {
      lane,
      total: planned.length,
      done: 0,
      excluded: 0,
      replies: 0,
      openViews: new Set(planned.map((view) => view.viewId)),
    }
  );
};

export interface RunningContext extends ShownRun {
  progress: Progress;
  json: boolean;
}

const progressStyle = (json: boolean): ProgressStyle =>
  json ? 'json' : process.stdout.isTTY ? 'bars' : 'lines';

/** Exit codes of signals that end a run early: 128 + number; the state is kept either way. */
const interruptedBy = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** Runs a home's work with progress, an orderly end on a signal, and the result shown. */
export const runToEnd = async (
  home: LocalHome,
  work: () => Promise<RunSummary>,
  context: RunningContext,
): Promise<number> => {
  const view = showProgress(context.progress, progressStyle(context.json));
  const saving = setInterval(() => void saveProgress(context), 2_000);
  let interrupt: () => void = () => {};
  const interrupted = new Promise<null>((resolve) => {
    interrupt = () => resolve(null);
  });
  for (const signal of interruptedBy) process.once(signal, interrupt);
  try {
    const summary = await Promise.race([work(), interrupted]);
    view.stop();
    if (summary === null) {
      warn('interrupted: waiting for the calls in flight; run again to go on (once more to stop at once)');
      for (const signal of interruptedBy) process.once(signal, () => process.exit(exitCodes.interrupted));
      await home.drain();
      return exitCodes.interrupted;
    }
    return await showResult(context, context.progress, summary, context.json);
  } catch (error) {
    view.stop();
    throw error;
  } finally {
    clearInterval(saving);
    for (const signal of interruptedBy) process.removeListener(signal, interrupt);
    await saveProgress(context);
    await home.close();
  }
};

const saveProgress = async ({ store, run, progress }: RunningContext): Promise<void> => {
  const snapshot = { time: new Date().toISOString(), ...progress.snapshot() };
  // The later phases know nothing of lanes: what the run itself said of them stays.
  if (snapshot.lanes.length === 0) return;
  // Only `status` reads it: a full disk is reported by the work itself.
  await store.put(keys.run.progress(run), JSON.stringify(snapshot)).catch(() => undefined);
};
