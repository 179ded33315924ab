import path from 'node:path';
import { z } from 'zod';
import { openRunFolder } from '../../local/home.ts';
import { laneState, type Snapshot } from '../../local/progress.ts';
import type { ConnectedDeployment } from '../../shared/adapters/aws/connect.ts';
import { laneSummary } from '../../shared/contracts/plan.ts';
import { errorNames, isNamed, TurnsweepError } from '../../shared/errors.ts';
import { keys } from '../../shared/keys.ts';
import { runAccount } from '../../shared/naming.ts';
import type { ObjectStore } from '../../shared/ports/object-store.ts';
import { readStored } from '../../shared/stages/stored-json.ts';
import { exitCodes } from '../exit-codes.ts';
import { type KnownRun, openKnownRun, withFileNames } from '../run-folder.ts';
import { stoppedLane } from '../show-result.ts';
import { spendOf, summaryOfSpend } from '../spend.ts';
import { jsonLine, print, printable, renderTable, warn } from '../terminal.ts';

interface StatusOptions {
  on: 'local' | 'aws';
  deployment: string;
  json?: boolean;
}

/** What only a deployment knows of a run. */
interface RunOnAws {
  state: 'not started' | 'running' | 'paused' | 'ended' | 'cancelled' | 'failed';
  /** Starts so far. */
  starts: number;
  /** Why the latest start failed. */
  reason: string | null;
  queues: number;
  queuesOff: number;
}

interface ShownRun extends Pick<KnownRun, 'run' | 'contract'> {
  directory: string | null;
  aws: RunOnAws | null;
  spend: () => ReturnType<typeof summaryOfSpend>;
  /** Views a second of a lane with this many, where no snapshot tells. */
  rateOf: (lane: string, views: number) => Promise<number | null>;
}

/** What the rate of a run on AWS is measured over. */
const rateSeconds = 300;

export const status = async (out: string | undefined, options: StatusOptions): Promise<number> => {
  if (options.on === 'aws') {
    // Loaded here only: one machine needs no SDK.
    if (out === undefined) return listRuns(options);
    const { findRunOnAws } = await import('../aws/run-on-aws.ts');
    const { aws, run, contract } = await findRunOnAws(out, options.deployment);
    const spend = async () => spendOf(await aws.ledger.balance(runAccount(run)));
    const known = await runOnAws(run, aws);
    const rateOf = async (lane: string, views: number) => {
      const plan = await readStored(aws.store, keys.run.laneSummary(run, lane), laneSummary);
      if (known.state !== 'running' || plan === null) return null;
      const replies = await aws.recentRate(keys.lane.requests(run, lane), rateSeconds);
      return replies && (replies * views) / plan.distinctRequests;
    };
    const shown = { run, contract, directory: null, aws: known, rateOf, spend };
    return showStatus(aws.store, shown, options);
  }
  if (out === undefined) {
    throw new TurnsweepError(errorNames.usage, 'which run?', {
      remedy: 'give its folder, or look for runs on AWS with --on aws',
    });
  }
  const directory = path.resolve(out);
  const known = await openKnownRun(directory);
  const store = openRunFolder(directory, known.run);
  const spend = () => summaryOfSpend(directory, known.run);
  const shown = { ...known, aws: null, rateOf: async () => null, spend };
  return withFileNames(known, () => showStatus(store, shown, options));
};

/** Runs that a list of the latest ones shows. */
const runsListed = 100;

const listRuns = async ({ deployment, json }: StatusOptions): Promise<number> => {
  const { connectDeployment } = await import('../../shared/adapters/aws/connect.ts');
  const starts = await (await connectDeployment(deployment)).listStarts(runsListed);
  if (json) print(jsonLine(starts, 2));
  else if (starts.length === 0) print(`deployment ${deployment} has run nothing in the last 90 days`);
  else {
    print(
      renderTable(
        ['Run', 'Start', 'Ended as', 'Started'],
        starts.map(({ run, start, status, startedAt }) => [
          run,
          String(start),
          status === 'RUNNING' ? '–' : status,
          startedAt.toISOString().slice(0, 19),
        ]),
      ),
    );
  }
  return exitCodes.complete;
};

const runOnAws = async (run: string, aws: ConnectedDeployment): Promise<RunOnAws> => {
  const { findStarts } = await import('../aws/starts.ts');
  const starts = await findStarts(run, aws);
  const switches = await aws.listQueueSwitches();
  const queuesOff = switches.filter(({ isOn }) => !isOn).length;
  const latest = starts.at(-1)?.execution;
  const isPaused = queuesOff === switches.length;
  const state =
    latest === undefined
      ? 'not started'
      : latest.status === 'RUNNING'
        ? isPaused
          ? 'paused'
          : 'running'
        : latest.status === 'SUCCEEDED'
          ? 'ended'
          : latest.status === 'ABORTED'
            ? 'cancelled'
            : 'failed';
  const reason = state === 'failed' ? `${latest!.error ?? ''} ${latest!.cause ?? ''}`.trim() : null;
  return { state, starts: starts.length, reason, queues: switches.length, queuesOff };
};

const showStatus = async (
  store: ObjectStore,
  { directory, run, contract, aws, rateOf, spend: readSpend }: ShownRun,
  options: { json?: boolean },
): Promise<number> => {
  const progress = (await readStored(store, keys.run.progress(run), z.looseObject({}))) as
    | (Snapshot & { time: string })
    | null;
  const lanes = [];
  for (const { id } of contract.lanes) {
    const state = await laneState(store, run, id);
    const live = progress?.lanes.find((lane) => lane.lane === id);
    const open = state === null ? 0 : state.openViews.size;
    const stopped = await readStored(store, keys.lane.stopped(run, id), stoppedLane);
    // A deployment keeps no such snapshot: what only that tells is unknown then, not nothing.
    const viewsPerSecond =
      live && progress
        ? live.settledNow / Math.max(progress.elapsedSeconds, 1)
        : state === null
          ? null
          : await rateOf(id, state.total);
    lanes.push({
      lane: id,
      planned: state !== null,
      total: state?.total ?? 0,
      done: state?.done ?? 0,
      excluded: state?.excluded ?? 0,
      open,
      replies: state?.replies ?? 0,
      failures: state?.failures ?? 0,
      retries: live?.retries ?? null,
      retriesByReason: live?.retriesByReason ?? null,
      rate: live?.rate ?? null,
      stopped: stopped && { kind: stopped.kind, message: stopped.message },
      viewsPerSecond,
      /** Null where nothing moves. */
      secondsLeft:
        state !== null && open === 0
          ? 0
          : viewsPerSecond !== null && viewsPerSecond > 0
            ? Math.ceil(open / viewsPerSecond)
            : null,
      knownCostUsd: live ? live.knownCostMicroUsd / 1e6 : null,
      unpricedCalls: live?.unpricedCalls ?? null,
    });
  }
  const spend = await readSpend().catch((error: unknown) => {
    // Who may only read the folder or the bucket still learns the rest.
    if (!isNamed(error, errorNames.storageFailed) && !isNamed(error, errorNames.accessDenied)) throw error;
    warn(printable(`note: what was spent is unknown: ${(error as Error).message}`));
    return null;
  });
  const total = lanes.reduce((sum, lane) => sum + lane.total, 0);
  const settled = lanes.reduce((sum, lane) => sum + lane.done + lane.excluded, 0);
  const excluded = lanes.reduce((sum, lane) => sum + lane.excluded, 0);
  const failed = lanes.reduce((sum, lane) => sum + lane.failures, 0);
  const secondsLeft = lanes.some((lane) => lane.secondsLeft === null)
    ? null
    : Math.max(0, ...lanes.map((lane) => lane.secondsLeft ?? 0));
  const asOf = progress?.time ?? null;
  const done = settled - excluded;
  const document = {
    run,
    directory,
    aws,
    asOf,
    total,
    settled,
    done,
    excluded,
    failed,
    secondsLeft,
    spend,
    lanes,
  };
  if (options.json) {
    print(jsonLine(document, 2));
    return exitCodes.complete;
  }
  print(`run ${run}: ${aws === null ? '' : `${aws.state}, `}${settled} of ${total} views settled`);
  print(
    renderTable(
      [
        'Lane',
        'Views',
        'Done',
        'Excluded',
        'Open',
        'Failed',
        'Views/s',
        'Time left',
        'Cost',
        'Retries by kind',
      ],
      lanes.map((lane) => [
        lane.lane,
        String(lane.total),
        String(lane.done),
        String(lane.excluded),
        String(lane.open),
        String(lane.failures),
        lane.viewsPerSecond?.toFixed(1) ?? '–',
        lane.secondsLeft === null ? '–' : durationText(lane.secondsLeft),
        costText(lane),
        Object.entries(lane.retries ?? {})
          .map(([kind, times]) => `${kind}×${times}`)
          .join(' ') || '–',
      ]),
    ),
  );
  if (progress !== null)
    print('views per second, time left and cost are those of the latest start; `report` has the whole cost');
  for (const { lane, stopped } of lanes)
    if (stopped !== null) print(printable(`lane ${lane} stopped: ${stopped.kind}: ${stopped.message}`));
  for (const line of aws === null ? [] : hintsOf(run, aws, total - settled)) print(printable(line));
  if (spend !== null && spend.limitUsd !== null) {
    print(`spent $${spend.spentUsd.toFixed(4)} of $${spend.limitUsd.toFixed(2)}`);
  }
  return exitCodes.complete;
};

/** What to do about the state of a run. */
const hintsOf = (run: string, { state, reason, queues, queuesOff }: RunOnAws, open: number): string[] => [
  ...(reason === null ? [] : [`the latest start failed: ${reason}`]),
  ...(queuesOff === 0
    ? []
    : [`${queuesOff} of ${queues} queues are off: \`turnsweep resume\` lets them go on`]),
  ...(open > 0 && ['ended', 'cancelled', 'failed'].includes(state)
    ? [`${open} views are open: \`turnsweep redrive ${run}\` goes on with them`]
    : []),
];

/** Unknown is never shown as nothing. */
const costText = ({
  knownCostUsd,
  unpricedCalls,
}: {
  knownCostUsd: number | null;
  unpricedCalls: number | null;
}): string => {
  if (knownCostUsd === null) return '–';
  if (unpricedCalls === 0) return `$${knownCostUsd.toFixed(4)}`;
  return knownCostUsd === 0 ? 'unknown' : `≥ $${knownCostUsd.toFixed(4)}`;
};

const durationText = (seconds: number): string => {
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor((seconds % 3600) / 60)];
  return hours > 0 ? `${hours} h ${minutes} min` : minutes > 0 ? `${minutes} min` : `${seconds} s`;
};
