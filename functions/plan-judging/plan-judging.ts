import { z } from 'zod';
import type { Benchmark, RuleScore, Verdict } from '../../shared/benchmarks/benchmark.ts';
import { type PlannedView, plannedView } from '../../shared/contracts/plan.ts';
import type { FailureRecord, RequestRecord, ViewRow } from '../../shared/contracts/records.ts';
import type { JudgeChunk, OpenChunk, ReviewItem } from '../../shared/contracts/reviews.ts';
import type { JudgeAssignment } from '../../shared/contracts/run.ts';
import { type PlanJudgingResult, planJudgingInput } from '../../shared/contracts/stage-messages.ts';
import { isPaid } from '../../shared/domain/cost.ts';
import { bookAsReplayed, bookAttempts, bookReuse, emptyTally } from '../../shared/domain/cost-tally.ts';
import { keys } from '../../shared/keys.ts';
import { judgeQueue, sha256 } from '../../shared/naming.ts';
import type { ObjectStore } from '../../shared/ports/object-store.ts';
import { hasOpenBatch } from '../../shared/stages/judge-batches.ts';
import { readAhead } from '../../shared/stages/read-ahead.ts';
import { readAttempts, readRecord } from '../../shared/stages/records.ts';
import {
  importedReviews,
  judgeIdOf,
  noteJudge,
  openVerdicts,
  ruleScore,
  type StoredVerdicts,
} from '../../shared/stages/reviews.ts';
import {
  listedHashes,
  loadRun,
  type RunContext,
  readStoredBenchmark,
} from '../../shared/stages/run-context.ts';
import { readStored, readStoredLines } from '../../shared/stages/stored-json.ts';

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
    const { run, judge, round } = planJudgingInput.parse(rawInput);
    const { store } = ports;
    const context = await loadRun(store, run);
    const { contract, settings } = context;
    const benchmark = ports.benchmarkOf(contract.benchmark.kind);
    const { inputs, answers } = await readStoredBenchmark(store, benchmark, context, {
      requests: false,
      answers: true,
    });
    const followUpsOf = benchmark.followUps?.(inputs) ?? null;
    const protocol = benchmark.judge(settings.prompts);
    const judgeName = judgeIdOf(context, protocol);
    const imported = await importedReviews(store, benchmark, run);
    const items = new Map<string, ReviewItem>();
    const judged =
      round === 1 || judgeName === null
        ? null
        : await openVerdicts(store, { judge: judgeName, model: settings.judge!.model });
    for (const lane of contract.lanes) {
      if (round === 1) {
        // Those of a start with other options would be reported.
        if (followUpsOf === null) await store.delete(keys.judging.followUps(run, lane.id));
        const scores = await scoreLane(store, context, benchmark, inputs, answers, lane.id);
        for (const score of scores) {
          if (score.reviewKey !== null && !items.has(score.reviewKey)) {
            items.set(score.reviewKey, benchmark.reviewItem(score));
          }
        }
      } else {
        const followUps = await findFollowUps(store, run, lane.id, judged, imported, (scores, verdict) =>
          followUpsOf!(answers, scores, verdict),
        );
        for (const item of followUps.values()) items.set(item.key, item);
      }
    }
    const wanted = [...items.values()].filter((item) => !imported.has(item.key));
    wanted.sort((a, b) => (a.key < b.key ? -1 : 1));
    if (judge && judgeName !== null) {
      const names = benchmark.prompts.judge;
      const assignment: JudgeAssignment = {
        v: 1,
        benchmarkKind: contract.benchmark.kind,
        judge: judgeName,
        prompts: Object.fromEntries(names.map((name) => [name, settings.prompts[name] ?? ''])),
        settings: settings.judge!,
      };
      await store.put(keys.judging.judge(run), JSON.stringify(assignment));
      await noteJudge(store, run, { judge: judgeName, model: settings.judge!.model });
      await store.delete(keys.judging.stopped(run));
    }
    // What an open batch is about must not be asked about again: it is paid. Once collected, judging is planned anew.
    const awaits = judge && judgeName !== null && (await hasOpenBatch(store, run, judgeName));
    const open =
      judge && judgeName !== null && !awaits
        ? await planChunks(store, context, judgeName, wanted, protocol.itemsPerRequestAtMost)
        : [];
    await store.putLines(
      keys.judging.chunks(run),
      open.map((chunk) => JSON.stringify(chunk)),
    );
    const summary: JudgingSummary = {
      judge: judgeName,
      itemsSha256: judgeName === null ? null : itemsSha256(judgeName, wanted),
      distinctItems: items.size,
      importedItems: items.size - wanted.length,
      chunks: open.length,
      promptVersion: protocol.promptVersion,
    };
    if (judge) await store.put(keys.judging.summary(run), JSON.stringify(summary));
    return {
      run,
      round,
      hasNextRound: judge && round === 1 && judgeName !== null && followUpsOf !== null,
      chunks: open.length,
      chunksKey: keys.judging.chunks(run),
      resultsPrefix: keys.judging.mapResults(run),
      queueUrl: ports.queueUrl(judgeQueue),
      maxConcurrency: (settings.judge?.maxInFlight ?? 1) * 3,
      limits: { attempts: settings.judge?.attempts ?? 1 },
      batch: awaits ? 'await' : settings.judge?.batch ? 'submit' : 'none',
    };
  };

/**
 * Items of a lane that the verdicts so far give rise to, by request; written down, since whoever reports may not read
 * the answers that they are made of.
 */
const findFollowUps = async (
  store: ObjectStore,
  run: string,
  lane: string,
  judged: StoredVerdicts | null,
  imported: ReadonlyMap<string, Verdict>,
  find: (
    scores: readonly RuleScore[],
    verdict: (reviewKey: string) => Verdict | null,
  ) => Map<string, ReviewItem>,
): Promise<Map<string, ReviewItem>> => {
  const scores = await Array.fromAsync(readStoredLines(store, keys.judging.ruleScores(run, lane), ruleScore));
  await judged?.read(scores.flatMap(({ reviewKey }) => reviewKey ?? []));
  const found = find(scores, (key) => imported.get(key) ?? judged?.verdict(key) ?? null);
  await store.putLines(
    keys.judging.followUps(run, lane),
    Array.from(found, ([requestId, { key }]) => JSON.stringify({ requestId, key })),
  );
  return found;
};

const itemsSha256 = (judge: string, items: readonly ReviewItem[]): string =>
  sha256(JSON.stringify([judge, items.map((item) => item.key)]));

/** Which items are asked about together, chunk by chunk. */
const storedCut = z.array(z.array(z.string()));

const slices = (itemKeys: readonly string[], size: number): string[][] =>
  Array.from({ length: Math.ceil(itemKeys.length / size) }, (_, at) =>
    itemKeys.slice(at * size, (at + 1) * size),
  );

/**
 * Chunks with work left. A restart with the same items keeps the chunks as they were cut, so that a kill
 * changes neither what is asked together nor what it costs. Items of a settled chunk whose reviews are gone
 * (they may lie in a shared folder that was not given this time) go into further chunks.
 */
const planChunks = async (
  store: ObjectStore,
  context: RunContext,
  judge: string,
  wanted: readonly ReviewItem[],
  itemsPerRequestAtMost: number | null,
): Promise<OpenChunk[]> => {
  const { run } = context.settings;
  const generation = itemsSha256(judge, wanted).slice(0, 8);
  const reviewed = await listedHashes(store, keys.reviews.judge(judge));
  const isMissing = (key: string) => !reviewed.has(key);
  const size = Math.min(context.settings.judge!.itemsPerRequest, itemsPerRequestAtMost ?? Infinity);
  const byKey = new Map(wanted.map((item) => [item.key, item]));
  const open: OpenChunk[] = [];
  const gone = new Set<string>();
  const openUnlessSettled = async (index: number, itemKeys: readonly string[]) => {
    const chunkId = `${generation}-${String(index).padStart(6, '0')}`;
    if (!itemKeys.some(isMissing)) return;
    const { attempts } = await readAttempts(store, keys.judging.chunkAttempts(run, chunkId));
    if (attempts.some((attempt) => attempt.kind === null)) {
      for (const key of itemKeys.filter(isMissing)) gone.add(key);
      return;
    }
    const chunk: JudgeChunk = { v: 1, chunkId, items: itemKeys.map((key) => byKey.get(key)!) };
    await store.put(keys.judging.chunk(run, chunkId), JSON.stringify(chunk));
    open.push({ chunkId, attemptsBefore: attempts.length });
  };

  const cutKey = keys.judging.cut(run, generation);
  const cut =
    (await readStored(store, cutKey, storedCut)) ?? slices([...byKey.keys()].filter(isMissing), size);
  for (const [index, itemKeys] of cut.entries()) await openUnlessSettled(index, itemKeys);
  for (const itemKeys of slices([...gone], size)) await openUnlessSettled(cut.push(itemKeys) - 1, itemKeys);
  await store.put(cutKey, JSON.stringify(cut));
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
  for await (const view of readStoredLines(store, keys.run.laneViews(run, lane), plannedView))
    views.push(view);
  const tally = emptyTally(lane, 'generate');
  const records = new Map<string, RequestRecord | FailureRecord>();
  const needs = new Map<string, number>();
  for (const id of views.flatMap((view) => view.requestIds)) needs.set(id, (needs.get(id) ?? 0) + 1);
  const read = async (requestId: string) => {
    const found = await readRecord(store, run, lane, requestId);
    // Calls of a request that is still open, or was blocked in the end, were made all the same.
    const made = found?.attempts.length
      ? found
      : await readAttempts(store, keys.lane.attempts(run, lane, requestId));
    return { found, attempts: made.attempts };
  };
  for await (const [requestId, { found, attempts }] of readAhead(needs.keys(), read)) {
    if (found !== null) records.set(requestId, found);
    bookAttempts(tally, attempts);
    if (found !== null && 'rawText' in found) bookReuse(tally, attempts, needs.get(requestId)! - 1);
  }
  const { provider } = context.contract.lanes.find((candidate) => candidate.id === lane)!;
  if (!isPaid(provider)) bookAsReplayed(tally);
  const taskIds = [...new Set(views.map((view) => view.taskId))];
  const scores = benchmark.score(
    inputs,
    answers,
    { taskIds, interfaces: context.contract.benchmark.interfaces },
    (requestId) => records.get(requestId) ?? null,
  );
  await store.putLines(
    keys.judging.ruleScores(run, lane),
    scores.values().map((score) => JSON.stringify(score)),
  );
  await store.putLines(
    keys.lane.views(run, lane),
    views
      .values()
      .map((view) => JSON.stringify(viewRowOf(view, (requestId) => records.get(requestId) ?? null))),
  );
  await store.put(keys.lane.costs(run, lane), JSON.stringify(tally));
  return scores;
};

const viewRowOf = (
  view: PlannedView,
  record: (requestId: string) => RequestRecord | FailureRecord | null,
): ViewRow => {
  const row = { viewId: view.viewId, taskId: view.taskId, interface: view.interface };
  const targets = view.targetRequestIds.map((requestId) => ({
    requestId,
    found: record(requestId),
  }));
  for (const { requestId, found } of targets) {
    if (found !== null && 'kind' in found)
      return { ...row, outcome: 'excluded', reason: found.kind, requestId };
  }
  const open = targets.find(({ found }) => found === null);
  if (open !== undefined) return { ...row, outcome: 'open', reason: null, requestId: open.requestId };
  return { ...row, outcome: 'done', reason: null, requestId: null };
};
