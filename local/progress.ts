import { plannedView } from '../shared/contracts/plan.ts';
import type { JudgeOutcome, TurnOutcome } from '../shared/contracts/stage-messages.ts';
import { countsByReason, type RetryReason } from '../shared/domain/retry-reason.ts';
import { keys, requestHash } from '../shared/keys.ts';
import type { ObjectStore } from '../shared/ports/object-store.ts';
import { listedHashes } from '../shared/stages/run-context.ts';
import { readStoredLines } from '../shared/stages/stored-json.ts';

export interface LaneRate {
  limit: number;
  inFlight: number;
  /** Times that the provider turned calls away for their rate, and the limit fell. */
  episodes: number;
  /** Seconds until the next call may start, where the provider wants a pause; else 0. */
  heldSeconds: number;
}

export interface LaneProgress {
  lane: string;
  total: number;
  done: number;
  excluded: number;
  /** Views that ended without a decision in this start: budget or a lane that cannot go on. */
  open: number;
  calls: number;
  /** Cost of this start's calls as far as it is known, in millionths of a dollar. */
  knownCostMicroUsd: number;
  /** Calls whose cost is not known, for want of a price or of token counts. */
  unpricedCalls: number;
  retries: Record<string, number>;
  /** The same calls by what was wrong. */
  retriesByReason: Record<RetryReason, number>;
  /** How many calls may be in flight now; null before the first. */
  rate: LaneRate | null;
  stopped: string | null;
  /** Views that this start has settled: with `elapsedSeconds` the rate. */
  settledNow: number;
}

export interface Snapshot {
  /** Seconds since this start began to work. */
  elapsedSeconds: number;
  lanes: LaneProgress[];
  judgeCalls: number;
  judgeRetries: Record<string, number>;
  /** Why the judge cannot go on, where it cannot. */
  judgeStopped: string | null;
  budgetSpent: boolean;
  faults: number;
}

/** An exception of a stage: its message comes again, or the view or chunk that it is about is given up. */
export interface StageFault {
  stage: string;
  error: unknown;
  /** How often the message has been worked on, each time in vain. */
  tries: number;
  /** Seconds until it is worked on again; null after the last time. */
  againSeconds: number | null;
}

/** Counts what happens in this start of a run, on top of what its folder already holds. */
export interface Progress {
  /** Tells where the lane's rate can be looked up from now on. */
  watchRate(lane: string, rate: () => LaneRate): void;
  call(event: { lane: string; kind: string | null; costMicroUsd: number | null }): void;
  turns(lane: string, viewId: string, outcome: TurnOutcome): void;
  judgeCall(event: { kind: string | null }): void;
  judged(outcome: Pick<JudgeOutcome, 'kind'> & { status: string }): void;
  fault(fault: StageFault): void;
  /** Asks to be told of every exception of a stage from now on. */
  onFault(listener: (fault: StageFault) => void): void;
  snapshot(): Snapshot;
  /** Exceptions of stages, latest last, for `--debug`. */
  recentFaults(): readonly string[];
}

const count = (counts: Record<string, number>, kind: string | null) => {
  if (kind !== null) counts[kind] = (counts[kind] ?? 0) + 1;
};

const faultsKept = 20;

export const createProgress = (
  lanes: readonly {
    lane: string;
    total: number;
    done: number;
    excluded: number;
    openViews: ReadonlySet<string>;
  }[],
): Progress => {
  const states = new Map(
    lanes.map(({ lane, total, done, excluded, openViews }) => [
      lane,
      {
        counts: {
          lane,
          total,
          done,
          excluded,
          open: 0,
          calls: 0,
          knownCostMicroUsd: 0,
          unpricedCalls: 0,
          retries: {},
          retriesByReason: countsByReason({}),
          rate: null,
          stopped: null,
          settledNow: 0,
        } as LaneProgress,
        undecided: new Set(openViews),
        rate: null as (() => LaneRate) | null,
      },
    ]),
  );
  const startedMs = performance.now();
  const judgeRetries: Record<string, number> = {};
  const faults: string[] = [];
  const listeners: ((fault: StageFault) => void)[] = [];
  let [judgeCalls, faultCount] = [0, 0];
  let budgetSpent = false;
  let judgeStopped: string | null = null;
  return {
    watchRate(lane, rate) {
      states.get(lane)!.rate = rate;
    },
    call({ lane, kind, costMicroUsd }) {
      const { counts } = states.get(lane)!;
      counts.calls += 1;
      if (costMicroUsd === null) counts.unpricedCalls += 1;
      else counts.knownCostMicroUsd += costMicroUsd;
      count(counts.retries, kind);
    },
    turns(lane, viewId, outcome) {
      const state = states.get(lane)!;
      if (outcome.status === 'budget') budgetSpent = true;
      if (outcome.status === 'stopped') state.counts.stopped ??= outcome.kind ?? 'stopped';
      if (outcome.status === 'budget' || outcome.status === 'stopped') state.counts.open += 1;
      if (outcome.view === null || !state.undecided.delete(viewId)) return;
      state.counts.settledNow += 1;
      if (outcome.view.outcome === 'done') state.counts.done += 1;
      else state.counts.excluded += 1;
    },
    judgeCall({ kind }) {
      judgeCalls += 1;
      count(judgeRetries, kind);
    },
    judged(outcome) {
      if (outcome.status === 'budget') budgetSpent = true;
      if (outcome.status === 'stopped') judgeStopped ??= outcome.kind;
    },
    fault(fault) {
      const { stage, error } = fault;
      faultCount += 1;
      faults.push(`${stage}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
      if (faults.length > faultsKept) faults.shift();
      for (const listener of listeners) listener(fault);
    },
    onFault(listener) {
      listeners.push(listener);
    },
    snapshot: () => ({
      elapsedSeconds: (performance.now() - startedMs) / 1000,
      lanes: [...states.values()].map(({ counts, rate }) => ({
        ...counts,
        retries: { ...counts.retries },
        retriesByReason: countsByReason(counts.retries),
        rate: rate?.() ?? null,
      })),
      judgeCalls,
      judgeRetries: { ...judgeRetries },
      judgeStopped,
      budgetSpent,
      faults: faultCount,
    }),
    recentFaults: () => faults,
  };
};

/**
 * What a run folder says about a lane without reading a single record: a view is done when both its replies
 * are there, excluded when one of them is recorded as failed, open else. Null before the lane is planned.
 */
export const laneState = async (store: ObjectStore, run: string, lane: string) => {
  if ((await store.getText(keys.run.laneSummary(run, lane))) === null) return null;
  const replied = await listedHashes(store, keys.lane.requests(run, lane));
  const failed = await listedHashes(store, keys.lane.failures(run, lane));
  const openViews = new Set<string>();
  let [total, done, excluded] = [0, 0, 0];
  for await (const view of readStoredLines(store, keys.run.laneViews(run, lane), plannedView)) {
    total += 1;
    const targets = view.targetRequestIds.map(requestHash);
    if (targets.every((hash) => replied.has(hash))) done += 1;
    else if (targets.some((hash) => failed.has(hash))) excluded += 1;
    else openViews.add(view.viewId);
  }
  return { lane, total, done, excluded, openViews, replies: replied.size, failures: failed.size };
};
