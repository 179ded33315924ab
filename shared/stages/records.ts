import {
  type AttemptLog,
  attemptLog,
  type FailureRecord,
  failureRecord,
  type RequestRecord,
  requestRecord,
} from '../contracts/records.ts';
import { keys } from '../keys.ts';
import type { ObjectStore } from '../ports/object-store.ts';
import { objectDamaged, readStored } from './stored-json.ts';

type Readable = Pick<ObjectStore, 'getText'>;

/** A record under the key of another request would be scored in its name. */
const ofRequest = <R extends { requestId: string }>(
  record: R | null,
  requestId: string,
  key: string,
): R | null => {
  if (record === null || record.requestId === requestId) return record;
  throw objectDamaged(key, `it is of request ${record.requestId}, not of ${requestId}`);
};

export const readReply = async (
  store: Readable,
  run: string,
  lane: string,
  requestId: string,
): Promise<RequestRecord | null> => {
  const key = keys.lane.request(run, lane, requestId);
  return ofRequest(await readStored(store, key, requestRecord), requestId, key);
};

export const readFailure = async (
  store: Readable,
  run: string,
  lane: string,
  requestId: string,
): Promise<FailureRecord | null> => {
  const key = keys.lane.failure(run, lane, requestId);
  return ofRequest(await readStored(store, key, failureRecord), requestId, key);
};

/** A request's reply or failure as recorded; null where it is still open. Throws `ObjectDamaged`. */
export const readRecord = async (
  store: Readable,
  run: string,
  lane: string,
  requestId: string,
): Promise<RequestRecord | FailureRecord | null> =>
  (await readReply(store, run, lane, requestId)) ?? (await readFailure(store, run, lane, requestId));

/** The failed attempts so far of a request or, under its own key, of a judge's chunk. Throws `ObjectDamaged`. */
export const readAttempts = async (
  store: Readable,
  key: string,
): Promise<Pick<AttemptLog, 'attempts' | 'forgiven'>> =>
  (await readStored(store, key, attemptLog)) ?? { attempts: [], forgiven: 0 };
