import { existsSync } from 'node:fs';
import { cp, mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { openRunFolder } from '../../local/home.ts';
import { onDisk } from '../../shared/adapters/local/storage-errors.ts';
import { benchmarkOf } from '../../shared/benchmarks/registry.ts';
import { type FailureRecord, type RequestRecord, viewRow } from '../../shared/contracts/records.ts';
import { laneOf } from '../../shared/contracts/run.ts';
import { errorNames, TurnsweepError } from '../../shared/errors.ts';
import { keys } from '../../shared/keys.ts';
import { readRecord } from '../../shared/stages/records.ts';
import { judgeIdOf } from '../../shared/stages/reviews.ts';
import { loadRun, readStoredBenchmark } from '../../shared/stages/run-context.ts';
import { exitCodes } from '../exit-codes.ts';
import { openKnownRun, withFileNames } from '../run-folder.ts';
import { print } from '../terminal.ts';

export const exportRun = async (out: string, options: { to: string; out?: string }): Promise<number> => {
  const directory = path.resolve(out);
  const known = await openKnownRun(directory);
  const { kind } = known.contract.benchmark;
  const { exportFormat } = benchmarkOf(kind);
  if (options.to !== 'csv' && options.to !== exportFormat) {
    throw new TurnsweepError(errorNames.usage, `a run of benchmark "${kind}" is not a ${options.to}`, {
      where: directory,
      remedy: `use --to ${exportFormat} or --to csv`,
    });
  }
  const target = path.resolve(options.out ?? path.join(directory, 'export', options.to));
  const written = await withFileNames(known, () =>
    options.to === 'csv' ? exportCsv(directory, target) : exportRelease(known, target),
  );
  print(`${written} files in ${target}`);
  return exitCodes.complete;
};

/** The report's tables as they are. */
const exportCsv = async (directory: string, target: string): Promise<number> => {
  const report = path.join(directory, 'report');
  if (!existsSync(path.join(report, 'summary.json'))) {
    throw new TurnsweepError(errorNames.usage, 'this run has no report yet', {
      where: directory,
      remedy: 'run `turnsweep report` first',
    });
  }
  let files = 0;
  const isWanted = (source: string): boolean => {
    const isTable = source.endsWith('.csv');
    if (isTable) files += 1;
    return isTable || path.extname(source) === '';
  };
  await onDisk('write the export', target, () => cp(report, target, { recursive: true, filter: isWanted }));
  return files;
};

const exportRelease = async (
  { directory, run, contract }: Awaited<ReturnType<typeof openKnownRun>>,
  target: string,
): Promise<number> => {
  const store = openRunFolder(directory, run);
  const context = await loadRun(store, run);
  const { settings } = context;
  const benchmark = benchmarkOf(contract.benchmark.kind);
  const { inputs, answers } = await readStoredBenchmark(store, benchmark, context, {
    requests: true,
    answers: true,
  });
  let written = 0;
  for (const lane of contract.lanes) {
    const scoresKey = keys.run.scores(run, lane.id);
    if ((await store.tag(scoresKey)) === null) {
      throw new TurnsweepError(errorNames.usage, 'this run is not scored yet', {
        where: directory,
        remedy: 'run `turnsweep score` first',
      });
    }
    const scoredRows: unknown[] = [];
    for await (const line of store.lines(scoresKey)) scoredRows.push(JSON.parse(line));
    const views = [];
    const requestIds = new Set<string>();
    for await (const line of store.lines(keys.lane.views(run, lane.id)))
      views.push(viewRow.parse(JSON.parse(line)));
    for await (const line of store.lines(keys.run.laneViews(run, lane.id))) {
      for (const requestId of (JSON.parse(line) as { requestIds: string[] }).requestIds)
        requestIds.add(requestId);
    }
    const records = new Map<string, RequestRecord | FailureRecord>();
    for (const requestId of requestIds) {
      const record = await readRecord(store, run, lane.id, requestId);
      if (record !== null) records.set(requestId, record);
    }
    const laneSettings = laneOf(settings, lane.id);
    const files = benchmark.exportLane(inputs, answers, {
      title: {
        id: lane.id,
        displayName: laneSettings.displayName,
        family: laneSettings.family,
        model: lane.model,
        modalities: lane.modalities,
      },
      taskIds: [...new Set(views.map((view) => view.taskId))],
      interfaces: contract.benchmark.interfaces,
      views,
      scoredRows,
      judge: judgeIdOf(context, benchmark.judge(settings.prompts)),
      record: (requestId) => records.get(requestId) ?? null,
    });
    for (const file of files) {
      const destination = path.join(target, file.path);
      await onDisk('write the export', destination, async () => {
        await mkdir(path.dirname(destination), { recursive: true });
        await writeFile(destination, file.content);
      });
      written += 1;
    }
  }
  return written;
};
