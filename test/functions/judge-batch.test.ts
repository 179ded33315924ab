import { describe, expect, it, onTestFinished } from 'vitest';
import { createJudgeAnswers } from '../../functions/judge-answers/judge-answers.ts';
import { createPollJudgeBatch } from '../../functions/poll-judge-batch/poll-judge-batch.ts';
import { createSubmitJudgeBatch } from '../../functions/submit-judge-batch/submit-judge-batch.ts';
import { createFileObjectStore } from '../../shared/adapters/local/file-object-store.ts';
import { scopeObjectStore } from '../../shared/adapters/local/scoped-object-store.ts';
import { createSqliteLedger } from '../../shared/adapters/local/sqlite-ledger.ts';
import { createVirtualClock } from '../../shared/adapters/local/virtual-clock.ts';
import { benchmarkOf } from '../../shared/benchmarks/registry.ts';
import type { JudgeBatch } from '../../shared/contracts/judge-batch.ts';
import type { AttemptLog } from '../../shared/contracts/records.ts';
import { judgeSettings } from '../../shared/contracts/run.ts';
import type { JudgeBatchOutcome } from '../../shared/contracts/stage-messages.ts';
import { keys } from '../../shared/keys.ts';
import { runAccount } from '../../shared/naming.ts';
import type { ChatBatch } from '../../shared/ports/chat-batch.ts';
import type { ObjectStore } from '../../shared/ports/object-store.ts';
import { createChatBatchFor, createChatCallerFor } from '../../shared/providers/registry.ts';
import { type StageName, scopes } from '../../shared/scopes.ts';
import { pollWaitSeconds } from '../../shared/stages/judge-batches.ts';
import { type Behaviour, type Fate, startBatchServer } from '../support/batch-server.ts';
import { temporaryFolder } from '../support/command-line.ts';

const run = 'r';
const judge = 'judge-1';
const protocol = benchmarkOf('return').judge({});
/** 100 prompt tokens at 1 and 10 reply tokens at 2 dollars a million, at half the price. */
const itemCostMicroUsd = (100 * 1 + 10 * 2) / 2;

const chunkIdOf = (index: number) => `g-${String(index).padStart(6, '0')}`;

/** A run with this many chunks to judge, a provider over HTTP, and the stages as their roles see the bucket. */
const judging = async (
  options: {
    chunks?: number;
    budgetMicroUsd?: number;
    attempts?: number;
    batch?: Partial<ChatBatch>;
    behaviour?: Partial<Behaviour>;
    attemptsBefore?: Record<string, number>;
  } = {},
) => {
  const server = await startBatchServer({ walk: ['in_progress'], ...options.behaviour });
  const whole = createFileObjectStore({ root: temporaryFolder() });
  const clock = createVirtualClock();
  const ledger = createSqliteLedger(':memory:', { clock });
  const settings = judgeSettings.parse({
    provider: 'openai',
    model: 'gpt-5.4-mini',
    baseUrl: server.url,
    apiKeyEnv: null,
    reasoningEffort: null,
    itemsPerRequest: 2,
    maxTokens: 100,
    attempts: options.attempts ?? 3,
    maxInFlight: 1,
    deadlineSeconds: 10,
    backoff: { baseSeconds: 1, maxSeconds: 1 },
    price: { inputPerMTok: 1, outputPerMTok: 2 },
    batch: { poll: { baseSeconds: 30, maxSeconds: 900 } },
  });
  const batch = createChatBatchFor(settings, 'key');
  const caller = createChatCallerFor(settings, 'key');
  onTestFinished(async () => {
    await batch.close();
    await caller.close();
    ledger.close();
  });
  const count = options.chunks ?? 3;
  const ids = Array.from({ length: count }, (_, index) => chunkIdOf(index));
  for (const [index, chunkId] of ids.entries()) {
    const items = [0, 1].map((at) => ({
      key: `key-${index}-${at}`,
      question: 'Which colour?',
      gold: 'red',
      aliases: [],
      options: [],
      candidate: at === 0 ? 'It is red.' : 'It is blue.',
      answerType: 'openqa',
    }));
    await whole.put(keys.judging.chunk(run, chunkId), JSON.stringify({ v: 1, chunkId, items }));
  }
  await whole.putLines(
    keys.judging.chunks(run),
    ids.map((chunkId) => JSON.stringify({ chunkId, attemptsBefore: options.attemptsBefore?.[chunkId] ?? 0 })),
  );
  const hasBudget = options.budgetMicroUsd !== undefined;
  if (hasBudget) await ledger.setLimit(runAccount(run), options.budgetMicroUsd!);
  const atWork = { judge, settings, protocol, hasBudget };
  const scoped = (stage: StageName, store: ObjectStore) => scopeObjectStore(store, scopes[stage]);
  const ports = (stage: StageName, store: ObjectStore) => ({
    store: scoped(stage, store),
    ledger,
    clock,
    random: { next: () => 0.5 },
    judgeBatchAtWork: async () => ({ ...atWork, batch: { ...batch, ...options.batch } }),
  });
  const start = { run, polls: 0, tries: 0 };
  const submit = (from = start, store: ObjectStore = whole) =>
    createSubmitJudgeBatch(ports('submit-judge-batch', store))({ run, polls: from.polls, tries: from.tries });
  const poll = (from = start, store: ObjectStore = whole) =>
    createPollJudgeBatch(ports('poll-judge-batch', store))({ run, polls: from.polls, tries: from.tries });
  const read = async <Document>(prefix: string): Promise<Document[]> => {
    const found: Document[] = [];
    for await (const key of whole.list(prefix)) found.push(JSON.parse((await whole.getText(key))!));
    return found;
  };
  return {
    server,
    store: whole,
    clock,
    ledger,
    ids,
    submit,
    poll,
    /** What the state machine does, until it leaves the batch's states; the waits are only noted. */
    toEnd: async (first: () => Promise<JudgeBatchOutcome> = submit) => {
      const waits: number[] = [];
      for (let outcome = await first(); ; ) {
        waits.push(outcome.waitSeconds);
        const at = { ...start, ...outcome };
        if (outcome.status === 'waiting') outcome = await poll(at);
        else if (outcome.status === 'collected' || outcome.status === 'retry') outcome = await submit(at);
        else return { outcome, waits };
      }
    },
    judgeByCalls: async () => {
      const answers = createJudgeAnswers({
        ...ports('judge-answers', whole),
        judgeAtWork: async () => ({ ...atWork, caller }),
      });
      for (const chunkId of ids) await answers({ v: 1, taskToken: 't', run, chunkId, attemptsBefore: 0 });
    },
    reviews: () => read<Record<string, unknown>>(keys.reviews.judge(judge)),
    logs: () => read<AttemptLog>(keys.judging.attempts(run)),
    kinds: async () =>
      Object.fromEntries(
        (await read<AttemptLog>(keys.judging.attempts(run))).map((log) => [
          log.requestId,
          log.attempts.map(({ kind }) => kind),
        ]),
      ),
    batches: () => read<JudgeBatch>(keys.judging.batches(run)),
    stopped: async () => JSON.parse((await whole.getText(keys.judging.stopped(run))) ?? 'null'),
    spent: async () => (await ledger.balance(runAccount(run))).spentMicroUsd,
  };
};

/** A store that dies at its n-th write of a key that fits: the process was killed there. */
const dyingAt = (store: ObjectStore, fits: RegExp, nth: number): ObjectStore => {
  let writes = 0;
  const guard = (key: string) => {
    if (fits.test(key)) writes += 1;
    if (writes >= nth) throw new Error('killed');
  };
  return {
    ...store,
    put: async (key, body) => {
      guard(key);
      return store.put(key, body);
    },
    putIfAbsent: async (key, body) => {
      guard(key);
      return store.putIfAbsent(key, body);
    },
  };
};

describe('judging in batches', () => {
  it('gives the reviews of judging by calls for half the money', async () => {
    const byBatch = await judging({ budgetMicroUsd: 1_000_000 });
    const byCalls = await judging();

    const { outcome, waits } = await byBatch.toEnd();
    await byCalls.judgeByCalls();

    expect(outcome).toMatchObject({ status: 'done' });
    expect(await byBatch.reviews()).toEqual(await byCalls.reviews());
    expect(await byBatch.reviews()).toHaveLength(6);
    expect((await byBatch.reviews())[1]).toMatchObject({ key: 'key-0-1', verdict: 'incorrect', judge });
    expect(byBatch.server.batches.map(({ lines }) => lines.map((line) => line.custom_id))).toEqual([
      byBatch.ids,
    ]);
    expect(byBatch.server.batches[0]!.lines.map(({ body }) => body.messages)).toEqual(
      byCalls.server.calls.map(({ messages }) => messages),
    );
    const costs = (logs: AttemptLog[]) =>
      logs.map(({ attempts }) =>
        attempts.map(({ costMicroUsd, kind, usage }) => [costMicroUsd, kind, usage.inputTokens]),
      );
    expect(costs(await byBatch.logs())).toEqual(Array(3).fill([[itemCostMicroUsd, null, 100]]));
    expect(costs(await byCalls.logs())).toEqual(Array(3).fill([[2 * itemCostMicroUsd, null, 100]]));
    expect(await byBatch.spent()).toBe(3 * itemCostMicroUsd);
    expect(await byBatch.ledger.balance(runAccount(run))).toMatchObject({ reservedMicroUsd: 0 });
    // Submitted, one look while it is in progress, collected, nothing left.
    expect(waits).toEqual([30, 45, 0, 0]);
  });

  it('asks again for what is missing, expired, broken or void, and for nothing else', async () => {
    const firstFates: Fate[] = ['reply', 'missing', 'expired', 'http_500', 'rubbish', 'http_400', 'length'];
    const run = await judging({
      chunks: firstFates.length,
      budgetMicroUsd: 1_000_000,
      behaviour: { fate: (id, batch) => (batch === 1 ? firstFates[Number(id.slice(2))]! : 'reply') },
    });

    const { outcome } = await run.toEnd();

    expect(outcome.status).toBe('done');
    expect(run.server.batches.map(({ lines }) => lines.map((line) => line.custom_id))).toEqual([
      run.ids,
      [1, 2, 3, 4].map(chunkIdOf),
    ]);
    expect(await run.kinds()).toEqual({
      [chunkIdOf(0)]: [null],
      [chunkIdOf(1)]: ['batch_missing', null],
      [chunkIdOf(2)]: ['batch_expired', null],
      [chunkIdOf(3)]: ['http_500', null],
      [chunkIdOf(4)]: ['judge_unparsed', null],
      [chunkIdOf(5)]: ['http_400'],
      [chunkIdOf(6)]: ['length_truncated'],
    });
    expect((await run.logs()).map(({ attempts }) => attempts.map(({ attempt }) => attempt))).toEqual(
      [1, 2, 2, 2, 2, 1, 1].map((attempts) => Array.from({ length: attempts }, (_, at) => at + 1)),
    );
    // Two reviews for each of the five chunks that were judged.
    expect(await run.reviews()).toHaveLength(10);
    const reviewed = new Set((await run.reviews()).map(({ key }) => String(key).slice(0, 5)));
    expect([...reviewed]).toEqual(['key-0', 'key-1', 'key-2', 'key-3', 'key-4']);
    // Seven replies with token counts; the missing one may have been charged and counts at its most: its prompt's bytes
    // and 100 reply tokens at half the price. Expired and refused ones cost nothing.
    const [{ lines }] = run.server.batches as [(typeof run.server.batches)[number]];
    const promptBytes = lines[1]!.body.messages.reduce(
      (sum, { content }) => sum + Buffer.byteLength(content),
      0,
    );
    expect(await run.spent()).toBe(7 * itemCostMicroUsd + Math.ceil((promptBytes + 200) / 2));
  });

  it('leaves a chunk pending once its attempts of this start are used up', async () => {
    const run = await judging({
      chunks: 2,
      attempts: 2,
      behaviour: { fate: (id) => (id === chunkIdOf(1) ? 'rubbish' : 'reply') },
    });

    const { outcome } = await run.toEnd();

    expect(outcome.status).toBe('done');
    expect(await run.kinds()).toEqual({
      [chunkIdOf(0)]: [null],
      [chunkIdOf(1)]: ['judge_unparsed', 'judge_unparsed'],
    });
    expect(await run.reviews()).toHaveLength(2);
    expect(run.server.batches).toHaveLength(2);

    // A later start has attempts of its own.
    await run.store.putLines(keys.judging.chunks('r'), [
      JSON.stringify({ chunkId: chunkIdOf(1), attemptsBefore: 2 }),
    ]);
    run.server.behave({ fate: () => 'reply' });
    await run.toEnd();

    expect((await run.kinds())[chunkIdOf(1)]).toEqual(['judge_unparsed', 'judge_unparsed', null]);
  });

  it.each<[string, Partial<ChatBatch>]>([
    ['requests', { requestsAtMost: 2 }],
    ['bytes', { bytesAtMost: 11_000 }],
  ])('makes several batches where one would have too many %s', async (what, batch) => {
    const run = await judging({ chunks: 5, batch });

    const { outcome } = await run.toEnd();

    expect(outcome.status).toBe('done');
    const sizes = run.server.batches.map(({ lines }) => lines.length);
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(5);
    if (what === 'requests') expect(sizes).toEqual([2, 2, 1]);
    else {
      expect(sizes.length).toBeGreaterThan(1);
      for (const { inputFile } of run.server.batches)
        expect(Buffer.byteLength(run.server.files.get(inputFile)!)).toBeLessThanOrEqual(
          batch.bytesAtMost! + 2,
        );
    }
    expect(await run.reviews()).toHaveLength(10);
  });

  it('halves what is more than the account may queue, which counts as no attempt', async () => {
    const run = await judging({
      chunks: 4,
      attempts: 1,
      behaviour: { end: (batch) => (batch <= 2 ? 'failed:token_limit_exceeded' : 'completed') },
    });

    const { outcome, waits } = await run.toEnd();

    expect(outcome.status).toBe('done');
    // 4 and 2 are too many; then one at a time, and only one batch at once.
    expect(run.server.batches.map(({ lines }) => lines.length)).toEqual([4, 2, 1, 1, 1, 1]);
    expect(Object.values(await run.kinds())).toEqual(Array(4).fill([null]));
    expect(waits.filter((wait) => wait === 900)).toHaveLength(2);
  });

  it('counts a batch that fails as a whole as an attempt that cost nothing', async () => {
    const run = await judging({
      chunks: 2,
      budgetMicroUsd: 1_000_000,
      behaviour: { end: (batch) => (batch === 1 ? 'failed:invalid_json_line' : 'completed') },
    });

    await run.toEnd();

    expect(Object.values(await run.kinds())).toEqual(Array(2).fill(['batch_failed', null]));
    expect(await run.spent()).toBe(2 * itemCostMicroUsd);
  });
});

describe('a kill', () => {
  it('after the batch was made, before that is on record, makes no second one', async () => {
    const run = await judging({ budgetMicroUsd: 1_000_000 });

    await expect(run.submit(undefined, dyingAt(run.store, /batch\//, 2))).rejects.toThrow('killed');
    expect(await run.batches()).toMatchObject([{ state: 'submitting', batchId: null }]);
    const { outcome } = await run.toEnd();

    expect(outcome.status).toBe('done');
    expect(run.server.batches).toHaveLength(1);
    expect(run.server.count('POST', /batches$/)).toBe(1);
    expect(await run.batches()).toMatchObject([{ state: 'collected', batchId: 'batch_1' }]);
    expect(await run.reviews()).toHaveLength(6);
  });

  it.each([
    ['done, and its answer was lost', 'done' as const, 1],
    ['not done', 'reset' as const, 1],
  ])('of the connection while the batch is made: it was %s', async (_, said, batches) => {
    const run = await judging({ budgetMicroUsd: 1_000_000 });
    run.server.behave({
      intercept: (method, path) => (method === 'POST' && path.endsWith('/batches') ? said : null),
    });

    const first = await run.submit();
    run.server.behave({ intercept: () => null });
    const { outcome } = await run.toEnd(async () => first);

    expect(first).toMatchObject({ status: 'waiting', waitSeconds: 30 });
    expect(outcome.status).toBe('done');
    expect(run.server.batches).toHaveLength(batches);
    expect((await run.batches()).map(({ state }) => state)).toEqual(
      said === 'done' ? ['collected'] : ['void', 'collected'],
    );
    expect(await run.spent()).toBe(3 * itemCostMicroUsd);
    expect((await run.ledger.balance(runAccount('r'))).reservedMicroUsd).toBe(0);
  });

  it('before the batch was made leaves an entry that comes to nothing', async () => {
    const run = await judging();
    run.server.behave({ intercept: (_, path) => (path === '/v1/files' ? 'reset' : null) });

    const first = await run.submit();

    expect(first).toMatchObject({ status: 'retry', kind: 'connection_reset', tries: 1, waitSeconds: 1 });
    expect(await run.batches()).toMatchObject([{ state: 'void' }]);
  });

  it('while a batch is open: the next start looks at it and submits nothing', async () => {
    const run = await judging();
    await run.submit();

    const again = await run.submit();

    expect(again).toMatchObject({ status: 'waiting', waitSeconds: 0 });
    expect(run.server.batches).toHaveLength(1);
  });

  it.each([
    ['a review', /reviews\//, 4],
    ['an attempt', /attempts\//, 2],
    ['the end of the batch', /batch\//, 1],
  ])('while results are booked, at %s: each is booked once', async (_, fits, nth) => {
    const run = await judging({ budgetMicroUsd: 1_000_000, behaviour: { walk: [] } });
    await run.submit();

    await expect(run.poll(undefined, dyingAt(run.store, fits, nth))).rejects.toThrow('killed');
    const { outcome } = await run.toEnd(() => run.poll());

    expect(outcome.status).toBe('done');
    expect(await run.reviews()).toHaveLength(6);
    expect(Object.values(await run.kinds())).toEqual(Array(3).fill([null]));
    expect(run.server.batches).toHaveLength(1);
    expect(await run.spent()).toBe(3 * itemCostMicroUsd);
  });
});

describe('a budget', () => {
  it('without room for a single chunk submits nothing', async () => {
    const run = await judging({ budgetMicroUsd: 100 });

    expect(await run.submit()).toMatchObject({ status: 'budget' });
    expect(run.server.seen).toEqual([]);
    expect(await run.batches()).toEqual([]);
  });

  it('with room for some submits those, and the rest with what they turn out not to cost', async () => {
    const probe = await judging({ chunks: 1, budgetMicroUsd: 1_000_000 });
    await probe.submit();
    const [{ mostMicroUsd }] = (await probe.batches()) as [JudgeBatch];
    // While it is open its most counts as spent, whatever becomes of reservations.
    expect(await probe.spent()).toBe(mostMicroUsd);

    const run = await judging({ chunks: 3, budgetMicroUsd: Math.floor(2.5 * mostMicroUsd) });
    const { outcome } = await run.toEnd();

    expect(outcome.status).toBe('done');
    expect(run.server.batches.map(({ lines }) => lines.length)).toEqual([2, 1]);
    expect(await run.spent()).toBe(3 * itemCostMicroUsd);
  });

  it('ends judging when what is left has no room, and keeps what was judged', async () => {
    const run = await judging({
      chunks: 2,
      budgetMicroUsd: 3000,
      behaviour: { usage: { prompt_tokens: 2000, completion_tokens: 1000 } },
    });

    const { outcome } = await run.toEnd();

    expect(outcome.status).toBe('budget');
    expect(run.server.batches.map(({ lines }) => lines.length)).toEqual([1]);
    expect(await run.reviews()).toHaveLength(2);
    expect(await run.spent()).toBe(2000);
  });
});

describe('a provider in trouble', () => {
  it('is asked to take a batch as often as a judge has attempts, then judging stops', async () => {
    const run = await judging({ attempts: 3, behaviour: { intercept: () => 503 } });

    const { outcome } = await run.toEnd();

    expect(outcome).toMatchObject({ status: 'stopped', kind: 'http_503' });
    expect(run.server.seen).toHaveLength(3);
    expect(await run.stopped()).toMatchObject({ kind: 'http_503' });
    expect(await run.kinds()).toEqual({});
  });

  it.each([
    [401, 'http_401'],
    [400, 'http_400'],
  ])('that refuses a batch with %i stops judging at once', async (status, kind) => {
    const run = await judging({ behaviour: { intercept: () => status } });

    expect(await run.submit()).toMatchObject({ status: 'stopped', kind });
    expect(run.server.seen).toHaveLength(1);
  });

  it('is looked at again when it fails in passing, and a batch that it does not know stops judging', async () => {
    const run = await judging();
    await run.submit();
    run.server.behave({ intercept: () => 500 });

    expect(await run.poll()).toMatchObject({
      status: 'waiting',
      kind: 'http_500',
      waitSeconds: 45,
      polls: 1,
      tries: 1,
    });
    expect(await run.poll({ run: 'r', polls: 30, tries: 19 })).toMatchObject({
      status: 'stopped',
      kind: 'http_500',
    });
    run.server.behave({ intercept: () => 404 });
    expect(await run.poll()).toMatchObject({ status: 'stopped', kind: 'http_404' });
    // Nothing is lost: the batch is there for the next start.
    run.server.behave({ intercept: () => null });
    const { outcome } = await run.toEnd(() => run.poll());
    expect(outcome.status).toBe('done');
    expect(run.server.batches).toHaveLength(1);
  });

  it('that cancels a batch: what was judged counts, and this start asks no more', async () => {
    const run = await judging({
      behaviour: { end: () => 'cancelled', fate: (id) => (id === chunkIdOf(0) ? 'reply' : 'missing') },
    });

    const { outcome } = await run.toEnd();

    expect(outcome).toMatchObject({ status: 'stopped', kind: 'batch_cancelled' });
    expect(await run.kinds()).toEqual({
      [chunkIdOf(0)]: [null],
      [chunkIdOf(1)]: ['batch_cancelled'],
      [chunkIdOf(2)]: ['batch_cancelled'],
    });
    expect(run.server.batches).toHaveLength(1);
  });

  it('that runs out of time keeps what it has done', async () => {
    const run = await judging({
      attempts: 1,
      behaviour: { end: () => 'expired', fate: (id) => (id === chunkIdOf(0) ? 'reply' : 'expired') },
    });

    const { outcome } = await run.toEnd();

    expect(outcome.status).toBe('done');
    expect(Object.values(await run.kinds())).toEqual([[null], ['batch_expired'], ['batch_expired']]);
    expect(await run.reviews()).toHaveLength(2);
  });

  it('whose wallet is empty stops judging', async () => {
    const run = await judging({ behaviour: { end: () => 'failed:insufficient_quota' } });

    const { outcome } = await run.toEnd();

    expect(outcome).toMatchObject({ status: 'stopped', kind: 'batch_failed' });
    expect((await run.stopped()).message).toContain('insufficient_quota');
    expect(run.server.batches).toHaveLength(1);
  });

  it('that does not end a batch in two days is for people', async () => {
    const run = await judging({ behaviour: { end: () => 'in_progress' } });
    await run.submit();

    await run.clock.advance(49 * 3_600_000);

    expect(await run.poll()).toMatchObject({ status: 'stopped', kind: 'batch_overdue' });
    expect(await run.batches()).toMatchObject([{ state: 'open' }]);
  });
});

it('waits longer from look to look, up to the longest wait', () => {
  const batch = { poll: { baseSeconds: 30, maxSeconds: 900 } };

  // 30 · 1.5ⁿ, rounded up.
  expect([0, 1, 2, 3, 8, 9, 50].map((polls) => pollWaitSeconds(batch, polls))).toEqual([
    30, 45, 68, 102, 769, 900, 900,
  ]);
});
