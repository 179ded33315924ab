import type { Benchmark, RuleScore } from '../../shared/benchmarks/benchmark.ts';
import { plannedView } from '../../shared/contracts/plan.ts';
import {
  attemptLog,
  type FailureRecord,
  type RequestRecord,
  type ViewRow,
} from '../../shared/contracts/records.ts';
import type { JudgeChunk, ReviewItem } from '../../shared/contracts/reviews.ts';
import type { JudgeAssignment } from '../../shared/contracts/run.ts';
import { type PlanJudgingResult, planJudgingInput } from '../../shared/contracts/stage-messages.ts';
import { bookAttempts, emptyTally } from '../../shared/domain/cost-tally.ts';
import { keys } from '../../shared/keys.ts';
import { judgeQueue, sha256 } from '../../shared/naming.ts';
import type { ObjectStore } from '../../shared/ports/object-store.ts';
import { readRecord } from '../../shared/stages/records.ts';
import { importedReviews, judgeIdOf } from '../../shared/stages/reviews.ts';
import { listedHashes, loadRun, type RunContext, readStoredBenchmark } from '../../shared/stages/run-context.ts';

export interface PlanJudgingPorts {
  store: ObjectStore;
  benchmarkOf(kind: string): Benchmark;
  queueUrl(queue: string): string;
}

/** What judging knows of itself between two starts; `itemsSha256` tells whether the chunks still fit. */
export interface JudgingSummary {
  judge: string | null;
  itemsSha256: string | null;
  distinctItems: number;
  importedItems: number;
  chunks: number;
  promptVersion: string;
}

/**
 * Scores every lane's replies by the frozen rules, writes one row a view, and puts what the rules cannot
 * tell into chunks of distinct items for the judge. Items hold nothing that names model, condition or task.
 */
export const createPlanJudging =
  (ports: PlanJudgingPorts) =>
  async (rawInput: unknown): Promise<PlanJudgingResult> => {
    const { run, judge } = planJudgingInput.parse(rawInput);
    const { store } = ports;
    const context = await loadRun(store, run);
    const { contract, settings } = context;
    const benchmark = ports.benchmarkOf(contract.benchmark.kind);
    const { inputs, answers } = await readStoredBenchmark(store, benchmark, contract.benchmark.id, true);
    const items = new Map<string, ReviewItem>();
    for (const lane of contract.lanes) {
      const scores = await scoreLane(store, context, benchmark, inputs, answers, lane.id);
      for (const score of scores) {
        if (score.reviewKey !== null && !items.has(score.reviewKey)) {
          items.set(score.reviewKey, benchmark.reviewItem(score));
        }
      }
    }
    const imported = await importedReviews(store, benchmark, run);
    const wanted = [...items.values()].filter((item) => !imported.has(item.key));
    wanted.sort((a, b) => (a.key < b.key ? -1 : 1));
    const judgeName = judgeIdOf(context, benchmark.judge.promptVersion);
    if (judge && judgeName !== null) {
      const assignment: JudgeAssignment = {
        v: 1,
        benchmarkKind: contract.benchmark.kind,
        judge: judgeName,
        settings: settings.judge!,
      };
      await store.put(keys.judging.judge(run), JSON.stringify(assignment));
    }
    const open = judge && judgeName !== null ? await planChunks(store, context, judgeName, wanted) : [];
    await store.putLines(keys.judging.chunks(run), open.map((chunk) => JSON.stringify(chunk)));
    const summary: JudgingSummary = {
      judge: judgeName,
      itemsSha256: judgeName === null ? null : itemsSha256(judgeName, wanted),
      distinctItems: items.size,
      importedItems: items.size - wanted.length,
      chunks: open.length,
      promptVersion: benchmark.judge.promptVersion,
    };
    if (judge) await store.put(keys.judging.summary(run), JSON.stringify(summary));
    return {
      run,
      chunks: open.length,
      chunksKey: keys.judging.chunks(run),
      resultsPrefix: keys.judging.mapResults(run),
      queueUrl: ports.queueUrl(judgeQueue),
      maxConcurrency: (settings.judge?.maxInFlight ?? 1) * 3,
      limits: { attempts: settings.judge?.attempts ?? 1 },
    };
  };

const itemsSha256 = (judge: string, items: readonly ReviewItem[]): string =>
  sha256(JSON.stringify([judge, items.map((item) => item.key)]));

/**
 * Chunks with work left. A restart with the same items keeps the chunks as they were cut, so that a kill
 * changes neither what is asked together nor what it costs.
 */
const planChunks = async (
  store: ObjectStore,
  context: RunContext,
  judge: string,
  wanted: readonly ReviewItem[],
): Promise<{ chunkId: string; attemptsBefore: number }[]> => {
  const { run } = context.settings;
  const generation = itemsSha256(judge, wanted).slice(0, 8);
  const reviewed = await listedHashes(store, keys.reviews.judge(judge));
  const size = context.settings.judge!.itemsPerRequest;
  const text = await store.getText(keys.judging.cut(run, generation));
  let cut = text === null ? null : (JSON.parse(text) as string[][]);
  if (cut === null) {
    const missing = wanted.filter((item) => !reviewed.has(item.key)).map((item) => item.key);
    cut = [];
    for (let start = 0; start < missing.length; start += size) cut.push(missing.slice(start, start + size));
    await store.put(keys.judging.cut(run, generation), JSON.stringify(cut));
  }
  const byKey = new Map(wanted.map((item) => [item.key, item]));
  const open: { chunkId: string; attemptsBefore: number }[] = [];
  for (const [index, itemKeys] of cut.entries()) {
    const chunkId = `${generation}-${String(index).padStart(6, '0')}`;
    const log = await store.getText(keys.judging.chunkAttempts(run, chunkId));
    const attempts = log === null ? [] : attemptLog.parse(JSON.parse(log)).attempts;
    if (attempts.some((attempt) => attempt.kind === null)) continue;
    const chunk: JudgeChunk = { v: 1, chunkId, items: itemKeys.map((key) => byKey.get(key)!) };
    await store.put(keys.judging.chunk(run, chunkId), JSON.stringify(chunk));
    open.push({ chunkId, attemptsBefore: attempts.length });
  }
  return open;
};

const scoreLane = async (
  store: ObjectStore,
  context: RunContext,
  benchmark: Benchmark,
  inputs: unknown,
  answers: unknown,
  lane: string,
): Promise<RuleScore[]> => {
  const { run } = context.settings;
  const views = [];
  for await (const line of store.lines(keys.run.laneViews(run, lane))) views.push(plannedView.parse(JSON.parse(line)));
  const tally = emptyTally(lane, 'generate');
  const records = new Map<string, RequestRecord | FailureRecord>();
  const requestIds = new Set(views.flatMap((view) => view.requestIds));
  for (const requestId of requestIds) {
    const found = await readRecord(store, run, lane, requestId);
    if (found === null) continue;
    records.set(requestId, found);
    bookAttempts(tally, found.attempts);
  }
  tally.reused = views.reduce((sum, view) => sum + view.requestIds.length, 0) - requestIds.size;
  const taskIds = [...new Set(views.map((view) => view.taskId))];
  const scores = benchmark.score(
    inputs,
    answers,
    { taskIds, interfaces: context.contract.benchmark.interfaces },
    (requestId) => records.get(requestId) ?? null,
  );
  await store.putLines(keys.judging.ruleScores(run, lane), scores.map((score) => JSON.stringify(score)));
  await store.putLines(
    keys.lane.views(run, lane),
    views.map((view) => JSON.stringify(viewRowOf(view, (requestId) => records.get(requestId) ?? null))),
  );
  await store.put(keys.lane.costs(run, lane), JSON.stringify(tally));
  return scores;
};

const viewRowOf = (
  view: { viewId: string; taskId: string; interface: string; controlRequestId: string; historyRequestId: string },
  record: (requestId: string) => RequestRecord | FailureRecord | null,
): ViewRow => {
  const row = { viewId: view.viewId, taskId: view.taskId, interface: view.interface };
  const targets = [view.controlRequestId, view.historyRequestId].map((requestId) => ({
    requestId,
    found: record(requestId),
  }));
  for (const { requestId, found } of targets) {
    if (found !== null && 'kind' in found) return { ...row, outcome: 'excluded', reason: found.kind, requestId };
  }
  const open = targets.find(({ found }) => found === null);
  if (open !== undefined) return { ...row, outcome: 'open', reason: null, requestId: open.requestId };
  return { ...row, outcome: 'done', reason: null, requestId: null };
};
