import { stringify } from 'csv-stringify/sync';
import { z } from 'zod';
import type {
  Benchmark,
  LaneAggregate,
  LaneScores,
  RuleScore,
  Verdict,
} from '../../shared/benchmarks/benchmark.ts';
import { type CostTally, costTally } from '../../shared/contracts/costs.ts';
import { plannedView } from '../../shared/contracts/plan.ts';
import type { RunSettings } from '../../shared/contracts/run.ts';
import { roundMicroUsd } from '../../shared/domain/cost.ts';
import { bookAttempts, emptyTally } from '../../shared/domain/cost-tally.ts';
import { keys } from '../../shared/keys.ts';
import type { ObjectStore } from '../../shared/ports/object-store.ts';
import { readAhead } from '../../shared/stages/read-ahead.ts';
import { readAttempts } from '../../shared/stages/records.ts';
import {
  followUpRow,
  importedReviews,
  judgeIdOf,
  judgesOf,
  openVerdicts,
  ruleScore,
  type StoredVerdicts,
} from '../../shared/stages/reviews.ts';
import { loadRun, type RunContext, readStoredBenchmark } from '../../shared/stages/run-context.ts';
import { readStored, readStoredLines } from '../../shared/stages/stored-json.ts';

export interface AggregateRunPorts {
  store: ObjectStore;
  benchmarkOf(kind: string): Benchmark;
}

/** Counts for the state machine, the exit code and people. */
export interface RunSummary {
  views: number;
  valid: number;
  excluded: number;
  pending: number;
  open: number;
  calls: number;
  costMicroUsd: number | null;
  /** What the cost is at the least, and the calls whose cost is not in it. */
  knownCostMicroUsd: number;
  unpricedCalls: number;
}

/** Review keys of each chunk of a generation, see plan-judging. */
const judgeCut = z.array(z.array(z.string()));

const aggregateRunInput = z.strictObject({ run: z.string() });

/** Joins scores and reviews and writes every result file but the page for people. No calls to anyone. */
export const createAggregateRun =
  (ports: AggregateRunPorts) =>
  async (rawInput: unknown): Promise<{ summary: RunSummary }> => {
    const { run } = aggregateRunInput.parse(rawInput);
    const { store } = ports;
    const context = await loadRun(store, run);
    const { contract, settings } = context;
    const benchmark = ports.benchmarkOf(contract.benchmark.kind);
    const { inputs } = await readStoredBenchmark(store, benchmark, context, {
      requests: false,
      answers: false,
    });
    const reviews = await openReviews(store, context, benchmark);
    async function* lanesWithReviews() {
      for (const lane of contract.lanes) {
        const scores = await laneScores(store, context, lane.id);
        await reviews.readFor(scores);
        yield scores;
      }
    }
    const lanes: LaneCounts[] = [];
    const aggregate = await benchmark.aggregate(inputs, {
      interfaces: contract.benchmark.interfaces,
      seed: settings.seed,
      lanes: lanesWithReviews(),
      verdict: reviews.verdict,
      judges: reviews.judges,
      async onLane({ scoredRows, files, ...counts }) {
        lanes.push(counts);
        const lines = scoredRows.values().map((row) => JSON.stringify(row));
        await store.putLines(keys.run.scores(run, counts.lane), lines);
        for (const file of files) await store.put(keys.run.report(run, file.path), file.content);
      },
    });
    const tallies = await costTallies(store, context, reviews.needs);
    const summary = countRun(lanes, tallies);
    const costs = costRows(tallies, lanes, settings);
    for (const file of aggregate.files) await store.put(keys.run.report(run, file.path), file.content);
    await store.put(keys.run.report(run, 'costs.csv'), costsCsv(costs));
    const document = {
      run,
      contractHash: context.hash,
      benchmark: contract.benchmark,
      seed: settings.seed,
      priceDate: priceDate(settings),
      prices: pricesUsed(settings),
      counts: summary,
      judging: reviews.facts(),
      ...aggregate.summary,
      costs,
      tables: [{ title: 'Results', ...aggregate.table }, ...aggregate.tables, costTable(costs)],
    };
    await store.put(keys.run.report(run, 'summary.json'), `${JSON.stringify(document, null, 2)}\n`);
    return { summary };
  };

type LaneCounts = Omit<LaneAggregate, 'scoredRows' | 'files'>;

const laneScores = async (store: ObjectStore, context: RunContext, lane: string): Promise<LaneScores> => {
  const { run } = context.settings;
  const contract = context.contract.lanes.find((candidate) => candidate.id === lane)!;
  const settings = context.settings.lanes.find((candidate) => candidate.id === lane)!;
  const scores: RuleScore[] = [];
  const scoresKey = keys.judging.ruleScores(run, lane);
  for await (const score of readStoredLines(store, scoresKey, ruleScore, 'run `turnsweep score`'))
    scores.push(score);
  const followUps = new Map<string, string>();
  if ((await store.tag(keys.judging.followUps(run, lane))) !== null) {
    const followUpsKey = keys.judging.followUps(run, lane);
    for await (const { requestId, key } of readStoredLines(store, followUpsKey, followUpRow)) {
      followUps.set(requestId, key);
    }
  }
  const taskIds = new Set<string>();
  for await (const view of readStoredLines(store, keys.run.laneViews(run, lane), plannedView))
    taskIds.add(view.taskId);
  return {
    title: {
      id: lane,
      displayName: settings.displayName,
      family: settings.family,
      model: contract.model,
      modalities: contract.modalities,
    },
    taskIds: [...taskIds],
    scores,
    followUps,
  };
};

/**
 * Verdicts for every item that the rules left open: the user's imported reviews first, then the judge's. Other judges
 * that the run was given to stand beside it with their own. `judgeMixed` tells that imported and judged verdicts were
 * used together, since verdicts of two judges in one table must not pass unnoticed.
 */
const openReviews = async (store: ObjectStore, context: RunContext, benchmark: Benchmark) => {
  const { run, prompts } = context.settings;
  const imported = await importedReviews(store, benchmark, run);
  const judge = judgeIdOf(context, benchmark.judge(prompts));
  const judges: StoredVerdicts[] = [];
  const known = await judgesOf(store, run);
  const current = judge === null ? [] : [{ judge, model: context.settings.judge!.model }];
  for (const named of [...current, ...known.filter((other) => other.judge !== judge)])
    judges.push(await openVerdicts(store, named));
  const judged = judge === null ? null : judges[0]!;
  const verdict = (key: string): Verdict | null => imported.get(key) ?? judged?.verdict(key) ?? null;
  const asked = new Set<string>();
  const followUps = new Set<string>();
  /** Review keys of all replies that a verdict settled, each as often as it was needed. */
  const needs: string[] = [];
  return {
    verdict,
    judges,
    needs,
    /** Reads the verdicts on a lane's items. */
    async readFor(lane: LaneScores): Promise<void> {
      const reviewKeys = lane.scores.flatMap(({ reviewKey }) => reviewKey ?? []);
      const needed = [...reviewKeys, ...lane.followUps.values()];
      for (const { read } of judges) await read(new Set(needed));
      for (const key of reviewKeys) asked.add(key);
      for (const key of lane.followUps.values()) followUps.add(key);
      for (const key of needed) if (verdict(key) !== null) needs.push(key);
    },
    /** Of the items of all lanes so far. */
    facts() {
      const isJudged = (key: string): boolean => judged !== null && judged.verdict(key) !== null;
      const counts = { items: asked.size, imported: 0, judged: 0, pending: 0 };
      for (const key of asked) {
        if (imported.has(key)) counts.imported += 1;
        else if (isJudged(key)) counts.judged += 1;
        else counts.pending += 1;
      }
      return {
        judge,
        ...counts,
        judgeMixed: counts.imported > 0 && counts.judged > 0,
        ...(followUps.size === 0
          ? {}
          : { followUps: { items: followUps.size, judged: [...followUps].filter(isJudged).length } }),
      };
    },
  };
};

const costTallies = async (
  store: ObjectStore,
  context: RunContext,
  /** See `openReviews`. */
  reviewNeeds: readonly string[],
): Promise<CostTally[]> => {
  const { run } = context.settings;
  const tallies: CostTally[] = [];
  for (const lane of context.contract.lanes) {
    const tally = await readStored(store, keys.lane.costs(run, lane.id), costTally, 'run `turnsweep score`');
    if (tally !== null) tallies.push(tally);
  }
  if (context.settings.judge === null) return tallies;
  const judge = emptyTally('judge', 'judge');
  const prefix = keys.judging.attempts(run);
  const logs = await Array.fromAsync(store.list(prefix));
  const judgedChunks: string[] = [];
  for await (const [key, { attempts }] of readAhead(logs, (key) => readAttempts(store, key))) {
    bookAttempts(judge, attempts);
    if (attempts.some((attempt) => attempt.kind === null))
      judgedChunks.push(key.slice(prefix.length, -'.json'.length));
  }
  const needs = new Set(reviewNeeds);
  const paid = new Set<string>();
  for (const [generation, indexes] of Map.groupBy(
    judgedChunks.map((chunkId) => chunkId.split('-') as [string, string]),
    ([generation]) => generation,
  )) {
    const cut = await readStored(store, keys.judging.cut(run, generation), judgeCut);
    for (const [, index] of indexes) {
      for (const key of cut?.[Number(index)] ?? []) if (needs.has(key)) paid.add(key);
    }
  }
  judge.reused = reviewNeeds.length - paid.size;
  // What one verdict of a chunk costs by itself cannot be told.
  if (judge.reused > 0) judge.avoidedMicroUsd = null;
  return [...tallies, judge];
};

const countRun = (lanes: readonly LaneCounts[], costs: readonly CostTally[]): RunSummary => {
  const total = (field: 'valid' | 'excluded' | 'pending' | 'open') =>
    lanes.reduce((sum, lane) => sum + lane[field], 0);
  const counts = {
    valid: total('valid'),
    excluded: total('excluded'),
    pending: total('pending'),
    open: total('open'),
  };
  return {
    views: counts.valid + counts.excluded + counts.pending + counts.open,
    ...counts,
    calls: costs.reduce((sum, tally) => sum + tally.calls, 0),
    costMicroUsd: costs.reduce<number | null>(
      (sum, tally) =>
        sum === null || tally.costMicroUsd === null ? null : roundMicroUsd(sum + tally.costMicroUsd),
      0,
    ),
    knownCostMicroUsd: roundMicroUsd(costs.reduce((sum, tally) => sum + tally.knownCostMicroUsd, 0)),
    unpricedCalls: costs.reduce((sum, tally) => sum + tally.unpricedCalls, 0),
  };
};

const usdOf = (microUsd: number | null): number | null => (microUsd === null ? null : microUsd / 1e6);

/** Where the prices of the run's lanes came from; lanes without a price are left out. */
const pricesUsed = ({ lanes, judge }: RunSettings) =>
  Object.fromEntries(
    [...lanes.map(({ id, price }) => [id, price] as const), ['judge', judge?.price ?? null] as const].flatMap(
      ([lane, price]) =>
        price === null
          ? []
          : [[lane, { source: price.source ?? null, seen: price.seen ?? null, note: price.note ?? null }]],
    ),
  );

/** Day on which the newest list price of the run was seen; null where all prices are the sweep file's own. */
const priceDate = ({ lanes, judge }: RunSettings): string | null =>
  [...lanes.map(({ price }) => price?.seen), judge?.price?.seen]
    .filter((seen) => seen !== undefined)
    .sort()
    .at(-1) ?? null;

/** A tally with what it comes to: for each view that counts, for each point of effect, and against the plan. */
const costRows = (tallies: readonly CostTally[], counts: readonly LaneCounts[], settings: RunSettings) =>
  tallies.map((tally) => {
    const lanes = counts.filter((lane) => tally.phase === 'judge' || lane.lane === tally.lane);
    const valid = lanes.reduce((sum, lane) => sum + lane.valid, 0);
    const usd = usdOf(tally.costMicroUsd);
    const deltas = tally.phase === 'generate' ? (lanes[0]?.deltas ?? []) : [];
    const planned =
      tally.phase === 'generate' ? settings.lanes.find(({ id }) => id === tally.lane)?.projection : undefined;
    const projectedUsd = usdOf(planned?.costMicroUsd ?? null);
    // Before the lane is through, the difference says nothing about the projection.
    const isThrough = lanes.every((lane) => lane.open === 0);
    return {
      ...tally,
      usd,
      usdPerValidView: usd === null || valid === 0 ? null : usd / valid,
      /** By interface: what one point of difference between single and multi turn has cost. */
      usdPerPointOfDelta: Object.fromEntries(
        deltas.map(({ interface: name, deltaPp }) => [
          name,
          usd === null || deltaPp === 0 ? null : usd / Math.abs(deltaPp),
        ]),
      ),
      avoidedUsd: usdOf(tally.avoidedMicroUsd),
      projectedUsd,
      projectionErrorPct:
        projectedUsd === null || usd === null || usd === 0 || !isThrough
          ? null
          : (100 * (projectedUsd - usd)) / usd,
    };
  });
type CostRow = ReturnType<typeof costRows>[number];

const costsCsv = (costs: readonly CostRow[]): string =>
  stringify(
    costs.map((row) => ({
      lane: row.lane,
      phase: row.phase,
      calls: row.calls,
      reused: row.reused,
      retries: Object.entries(row.retries)
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([kind, count]) => `${kind}:${count}`)
        .join(' '),
      input_tokens: row.inputTokens,
      output_tokens: row.outputTokens,
      cached_input_tokens: row.cachedInputTokens,
      reasoning_tokens: row.reasoningTokens,
      audio_input_tokens: row.audioInputTokens,
      video_input_tokens: row.videoInputTokens,
      image_input_tokens: row.imageInputTokens,
      usd: row.usd,
      usd_per_valid_view: row.usdPerValidView,
      unmetered_calls: row.unmeteredCalls,
      text_input_tokens: row.textInputTokens,
      known_usd: row.knownCostMicroUsd / 1e6,
      unpriced_calls: row.unpricedCalls,
      avoided_usd: row.avoidedUsd,
      projected_usd: row.projectedUsd,
      projection_error_pct: row.projectionErrorPct,
    })),
    { header: true },
  );

const dollars = (usd: number | null): string => (usd === null ? 'unknown' : `$${usd.toFixed(4)}`);

const costTable = (costs: readonly CostRow[]) => ({
  title: 'Cost',
  header: [
    'Lane',
    'Phase',
    'Calls',
    'Reused',
    'Cost',
    'A valid view',
    'A point of difference',
    'Avoided',
    'Projected',
    'Projection off by',
  ],
  rows: costs.map((row) => [
    row.lane,
    row.phase,
    String(row.calls),
    String(row.reused),
    row.usd === null && row.knownCostMicroUsd > 0
      ? `≥ ${dollars(row.knownCostMicroUsd / 1e6)}`
      : dollars(row.usd),
    row.usdPerValidView === null ? '–' : dollars(row.usdPerValidView),
    Object.entries(row.usdPerPointOfDelta)
      .map(([name, usd]) => `${name} ${usd === null ? '–' : dollars(usd)}`)
      .join(', ') || '–',
    dollars(row.avoidedUsd),
    row.projectedUsd === null ? '–' : `≤ ${dollars(row.projectedUsd)}`,
    row.projectionErrorPct === null
      ? '–'
      : `${row.projectionErrorPct > 0 ? '+' : ''}${row.projectionErrorPct.toFixed(0)} %`,
  ]),
});
