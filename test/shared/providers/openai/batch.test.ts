import { describe, expect, it, onTestFinished } from 'vitest';
import type { CallOutcome } from '../../../../shared/domain/outcome.ts';
import type { BatchJob, ChatBatch } from '../../../../shared/ports/chat-batch.ts';
import { createChatBatchFor, createChatCallerFor } from '../../../../shared/providers/registry.ts';
import { type BatchServer, startBatchServer } from '../../../support/batch-server.ts';

const key = 'sk-very-secret';
const model = 'gpt-5.4-mini';

const batchOn = (server: BatchServer): ChatBatch => {
  const batch = createChatBatchFor({ provider: 'openai', model, baseUrl: server.url }, key);
  onTestFinished(() => batch.close());
  return batch;
};
const itemText = (candidate: string) =>
  JSON.stringify({ items: [{ id: 'item-000000', gold: 'red', aliases: [], options: [], candidate }] });
const requestOf = (candidate: string) => ({
  messages: [
    { role: 'system' as const, content: 'Grade "this" – ünïcode\nand lines.' },
    { role: 'user' as const, content: itemText(candidate) },
  ],
  maxTokens: 64,
  reasoningEffort: 'low',
});
const submitted = async (batch: ChatBatch, ids: readonly string[], tag = 'tag'): Promise<BatchJob> => {
  const made = await batch.submit(
    ids.map((id) => batch.encode(id, requestOf(id))),
    tag,
  );
  if ('fault' in made) throw new Error(made.fault.message);
  return made.job;
};
const lookedUntilEnd = async (batch: ChatBatch, id: string) => {
  const states: string[] = [];
  for (;;) {
    const seen = await batch.look(id);
    if ('fault' in seen) throw new Error(seen.fault.message);
    states.push(seen.job.state);
    if (seen.job.state !== 'working') return { states, job: seen.job };
  }
};
const resultsOf = async (batch: ChatBatch, job: BatchJob) => {
  const results: [string, CallOutcome][] = [];
  const { fault } = await batch.results(job, async (id, outcome) => {
    results.push([id, outcome]);
  });
  return { fault, results };
};

describe('a batch of OpenAI', () => {
  it('carries the messages of a call byte by byte, without a stream', async () => {
    const server = await startBatchServer();
    const caller = createChatCallerFor(
      { provider: 'openai', model, baseUrl: server.url, maxInFlight: 1 },
      key,
    );
    onTestFinished(() => caller.close());

    await caller.complete({ ...requestOf('a'), deadlineMs: 10_000 });
    await submitted(batchOn(server), ['chunk-1']);

    const called = server.seen.find(({ path }) => path.endsWith('/chat/completions'))!.body;
    const messagesIn = (text: string) => /"messages":\[.*?\}\]/su.exec(text)![0];
    const upload = server.seen.find(({ path }) => path === '/v1/files')!.body;
    expect(messagesIn(upload)).toBe(
      messagesIn(called).replaceAll('\\"candidate\\":\\"a\\"', '\\"candidate\\":\\"chunk-1\\"'),
    );
    const [line] = server.batches[0]!.lines;
    expect(line).toMatchObject({ custom_id: 'chunk-1', method: 'POST', url: '/v1/chat/completions' });
    const { stream, stream_options: options, messages: _, ...members } = JSON.parse(called);
    expect({ stream, options }).toMatchObject({ stream: true });
    expect(line!.body).toMatchObject(members);
    expect(line!.body.stream).toBeUndefined();
    expect(line!.body.stream_options).toBeUndefined();
  });

  it('is made of an uploaded file with the tag in its metadata, and walks through its states', async () => {
    const server = await startBatchServer();
    const batch = batchOn(server);

    const job = await submitted(batch, ['a', 'b'], 'tag-7');
    const { states } = await lookedUntilEnd(batch, job.id);

    expect(states).toEqual(['working', 'working', 'working', 'ended']);
    expect(server.batches).toMatchObject([
      { metadata: { turnsweep_batch: 'tag-7' }, completionWindow: '24h', endpoint: '/v1/chat/completions' },
    ]);
    expect(new Set(server.seen.map(({ authorization }) => authorization))).toEqual(
      new Set([`Bearer ${key}`]),
    );
    expect(batch).toMatchObject({ requestsAtMost: 50_000, bytesAtMost: 200_000_000, priceMultiplier: 0.5 });
  });

  it('gives each result by its id, in whatever order, and none for what is missing', async () => {
    const fates = {
      good: 'reply',
      gone: 'missing',
      bad: 'http_400',
      late: 'expired',
      cut: 'length',
      ill: 'http_500',
    };
    const server = await startBatchServer({ fate: (id) => fates[id as keyof typeof fates] as 'reply' });
    const batch = batchOn(server);

    const made = await submitted(batch, Object.keys(fates));
    const { job } = await lookedUntilEnd(batch, made.id);
    const { fault, results } = await resultsOf(batch, job);

    expect(fault).toBeNull();
    expect(results.map(([id]) => id)).toEqual(['ill', 'cut', 'good', 'late', 'bad']);
    const by = Object.fromEntries(results);
    expect(by.good).toMatchObject({
      status: 'ok',
      httpStatus: 200,
      usage: { inputTokens: 100, outputTokens: 10 },
    });
    expect(by.bad).toMatchObject({ status: 'failed', kind: 'http_400' });
    expect(by.ill).toMatchObject({ status: 'retry', kind: 'http_500' });
    expect(by.late).toMatchObject({ status: 'retry', kind: 'batch_expired', httpStatus: null });
    expect(by.cut).toMatchObject({ status: 'length' });
  });

  it('is found again by its tag on any page of the list, and not by another', async () => {
    const server = await startBatchServer();
    const batch = batchOn(server);
    for (const tag of ['one', 'two', 'three', 'four', 'five']) await submitted(batch, ['a'], tag);

    expect(await batch.find('one')).toMatchObject({ job: { id: 'batch_1', state: 'working' } });
    expect(await batch.find('four')).toMatchObject({ job: { id: 'batch_4' } });
    expect(await batch.find('six')).toEqual({ job: null });
  });

  it.each([
    ['failed:token_limit_exceeded', { status: 'retry', kind: 'batch_too_large' }],
    ['failed:invalid_json_line', { status: 'retry', kind: 'batch_failed' }],
    ['failed:insufficient_quota', { status: 'stop_lane', kind: 'batch_failed' }],
  ])('that ends as %s says why', async (end, failure) => {
    const server = await startBatchServer({ end: () => end, walk: [] });
    const batch = batchOn(server);

    const { id } = await submitted(batch, ['a']);

    expect(await batch.look(id)).toMatchObject({ job: { state: 'failed', failure, resultFiles: [] } });
  });

  it.each([
    ['expired', 'expired'],
    ['cancelled', 'cancelled'],
    ['cancelling', 'working'],
    ['some_new_state', 'working'],
  ])('in state %s counts as %s', async (status, state) => {
    const server = await startBatchServer({ end: () => status, walk: [] });
    const batch = batchOn(server);

    const { id } = await submitted(batch, ['a']);

    expect(await batch.look(id)).toMatchObject({ job: { state } });
  });
});

describe('a fault while a batch is made', () => {
  it.each<[string, RegExp, number | 'reset' | 'done', boolean, object]>([
    ['an upload that is refused', /files/, 401, false, { status: 'stop_lane', kind: 'http_401' }],
    ['an upload that is cut', /files/, 'reset', false, { status: 'retry', kind: 'connection_reset' }],
    ['a creation that is refused', /batches/, 429, false, { status: 'retry', kind: 'http_429' }],
    ['a creation that is redirected', /batches/, 307, false, { status: 'failed', kind: 'http_307' }],
    ['a creation that fails in the server', /batches/, 500, true, { status: 'retry', kind: 'http_500' }],
    [
      'a creation whose answer is lost',
      /batches/,
      'done',
      true,
      { status: 'retry', kind: 'connection_reset' },
    ],
  ])('%s', async (_, path, said, mayExist, fault) => {
    const server = await startBatchServer({
      intercept: (method, at) => (method === 'POST' && path.test(at) ? said : null),
    });
    const batch = batchOn(server);

    const made = await batch.submit([batch.encode('a', requestOf('a'))], 'tag');

    expect(made).toMatchObject({ fault, mayExist });
    expect(JSON.stringify(made)).not.toContain(key);
    expect(server.count('POST', path)).toBe(1);
  });

  it('a server that is not there made nothing', async () => {
    const batch = createChatBatchFor({ provider: 'openai', model, baseUrl: 'http://127.0.0.1:9/v1' }, key);
    onTestFinished(() => batch.close());

    const made = await batch.submit([batch.encode('a', requestOf('a'))], 'tag');

    expect(made).toMatchObject({ fault: { status: 'retry', kind: 'connect_failed' }, mayExist: false });
  });

  it('a batch that the provider does not know stops', async () => {
    const batch = batchOn(await startBatchServer());

    expect(await batch.look('batch_x')).toMatchObject({ fault: { status: 'stop_lane', kind: 'http_404' } });
  });

  it('results that cannot be fetched are a fault', async () => {
    const server = await startBatchServer({ walk: [] });
    const batch = batchOn(server);
    const { id } = await submitted(batch, ['a']);
    const { job } = await lookedUntilEnd(batch, id);
    server.behave({ intercept: (_, path) => (path.endsWith('/content') ? 'reset' : null) });

    expect(await resultsOf(batch, job)).toMatchObject({ fault: { kind: 'connection_reset' }, results: [] });
  });
});

describe('a judge whose provider has no batch interface', () => {
  it.each([
    ['vllm', 'any'],
    ['openai-compatible', 'any'],
    ['openai', 'gpt-audio'],
  ])('%s, model %s is refused', (provider, name) => {
    expect(() =>
      createChatBatchFor({ provider, model: name, baseUrl: 'http://127.0.0.1:9/v1' }, null),
    ).toThrow(expect.objectContaining({ name: 'UsageWrong' }));
  });
});
