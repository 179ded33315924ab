import path from 'node:path';
import { z } from 'zod';
import { openRunFolder } from '../../local/home.ts';
import { laneState, type Snapshot } from '../../local/progress.ts';
import { errorNames, isNamed } from '../../shared/errors.ts';
import { keys } from '../../shared/keys.ts';
import type { ObjectStore } from '../../shared/ports/object-store.ts';
import { readStored } from '../../shared/stages/stored-json.ts';
import { exitCodes } from '../exit-codes.ts';
import { type KnownRun, openKnownRun, withFileNames } from '../run-folder.ts';
import { summaryOfSpend } from '../spend.ts';
import { jsonLine, print, printable, renderTable, warn } from '../terminal.ts';

interface StatusOptions {
  on: 'local' | 'aws';
  deployment: string;
  json?: boolean;
}

export const status = async (out: string, options: StatusOptions): Promise<number> => {
  if (options.on === 'aws') {
    const { findRunOnAws } = await import('../aws/run-on-aws.ts');
    const { aws, run, contract } = await findRunOnAws(out, options.deployment);
    return showStatus(aws.store, { run, contract, directory: null }, options);
  }
  const directory = path.resolve(out);
  const known = await openKnownRun(directory);
  const store = openRunFolder(directory, known.run);
  return withFileNames(known, () => showStatus(store, known, options));
};

const showStatus = async (
  store: ObjectStore,
  { directory, run, contract }: Pick<KnownRun, 'run' | 'contract'> & { directory: string | null },
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
    const viewsPerSecond = live && progress ? live.settledNow / Math.max(progress.elapsedSeconds, 1) : 0;
    lanes.push({
      lane: id,
      planned: state !== null,
      total: state?.total ?? 0,
      done: state?.done ?? 0,
      excluded: state?.excluded ?? 0,
      open,
      replies: state?.replies ?? 0,
      failures: state?.failures ?? 0,
      retries: live?.retries ?? {},
      stopped: live?.stopped ?? null,
      viewsPerSecond,
      /** Null where nothing moves. */
      secondsLeft: open === 0 ? 0 : viewsPerSecond > 0 ? Math.ceil(open / viewsPerSecond) : null,
      knownCostUsd: (live?.knownCostMicroUsd ?? 0) / 1e6,
      unpricedCalls: live?.unpricedCalls ?? 0,
    });
  }
  const spent = directory === null ? Promise.resolve(null) : summaryOfSpend(directory, run);
  const spend = await spent.catch((error: unknown) => {
    // Who may only read the folder still learns the rest.
    if (!isNamed(error, errorNames.storageFailed)) throw error;
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
  print(`run ${run}: ${settled} of ${total} views settled`);
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
        lane.viewsPerSecond.toFixed(1),
        lane.secondsLeft === null ? '–' : durationText(lane.secondsLeft),
        costText(lane),
        Object.entries(lane.retries)
          .map(([kind, times]) => `${kind}×${times}`)
          .join(' ') || '–',
      ]),
    ),
  );
  print('views per second, time left and cost are those of the latest start; `report` has the whole cost');
  if (spend !== null && spend.limitUsd !== null) {
    print(`spent $${spend.spentUsd.toFixed(4)} of $${spend.limitUsd.toFixed(2)}`);
  }
  return exitCodes.complete;
};

/** Unknown is never shown as nothing. */
const costText = ({
  knownCostUsd,
  unpricedCalls,
}: {
  knownCostUsd: number;
  unpricedCalls: number;
}): string => {
  if (unpricedCalls === 0) return `$${knownCostUsd.toFixed(4)}`;
  return knownCostUsd === 0 ? 'unknown' : `≥ $${knownCostUsd.toFixed(4)}`;
};

const durationText = (seconds: number): string => {
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor((seconds % 3600) / 60)];
  return hours > 0 ? `${hours} h ${minutes} min` : minutes > 0 ? `${minutes} min` : `${seconds} s`;
};
