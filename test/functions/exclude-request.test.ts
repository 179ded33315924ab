import { describe, expect, it } from 'vitest';
import { createExcludeRequest } from '../../functions/exclude-request/exclude-request.ts';
import { createFileObjectStore } from '../../shared/adapters/local/file-object-store.ts';
import type { Attempt, FailureRecord, RequestRecord } from '../../shared/contracts/records.ts';
import { unknownUsage } from '../../shared/domain/outcome.ts';
import { keys } from '../../shared/keys.ts';
import { temporaryFolder } from '../support/command-line.ts';

const [run, lane] = ['r', 'l'];
const requestIds = ['C', 'N0', 'H0'];
const poisoned = { Error: 'MessagePoisoned', Cause: 'out of memory' };

const attempt: Attempt = {
  attempt: 1,
  timeUtc: '2026-12-01T00:00:00.000Z',
  maxTokens: 64,
  httpStatus: 503,
  responseId: null,
  kind: 'http_503',
  message: 'HTTP 503: overloaded',
  elapsedSeconds: 0.1,
  usage: unknownUsage,
  costMicroUsd: null,
};
const reply = (requestId: string): RequestRecord => ({
  v: 1,
  requestId,
  rawText: 'yes',
  finishReason: 'stop',
  provider: 'openai-compatible',
  model: 'm',
  servedModel: 'm',
  decodeMaxTokens: 64,
  offered: { audio: 0, video: 1 },
  consumed: { audio: 0, video: 1 },
  userTurns: 1,
  history: [],
  promptSha256: 'f'.repeat(64),
  attempts: [{ ...attempt, kind: null, message: null, httpStatus: 200 }],
});

const laneWith = async (replies: readonly string[]) => {
  const store = createFileObjectStore({ root: temporaryFolder() });
  const view = {
    viewId: 'v',
    taskId: 't',
    interface: 'mcq',
    targetRequestIds: ['C', 'H0'],
    requestIds,
  };
  await store.put(
    keys.run.group(run, 'g'),
    JSON.stringify({ v: 2, groupId: 'g', views: [view], requests: [] }),
  );
  for (const id of replies) await store.put(keys.lane.request(run, lane, id), JSON.stringify(reply(id)));
  const exclude = (turn: object, error: object = {}) =>
    createExcludeRequest({ store })({ run, lane, groupId: 'g', viewId: 'v', turn, error });
  const failureOf = async (id: string): Promise<FailureRecord | null> =>
    JSON.parse((await store.getText(keys.lane.failure(run, lane, id))) ?? 'null');
  return { store, exclude, failureOf };
};

describe('exclude-request', () => {
  it('records the last failure with every attempt', async () => {
    const { store, exclude, failureOf } = await laneWith(['C']);
    const log = { v: 1, requestId: 'N0', attempts: [attempt, { ...attempt, attempt: 2 }], forgiven: 1 };
    await store.put(keys.lane.attempts(run, lane, 'N0'), JSON.stringify(log));

    await exclude({ status: 'retry', requestId: 'N0', kind: 'http_503' });

    expect(await failureOf('N0')).toEqual({
      v: 1,
      requestId: 'N0',
      status: 'error',
      kind: 'http_503',
      message: 'HTTP 503: overloaded',
      blockedBy: null,
      refusal: false,
      attempts: log.attempts,
    });
  });

  it('lets a reply that came after all stand', async () => {
    const { exclude, failureOf } = await laneWith(requestIds);

    await exclude({ status: 'retry', requestId: 'N0', kind: 'http_503' });

    expect(await failureOf('N0')).toBeNull();
  });

  it('puts a lost worker down to the request that it was at', async () => {
    const { exclude, failureOf } = await laneWith(['C']);

    const result = await exclude({}, poisoned);

    expect(result).toEqual({ requestId: 'N0' });
    expect(await failureOf('N0')).toMatchObject({
      kind: 'worker_lost',
      message: 'MessagePoisoned: out of memory',
      refusal: false,
    });
    expect(await failureOf('H0')).toBeNull();
  });

  it('does not put a damaged record down to the request behind it', async () => {
    const { store, exclude, failureOf } = await laneWith(['C']);
    const key = keys.lane.request(run, lane, 'N0');
    await store.put(key, '{"v":1,');

    await expect(exclude({}, poisoned)).rejects.toMatchObject({ name: 'ObjectDamaged', where: key });

    expect(await failureOf('H0')).toBeNull();
    expect(await store.getText(key)).toBe('{"v":1,');
  });

  it('ends a view that fails with nothing left to ask; a mere time-out goes on', async () => {
    const { exclude } = await laneWith(requestIds);

    const failing = exclude({}, poisoned);
    const timedOut = await exclude({}, { Error: 'States.Timeout' });

    await expect(failing).rejects.toMatchObject({
      name: 'MessagePoisoned',
      message: expect.stringMatching(/l, v.*out of memory/),
    });
    expect(timedOut).toEqual({ requestId: null });
  });
});
