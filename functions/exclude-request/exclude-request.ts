import { groupPlan } from '../../shared/contracts/plan.ts';
import { attemptLog, type FailureRecord } from '../../shared/contracts/records.ts';
import { type ExcludeRequestInput, excludeRequestInput } from '../../shared/contracts/stage-messages.ts';
import { errorNames, TurnsweepError } from '../../shared/errors.ts';
import { keys } from '../../shared/keys.ts';
import type { ObjectStore } from '../../shared/ports/object-store.ts';

export interface ExcludeRequestPorts {
  store: ObjectStore;
}

/**
 * Records that a request will get no reply, with all its attempts, so that no resumed run asks it again
 * unless the user wants errors retried. A reply that is there after all wins: then nothing is recorded.
 */
export const createExcludeRequest =
  ({ store }: ExcludeRequestPorts) =>
  async (rawInput: unknown): Promise<{ requestId: string | null }> => {
    const input = excludeRequestInput.parse(rawInput);
    const requestId = input.error.Error === undefined ? input.turn.requestId : await openRequest(store, input);
    if (typeof requestId !== 'string') return { requestId: null };
    const { run, lane } = input;
    if ((await store.getText(keys.lane.request(run, lane, requestId))) !== null) return { requestId };
    const log = await store.getText(keys.lane.attempts(run, lane, requestId));
    const attempts = log === null ? [] : attemptLog.parse(JSON.parse(log)).attempts;
    const last = attempts.at(-1);
    const lost = input.error.Error !== undefined;
    const record: FailureRecord = {
      v: 1,
      requestId,
      status: 'error',
      kind: lost ? 'worker_lost' : (input.turn.kind ?? last?.kind ?? 'worker_lost'),
      message: lost ? `${input.error.Error}: ${input.error.Cause ?? ''}`.trim() : (last?.message ?? ''),
      blockedBy: null,
      refusal: input.turn.status === 'refused' && !lost,
      attempts,
    };
    await store.put(keys.lane.failure(run, lane, requestId), JSON.stringify(record));
    return { requestId };
  };

/** The request that a lost worker was at: the first of the view with neither reply nor failure. */
const openRequest = async (store: ObjectStore, input: ExcludeRequestInput): Promise<string | null> => {
  const { run, lane } = input;
  const key = keys.run.group(run, input.groupId);
  const text = await store.getText(key);
  if (text === null) throw new TurnsweepError(errorNames.objectMissing, 'the plan lacks a view group', { where: key });
  const view = groupPlan.parse(JSON.parse(text)).views.find((candidate) => candidate.viewId === input.viewId);
  for (const requestId of view?.requestIds ?? []) {
    if ((await store.getText(keys.lane.request(run, lane, requestId))) !== null) continue;
    if ((await store.getText(keys.lane.failure(run, lane, requestId))) !== null) continue;
    return requestId;
  }
  return null;
};
