import { createReadStream, existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { describe, expect, it } from 'vitest';
import type { ResolvedRequest } from '../../../../shared/domain/request.ts';
import { createRecordedClient } from '../../../../shared/providers/recorded/client.ts';

const limits = { maxTokens: 64, deadlineMs: 1000 };
const row = (more: object = {}) => ({
  request_id: 'r1',
  status: 'ok',
  raw_text: 'Red',
  error: null,
  ...more,
});
const asked = (requestId = 'r1', history: string[] = []): ResolvedRequest => ({
  requestId,
  messages: [
    ...history.flatMap((text) => [
      { role: 'user' as const, content: [{ type: 'text' as const, text: 'before' }] },
      { role: 'assistant' as const, text },
    ]),
    {
      role: 'user',
      content: [
        { type: 'video', path: 'a.mp4', sha256: null },
        { type: 'text', text: 'Which colour?' },
      ],
    },
  ],
});
const clientOf = (...rows: (object | string)[]) => {
  let loads = 0;
  const client = createRecordedClient({
    origin: 'predictions.jsonl',
    lines: async function* () {
      loads += 1;
      for (const line of rows) yield typeof line === 'string' ? line : JSON.stringify(line);
    },
  });
  return { call: (request = asked()) => client.call(request, limits), loads: () => loads };
};

describe('recorded replies', () => {
  it('carry text, ids, usage and counts of the recording', async () => {
    const client = clientOf(
      row({
        finish_reason: 'stop',
        model: 'served',
        response_id: 'id-1',
        usage: { prompt_tokens: 2337, completion_tokens: 2, prompt_tokens_details: { audio_tokens: 72 } },
        consumed_media_counts: { audio: 1, video: 2 },
      }),
    );

    expect(await client.call()).toEqual({
      status: 'ok',
      text: 'Red',
      httpStatus: null,
      responseId: 'id-1',
      servedModel: 'served',
      finishReason: 'stop',
      usage: {
        inputTokens: 2337,
        outputTokens: 2,
        cachedInputTokens: null,
        reasoningTokens: null,
        audioInputTokens: 72,
        videoInputTokens: null,
        imageInputTokens: null,
        textInputTokens: null,
      },
      consumed: { audio: 1, video: 2 },
    });
  });

  it('take input tokens alone, and count the clips of the request where the recording does not', async () => {
    expect(await clientOf(row({ input_tokens: 40 })).call()).toMatchObject({
      usage: { inputTokens: 40, outputTokens: null },
      consumed: { audio: 0, video: 1 },
    });
    expect(await clientOf(row({ consumed_media_counts: { audio: 1 } })).call()).toMatchObject({
      consumed: { audio: 1, video: 0 },
    });
  });

  it.each([
    [
      'an error with a name of ours',
      { status: 'error', error: 'length_truncated' },
      'failed',
      'length_truncated',
    ],
    ['a status of HTTP', { status: 'error', error: 'http_400' }, 'failed', 'http_400'],
    [
      'another finish',
      { status: 'error', error: 'finish_content_filter' },
      'failed',
      'finish_content_filter',
    ],
    ['a refusal', { status: 'error', error: 'provider_refusal' }, 'refused', 'provider_refusal'],
    ['another error', { status: 'error', error: 'OOM: Killed' }, 'failed', 'recorded_oom_killed'],
    ['an error object', { status: 'error', error: { type: 'X' } }, 'failed', 'recorded_type_x'],
    ['an error without name', { status: 'error', error: null }, 'failed', 'recorded_error'],
    ['a blocked request', { status: 'blocked', raw_text: null }, 'failed', 'blocked'],
    ['an ok without text', { raw_text: ' ' }, 'failed', 'empty_response'],
    ['an ok that was cut', { finish_reason: 'length' }, 'failed', 'length_truncated'],
  ])('%s', async (_name, more, status, kind) => {
    expect(await clientOf(row(more)).call()).toMatchObject({ status, kind });
  });

  it('are never guessed', async () => {
    expect(await clientOf(row()).call(asked('r2'))).toMatchObject({
      status: 'failed',
      kind: 'recording_missing',
      message: 'predictions.jsonl has no reply to r2',
    });
  });

  it('belong to the history that they were given after', async () => {
    const client = clientOf(row({ native_history: [{ request_id: 'r0', raw_text: 'Blue' }] }));

    expect(await client.call(asked('r1', ['Blue']))).toMatchObject({ status: 'ok' });
    expect(await client.call(asked('r1', ['Grey']))).toMatchObject({ kind: 'recording_missing' });
    expect(await client.call(asked('r1'))).toMatchObject({ kind: 'recording_missing' });
  });

  it('are read once, at the first call', async () => {
    const client = clientOf('', row(), row({ request_id: 'r2', raw_text: 'Blue' }), row());

    expect(client.loads()).toBe(0);
    const outcomes = await Promise.all([client.call(), client.call(asked('r2')), client.call()]);

    expect(outcomes.map((outcome) => outcome.status === 'ok' && outcome.text)).toEqual([
      'Red',
      'Blue',
      'Red',
    ]);
    expect(client.loads()).toBe(1);
  });

  it.each([
    ['two different replies', [row(), row({ raw_text: 'Blue' })], 'predictions.jsonl:2'],
    ['a reply and an error', [row(), row({ status: 'error', error: 'http_500' })], 'predictions.jsonl:2'],
    ['a line that is not JSON', [row(), '', '{"request_id":'], 'predictions.jsonl:3'],
    ['a row without status', [{ request_id: 'r1' }], 'predictions.jsonl:1'],
  ])('%s in a recording are an error with its place', async (_name, rows, place) => {
    await expect(clientOf(...rows).call()).rejects.toMatchObject({
      name: 'BenchmarkInvalid',
      message: expect.stringContaining(place),
    });
  });
});

const release = resolve(import.meta.dirname, '../../../../../shared/reference/return-release');

describe.runIf(existsSync(release))('recordings of the release (needs ../shared/reference)', () => {
  it.each([
    'examples/current_validation/qwen3_vl/predictions.jsonl',
    'examples/current_validation/qwen38_api/predictions.jsonl',
    'examples/current_validation/stepaudio_api/predictions.jsonl',
    'examples/recorded_outputs/qwen38_api/predictions.jsonl',
  ])('%s answers each of its requests with its own text', async (file) => {
    const path = resolve(release, file);
    const rows = readFileSync(path, 'utf8')
      .trim()
      .split('\n')
      .map(
        (line) =>
          JSON.parse(line) as {
            request_id: string;
            raw_text: string;
            native_history: { raw_text: string }[];
          },
      );
    const client = createRecordedClient({
      origin: file,
      lines: () => createInterface({ input: createReadStream(path) }),
    });

    const outcomes = await Promise.all(
      rows.map(({ request_id, native_history }) =>
        client.call(
          asked(
            request_id,
            native_history.map(({ raw_text }) => raw_text),
          ),
          limits,
        ),
      ),
    );

    expect(outcomes.map((outcome) => outcome.status === 'ok' && outcome.text)).toEqual(
      rows.map(({ raw_text }) => raw_text),
    );
  });
});
