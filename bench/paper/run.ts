/**
 * The paper's whole Test sweep, simulated: 95,000 views of 13 lanes through the ordinary command line, against a fleet of
 * servers in processes of their own whose replies come out at the paper's counts. Checks every count of the report and prints
 * wall time, CPU and peak memory of the sweep against the project's targets.
 *
 * npm run bench:paper -- --out DIR [--views-share 0.1] [--work DIR] [--seed 53126] [--latency 0] [--workers 1] [--jobs 8]
 *                        [--reference DIR] [--port 0]
 */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { folderSize, type Measured, measureCommand } from '../measure.ts';
import { type Comparison, compareWithPaper, compareWithScript } from './check-report.ts';
import { paperComposition } from './composition.ts';
import { expectedCounts } from './expected.ts';
import { type FleetStats, startFleet } from './fleet.ts';
import { scriptLane } from './outcomes.ts';
import { buildSplit, writeRelease } from './release.ts';
import { judgeModel, paperLanes, sweepFileText } from './sweep-file.ts';
import { readReference, referenceFolder, targetsOf } from './targets.ts';

const { values } = parseArgs({
  options: {
    out: { type: 'string' },
    work: { type: 'string', default: path.join(tmpdir(), 'turnsweep-paper') },
    'views-share': { type: 'string', default: '1' },
    seed: { type: 'string', default: '53126' },
    latency: { type: 'string', default: '0' },
    workers: { type: 'string', default: '1' },
    jobs: { type: 'string' },
    port: { type: 'string', default: '0' },
    reference: { type: 'string', default: referenceFolder },
  },
});
if (values.out === undefined) throw new Error('give --out DIR, the folder of the run');
const share = Number(values['views-share']);
if (!(share > 0 && share <= 1)) throw new Error('--views-share is a number above 0, at most 1');
const seed = Number(values.seed);
const out = path.resolve(values.out);
const startedMs = Date.now();
const say = (text: string) =>
  console.log(`${((Date.now() - startedMs) / 1000).toFixed(1).padStart(7)} s  ${text}`);

const reference = readReference(path.resolve(values.reference));
const release = path.resolve(values.work, `release-${seed}-${share}`);
mkdirSync(path.resolve(values.work), { recursive: true });
const split = existsSync(release)
  ? buildSplit(paperComposition, seed, share)
  : writeRelease(release, paperComposition, seed, share);
say(`the release is in ${release}`);

const lanes = paperLanes();
const targets = targetsOf(reference);
const scripts = lanes.map(({ displayName }) => {
  const ofLane = targets.find(({ model }) => model === displayName);
  if (ofLane === undefined) throw new Error(`the paper's figures have no ${displayName}`);
  return scriptLane(ofLane, split, seed);
});
const expected = expectedCounts(split, scripts);
say(
  `${expected.views} views, ${expected.requests} distinct requests, ${expected.requestsAlone} if each view ran alone`,
);

const fleet = await startFleet(
  {
    composition: paperComposition,
    seed,
    lanes: lanes.map((lane, at) => ({
      wireModel: lane.model,
      modalities: lane.modalities,
      retryMaxTokens: lane.retryMaxTokens ?? null,
      codes: scripts[at]!.codes,
    })),
    judgeModels: [judgeModel],
    latencyMs: Number(values.latency),
    lengthStopsPerMille: 5,
    port: Number(values.port),
  },
  Number(values.workers),
);

const minutes = (seconds: number): string => `${Math.floor(seconds / 60)} min ${(seconds % 60).toFixed(0)} s`;
const usageRow = ({ code, wallSeconds, cpuSeconds, peakMebibytes }: Measured) => ({
  exit: code,
  'wall s': Number(wallSeconds.toFixed(1)),
  'own CPU s': Number(cpuSeconds.toFixed(1)),
  'peak MiB': Math.round(peakMebibytes),
});
/** Starting takes the same time for any share: only the whole sweep can miss a target. */
const verdict = (holds: boolean) => (holds ? 'met' : share < 1 ? 'missed at this share' : 'NOT MET');

try {
  const sweep = path.join(path.resolve(values.work), `sweep-${seed}-${share}.yaml`);
  writeFileSync(
    sweep,
    sweepFileText({
      name: 'paper',
      release,
      lanes,
      urlOf: fleet.urlOf,
      judgeUrl: fleet.judgeUrl,
      maxInFlight: values.jobs === undefined ? undefined : Number(values.jobs),
      resampleSeed: seed,
    }),
  );
  const wasThere = existsSync(path.join(out, 'report'));
  const loadBefore = loadavg()[0]!;
  const run = await measureCommand(['run', sweep, '--out', out, '--json']);
  const loadAfter = loadavg()[0]!;
  say(`the sweep ended with ${run.code} after ${minutes(run.wallSeconds)}`);
  if (!existsSync(path.join(out, 'report/summary.json')))
    throw new Error(`no report came out: ${run.lastLine}\n${run.complaints}`);
  const served = await fleet.stats();

  const report = path.join(out, 'report');
  const comparisons: Comparison[] = [
    ...compareWithScript(report, expected),
    ...(share === 1 ? compareWithPaper(report, reference) : []),
  ];
  const refused = Object.values(served.refused).reduce((sum, count) => sum + count, 0);
  comparisons.push({
    what: 'requests with the right media and the own history',
    compared: served.requests,
    differences:
      refused === 0 ? [] : Object.entries(served.refused).map(([why, count]) => `${why} ×${count}`),
  });

  const timed: [string, Measured, FleetStats][] = [];
  const failed: string[] = [];
  /** 2 is an end with views excluded, as the paper has sixteen. */
  const checkEnd = (name: string, { code, complaints, lastLine }: Measured) => {
    if (code !== 0 && code !== 2) failed.push(`${name} ended with ${code}: ${complaints || lastLine}`);
  };
  checkEnd('run', run);
  const time = async (name: string, args: readonly string[]) => {
    await fleet.reset();
    const measured = await measureCommand(args);
    timed.push([name, measured, await fleet.stats()]);
    checkEnd(name, measured);
    say(`${name}: ${measured.wallSeconds.toFixed(1)} s`);
  };
  const size = folderSize(out);
  say(
    `the run folder has ${size.files} files, ${Math.round(size.bytes / 2 ** 20)} MiB (${Math.round(size.blockBytes / 2 ** 20)} MiB of disk)`,
  );
  await time('status', ['status', out]);
  await time('report', ['report', out]);
  await time('replay, all recorded', ['run', sweep, '--out', out, '--json']);
  await time('resume that asks failed ones again', ['run', sweep, '--out', out, '--retry-errors', '--json']);
  comparisons.push(
    ...compareWithScript(report, expected).map((one) => ({ ...one, what: `${one.what}, after all that` })),
    { what: 'commands that ended well', compared: 1 + timed.length, differences: failed },
  );

  console.table(
    comparisons.map(({ what, compared, differences }) => ({
      what,
      compared,
      differences: differences.length,
      exact: differences.length === 0 ? 'yes' : 'NO',
    })),
  );
  for (const { what, differences } of comparisons) {
    for (const line of differences.slice(0, 5)) console.log(`  ${what}: ${line}`);
  }
  const row = (name: string, measured: Measured, stats: FleetStats) => ({
    command: name,
    ...usageRow(measured),
    'model calls': stats.requests - stats.judgeCalls,
    'judge calls': stats.judgeCalls,
    'first call after s':
      stats.firstRequestMs === null
        ? null
        : Number(((stats.firstRequestMs - measured.startedMs) / 1000).toFixed(1)),
  });
  console.table([
    row(wasThere ? 'run, on what was there' : 'run', run, served),
    ...timed.map((one) => row(...one)),
  ]);

  const calls = served.requests;
  const replay = timed[2]!;
  const resume = timed[3]!;
  const resumeSeconds =
    resume[2].firstRequestMs === null ? null : (resume[2].firstRequestMs - resume[1].startedMs) / 1000;
  const repeated = (await fleet.stats()).repeatedReplies;
  const cpuPerCall = (1000 * run.cpuSeconds) / calls;
  const target = (name: string, aim: string, is: string, holds: boolean) => ({
    target: name,
    aim,
    measured: is,
    result: verdict(holds),
  });
  console.table([
    target(
      'distinct requests against views run alone',
      `${Math.round(291_000 * share)} of ${Math.round(427_500 * share)}`,
      `${expected.requests} of ${expected.requestsAlone}`,
      expected.requests <= 291_000 * share * 1.02,
    ),
    target('replies paid twice', '0', String(repeated), repeated === 0),
    target('own CPU per call', '≤ 1 ms', `${cpuPerCall.toFixed(3)} ms`, cpuPerCall <= 1),
    target(
      'wall time of the sweep',
      `≤ ${minutes(600 * share)}`,
      minutes(run.wallSeconds),
      run.wallSeconds <= 600 * share,
    ),
    target(
      'peak memory of the sweep',
      '≤ 600 MB',
      `${Math.round((run.peakMebibytes * 2 ** 20) / 1e6)} MB`,
      run.peakMebibytes * 2 ** 20 <= 600e6,
    ),
    target(
      'replay with everything recorded',
      `≤ ${(60 * share).toFixed(0)} s`,
      `${replay[1].wallSeconds.toFixed(1)} s`,
      replay[1].wallSeconds <= 60 * share,
    ),
    {
      target: 'first new request on resume',
      aim: `≤ ${(20 * share).toFixed(0)} s`,
      measured: resumeSeconds === null ? 'no request failed' : `${resumeSeconds.toFixed(1)} s`,
      result: resumeSeconds === null ? 'not measured' : verdict(resumeSeconds <= 20 * share),
    },
  ]);
  console.log(
    `calls ${calls} (judge ${served.judgeCalls} for ${served.judgedItems} items), length stops ${served.lengthStops}, failing requests ${JSON.stringify(served.failures)}, ` +
      `fleet ${Math.round((served as FleetStats & { rssBytes: number }).rssBytes / 2 ** 20)} MiB, load of the machine ${loadBefore.toFixed(1)} before and ${loadAfter.toFixed(1)} after`,
  );
  if (comparisons.some(({ differences }) => differences.length > 0)) process.exitCode = 1;
} finally {
  fleet.stop();
}
