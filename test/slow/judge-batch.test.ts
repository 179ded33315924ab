import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import type { JudgeBatch } from '../../shared/contracts/judge-batch.ts';
import { startBatchServer } from '../support/batch-server.ts';
import { startCommand, sweepFile, temporaryFolder, turnsweep } from '../support/command-line.ts';
import { reviewsIn } from '../support/packed-records.ts';
import { filesBelow, resultFiles } from '../support/result-files.ts';
import { type SweepUnderTest, sweepUnderTest } from '../support/sweep-under-test.ts';

const price = { inputPerMTok: 1, outputPerMTok: 2 };
/** 100 prompt tokens and 10 reply tokens, in dollars. */
const callUsd = (100 * 1 + 10 * 2) / 1e6;
const env = { JUDGE_KEY: 'sk-judge' };

/** Two roots with all their tasks, answered with words that only a judge can tell, each item a chunk. */
const sweepWithJudge = async (judge: object = {}) => {
  const server = await startBatchServer({ walk: ['in_progress'] });
  const settings = {
    provider: 'openai',
    model: 'gpt-5.4-mini',
    baseUrl: server.url,
    apiKeyEnv: 'JUDGE_KEY',
    itemsPerRequest: 1,
    price,
    batchPoll: { baseSeconds: 1, maxSeconds: 1 },
    ...judge,
  };
  const sweep = await sweepUnderTest({
    models: { lane: { reply: { table: 'replies.jsonl', fallback: 'It might be a trombone.' } } },
    lanes: [{ id: 'lane' }],
    roots: 2,
    judge: settings,
  });
  const judging = path.join(sweep.out, 'judging');
  return {
    server,
    sweep,
    settings,
    file: path.join(sweep.folder, 'sweep.yaml'),
    run: () => turnsweep(['run', path.join(sweep.folder, 'sweep.yaml'), '--out', sweep.out], { env }),
    batches: (): JudgeBatch[] =>
      existsSync(path.join(judging, 'batch'))
        ? readdirSync(path.join(judging, 'batch'))
            .toSorted()
            .map((name) => JSON.parse(readFileSync(path.join(judging, 'batch', name), 'utf8')))
        : [],
    judgeCosts: () => sweep.costs().find(({ phase }) => phase === 'judge')!,
  };
};

/** What a run concluded, money left out. */
const conclusions = ({ out, summary }: SweepUnderTest): Record<string, unknown> => {
  const { judging, lanes } = summary();
  const files = Object.entries(resultFiles(out)).filter(
    ([name]) => !/costs\.csv$|index\.html$|summary\.json$/.test(name),
  );
  return { ...Object.fromEntries(files), judging, lanes };
};

describe('a judge that works in batches', () => {
  it('comes to the results of one that is called, for half the money', async () => {
    const inBatches = await sweepWithJudge({ batch: true });
    const byCalls = await sweepWithJudge();

    const batched = await inBatches.run();
    const called = await byCalls.run();

    expect({ code: batched.code, stderr: batched.stderr }).toEqual({ code: 0, stderr: '' });
    expect(called.code).toBe(0);
    const chunks = byCalls.server.calls.length;
    expect(chunks).toBeGreaterThan(1);
    expect(inBatches.server.calls).toEqual([]);
    expect(inBatches.server.batches.map(({ lines }) => lines.length)).toEqual([chunks]);
    expect(conclusions(inBatches.sweep)).toEqual(conclusions(byCalls.sweep));
    expect(reviewsIn(inBatches.sweep.out)).toEqual(reviewsIn(byCalls.sweep.out));
    expect(byCalls.judgeCosts()).toMatchObject({
      calls: String(chunks),
      usd: String((chunks * callUsd * 1e6) / 1e6),
    });
    expect(inBatches.judgeCosts()).toMatchObject({
      calls: String(chunks),
      usd: String((chunks * callUsd * 1e6) / 2 / 1e6),
    });
    expect(JSON.stringify(filesBelow(inBatches.sweep.out))).not.toContain(env.JUDGE_KEY);

    const again = await inBatches.run();
    expect(again.code).toBe(0);
    expect(inBatches.server.batches).toHaveLength(1);
  });

  it('that is killed while its batch is open goes on with that batch', async () => {
    const undisturbed = await sweepWithJudge({ batch: true });
    await undisturbed.run();
    const killed = await sweepWithJudge({ batch: true });
    killed.server.behave({ walk: Array(1000).fill('in_progress') });

    const first = startCommand(['run', killed.file, '--out', killed.sweep.out], { env });
    await vi.waitUntil(() => (killed.server.batches[0]?.looks ?? 0) > 0, { interval: 5, timeout: 25_000 });
    first.kill('SIGKILL');
    await first.ended;
    expect(killed.batches()).toMatchObject([{ state: 'open', batchId: 'batch_1' }]);
    killed.server.behave({ walk: [] });
    const second = await killed.run();

    expect({ code: second.code, stderr: second.stderr }).toEqual({ code: 0, stderr: '' });
    expect(killed.server.batches).toHaveLength(1);
    expect(killed.server.count('POST', /files/)).toBe(1);
    expect(conclusions(killed.sweep)).toEqual(conclusions(undisturbed.sweep));
    expect(killed.judgeCosts()).toEqual(undisturbed.judgeCosts());
  });

  it('whose batch is open is not asked by calls when the sweep file says so meanwhile', async () => {
    const { server, sweep, settings, ...started } = await sweepWithJudge({ batch: true });
    server.behave({
      walk: Array(1000).fill('in_progress'),
      fate: (id, _) => (id.endsWith('000000') ? 'missing' : 'reply'),
    });
    const first = startCommand(['run', started.file, '--out', sweep.out], { env });
    await vi.waitUntil(() => (server.batches[0]?.looks ?? 0) > 0, { interval: 5, timeout: 25_000 });
    first.kill('SIGINT');
    expect((await first.ended).code).toBe(130);

    server.behave({ walk: [] });
    sweep.change({ judge: { ...settings, batch: false } });
    const second = await started.run();

    expect({ code: second.code, stderr: second.stderr }).toEqual({ code: 0, stderr: '' });
    expect(server.batches).toHaveLength(1);
    // Only what the batch has left is asked by a call.
    expect(server.calls).toHaveLength(1);
    expect(started.judgeCosts()).toMatchObject({
      calls: String(server.batches[0]!.lines.length + 1),
      retries: 'batch_missing:1',
    });
  });

  it('asks again in a further batch for what came to nothing', async () => {
    const { server, sweep, ...started } = await sweepWithJudge({ batch: true });
    server.behave({ fate: (id, batch) => (batch === 1 && id.endsWith('000000') ? 'expired' : 'reply') });

    const ended = await started.run();

    expect(ended.code).toBe(0);
    const chunks = server.batches[0]!.lines.length;
    expect(server.batches.map(({ lines }) => lines.length)).toEqual([chunks, 1]);
    expect(started.judgeCosts()).toMatchObject({
      calls: String(chunks + 1),
      retries: 'batch_expired:1',
      unmetered_calls: '0',
      usd: String((chunks * callUsd * 1e6) / 2 / 1e6),
    });
    expect(sweep.summary().judging).toMatchObject({ pending: 0 });
  });
});

it('the fake provider serves a judge in batches: lines left out, refused and failed are asked again or given up', async () => {
  const model = 'gpt-5.4-mini';
  const sweep = await sweepUnderTest({
    roots: 3,
    models: {
      lane: { reply: { text: 'It might be a trombone.' } },
      [model]: { reply: { judge: 'aliases' }, tokens: { input: 100, output: 50 } },
    },
    lanes: [{ id: 'lane' }],
  });
  sweep.change({
    judge: {
      provider: 'openai',
      model,
      baseUrl: sweep.mock.urlOf('openai'),
      apiKeyEnv: 'JUDGE_KEY',
      itemsPerRequest: 1,
      price,
      attempts: 2,
      batch: true,
      batchPoll: { baseSeconds: 1, maxSeconds: 1 },
    },
  });
  sweep.mock.control({ provider: 'openai', batch: { missing: [0], outputErrors: [1], fileErrors: [2] } });

  const ended = await turnsweep(['run', path.join(sweep.folder, 'sweep.yaml'), '--out', sweep.out], {
    env: { JUDGE_KEY: 'test-openai' },
  });

  const items = sweep.summary().judging.items;
  expect(items).toBeGreaterThan(3);
  // The first batch leaves 0 out, gives 1 up with its status 400 and fails 2; the second leaves out the first of its two.
  expect(ended).toMatchObject({ code: 2 });
  expect(sweep.summary().judging).toMatchObject({ judged: items - 3, pending: 3 });
  expect(sweep.costs().find(({ phase }) => phase === 'judge')).toMatchObject({
    calls: String(items + 2),
    retries: 'batch_missing:2 http_400:2 http_500:1',
    // 100 and 50 tokens of each reply, at half the price.
    usd: String(((items - 3) * (100 * 1 + 50 * 2)) / 2 / 1e6),
  });
});

describe('validate', () => {
  it.each([
    ['vllm', 'any', 'provider "vllm" has no batch interface here (openai has); leave "batch" out'],
    ['openai', 'gpt-audio', 'provider "openai" has no batch interface for "gpt-audio" here'],
  ])('refuses batches of %s for %s', async (provider, model, message) => {
    const file = sweepFile(temporaryFolder(), {
      name: 'x',
      benchmark: { kind: 'return', release: 'nowhere' },
      models: [
        { id: 'a', modalities: ['V'], provider: 'vllm', model: 'm', baseUrl: 'http://127.0.0.1:9/v1' },
      ],
      judge: { provider, model, baseUrl: 'http://127.0.0.1:9/v1', batch: true },
    });

    const { code, stderr, stdout } = await turnsweep(['validate', file]);

    expect(code).toBe(1);
    expect(stdout + stderr).toContain(`judge.batch: ${message}`);
  });
});
