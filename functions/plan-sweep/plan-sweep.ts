import type { Benchmark, LanePlan } from '../../shared/benchmarks/benchmark.ts';
import { type ClipToPrepare, clipToPrepare, derivedRecord } from '../../shared/contracts/media.ts';
import {
  type GroupPlan,
  groupRow,
  type LaneSummary,
  type PlannedMessage,
  type PlannedView,
  plannedView,
} from '../../shared/contracts/plan.ts';
import { type AttemptLog, failureRecord } from '../../shared/contracts/records.ts';
import { type LaneContract, laneOf } from '../../shared/contracts/run.ts';
import {
  type LaneWorkers,
  type PlanSweepResult,
  planSweepInput,
} from '../../shared/contracts/stage-messages.ts';
import { type ClipForms, recipeId, sentParts } from '../../shared/domain/media.ts';
import { channelOf } from '../../shared/domain/request.ts';
import { keys, requestHash } from '../../shared/keys.ts';
import { laneQueue } from '../../shared/naming.ts';
import type { ObjectStore } from '../../shared/ports/object-store.ts';
import { readAhead } from '../../shared/stages/read-ahead.ts';
import {
  listedHashes,
  loadRun,
  type RunContext,
  readStoredBenchmark,
} from '../../shared/stages/run-context.ts';
import { readStored, readStoredLines } from '../../shared/stages/stored-json.ts';

export interface PlanSweepPorts {
  store: ObjectStore;
  benchmarkOf(kind: string): Benchmark;
  queueUrl(queue: string): string;
  /** Who empties the lane's queue where nobody does so all the time. */
  workersOf(run: string, lane: string): LaneWorkers | null;
  /** How a lane sends its clips. */
  clipFormsOf(lane: LaneContract): ClipForms;
  /** Clips that are made at the same time. */
  clipsAtOnce: number;
}

/** Views of a lane wait in its queue while others run: this many groups in flight for each slot. */
const groupsPerSlot = 3;

/**
 * Writes the plan of every lane once, and for each start of the run the groups that still have work: a
 * group is left out when each of its views has both replies or a recorded failure. What is recorded is
 * known from key listings alone, so that resuming a large sweep reads no record.
 */
export const createPlanSweep =
  (ports: PlanSweepPorts) =>
  async (rawInput: unknown): Promise<PlanSweepResult> => {
    const { run, retryErrors } = planSweepInput.parse(rawInput);
    const { store } = ports;
    const context = await loadRun(store, run);
    const isNew = (await store.getText(keys.run.planSummary(run))) === null;
    if (isNew) await writePlan(ports, context);
    const lanes: PlanSweepResult['lanes'] = [];
    for (const lane of context.contract.lanes) {
      const settings = laneOf(context.settings, lane.id);
      await store.delete(keys.lane.stopped(run, lane.id));
      if (retryErrors) await forgetErrors(store, run, lane.id);
      const groups = await writePending(store, run, lane.id);
      lanes.push({
        run,
        lane: lane.id,
        pendingKey: keys.run.lanePending(run, lane.id),
        resultsPrefix: keys.lane.mapResults(run, lane.id),
        queueUrl: ports.queueUrl(laneQueue(lane.id)),
        maxConcurrency: settings.maxInFlight * groupsPerSlot,
        toleratedFailures: groups,
        limits: { attempts: settings.attempts, hasRaisedCap: lane.retryMaxTokens !== null },
        // A machine with nothing to do is a machine paid for nothing.
        workers: groups === 0 ? null : ports.workersOf(run, lane.id),
      });
    }
    const media = {
      // What could not be made for an earlier run may be made by now.
      pending: await writePendingClips(store, run, isNew || retryErrors),
      pendingKey: keys.run.pendingClips(run),
      resultsPrefix: keys.run.clipMapResults(run),
      maxConcurrency: ports.clipsAtOnce,
    };
    return { run, media, lanes };
  };

const writePlan = async (ports: PlanSweepPorts, context: RunContext): Promise<void> => {
  const { store } = ports;
  const { contract, settings } = context;
  const { run } = settings;
  const benchmark = ports.benchmarkOf(contract.benchmark.kind);
  const { inputs } = await readStoredBenchmark(store, benchmark, context, {
    requests: true,
    answers: false,
  });
  const media = await storedMedia(store, contract.benchmark.id, contract.benchmark.mediaSha256 !== null);
  const plans = new Map<string, LanePlan>();
  const summaries: LaneSummary[] = [];
  const clips = new Map<string, ClipToPrepare>();
  for (const lane of contract.lanes) {
    const modalities = lane.modalities.toSorted().join('');
    let plan = plans.get(modalities);
    if (plan === undefined) {
      plan = benchmark.planLane(inputs, {
        taskIds: settings.taskIds,
        interfaces: contract.benchmark.interfaces,
        modalities: lane.modalities,
      });
      plans.set(modalities, plan);
      await writeGroups(store, run, plan, benchmark, inputs, media);
    }
    await store.putLines(
      keys.run.laneGroups(run, lane.id),
      plan.groups.values().map((group) => JSON.stringify(group)),
    );
    await store.putLines(
      keys.run.laneViews(run, lane.id),
      plan.views.values().map((view) => JSON.stringify(view)),
    );
    for (const clip of clipsToPrepare(ports.clipFormsOf(lane), lane, plan, benchmark, inputs, media)) {
      clips.set(`${clip.clip.sha256} ${recipeId(clip.form)}`, clip);
    }
    const summary = summarizeLane(lane.id, plan);
    await store.put(keys.run.laneSummary(run, lane.id), `${JSON.stringify(summary, null, 2)}\n`);
    summaries.push(summary);
  }
  await store.putLines(
    keys.run.clips(run),
    clips.values().map((clip) => JSON.stringify(clip)),
  );
  // Last, since its presence says that the plan is whole.
  await store.put(keys.run.planSummary(run), `${JSON.stringify({ run, lanes: summaries }, null, 2)}\n`);
};

/** Counts of a lane's plan; pure. */
export const summarizeLane = (lane: string, plan: LanePlan): LaneSummary => {
  const distinct = new Set(plan.views.flatMap((view) => view.requestIds));
  const finals = new Set(plan.views.flatMap((view) => view.targetRequestIds));
  return {
    lane,
    tasks: plan.taskIds.length,
    views: plan.views.length,
    groups: plan.groups.length,
    distinctRequests: distinct.size,
    requestsOfViewsAlone: plan.views.reduce((sum, view) => sum + view.requestIds.length, 0),
    judgeItemsAtMost: finals.size,
  };
};

const storedMedia = async (
  store: ObjectStore,
  benchmarkId: string,
  verified: boolean,
): Promise<ReadonlyMap<string, string>> => {
  if (!verified) return new Map();
  const text = await store.getText(keys.benchmark.input(benchmarkId, 'media.json'));
  return new Map(Object.entries(JSON.parse(text ?? '{}') as Record<string, string>));
};

const writeGroups = async (
  store: ObjectStore,
  run: string,
  plan: LanePlan,
  benchmark: Benchmark,
  inputs: unknown,
  media: ReadonlyMap<string, string>,
): Promise<void> => {
  const views = new Map(plan.views.map((view) => [view.viewId, view]));
  for (const group of plan.groups) {
    const groupViews = group.viewIds.map((viewId) => views.get(viewId)!);
    const requestIds = new Set(groupViews.flatMap((view) => view.requestIds));
    const requests = Array.from(requestIds, (requestId): GroupPlan['requests'][number] => [
      requestId,
      plannedMessages(benchmark, inputs, requestId, media),
    ]);
    const file: GroupPlan = { v: 2, groupId: group.groupId, views: groupViews, requests };
    await store.put(keys.run.group(run, group.groupId), JSON.stringify(file));
  }
};

const plannedMessages = (
  benchmark: Benchmark,
  inputs: unknown,
  requestId: string,
  media: ReadonlyMap<string, string>,
): PlannedMessage[] =>
  benchmark.frozenRequest(inputs, requestId).messages.map((message) =>
    message.role !== 'user'
      ? message
      : {
          role: 'user' as const,
          content: message.content.map((part) =>
            part.type === 'text' ? part : { ...part, sha256: media.get(part.path) ?? null },
          ),
        },
  );

/** The clips that a lane sends in another form than the benchmark's, with repetitions. */
function* clipsToPrepare(
  forms: ClipForms,
  { modalities }: LaneContract,
  plan: LanePlan,
  benchmark: Benchmark,
  inputs: unknown,
  media: ReadonlyMap<string, string>,
): Generator<ClipToPrepare> {
  if (forms.video === null && forms.audio === null && !forms.mux) return;
  for (const requestId of new Set(plan.views.flatMap((view) => view.requestIds))) {
    for (const message of plannedMessages(benchmark, inputs, requestId, media)) {
      if (message.role !== 'user') continue;
      const shown = message.content.filter(
        (part) => part.type === 'text' || modalities.includes(channelOf(part.type)),
      );
      for (const part of sentParts(shown, forms)) {
        if (part.type === 'text' || part.form === null || part.clip.sha256 === null) continue;
        yield { clip: { path: part.clip.path, sha256: part.clip.sha256 }, form: part.form };
      }
    }
  }
}

/** Writes down the clips that are still to be made and gives their number. */
const writePendingClips = async (
  store: ObjectStore,
  run: string,
  retryUnusable: boolean,
): Promise<number> => {
  // Runs that were planned before clips had forms have no such list.
  const isPlanned = (await store.tag(keys.run.clips(run))) !== null;
  const clips = isPlanned
    ? await Array.fromAsync(readStoredLines(store, keys.run.clips(run), clipToPrepare))
    : [];
  let pending = 0;
  async function* lines() {
    for await (const [clip, isDone] of readAhead(clips, (clip) => isPrepared(store, clip, retryUnusable))) {
      if (isDone) continue;
      pending += 1;
      yield JSON.stringify(clip);
    }
  }
  await store.putLines(keys.run.pendingClips(run), lines());
  return pending;
};

/** A record may outlive its files where old ones are cleared away. */
const isPrepared = async (
  store: ObjectStore,
  { clip, form }: ClipToPrepare,
  retryUnusable: boolean,
): Promise<boolean> => {
  const recipe = recipeId(form);
  const record = await readStored(store, keys.derived.record(clip.sha256, recipe), derivedRecord);
  if (record === null) return false;
  if (record.status === 'unusable') return !retryUnusable;
  if (record.status === 'same') return true;
  return (await store.tag(keys.derived.file(clip.sha256, recipe, record.files[0]!.name))) !== null;
};

/** Makes errors open again. Provider refusals stay: asking again would only shop for another answer. */
const forgetErrors = async (store: ObjectStore, run: string, lane: string): Promise<void> => {
  const prefix = keys.lane.failures(run, lane);
  for await (const key of store.list(prefix)) {
    const failure = await readStored(store, key, failureRecord);
    if (failure === null || failure.refusal) continue;
    const { requestId, attempts } = failure;
    if (attempts.length > 0) {
      // They were paid for: forgiven, not forgotten.
      const log: AttemptLog = { v: 1, requestId, attempts, forgiven: attempts.length };
      await store.put(keys.lane.attempts(run, lane, requestId), JSON.stringify(log));
    }
    await store.delete(key);
  }
};

const writePending = async (store: ObjectStore, run: string, lane: string): Promise<number> => {
  const replied = await listedHashes(store, keys.lane.requests(run, lane));
  const failed = await listedHashes(store, keys.lane.failures(run, lane));
  const open = new Set<string>();
  for await (const view of readStoredLines(store, keys.run.laneViews(run, lane), plannedView)) {
    if (!isSettled(view, replied, failed)) open.add(view.viewId);
  }
  let groups = 0;
  async function* pending() {
    for await (const group of readStoredLines(store, keys.run.laneGroups(run, lane), groupRow)) {
      if (!group.viewIds.some((viewId) => open.has(viewId))) continue;
      groups += 1;
      yield JSON.stringify(group);
    }
  }
  await store.putLines(keys.run.lanePending(run, lane), pending());
  return groups;
};

/** Every request of the view has its reply or its recorded failure. */
export const isSettled = (
  view: PlannedView,
  replied: ReadonlySet<string>,
  failed: ReadonlySet<string>,
): boolean =>
  view.requestIds.every((requestId) => {
    const hash = requestHash(requestId);
    return replied.has(hash) || failed.has(hash);
  });
