/**
 * What a sweep costs by its number of views: every command of it, in a process of its own, on generated releases of growing
 * size against the simulated fleet of bench/paper. Each step's calls are counted by the fleet and each report is compared with
 * a count of the fleet's script; a difference ends the program with 1.
 *
 * npm run bench:views -- [--up-to 10000] [--runs 3] [--short-seconds 60] [--seed 53126] [--jobs 8]
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { defaultResamples } from '../shared/benchmarks/return/bootstrap.ts';
import { folderSize, type Measured, machineLine, measureCommand, median, rounded } from './measure.ts';
import { scaled, scriptByChance } from './paper/chance.ts';
import { compareWithScript } from './paper/check-report.ts';
import { paperComposition } from './paper/composition.ts';
import { expectedCounts } from './paper/expected.ts';
import { type FleetStats, startFleet } from './paper/fleet.ts';
import { outcomeAt } from './paper/outcomes.ts';
import { writeRelease } from './paper/release.ts';
import { paperLanes, sweepFileText } from './paper/sweep-file.ts';

const { values } = parseArgs({
  options: {
    'up-to': { type: 'string', default: '10000' },
    runs: { type: 'string', default: '3' },
    'short-seconds': { type: 'string', default: '60' },
    seed: { type: 'string', default: '53126' },
    jobs: { type: 'string' },
  },
});
const [upTo, runsAtMost, shortSeconds, seed] = (['up-to', 'runs', 'short-seconds', 'seed'] as const).map(
  (name) => Number(values[name]),
) as [number, number, number, number];
const sizes = [1_000, 10_000, 95_000, 200_000].filter((size) => size <= upTo);
if (sizes.length === 0) sizes.push(upTo);
const refusedPerMille = 2;
const viewsOfThePaper = 95_000;
const folder = mkdtempSync(path.join(tmpdir(), 'turnsweep-views-'));

interface Once {
  measured: Measured;
  served: FleetStats;
}
interface Step {
  views: number;
  step: string;
  each: Once[];
}

const check = (what: string, found: unknown, wanted: unknown): void => {
  if (found !== wanted) throw new Error(`${what}: ${found} instead of ${wanted}`);
};
const modelCalls = ({ requests, judgeCalls }: FleetStats): number => requests - judgeCalls;
const say = (text: string): void => console.log(`${new Date().toISOString().slice(11, 19)}  ${text}`);

const measureSize = async (size: number): Promise<{ steps: Step[]; files: string }> => {
  const place = path.join(folder, String(size));
  mkdirSync(place);
  const release = path.join(place, 'release');
  const composition = scaled(paperComposition, size / viewsOfThePaper);
  const split = writeRelease(release, composition, seed, 1);
  const lanes = paperLanes();
  const scripts = lanes.map((lane) => scriptByChance(lane, split, seed, refusedPerMille));
  const expected = expectedCounts(split, scripts);
  const refused = scripts.reduce(
    (sum, script) =>
      sum + split.requests.filter(({ index }) => outcomeAt(script, index) === 'http_400').length,
    0,
  );
  const { views } = expected;
  say(`${views} views (seed ${seed}): ${expected.requests} requests, of which ${refused} are refused`);

  const judges = Array.from({ length: runsAtMost + 1 }, (_, at) => `judge-${at + 1}`);
  const fleet = await startFleet({
    composition,
    seed,
    lanes: lanes.map((lane, at) => ({
      wireModel: lane.model,
      modalities: lane.modalities,
      retryMaxTokens: lane.retryMaxTokens ?? null,
      codes: scripts[at]!.codes,
    })),
    judgeModels: judges,
    latencyMs: 0,
    lengthStopsPerMille: 0,
  });
  const sweepFiles = judges.map((judge) => {
    const file = path.join(place, `sweep-${judge}.yaml`);
    writeFileSync(
      file,
      sweepFileText({
        name: 'views',
        release,
        lanes,
        urlOf: fleet.urlOf,
        judgeUrl: fleet.judgeUrl,
        judge,
        maxInFlight: values.jobs === undefined ? undefined : Number(values.jobs),
        resampleSeed: seed,
      }),
    );
    return file;
  });
  const sweep = sweepFiles[0]!;
  const steps: Step[] = [];
  /** Runs a command as often as it may be, at least once, and looks at each of its runs. */
  const time = async (
    step: string,
    argsOf: (run: number) => readonly string[],
    exit: number,
    look: (once: Once, run: number) => void,
  ): Promise<void> => {
    const each: Once[] = [];
    do {
      await fleet.reset();
      const measured = await measureCommand(argsOf(each.length));
      if (measured.code !== exit)
        throw new Error(`${step} ended with ${measured.code}: ${measured.complaints || measured.lastLine}`);
      const once = { measured, served: await fleet.stats() };
      check(`${step}: requests that no correct sweep sends`, JSON.stringify(once.served.refused), '{}');
      look(once, each.length);
      each.push(once);
    } while (each.length < runsAtMost && each[0]!.measured.wallSeconds < shortSeconds);
    steps.push({ views, step, each });
    say(`${step}: ${each.map(({ measured }) => measured.wallSeconds.toFixed(1)).join(', ')} s`);
  };
  const outOf = (run: number): string => path.join(place, `out-${run}`);
  const out = outOf(0);
  const noCalls = ({ served }: Once): void => check('calls', served.requests, 0);
  const reportOf = (directory: string): void => {
    for (const { what, differences } of compareWithScript(path.join(directory, 'report'), expected)) {
      check(what, differences.slice(0, 3).join('; '), '');
    }
  };

  try {
    await time('plan', () => ['plan', sweep, '--json'], 0, noCalls);
    let judgedItems = 0;
    // Exit 2: finished, with excluded views.
    const runArgs = (run: number) => ['run', sweep, '--out', outOf(run), '--json'];
    await time('run, fresh', runArgs, 2, ({ served }, run) => {
      check('calls of a fresh run', modelCalls(served), expected.requests);
      check('refused calls of a fresh run', served.failures.http_400, refused);
      judgedItems = served.judgedItems;
      if (judgedItems === 0) throw new Error('nothing was left to the judge');
      reportOf(outOf(run));
      if (run > 0) rmSync(outOf(run), { recursive: true });
    });
    const { files, bytes } = folderSize(out);
    await time('run, all recorded', () => runArgs(0), 2, noCalls);
    await time('score, no judge asked', () => ['score', out], 2, noCalls);
    await time(
      'run, with another judge',
      (run) => ['run', sweepFiles[run + 1]!, '--out', out, '--json'],
      2,
      (once) => {
        check('calls of a run with another judge', modelCalls(once.served), 0);
        check('items that another judge judged', once.served.judgedItems, judgedItems);
        reportOf(out);
      },
    );
    await time(`report, ${defaultResamples} resamples`, () => ['report', out], 2, noCalls);
    await time(
      'resume: run --retry-errors',
      () => [...runArgs(0), '--retry-errors'],
      2,
      ({ served }) => check('calls of a run that asks refused requests again', modelCalls(served), refused),
    );
    reportOf(out);
    const perView = `${(files / views).toFixed(2)} files and ${rounded(bytes / views / 1024, 2)} KiB a view`;
    return { steps, files: `${views} views: ${files} files, ${Math.round(bytes / 2 ** 20)} MiB; ${perView}` };
  } finally {
    fleet.stop();
    rmSync(place, { recursive: true, force: true });
  }
};

const mid = (each: readonly Once[], of: (once: Once) => number): number => median(each.map(of));

const sweepRow = ({ views, each }: Step) => ({
  views,
  runs: each.length,
  'model calls': mid(each, ({ served }) => modelCalls(served)),
  'judge calls': mid(each, ({ served }) => served.judgeCalls),
  'wall s': rounded(
    mid(each, ({ measured }) => measured.wallSeconds),
    2,
  ),
  'own CPU s': rounded(
    mid(each, ({ measured }) => measured.cpuSeconds),
    2,
  ),
  'own CPU ms per call': rounded(
    mid(each, ({ measured, served }) => (1000 * measured.cpuSeconds) / served.requests),
    3,
  ),
  'own CPU ms per view': rounded(
    mid(each, ({ measured }) => (1000 * measured.cpuSeconds) / views),
    3,
  ),
  'views per s': Math.round(mid(each, ({ measured }) => views / measured.wallSeconds)),
  'peak MiB': Math.round(mid(each, ({ measured }) => measured.peakMebibytes)),
});

const stepRow = ({ views, step, each }: Step) => ({
  step,
  views,
  runs: each.length,
  'wall s': rounded(
    mid(each, ({ measured }) => measured.wallSeconds),
    2,
  ),
  'own CPU s': rounded(
    mid(each, ({ measured }) => measured.cpuSeconds),
    2,
  ),
  'own CPU ms per view': rounded(
    mid(each, ({ measured }) => (1000 * measured.cpuSeconds) / views),
    3,
  ),
  'peak MiB': Math.round(mid(each, ({ measured }) => measured.peakMebibytes)),
  'model calls': mid(each, ({ served }) => modelCalls(served)),
  'judge calls': mid(each, ({ served }) => served.judgeCalls),
  ...(each.some(({ served }) => modelCalls(served) > 0) && {
    'first model call after s': rounded(
      mid(each, ({ measured, served }) => (served.firstRequestMs! - measured.startedMs) / 1000),
      2,
    ),
  }),
});

try {
  console.log(`before: ${machineLine()}`);
  const measured: Awaited<ReturnType<typeof measureSize>>[] = [];
  for (const size of sizes) measured.push(await measureSize(size));
  const steps = measured.flatMap((one) => one.steps);
  console.log('\nThe whole sweep, nothing recorded yet');
  console.table(steps.filter(({ step }) => step === 'run, fresh').map(sweepRow));
  console.log('Every command, medians of the runs');
  console.table(
    [...new Set(steps.map(({ step }) => step))].flatMap((name) =>
      steps.filter(({ step }) => step === name).map(stepRow),
    ),
  );
  for (const { files } of measured) console.log(`run folder of ${files}`);
  console.log(
    `\nThe measured process is turnsweep alone: the fleet and its judge (one process, no latency) run beside it.
Counts of calls and every cell of the reports were checked. Commands are run --runs times (${runsAtMost}), once where that takes ${shortSeconds} s or more.
The resume reads all that is recorded and asks the refused requests again.`,
  );
  console.log(`after: ${machineLine()}`);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
