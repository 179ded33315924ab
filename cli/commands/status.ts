import path from 'node:path';
import { openRunFolder } from '../../local/home.ts';
import { laneState, type Snapshot } from '../../local/progress.ts';
import { keys } from '../../shared/keys.ts';
import { exitCodes } from '../exit-codes.ts';
import { openKnownRun } from '../run-folder.ts';
import { summaryOfSpend } from '../spend.ts';
import { print, renderTable } from '../terminal.ts';

export const status = async (out: string, options: { json?: boolean }): Promise<number> => {
  const directory = path.resolve(out);
  const { run, contract } = await openKnownRun(directory);
  const store = openRunFolder(directory, run);
  const text = await store.getText(keys.run.progress(run));
  const progress = text === null ? null : (JSON.parse(text) as Snapshot & { time: string });
  const lanes = [];
  for (const { id } of contract.lanes) {
    const state = await laneState(store, run, id);
    const live = progress?.lanes.find((lane) => lane.lane === id);
    const open = state === null ? 0 : state.openViews.size;
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
    });
  }
  const spend = await summaryOfSpend(directory, run);
  const total = lanes.reduce((sum, lane) => sum + lane.total, 0);
  const settled = lanes.reduce((sum, lane) => sum + lane.done + lane.excluded, 0);
  const document = { run, directory, asOf: progress?.time ?? null, total, settled, spend, lanes };
  if (options.json) {
    print(JSON.stringify(document, null, 2));
    return exitCodes.complete;
  }
  print(`run ${run}: ${settled} of ${total} views settled`);
  print(
    renderTable(
      ['Lane', 'Views', 'Done', 'Excluded', 'Open', 'Replies', 'Failures', 'Retries by kind'],
      lanes.map((lane) => [
        lane.lane,
        String(lane.total),
        String(lane.done),
        String(lane.excluded),
        String(lane.open),
        String(lane.replies),
        String(lane.failures),
        Object.entries(lane.retries)
          .map(([kind, times]) => `${kind}×${times}`)
          .join(' ') || '–',
      ]),
    ),
  );
  if (spend !== null && spend.limitUsd !== null) {
    print(`spent $${spend.spentUsd.toFixed(4)} of $${spend.limitUsd.toFixed(2)}`);
  }
  return exitCodes.complete;
};
