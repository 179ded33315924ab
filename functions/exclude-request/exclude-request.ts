import { groupPlan } from '../../shared/contracts/plan.ts';
import type { FailureRecord } from '../../shared/contracts/records.ts';
import { type ExcludeRequestInput, excludeRequestInput } from '../../shared/contracts/stage-messages.ts';
import { errorNames, TurnsweepError } from '../../shared/errors.ts';
import { keys } from '../../shared/keys.ts';
import type { ObjectStore } from '../../shared/ports/object-store.ts';
import { readAttempts, readRecord, readReply } from '../../shared/stages/records.ts';
import { readStored } from '../../shared/stages/stored-json.ts';

export interface ExcludeRequestPorts {
  store: ObjectStore;
}

/**
 * Records that a request will get no reply, with all its attempts, so that no resumed run asks it again
 * unless the user wants errors retried. A reply that is there after all wins: then nothing is recorded.
 * Throws `MessagePoisoned` where the worker failed for good although no request is open: the view would go
 * round in circles.
 */
export const createExcludeRequest =
  ({ store }: ExcludeRequestPorts) =>
  async (rawInput: unknown): Promise<{ requestId: string | null }> => {
    const input = excludeRequestInput.parse(rawInput);
    const requestId =
      input.error.Error === undefined ? input.turn.requestId : await openRequest(store, input);
    const { run, lane } = input;
    if (typeof requestId !== 'string') {
      if (input.error.Error !== errorNames.messagePoisoned) return { requestId: null };
      throw new TurnsweepError(errorNames.messagePoisoned, `a view fails with all its requests recorded`, {
        where: `${lane}, ${input.viewId}`,
        remedy: input.error.Cause,
      });
    }
    if ((await readReply(store, run, lane, requestId)) !== null) return { requestId };
    const { attempts } = await readAttempts(store, keys.lane.attempts(run, lane, requestId));
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
  const group = await readStored(store, key, groupPlan);
  if (group === null)
    throw new TurnsweepError(errorNames.objectMissing, 'the plan lacks a view group', { where: key });
  const view = group.views.find((candidate) => candidate.viewId === input.viewId);
  for (const requestId of view?.requestIds ?? []) {
    if ((await readRecord(store, run, lane, requestId)) === null) return requestId;
  }
  return null;
};
