import {
  type GroupPlan,
  groupPlan,
  type PlannedMessage,
  type PlannedView,
} from '../../shared/contracts/plan.ts';
import type { Attempt, AttemptLog, FailureRecord, RequestRecord } from '../../shared/contracts/records.ts';
import type { LaneContract, LaneRunSettings } from '../../shared/contracts/run.ts';
import type { GenerateTurnsMessage, TurnOutcome } from '../../shared/contracts/stage-messages.ts';
import { type StoppingOutcome, stopsLane, waitBeforeRetrySeconds } from '../../shared/domain/backoff.ts';
import type { Capabilities } from '../../shared/domain/capabilities.ts';
import { callCostMicroUsd, isPaid } from '../../shared/domain/cost.ts';
import { droppedMedium } from '../../shared/domain/dropped-media.ts';
import { asTheyAre, type ClipForms, recipeId, sentParts } from '../../shared/domain/media.ts';
import type { CallOutcome } from '../../shared/domain/outcome.ts';
import {
  type Channel,
  type ClipCounts,
  channelOf,
  type ResolvedMessage,
  type ResolvedRequest,
} from '../../shared/domain/request.ts';
import {
  foldSystemTurn,
  type SystemPromptDelivery,
  systemPromptDelivery,
} from '../../shared/domain/system-turn.ts';
import { errorNames, isNamed, TurnsweepError } from '../../shared/errors.ts';
import { keys } from '../../shared/keys.ts';
import { canonicalJson, laneAccount, runAccount, sha256 } from '../../shared/naming.ts';
import type { CallGate } from '../../shared/ports/call-gate.ts';
import type { Clock } from '../../shared/ports/clock.ts';
import type { Ledger } from '../../shared/ports/ledger.ts';
import type { ModelClient } from '../../shared/ports/model-client.ts';
import type { ObjectStore } from '../../shared/ports/object-store.ts';
import type { Random } from '../../shared/ports/random.ts';
import { callWithinBudget, secondsUntilMoneyIsFree } from '../../shared/stages/budget.ts';
import { callWithPermit, enterGate, timesTurnedAway } from '../../shared/stages/call-gate.ts';
import { readAttempts, readFailure, readReply } from '../../shared/stages/records.ts';
import { readStored } from '../../shared/stages/stored-json.ts';

export interface LaneAtWork {
  contract: LaneContract;
  settings: LaneRunSettings;
  client: ModelClient;
  /** Every call asks it for leave; without one all calls start at once. */
  gate?: CallGate;
  /** How clips are sent and counted; left out: as the benchmark has them, and nobody knows. */
  media?: {
    forms: ClipForms;
    capabilities: Pick<Capabilities, 'countsTokensOf' | 'videoAs' | 'takesSystemTurn'>;
  };
  /** True where the run or the lane has a budget: only then is money reserved before each call. */
  hasBudget: boolean;
}

export interface GenerateTurnsPorts {
  store: ObjectStore;
  ledger: Ledger;
  clock: Clock;
  random: Random;
  laneAtWork(run: string, lane: string): Promise<LaneAtWork>;
  /** False once too little of the invocation's time is left for another call. */
  hasTimeLeft(): boolean;
  /** Breaks calls in flight off; the stage then throws its reason, with nothing recorded of them. */
  signal?: AbortSignal;
  /** Told about every call, for progress and metrics. */
  onCall?(event: {
    run: string;
    lane: string;
    status: CallOutcome['status'];
    kind: string | null;
    /** Null where price or token counts are unknown. */
    costMicroUsd: number | null;
  }): void;
}

/** Groups in memory: their plan and the replies seen so far, which never change. */
const groupsKept = 256;

interface GroupAtWork {
  plan: GroupPlan;
  requests: ReadonlyMap<string, PlannedMessage[]>;
  replies: Map<string, string>;
}

/**
 * The stage that talks to evaluated models. One message is one view: makes the view's requests in order,
 * records each reply before the next call, and returns an outcome as soon as something must be decided
 * (cut reply, passing fault, final failure, budget). It never loops on a failure and never reads answers.
 */
export const createGenerateTurns = (ports: GenerateTurnsPorts) => {
  const { store } = ports;
  const groups = new Map<string, Promise<GroupAtWork>>();

  const loadGroup = async (run: string, group: string): Promise<GroupAtWork> => {
    const key = keys.run.group(run, group);
    const remedy = `delete ${keys.run.planSummary(run)} and run again: the sweep is planned anew`;
    const plan = await readStored(store, key, groupPlan, remedy);
    if (plan !== null) return { plan, requests: new Map(plan.requests), replies: new Map() };
    throw new TurnsweepError(errorNames.objectMissing, 'the plan lacks a view group', { where: key, remedy });
  };

  const groupAtWork = (run: string, lane: string, group: string): Promise<GroupAtWork> => {
    const key = `${run}/${lane}/${group}`;
    let found = groups.get(key);
    if (found === undefined) {
      found = loadGroup(run, group);
      groups.set(key, found);
      found.catch(() => groups.delete(key));
      if (groups.size > groupsKept) groups.delete(groups.keys().next().value!);
    }
    return found;
  };

  const recordedReply = async (message: GenerateTurnsMessage, group: GroupAtWork, requestId: string) => {
    const known = group.replies.get(requestId);
    if (known !== undefined) return known;
    const record = await readReply(store, message.run, message.lane, requestId);
    if (record === null) return null;
    group.replies.set(requestId, record.rawText);
    return record.rawText;
  };

  return async (message: GenerateTurnsMessage): Promise<TurnOutcome> => {
    const { run, lane } = message;
    const group = await groupAtWork(run, lane, message.groupId);
    const view = group.plan.views.find((candidate) => candidate.viewId === message.viewId);
    if (view === undefined) {
      throw new TurnsweepError(errorNames.contractViolated, `view ${message.viewId} is not of this group`, {
        where: message.groupId,
      });
    }
    const atWork = await ports.laneAtWork(run, lane);
    const failed = new Map<string, string>();
    let cap = message.cap;
    let calls = 0;

    for (const requestId of view.requestIds) {
      if ((await recordedReply(message, group, requestId)) !== null) continue;
      const failure = await readFailure(store, run, lane, requestId);
      if (failure !== null) {
        failed.set(requestId, failure.kind);
        continue;
      }
      const frozen = group.requests.get(requestId);
      if (frozen === undefined) {
        throw new TurnsweepError(errorNames.contractViolated, `request ${requestId} is not of this group`, {
          where: message.groupId,
        });
      }
      const history = frozen.flatMap((turn) => ('replyOf' in turn ? [turn.replyOf] : []));
      const blockedBy = history.find((earlier) => failed.has(earlier));
      if (blockedBy !== undefined) {
        await recordBlocked(store, message, requestId, blockedBy);
        failed.set(requestId, 'blocked');
        continue;
      }
      // Other workers may have stopped the lane, and a later start lets it go on: the store knows.
      if ((await store.getText(keys.lane.stopped(run, lane))) !== null)
        return outcome('stopped', { requestId, cap });
      if (calls > 0 && !ports.hasTimeLeft()) return outcome('continue', { requestId, cap });

      const delivery = deliveryOf(frozen, atWork);
      const resolved = resolve(requestId, frozen, group.replies, atWork.contract.modalities);
      const request =
        delivery === 'folded' ? { requestId, messages: foldSystemTurn(resolved.messages) } : resolved;
      const made = await makeCall(ports, message, atWork, { request, history, delivery }, cap);
      calls += 1;
      cap = 'first';
      if ('unusable' in made) {
        await recordUnusable(store, message, requestId, made);
        failed.set(requestId, 'media_unusable');
        continue;
      }
      if (made.reply === null) return made.outcome;
      group.replies.set(requestId, made.reply);
    }
    return { ...outcome('done', { requestId: null, cap: 'first' }), view: viewOutcome(view, failed) };
  };
};

/** How the system prompt travels; null for requests without one. */
const deliveryOf = (
  frozen: readonly PlannedMessage[],
  { contract, media }: Pick<LaneAtWork, 'contract' | 'media'>,
): SystemPromptDelivery | null =>
  frozen[0]?.role === 'system'
    ? systemPromptDelivery(media?.capabilities ?? { takesSystemTurn: true }, contract.settings)
    : null;

const viewOutcome = (view: PlannedView, failed: ReadonlyMap<string, string>): TurnOutcome['view'] => {
  const lost = view.targetRequestIds.find((requestId) => failed.has(requestId));
  return {
    viewId: view.viewId,
    outcome: lost === undefined ? 'done' : 'excluded',
    reason: lost === undefined ? null : failed.get(lost)!,
  };
};

const outcome = (
  status: TurnOutcome['status'],
  facts: Pick<TurnOutcome, 'requestId' | 'cap'> & Partial<TurnOutcome>,
): TurnOutcome => ({ kind: null, attempt: 0, waitSeconds: 0, view: null, ...facts, status });

const recordBlocked = async (
  store: ObjectStore,
  message: GenerateTurnsMessage,
  requestId: string,
  blockedBy: string,
): Promise<void> => {
  const record: FailureRecord = {
    v: 1,
    requestId,
    status: 'blocked',
    kind: 'blocked',
    message: `needs the reply to ${blockedBy}, which failed`,
    blockedBy,
    refusal: false,
    attempts: [],
  };
  await store.put(keys.lane.failure(message.run, message.lane, requestId), JSON.stringify(record));
};

/** No call was made: a clip of the request cannot be had in the form that its provider wants. */
const recordUnusable = async (
  store: ObjectStore,
  { run, lane }: GenerateTurnsMessage,
  requestId: string,
  { unusable, attempts }: UnusableMedia,
): Promise<void> => {
  const record: FailureRecord = {
    v: 1,
    requestId,
    status: 'error',
    kind: 'media_unusable',
    message: unusable,
    blockedBy: null,
    refusal: false,
    attempts,
  };
  await store.put(keys.lane.failure(run, lane, requestId), JSON.stringify(record));
};

/** Fills the native history in and drops the channels that the lane does not have (return-protocol §3). */
const resolve = (
  requestId: string,
  frozen: readonly PlannedMessage[],
  replies: ReadonlyMap<string, string>,
  modalities: readonly Channel[],
): ResolvedRequest => ({
  requestId,
  messages: frozen.map((message): ResolvedMessage => {
    if ('replyOf' in message) {
      const text = replies.get(message.replyOf);
      if (text === undefined) throw new Error(`reply of ${message.replyOf} is not there yet`);
      return { role: 'assistant', text };
    }
    if (message.role !== 'user') return message;
    const content = message.content.filter(
      (part) => part.type === 'text' || modalities.includes(channelOf(part.type)),
    );
    return { role: 'user', content };
  }),
});

const offeredClips = (frozen: ResolvedRequest): ClipCounts => {
  const counts = { audio: 0, video: 0 };
  for (const message of frozen.messages) {
    if (message.role !== 'user') continue;
    for (const part of message.content) if (part.type !== 'text') counts[part.type] += 1;
  }
  return counts;
};

/** Hash of what is shown, clips by content and form (by path where media were not verified). */
const promptSha256 = (request: ResolvedRequest, forms: ClipForms): string =>
  sha256(
    canonicalJson(
      request.messages.map((message) =>
        message.role !== 'user'
          ? [message.role, message.text]
          : sentParts(message.content, forms).map((part) =>
              part.type === 'text'
                ? ['text', part.text]
                : [
                    part.type,
                    part.clip.sha256 ?? part.clip.path,
                    ...(part.form === null ? [] : [recipeId(part.form)]),
                  ],
            ),
      ),
    ),
  );

/** Tokens that a prompt can have at most, for reservations: text counts a token per byte. */
const promptTokensAtMost = (
  request: ResolvedRequest,
  clipTokens = { audio: 4_000, video: 4_000 },
): number => {
  const clips = offeredClips(request);
  let text = 0;
  for (const message of request.messages) {
    if (message.role !== 'user') text += Buffer.byteLength(message.text);
    else for (const part of message.content) if (part.type === 'text') text += Buffer.byteLength(part.text);
  }
  return text + clipTokens.audio * clips.audio + clipTokens.video * clips.video;
};

interface WantedCall {
  request: ResolvedRequest;
  /** Ids of the requests whose replies stand in it. */
  history: string[];
  delivery: SystemPromptDelivery | null;
}

interface MadeCall {
  /** Null unless the call ended in a recorded reply. */
  reply: string | null;
  outcome: TurnOutcome;
}

interface UnusableMedia {
  unusable: string;
  /** Of earlier starts. */
  attempts: Attempt[];
}

/** A reply to less than what was sent is no reply to the question. */
const withAllMedia = <Called extends CallOutcome & { consumed: ClipCounts }>(
  called: Called,
  media: LaneAtWork['media'],
): CallOutcome & { consumed: ClipCounts } => {
  if (media === undefined || (called.status !== 'ok' && called.status !== 'length')) return called;
  const dropped = droppedMedium(called.consumed, called.usage, media.capabilities);
  if (dropped === null) return called;
  const { text: _, ...facts } = called;
  const message = `${called.consumed[dropped]} ${dropped} clips were sent, and the provider counted no ${dropped} tokens`;
  return { ...facts, status: 'failed', kind: 'media_dropped', message };
};

const makeCall = async (
  ports: GenerateTurnsPorts,
  message: GenerateTurnsMessage,
  lane: LaneAtWork,
  { request, history, delivery }: WantedCall,
  wantedCap: 'first' | 'raised',
): Promise<MadeCall | UnusableMedia> => {
  const { store, clock } = ports;
  const { run } = message;
  const { requestId } = request;
  const logKey = keys.lane.attempts(run, message.lane, requestId);
  const { attempts: earlier, forgiven } = await readAttempts(store, logKey);
  const counted = earlier.slice(forgiven);
  const wasCut = earlier.some((past) => past.kind === 'length_truncated');
  const cap =
    lane.contract.retryMaxTokens !== null && (wantedCap === 'raised' || wasCut) ? 'raised' : 'first';
  const maxTokens = cap === 'raised' ? lane.contract.retryMaxTokens! : lane.contract.maxTokens;
  const uncalled = { requestId, cap, attempt: counted.length } as const;
  const facts = { ...uncalled, attempt: counted.length + 1 };

  const atThisCap = counted.filter((past) => past.maxTokens === maxTokens);
  const isOver =
    atThisCap.some((past) => past.kind === 'length_truncated') ||
    (atThisCap.length > 0 && counted.length >= lane.settings.attempts);
  // A kill came between the last attempt and its exclusion: nothing is left to try.
  if (isOver) return { reply: null, outcome: outcome('failed', { ...uncalled, kind: counted.at(-1)!.kind }) };

  const promptTokens = promptTokensAtMost(request, lane.settings.clipTokensAtMost);
  const permit = await enterGate(
    lane.gate,
    { tokensAtMost: promptTokens + maxTokens, timesTurnedAway: timesTurnedAway(counted) },
    async () => (await store.getText(keys.lane.stopped(run, message.lane))) !== null,
  );
  if (permit === 'stopped') return { reply: null, outcome: outcome('stopped', uncalled) };
  if ('waitSeconds' in permit) {
    return { reply: null, outcome: outcome('retry', { ...uncalled, waitSeconds: permit.waitSeconds }) };
  }
  const startedMs = clock.now();
  const startedMonotonic = clock.monotonic();
  const offered = offeredClips(request);
  const billed = {
    holdsMedia: offered.audio + offered.video > 0,
    timeUtc: new Date(startedMs).toISOString(),
  };
  const markStopped = ({ kind, message: why }: StoppingOutcome) =>
    store.put(
      keys.lane.stopped(run, message.lane),
      JSON.stringify({ v: 1, kind, message: why, timeUtc: billed.timeUtc }),
    );
  const makeIt = () =>
    callWithinBudget({
      ledger: ports.ledger,
      accounts:
        lane.hasBudget && isPaid(lane.contract.provider)
          ? [runAccount(run), laneAccount(run, message.lane)]
          : [],
      price: lane.settings.price,
      promptTokensAtMost: promptTokens,
      maxTokens,
      billed,
      call: () =>
        lane.client.call(request, {
          maxTokens,
          deadlineMs: lane.settings.deadlineSeconds * 1000,
          signal: ports.signal,
        }),
    });
  const ended = await callWithPermit(permit, makeIt, markStopped).catch((error: unknown): UnusableMedia => {
    if (!isNamed(error, errorNames.mediaUnusable)) throw error;
    return { unusable: (error as Error).message, attempts: earlier };
  });
  if (ended === 'spent') return { reply: null, outcome: outcome('budget', uncalled) };
  if (ended === 'held') {
    return { reply: null, outcome: outcome('retry', { ...uncalled, waitSeconds: secondsUntilMoneyIsFree }) };
  }
  if ('unusable' in ended) return ended;
  const called = withAllMedia(ended, lane.media);
  const costMicroUsd = callCostMicroUsd(called.usage, lane.settings.price, billed);

  const kind = called.status === 'ok' ? null : called.status === 'length' ? 'length_truncated' : called.kind;
  const paidMicroUsd = isPaid(lane.contract.provider) ? costMicroUsd : 0;
  ports.onCall?.({ run, lane: message.lane, status: called.status, kind, costMicroUsd: paidMicroUsd });
  const attempt: Attempt = {
    attempt: earlier.length + 1,
    timeUtc: new Date(startedMs).toISOString(),
    maxTokens,
    httpStatus: called.httpStatus,
    responseId: called.responseId,
    kind,
    message: 'message' in called ? called.message : null,
    elapsedSeconds: Math.round(clock.monotonic() - startedMonotonic) / 1000,
    usage: called.usage,
    costMicroUsd,
  };
  const attempts = [...earlier, attempt];

  if (called.status === 'ok') {
    const record: RequestRecord = {
      v: 1,
      requestId,
      rawText: called.text,
      finishReason: called.finishReason,
      provider: lane.contract.provider,
      model: lane.contract.model,
      servedModel: called.servedModel,
      decodeMaxTokens: maxTokens,
      offered,
      consumed: called.consumed,
      userTurns: request.messages.filter((turn) => turn.role === 'user').length,
      history,
      promptSha256: promptSha256(request, lane.media?.forms ?? asTheyAre),
      ...(delivery === null ? {} : { systemPromptDelivery: delivery }),
      attempts,
    };
    const key = keys.lane.request(run, message.lane, requestId);
    const isFirst = await store.putIfAbsent(key, JSON.stringify(record));
    // Where another delivery was first, everyone goes on from its reply.
    const winner = isFirst ? record : await readReply(store, run, message.lane, requestId);
    return { reply: winner!.rawText, outcome: outcome('done', facts) };
  }

  const stops = stopsLane(called);
  const log: AttemptLog = { v: 1, requestId, attempts, forgiven: stops ? attempts.length : forgiven };
  await store.put(logKey, JSON.stringify(log));
  if (stops || called.status === 'stop_lane')
    return { reply: null, outcome: outcome('stopped', { ...uncalled, kind }) };
  const waitSeconds =
    called.status === 'retry'
      ? waitBeforeRetrySeconds(
          facts.attempt,
          called.retryAfterSeconds,
          lane.settings.backoff,
          ports.random.next(),
        )
      : 0;
  return { reply: null, outcome: outcome(called.status, { ...facts, kind, waitSeconds }) };
};
