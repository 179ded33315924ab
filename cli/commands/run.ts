import path from 'node:path';
import type { RunSummary } from '../../functions/aggregate-run/aggregate-run.ts';
import { createLocalHome, type LocalHome, mediaAliases, openRunFolder } from '../../local/home.ts';
import { createProgress, laneState, type Progress } from '../../local/progress.ts';
import { errorNames, TurnsweepError } from '../../shared/errors.ts';
import { keys } from '../../shared/keys.ts';
import type { ObjectStore } from '../../shared/ports/object-store.ts';
import { exitCodes } from '../exit-codes.ts';
import { type PreparedRun, prepareRun } from '../prepare-run.ts';
import { type ProgressStyle, showProgress } from '../progress-view.ts';
import { readSweepFile } from '../read-sweep.ts';
import { claimRunFolder, readContractText } from '../run-folder.ts';
import { paint, print, printable, renderTable, warn } from '../terminal.ts';
import { checkSameContract, uploadRun } from '../upload-run.ts';

export interface RunOptions {
  out?: string;
  on?: 'local' | 'aws';
  resume?: boolean;
  retryErrors?: boolean;
  limit?: number;
  jobs?: number;
  reviews?: string;
  json?: boolean;
}

export const run = async (sweepPath: string, options: RunOptions): Promise<number> => {
  if (options.on === 'aws') {
    throw new TurnsweepError(errorNames.usage, 'this version runs on one machine only', {
      remedy: 'leave --on out',
    });
  }
  const sweep = await readSweepFile(sweepPath);
  if (options.jobs !== undefined) {
    for (const lane of sweep.models) lane.maxInFlight = options.jobs;
    if (sweep.judge !== undefined) sweep.judge.maxInFlight = options.jobs;
  }
  const prepared = await prepareRun(sweep, sweepPath, { limit: options.limit ?? null });
  const directory = path.resolve(options.out ?? path.join('runs', sweep.name));
  if (options.resume && (await readContractText(directory)) === null) {
    throw new TurnsweepError(errorNames.usage, 'nothing to resume', {
      where: directory,
      remedy: 'leave --resume out',
    });
  }
  const lock = await claimRunFolder(directory);
  try {
    await checkSameContract(await readContractText(directory), prepared, directory);
    const store = openRunFolder(directory, prepared.run, {
      reviewsDirectory: options.reviews,
      media: prepared.media === null ? undefined : mediaAliases(prepared.release.directory, prepared.media),
    });
    await uploadRun(store, prepared);
    const progress = createProgress(
      await Promise.all(prepared.contract.lanes.map((lane) => startOf(store, prepared, lane.id))),
    );
    const home = await createLocalHome({
      store,
      directory,
      run: prepared.run,
      progress,
      deliverTwice: process.env.TURNSWEEP_FAULT === 'deliver-twice',
    });
    return await runToEnd(home, () => home.sweep({ retryErrors: options.retryErrors ?? false }), {
      store,
      directory,
      run: prepared.run,
      progress,
      json: options.json ?? false,
    });
  } finally {
    await lock.release();
  }
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
      openViews: new Set(planned.map((view) => view.viewId)),
    }
  );
};

export interface RunningContext {
  store: ObjectStore;
  directory: string;
  run: string;
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
    return await showResult(context, summary);
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
  // Only `status` reads it: a full disk is reported by the work itself.
  await store.put(keys.run.progress(run), JSON.stringify(snapshot)).catch(() => undefined);
};

interface ShownSummary {
  tables: { title: string; header: string[]; rows: string[][] }[];
  judging: { judgeMixed: boolean; pending: number };
}

export const showResult = async (context: RunningContext, summary: RunSummary): Promise<number> => {
  const { lanes, budgetSpent, faults } = context.progress.snapshot();
  const text = await context.store.getText(keys.run.report(context.run, 'summary.json'));
  const document = JSON.parse(text ?? '{}') as ShownSummary;
  const code = budgetSpent
    ? exitCodes.budgetSpent
    : summary.excluded + summary.pending > 0
      ? exitCodes.incomplete
      : exitCodes.complete;
  const reportPath = path.join(context.directory, 'report', 'index.html');
  if (context.json) {
    print(
      JSON.stringify({ event: 'result', run: context.run, exitCode: code, ...summary, report: reportPath }),
    );
    return code;
  }
  for (const { title, header, rows } of document.tables) {
    if (rows.length === 0) continue;
    print(`\n${paint('bold', title)}`);
    print(renderTable(header, rows));
  }
  for (const lane of lanes) {
    if (lane.stopped !== null)
      warn(`lane ${printable(lane.lane)} stopped: ${await stopReason(context, lane.lane)}`);
  }
  const cost = summary.costMicroUsd === null ? 'cost unknown' : `$${(summary.costMicroUsd / 1e6).toFixed(4)}`;
  print(
    `\n${summary.valid} of ${summary.views} views valid, ${summary.excluded} excluded, ${summary.pending} awaiting review; ${summary.calls} calls, ${cost}`,
  );
  if (document.judging.judgeMixed) print('note: verdicts of more than one judge are in this report');
  if (budgetSpent) print('the budget is spent: raise it in the sweep file and run again to go on');
  if (faults > 0) print(`note: ${faults} deliveries failed and were repeated (--debug tells why)`);
  if (process.argv.includes('--debug')) for (const fault of context.progress.recentFaults()) warn(fault);
  print(`report: ${reportPath}`);
  return code;
};

const stopReason = async ({ store, run }: RunningContext, lane: string): Promise<string> => {
  const text = await store.getText(keys.lane.stopped(run, lane));
  if (text === null) return 'no further call can succeed';
  const { kind, message } = JSON.parse(text) as { kind: string; message: string };
  return printable(`${kind}: ${message}`);
};
