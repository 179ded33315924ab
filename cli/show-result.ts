import path from 'node:path';
import { z } from 'zod';
import type { RunSummary } from '../functions/aggregate-run/aggregate-run.ts';
import type { Progress } from '../local/progress.ts';
import { viewRow } from '../shared/contracts/records.ts';
import type { LaneContract, RunContract } from '../shared/contracts/run.ts';
import { keys } from '../shared/keys.ts';
import type { ObjectStore } from '../shared/ports/object-store.ts';
import { readStored, readStoredLines } from '../shared/stages/stored-json.ts';
import { exitCodes } from './exit-codes.ts';
import { jsonLine, paint, print, printable, renderTable, warn } from './terminal.ts';

export interface ShownRun {
  store: ObjectStore;
  directory: string;
  run: string;
  contract: RunContract;
  /** Replies that were there before this start: asked and paid by an earlier one. */
  repliesThere?: number;
}

const shownSummary = z.looseObject({
  tables: z.array(
    z.looseObject({ title: z.string(), header: z.array(z.string()), rows: z.array(z.array(z.string())) }),
  ),
  judging: z.looseObject({ judgeMixed: z.boolean() }),
});

export const stoppedLane = z.looseObject({ kind: z.string(), message: z.string() });

/** What a lane lacks and why; only lanes that lack something have one. */
interface LaneNote {
  lane: string;
  /** Null for recorded lanes. */
  endpoint: string | null;
  /** Views by the kind of failure that excluded them. */
  excluded: Record<string, number>;
  /** Views without a decision: asked again by the next start. */
  open: number;
  stopped: { kind: string; message: string } | null;
}

const laneNote = async (
  { store, run }: ShownRun,
  { id, baseUrl }: LaneContract,
): Promise<LaneNote | null> => {
  const excluded: Record<string, number> = {};
  let open = 0;
  for await (const { outcome, reason } of readStoredLines(store, keys.lane.views(run, id), viewRow)) {
    if (outcome === 'open') open += 1;
    if (outcome === 'excluded') excluded[reason ?? 'unknown'] = (excluded[reason ?? 'unknown'] ?? 0) + 1;
  }
  const stopped = await readStored(store, keys.lane.stopped(run, id), stoppedLane);
  if (open === 0 && stopped === null && Object.keys(excluded).length === 0) return null;
  const why = stopped && { kind: stopped.kind, message: stopped.message };
  return { lane: id, endpoint: baseUrl, excluded, open, stopped: why };
};

/** Kinds that are never asked again. */
const refusals = ['provider_refusal', 'finish_content_filter', 'http_451'];
const reasonsShown = 3;

const noteLines = ({ lane, endpoint, excluded, open, stopped }: LaneNote): string[] => {
  const subject = `lane ${lane}${endpoint === null ? '' : ` (${endpoint})`}`;
  const lines: string[] = [];
  if (stopped !== null) {
    lines.push(
      `${subject} stopped: ${stopped.kind}: ${stopped.message}; ${open} views left open: mend the cause (key, account, quota or model name) and run again`,
    );
  } else if (open > 0) lines.push(`${subject}: ${open} views left open; run again to go on`);
  const reasons = Object.entries(excluded).sort(([, a], [, b]) => b - a);
  if (reasons.length > 0) {
    const count = reasons.reduce((sum, [, views]) => sum + views, 0);
    const listed = reasons.slice(0, reasonsShown).map(([kind, views]) => `${kind}×${views}`);
    const rest = reasons.length > reasonsShown ? ', …' : '';
    const canAskAgain = endpoint !== null && reasons.some(([kind]) => !refusals.includes(kind));
    const remedy = canAskAgain ? '; mend the cause and run with --retry-errors' : '';
    lines.push(`${subject}: ${count} views excluded (${listed.join(', ')}${rest})${remedy}`);
  }
  return lines;
};

/** Prints what a run came to; gives the exit code. */
export const showResult = async (
  shown: ShownRun,
  progress: Progress,
  summary: RunSummary,
  json: boolean,
): Promise<number> => {
  const { budgetSpent, faults, judgeStopped } = progress.snapshot();
  const { store, run } = shown;
  const document = await readStored(store, keys.run.report(run, 'summary.json'), shownSummary);
  const notes: LaneNote[] = [];
  for (const lane of shown.contract.lanes) {
    const note = await laneNote(shown, lane);
    if (note !== null) notes.push(note);
  }
  const code = budgetSpent
    ? exitCodes.budgetSpent
    : summary.excluded + summary.pending + summary.open > 0
      ? exitCodes.incomplete
      : exitCodes.complete;
  const report = path.join(shown.directory, 'report', 'index.html');
  if (json) {
    print(
      jsonLine({
        event: 'result',
        run,
        exitCode: code,
        ...summary,
        repliesThere: shown.repliesThere ?? 0,
        lanes: notes,
        judgeStopped,
        report,
      }),
    );
    return code;
  }
  for (const { title, header, rows } of document?.tables ?? []) {
    if (rows.length === 0) continue;
    print(`\n${paint('bold', title)}`);
    print(renderTable(header, rows));
  }
  for (const line of notes.flatMap(noteLines)) warn(printable(line));
  if (judgeStopped !== null) {
    warn(printable(`the judge stopped: ${judgeStopped}; mend its key, account or model and run again`));
  }
  const usd = `$${((summary.costMicroUsd ?? summary.knownCostMicroUsd) / 1e6).toFixed(4)}`;
  const cost =
    summary.costMicroUsd !== null
      ? usd
      : summary.knownCostMicroUsd === 0
        ? 'cost unknown'
        : `at least ${usd}`;
  print(
    `\n${summary.valid} of ${summary.views} views valid, ${summary.excluded} excluded, ${summary.open > 0 ? `${summary.open} left open, ` : ''}${summary.pending} awaiting review; ${summary.calls} calls, ${cost}`,
  );
  if (shown.repliesThere)
    print(`${shown.repliesThere} replies were there already: neither asked nor paid again`);
  if (document?.judging.judgeMixed) print('note: verdicts of more than one judge are in this report');
  if (budgetSpent) print('the budget is spent: raise it in the sweep file and run again to go on');
  if (faults > 0) print(`note: ${faults} deliveries failed and were repeated (--debug tells why)`);
  if (process.argv.includes('--debug')) {
    for (const fault of progress.recentFaults()) for (const line of fault.split('\n')) warn(printable(line));
  }
  print(`report: ${report}`);
  return code;
};
