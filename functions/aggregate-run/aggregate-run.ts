import { stringify } from 'csv-stringify/sync';
import { z } from 'zod';
import type {
  Aggregate,
  Benchmark,
  LaneScores,
  RuleScore,
  Verdict,
} from '../../shared/benchmarks/benchmark.ts';
import { type CostTally, costTally } from '../../shared/contracts/costs.ts';
import { plannedView } from '../../shared/contracts/plan.ts';
import { review } from '../../shared/contracts/reviews.ts';
import { bookAttempts, emptyTally } from '../../shared/domain/cost-tally.ts';
import { keys } from '../../shared/keys.ts';
import type { ObjectStore } from '../../shared/ports/object-store.ts';
import { readAhead } from '../../shared/stages/read-ahead.ts';
import { readAttempts } from '../../shared/stages/records.ts';
import { importedReviews, judgeIdOf } from '../../shared/stages/reviews.ts';
import {
  listedHashes,
  loadRun,
  type RunContext,
  readStoredBenchmark,
} from '../../shared/stages/run-context.ts';
import { objectDamaged, readStored, readStoredLines } from '../../shared/stages/stored-json.ts';

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
}

/** What a benchmark left in a row is its own affair. */
const ruleScore: z.ZodType<RuleScore> = z.strictObject({
  requestId: z.string(),
  reviewKey: z.string().nullable(),
  row: z.unknown(),
});

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
    const { inputs } = await readStoredBenchmark(store, benchmark, contract.benchmark.id, false);
    const lanes = await Promise.all(contract.lanes.map((lane) => laneScores(store, context, lane.id)));
    const reviews = await findReviews(ports, context, benchmark, lanes);
    const aggregate = benchmark.aggregate(inputs, {
      interfaces: contract.benchmark.interfaces,
      seed: settings.seed,
      lanes,
      verdict: (key) => reviews.verdicts.get(key) ?? null,
    });
    const costs = await costTallies(store, context);
    const summary = countRun(aggregate, costs);
    for (const lane of aggregate.lanes) {
      await store.putLines(
        keys.run.scores(run, lane.lane),
        lane.scoredRows.map((row) => JSON.stringify(row)),
      );
      for (const file of lane.files) await store.put(keys.run.report(run, file.path), file.content);
    }
    for (const file of aggregate.files) await store.put(keys.run.report(run, file.path), file.content);
    await store.put(keys.run.report(run, 'costs.csv'), costsCsv(costs, aggregate));
    const document = {
      run,
      contractHash: context.hash,
      benchmark: contract.benchmark,
      seed: settings.seed,
      priceDate: null,
      counts: summary,
      judging: reviews.facts,
      ...aggregate.summary,
      costs: costs.map((tally) => ({ ...tally, ...perView(tally, aggregate) })),
      tables: [{ title: 'Results', ...aggregate.table }, ...aggregate.tables],
    };
    await store.put(keys.run.report(run, 'summary.json'), `${JSON.stringify(document, null, 2)}\n`);
    return { summary };
  };

const laneScores = async (store: ObjectStore, context: RunContext, lane: string): Promise<LaneScores> => {
  const { run } = context.settings;
  const contract = context.contract.lanes.find((candidate) => candidate.id === lane)!;
  const settings = context.settings.lanes.find((candidate) => candidate.id === lane)!;
  const scores: RuleScore[] = [];
  const scoresKey = keys.judging.ruleScores(run, lane);
  for await (const score of readStoredLines(store, scoresKey, ruleScore, 'run `turnsweep score`'))
    scores.push(score);
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
  };
};

/**
 * Verdicts for every item that the rules left open: the user's imported reviews first, then the judge's.
 * `judgeMixed` tells that both were used, since verdicts of two judges in one table must not pass unnoticed.
 */
const findReviews = async (
  ports: AggregateRunPorts,
  context: RunContext,
  benchmark: Benchmark,
  lanes: readonly LaneScores[],
) => {
  const { store } = ports;
  const imported = await importedReviews(store, benchmark, context.settings.run);
  const judge = judgeIdOf(context, benchmark.judge.promptVersion);
  const stored = judge === null ? new Set<string>() : await listedHashes(store, keys.reviews.judge(judge));
  const verdicts = new Map<string, Verdict>();
  const facts = { judge, items: 0, imported: 0, judged: 0, pending: 0, judgeMixed: false };
  const wanted = new Set(lanes.flatMap((lane) => lane.scores.flatMap((score) => score.reviewKey ?? [])));
  const judged: string[] = [];
  for (const key of wanted) {
    facts.items += 1;
    const brought = imported.get(key);
    if (brought !== undefined) {
      facts.imported += 1;
      verdicts.set(key, brought);
    } else if (stored.has(key)) judged.push(key);
    else facts.pending += 1;
  }
  facts.judged = judged.length;
  const keyOf = (key: string): string => keys.reviews.review(judge!, key);
  for await (const [key, found] of readAhead(judged, (key) => readStored(store, keyOf(key), review))) {
    if (found === null || found.key !== key)
      throw objectDamaged(keyOf(key), 'it is not the review of this item');
    verdicts.set(key, found);
  }
  facts.judgeMixed = facts.imported > 0 && facts.judged > 0;
  return { verdicts, facts };
};

const costTallies = async (store: ObjectStore, context: RunContext): Promise<CostTally[]> => {
  const { run } = context.settings;
  const tallies: CostTally[] = [];
  for (const lane of context.contract.lanes) {
    const tally = await readStored(store, keys.lane.costs(run, lane.id), costTally, 'run `turnsweep score`');
    if (tally !== null) tallies.push(tally);
  }
  const judge = emptyTally('judge', 'judge');
  const logs = await Array.fromAsync(store.list(keys.judging.attempts(run)));
  for await (const [, { attempts }] of readAhead(logs, (key) => readAttempts(store, key))) {
    bookAttempts(judge, attempts);
  }
  if (context.settings.judge !== null) tallies.push(judge);
  return tallies;
};

const countRun = (aggregate: Aggregate, costs: readonly CostTally[]): RunSummary => {
  const total = (field: 'valid' | 'excluded' | 'pending' | 'open') =>
    aggregate.lanes.reduce((sum, lane) => sum + lane[field], 0);
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
      (sum, tally) => (sum === null || tally.costMicroUsd === null ? null : sum + tally.costMicroUsd),
      0,
    ),
  };
};

const perView = (tally: CostTally, aggregate: Aggregate) => {
  const valid = aggregate.lanes
    .filter((lane) => tally.phase === 'judge' || lane.lane === tally.lane)
    .reduce((sum, lane) => sum + lane.valid, 0);
  const usd = tally.costMicroUsd === null ? null : tally.costMicroUsd / 1e6;
  return { usd, usdPerValidView: usd === null || valid === 0 ? null : usd / valid };
};

const costsCsv = (costs: readonly CostTally[], aggregate: Aggregate): string =>
  stringify(
    costs.map((tally) => {
      const { usd, usdPerValidView } = perView(tally, aggregate);
      return {
        lane: tally.lane,
        phase: tally.phase,
        calls: tally.calls,
        reused: tally.reused,
        retries: Object.entries(tally.retries)
          .sort(([a], [b]) => (a < b ? -1 : 1))
          .map(([kind, count]) => `${kind}:${count}`)
          .join(' '),
        input_tokens: tally.inputTokens,
        output_tokens: tally.outputTokens,
        cached_input_tokens: tally.cachedInputTokens,
        reasoning_tokens: tally.reasoningTokens,
        audio_input_tokens: tally.audioInputTokens,
        video_input_tokens: tally.videoInputTokens,
        image_input_tokens: tally.imageInputTokens,
        usd,
        usd_per_valid_view: usdPerValidView,
        unmetered_calls: tally.unmeteredCalls,
      };
    }),
    { header: true },
  );
