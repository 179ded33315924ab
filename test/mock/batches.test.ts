import OpenAI from 'openai';
import { describe, expect, it } from 'vitest';
import type { ControlInput } from '../../mock/control.ts';
import type { MockProvider } from '../../mock/server.ts';
import { startedMock } from './dialects/requests.ts';

type Row = {
  custom_id: string;
  response: {
    status_code: number;
    body: { choices?: { message: { content: string } }[]; error?: object };
  } | null;
  error: { code: string } | null;
};

const clientOf = (server: MockProvider) =>
  new OpenAI({ apiKey: 'test-openai', baseURL: server.urlOf('openai'), maxRetries: 0 });

const line = (id: string, more: object = {}) => ({
  custom_id: id,
  method: 'POST',
  url: '/v1/chat/completions',
  body: { model: 'gpt-5.4-mini', messages: [{ role: 'user', content: `Judge ${id}.` }] },
  ...more,
});

const submitted = async (client: OpenAI, lines: readonly object[] | string) => {
  const content = typeof lines === 'string' ? lines : lines.map((row) => `${JSON.stringify(row)}\n`).join('');
  const file = await client.files.create({ file: new File([content], 'in.jsonl'), purpose: 'batch' });
  const batch = await client.batches.create({
    input_file_id: file.id,
    endpoint: '/v1/chat/completions',
    completion_window: '24h',
    metadata: { run: 'r1' },
  });
  return batch;
};

/** Looks until the batch has ended; the states on the way. */
const watched = async (client: OpenAI, id: string) => {
  const states: string[] = [];
  for (;;) {
    const batch = await client.batches.retrieve(id);
    states.push(batch.status);
    if (['completed', 'failed', 'expired', 'cancelled'].includes(batch.status)) return { states, batch };
  }
};

const rowsOf = async (client: OpenAI, id: string | null | undefined): Promise<Row[]> => {
  if (!id) return [];
  const text = await (await client.files.content(id)).text();
  return text
    .trim()
    .split('\n')
    .map((row) => JSON.parse(row) as Row);
};

const ran = async (plan: ControlInput['batch'], ids = ['a', 'b', 'c', 'd']) => {
  const server = await startedMock({
    scenario: { models: { 'gpt-5.4-mini': { reply: { echo: true } } }, batch: plan },
  });
  const client = clientOf(server);
  const first = await submitted(
    client,
    ids.map((id) => line(id)),
  );
  const { states, batch } = await watched(client, first.id);
  return {
    server,
    first,
    states,
    batch,
    output: await rowsOf(client, batch.output_file_id),
    errors: await rowsOf(client, batch.error_file_id),
  };
};

describe('a batch of OpenAI', () => {
  it('walks its states and answers every line, in another order', async () => {
    const { first, states, batch, output, server } = await ran(undefined);

    expect([first.status, ...states]).toEqual(['validating', 'in_progress', 'finalizing', 'completed']);
    expect(output.map(({ custom_id: id }) => id)).toEqual(['d', 'c', 'b', 'a']);
    expect(output.map(({ response }) => response!.body.choices![0]!.message.content)).toEqual([
      'Judge d.',
      'Judge c.',
      'Judge b.',
      'Judge a.',
    ]);
    expect(batch).toMatchObject({
      request_counts: { total: 4, completed: 4, failed: 0 },
      metadata: { run: 'r1' },
      error_file_id: null,
    });
    expect(Object.values(server.stats().repliesByFingerprint)).toEqual([1, 1, 1, 1]);
  });

  it('may forget a line, refuse one in the output file and fail one in the error file', async () => {
    const { output, errors, batch } = await ran({ missing: [0], outputErrors: [1], fileErrors: [2] });

    expect(output.map(({ custom_id: id, response }) => [id, response!.status_code])).toEqual([
      ['d', 200],
      ['b', 400],
    ]);
    expect(output[1]!.response!.body.error).toBeDefined();
    expect(errors).toMatchObject([{ custom_id: 'c', response: null, error: { code: 'server_error' } }]);
    expect(batch.request_counts).toEqual({ total: 4, completed: 1, failed: 3 });
  });

  it('may expire with the lines that were done', async () => {
    const { states, output, errors } = await ran({ expireAfter: 2, order: 'input' });

    expect(states.at(-1)).toBe('expired');
    expect(output.map(({ custom_id: id }) => id)).toEqual(['a', 'b']);
    expect(errors.map(({ custom_id: id, error }) => [id, error!.code])).toEqual([
      ['c', 'batch_expired'],
      ['d', 'batch_expired'],
    ]);
  });

  it('may take its time, be found again and be cancelled', async () => {
    const server = await startedMock();
    server.control({ provider: 'openai', batch: { pollsPerState: 2 } });
    const client = clientOf(server);
    const { id } = await submitted(client, [line('a')]);

    const seen = [];
    for (let look = 0; look < 4; look += 1) seen.push((await client.batches.retrieve(id)).status);
    const listed = await client.batches.list();
    const cancelled = await client.batches.cancel(id);

    expect(seen).toEqual(['validating', 'in_progress', 'in_progress', 'finalizing']);
    expect(listed.data).toMatchObject([{ id, metadata: { run: 'r1' } }]);
    expect(cancelled.status).toBe('cancelling');
    expect((await client.batches.retrieve(id)).status).toBe('cancelled');
  });

  it.each([
    ['broken JSON', '{"custom_id":\n', /JSON/],
    ['an id twice', [line('a'), line('a')], /duplicate/],
    ['another address', [line('a', { url: '/v1/responses' })], /URL/],
    ['nothing', '\n', /empty/],
  ])('fails for %s', async (_name, lines, message) => {
    const client = clientOf(await startedMock());

    const { batch } = await watched(client, (await submitted(client, lines)).id);

    expect(batch.status).toBe('failed');
    expect(batch.errors!.data![0]!.message).toMatch(message);
  });

  it('puts a line that a call would refuse, or a fault met, into the error file', async () => {
    const server = await startedMock({
      scenario: {
        models: {
          'gpt-5.4-mini': {
            reply: { echo: true },
            faults: [{ kind: 'http_500', firstAttempts: 1, match: { lastText: 'Judge b' } }],
          },
        },
      },
    });
    const client = clientOf(server);
    const refused = line('c', { body: { ...line('c').body, temperature: 0 } });

    const { batch } = await watched(client, (await submitted(client, [line('a'), line('b'), refused])).id);

    const errors = await rowsOf(client, batch.error_file_id);
    expect((await rowsOf(client, batch.output_file_id)).map(({ custom_id: id }) => id)).toEqual(['a']);
    expect(errors.map(({ custom_id: id, response }) => [id, response!.status_code])).toEqual([
      ['b', 500],
      ['c', 400],
    ]);
  });

  it('needs a file for batches, the window of a day and the key', async () => {
    const server = await startedMock();
    const client = clientOf(server);
    const create = (more: object) =>
      client.batches.create({
        input_file_id: 'file-none',
        endpoint: '/v1/chat/completions',
        completion_window: '24h',
        ...more,
      });

    await expect(create({})).rejects.toMatchObject({ status: 404 });
    await expect(
      client.files.create({ file: new File(['{}'], 'in.txt'), purpose: 'batch' }),
    ).rejects.toMatchObject({ status: 400 });
    const wrong = new OpenAI({ apiKey: 'wrong', baseURL: server.urlOf('openai'), maxRetries: 0 });
    await expect(wrong.batches.list()).rejects.toMatchObject({ status: 401 });
  });
});
