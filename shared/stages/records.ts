import { type FailureRecord, failureRecord, type RequestRecord, requestRecord } from '../contracts/records.ts';
import { keys } from '../keys.ts';
import type { ObjectStore } from '../ports/object-store.ts';

/** A request's reply or failure as recorded; null where it is still open. */
export const readRecord = async (
  store: ObjectStore,
  run: string,
  lane: string,
  requestId: string,
): Promise<RequestRecord | FailureRecord | null> => {
  const reply = await store.getText(keys.lane.request(run, lane, requestId));
  if (reply !== null) return requestRecord.parse(JSON.parse(reply));
  const failure = await store.getText(keys.lane.failure(run, lane, requestId));
  return failure === null ? null : failureRecord.parse(JSON.parse(failure));
};
