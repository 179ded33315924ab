/**
 * Rate control, measured: 1,008 views (2,961 calls) of a generated release against a mock in a process of its own that
 * serves a number of calls at once and turns every further one away with 429. The sweep may have 128 in flight and is
 * told nothing of the mock's capacity.
 *
 * With `--only promptfoo` the same number of calls goes through promptfoo instead, as bench/peers installs it, at several of
 * its own concurrency settings.
 *
 * npm run bench:capacity -- [--roots 63] [--latency 100] [--only steady|steps|promptfoo]
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { stringify } from 'yaml';
import { prepareRun } from '../cli/prepare-run.ts';
import { readSweepFile } from '../cli/read-sweep.ts';
import { uploadRun } from '../cli/upload-run.ts';
import { createLocalHome, mediaAliases, openRunFolder } from '../local/home.ts';
import { createProgress, type LaneRate } from '../local/progress.ts';
import type { ScenarioInput } from '../mock/scenario.ts';
import { releaseOnDisk } from '../test/support/release-on-disk.ts';
import { machineLine, rounded } from './measure.ts';
import type { ScenarioStep } from './mock-process.ts';
import { installPeer, pinned } from './peers/install.ts';
import { runPromptfoo } from './peers/promptfoo.ts';
import { questionAt } from './peers/tools.ts';
import { startMock } from './start-mock.ts';

const { values } = parseArgs({
  options: {
    roots: { type: 'string', default: '63' },
    latency: { type: 'string', default: '100' },
    only: { type: 'string' },
  },
});
const latencyMs = Number(values.latency);
const maxInFlight = 128;
const folder = mkdtempSync(path.join(tmpdir(), 'turnsweep-capacity-'));
const release = path.join(folder, 'release');

type Latency = number | { min: number; max: number };
const constant: Latency = latencyMs;
const jittered: Latency = { min: latencyMs / 2, max: latencyMs * 1.5 };

const scenarioOf = (capacity: number, latency: Latency): ScenarioInput => ({
  models: { '*': { reply: { text: 'hammer' }, latencyMs: latency, capacity } },
});

interface Sample extends LaneRate {
  atMs: number;
}

/** One whole sweep in this process, its rate looked at every few milliseconds. */
const sweep = async (name: string, scenario: ScenarioInput, steps: readonly ScenarioStep[] = []) => {
  const mock = await startMock(scenario, steps);
  const file = path.join(folder, `${name}.yaml`);
  writeFileSync(
    file,
    stringify({
      name,
      benchmark: { kind: 'return', release },
      models: [
        {
          id: 'lane',
          modalities: ['V', 'A'],
          provider: 'openai-compatible',
          model: 'm',
          baseUrl: mock.url,
          maxInFlight,
          settings: { stream: false },
        },
      ],
    }),
  );
  const prepared = await prepareRun(await readSweepFile(file), file, { limit: null });
  const directory = path.join(folder, name);
  const store = openRunFolder(directory, prepared.run, { media: mediaAliases(release, prepared.media!) });
  await uploadRun(store, prepared);
  const views = prepared.plans.get('lane')!.views;
  const progress = createProgress([
    {
      lane: 'lane',
      total: views.length,
      done: 0,
      excluded: 0,
      openViews: new Set(views.map((view) => view.viewId)),
    },
  ]);
  const home = await createLocalHome({
    store,
    directory,
    run: prepared.run,
    progress,
  });
  const samples: Sample[] = [];
  const watch = setInterval(() => {
    const rate = progress.snapshot().lanes[0]!.rate;
    if (rate !== null) samples.push({ ...rate, atMs: Date.now() });
  }, 5);
  await home.sweep({ retryErrors: false });
  clearInterval(watch);
  await home.close();
  const counts = await mock.counts();
  mock.stop();
  const elapsedMs = counts.requestingMs + latencyMs;
  let callMs = 0;
  for (const [index, { atMs, inFlight }] of samples.entries()) {
    callMs += inFlight * ((samples[index + 1]?.atMs ?? atMs) - atMs);
  }
  const lane = progress.snapshot().lanes[0]!;
  return {
    views: views.length,
    done: lane.done,
    excluded: lane.excluded,
    counts,
    elapsedMs,
    meanInFlight: callMs / elapsedMs,
    samples,
    lane,
  };
};

type Swept = Awaited<ReturnType<typeof sweep>>;

const percent = (share: number): string => `${(100 * share).toFixed(2)} %`;

const row = (
  name: string,
  { views, done, excluded, counts, elapsedMs, meanInFlight, lane }: Swept,
  idealMs: number | null,
) => ({
  run: name,
  views,
  done,
  excluded,
  calls: counts.requests,
  '429s': counts.rateLimited,
  'share of 429s': percent(counts.rateLimited / counts.requests),
  episodes: lane.rate!.episodes,
  // Of the time that calls took: a busy machine makes calls longer, not slots emptier.
  'mean in flight': Number(meanInFlight.toFixed(1)),
  'peak in flight': counts.peakInFlight,
  seconds: Number((elapsedMs / 1000).toFixed(2)),
  ...(idealMs === null
    ? {}
    : { 'ideal s': Number((idealMs / 1000).toFixed(2)), ratio: Number((elapsedMs / idealMs).toFixed(3)) }),
});

const steady = async () => {
  const rows = [];
  for (const [name, latency] of [
    ['constant', constant],
    ['jittered', jittered],
  ] as const) {
    const swept = await sweep(`steady-${name}`, scenarioOf(32, latency));
    rows.push(row(`32 slots, ${name} latency`, swept, (swept.counts.replies * latencyMs) / 32));
  }
  console.table(rows);
};

/** Episodes and seconds from a step until the limit is within bounds of the new capacity. */
const following = (samples: readonly Sample[], stepAtMs: number, isThere: (limit: number) => boolean) => {
  const before = samples.findLast(({ atMs }) => atMs < stepAtMs)!;
  const there = samples.find(({ atMs, limit }) => atMs >= stepAtMs && isThere(limit));
  if (there === undefined) return { episodes: 'never there', seconds: null };
  return {
    episodes: there.episodes - before.episodes,
    seconds: Number(((there.atMs - stepAtMs) / 1000).toFixed(2)),
  };
};

const stepped = async () => {
  const [down, up] = [1000, 1500];
  const capacityAt = (replies: number) => (replies < down ? 32 : replies < up ? 8 : 64);
  const swept = await sweep('steps', scenarioOf(32, constant), [
    { after: down, scenario: scenarioOf(8, constant) },
    { after: up, scenario: scenarioOf(64, constant) },
  ]);
  const { replies } = swept.counts;
  const idealMs = latencyMs * (down / 32 + (up - down) / 8 + (replies - up) / 64);
  console.table([row(`${[0, down, up].map(capacityAt).join(' → ')} slots`, swept, idealMs)]);
  const { samples, counts } = swept;
  const [fallAtMs, riseAtMs] = counts.stepsAtMs as [number, number];
  console.table({
    'from 32 down to at most 12': following(samples, fallAtMs, (limit) => limit <= 12),
    'from 8 up to at least 52 (0.8 × 64)': following(samples, riseAtMs, (limit) => limit >= 52),
  });
};

/** So many calls through promptfoo, which is told how many may be in flight; its own waits and retries apply. */
const promptfoo = async (installed: string, calls: number, concurrency: number) => {
  const mock = await startMock(scenarioOf(32, constant));
  const place = path.join(folder, `promptfoo-${concurrency}`);
  mkdirSync(place);
  const { measured, stats } = await runPromptfoo(installed, {
    url: mock.url,
    questions: Array.from({ length: calls }, (_, index) => questionAt(index)),
    answer: 'hammer',
    concurrency,
    folder: place,
  });
  const counts = await mock.counts();
  mock.stop();
  const seconds = (counts.requestingMs + latencyMs) / 1000;
  const idealSeconds = (calls * latencyMs) / 32 / 1000;
  return {
    run: `promptfoo -j ${concurrency}, 32 slots`,
    rows: calls,
    'rows without a reply': stats.failures + stats.errors,
    calls: counts.requests,
    '429s': counts.rateLimited,
    'share of 429s': percent(counts.rateLimited / counts.requests),
    'peak in flight': counts.peakInFlight,
    seconds: rounded(seconds, 2),
    ratio: rounded(seconds / idealSeconds, 3),
    exit: measured.code,
  };
};

const compared = async () => {
  const [name] = pinned.promptfoo.packages;
  const installed = await installPeer('promptfoo');
  if ('reason' in installed) {
    console.log(`skipped: ${name} does not install here: ${installed.reason}`);
    return;
  }
  const calls = 47 * Number(values.roots);
  const rows = [];
  for (const concurrency of [32, 64, 128]) rows.push(await promptfoo(installed.folder, calls, concurrency));
  console.table(rows);
};

try {
  console.log(machineLine());
  releaseOnDisk(release, { roots: Number(values.roots), seed: 7 });
  if ([undefined, 'steady'].includes(values.only)) await steady();
  if ([undefined, 'steps'].includes(values.only)) await stepped();
  if (values.only === 'promptfoo') await compared();
} finally {
  rmSync(folder, { recursive: true, force: true });
}
