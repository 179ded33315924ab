import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import type { ScenarioInput } from '../../../../mock/scenario.ts';
import { startMockProvider } from '../../../../mock/server.ts';
import { asTheyAre } from '../../../../shared/domain/media.ts';
import type { CallOutcome } from '../../../../shared/domain/outcome.ts';
import type { ResolvedRequest } from '../../../../shared/domain/request.ts';
import type { ChatCallerOptions } from '../../../../shared/providers/chat-completions/client.ts';
import { createChatCaller, createChatClient } from '../../../../shared/providers/chat-completions/client.ts';
import { commonProfile } from '../../../../shared/providers/openai-compatible/provider.ts';
import { chunk, lastChunk, startRawServer, streamHead } from '../raw-server.ts';

const opened: { close(): Promise<void> }[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((item) => item.close()));
});
const opening = <T extends { close(): Promise<void> }>(item: T): T => {
  opened.push(item);
  return item;
};

type ModelInput = ScenarioInput['models'][string];
const mock = async (model: Partial<ModelInput> = {}) =>
  opening(
    await startMockProvider({ scenario: { models: { m: { reply: { text: 'A red light' }, ...model } } } }),
  );
const optionsFor = (baseUrl: string, options: Partial<ChatCallerOptions> = {}): ChatCallerOptions => ({
  baseUrl,
  apiKey: 'sk-secret',
  model: 'm',
  maxInFlight: 4,
  profile: commonProfile,
  ...options,
});
const clips = {
  load: async ({ type, path }: { type: string; path: string }) => [
    {
      type: 'inline' as const,
      mime: type === 'audio' ? 'audio/wav' : 'video/mp4',
      base64: Buffer.from(`content of ${path}`).toString('base64'),
    },
  ],
};
const clientOf = (baseUrl: string, options: Partial<ChatCallerOptions> = {}) =>
  opening(createChatClient({ ...optionsFor(baseUrl, options), forms: asTheyAre, clips }));
const callerOf = (baseUrl: string, options: Partial<ChatCallerOptions> = {}) =>
  opening(createChatCaller(optionsFor(baseUrl, options)));
const question = (text = 'Which colour?'): ResolvedRequest => ({
  requestId: 'r1',
  messages: [
    {
      role: 'user',
      content: [
        { type: 'audio', path: 'a.wav', sha256: null },
        { type: 'video', path: 'a.mp4', sha256: null },
        { type: 'text', text },
      ],
    },
  ],
});
const limits = { maxTokens: 64, deadlineMs: 20_000 };
const kindOf = (outcome: CallOutcome) => ('kind' in outcome ? outcome.kind : null);

describe('a call', () => {
  it.each([true, false])('gives the reply and what it consumed (stream: %s)', async (stream) => {
    const server = await mock({ tokens: { input: 1305, output: 9 } });
    const client = clientOf(server.url, { settings: { stream } });

    const outcome = await client.call(question(), limits);

    expect(outcome).toMatchObject({
      status: 'ok',
      text: 'A red light',
      finishReason: 'stop',
      httpStatus: 200,
      servedModel: 'm',
      responseId: expect.stringMatching(/^mock-/),
      consumed: { audio: 1, video: 1 },
      usage: { inputTokens: 1305, outputTokens: 9, videoInputTokens: 640, reasoningTokens: null },
    });
  });

  it('carries the key, and no header at all without one', async () => {
    const server = opening(await startRawServer((socket) => socket.destroy()));

    await clientOf(server.url).call(question(), limits);
    await clientOf(server.url, { apiKey: null }).call(question(), limits);

    expect(server.requests[0]).toMatch(/\r\nauthorization: Bearer sk-secret\r\n/);
    expect(server.requests[1]).not.toMatch(/authorization/i);
  });

  it.each(['', 'sk secret', 'sk-secret\n'])('is not made with the key %j', (apiKey) => {
    expect(() => createChatCaller(optionsFor('http://127.0.0.1:1/v1', { apiKey }))).toThrow(
      expect.objectContaining({ name: 'UsageWrong', message: expect.not.stringContaining('secret') }),
    );
  });

  it('has 300 calls in flight where it may', async () => {
    const server = await mock({ reply: { echo: true }, latencyMs: 2000 });
    const client = clientOf(server.url, { maxInFlight: 300 });

    const outcomes = await Promise.all(
      Array.from({ length: 300 }, (_, index) => client.call(question(`number ${index}`), limits)),
    );

    expect(outcomes.map((outcome) => outcome.status === 'ok' && outcome.text)).toEqual(
      Array.from({ length: 300 }, (_, index) => `number ${index}`),
    );
    expect(server.stats()).toMatchObject({ requests: 300, replies: 300, peakInFlight: 300 });
  });

  it('rejects when the caller aborts', async () => {
    const server = await mock({ faults: [{ kind: 'hang', rate: 1 }] });
    const abort = new AbortController();

    const running = clientOf(server.url).call(question(), { ...limits, signal: abort.signal });
    setTimeout(() => abort.abort(new Error('interrupted')), 30);

    await expect(running).rejects.toThrow('interrupted');
  });
});

describe('text calls', () => {
  it('take a system message, an effort and a format', async () => {
    const server = opening(await startRawServer((socket) => socket.destroy()));

    await callerOf(server.url, { settings: { stream: false } }).complete({
      messages: [
        { role: 'system', content: 'You judge.' },
        { role: 'user', content: '{"items":[]}' },
      ],
      maxTokens: 512,
      deadlineMs: 5000,
      reasoningEffort: 'medium',
      responseFormat: { type: 'json_object' },
    });

    expect(JSON.parse(server.requests[0]!.split('\r\n\r\n')[1]!)).toEqual({
      model: 'm',
      max_tokens: 512,
      reasoning_effort: 'medium',
      response_format: { type: 'json_object' },
      messages: [
        { role: 'system', content: 'You judge.' },
        { role: 'user', content: '{"items":[]}' },
      ],
    });
  });

  it('come back as outcomes', async () => {
    const server = await mock();

    const outcome = await callerOf(server.url).complete({
      messages: [{ role: 'user', content: 'x' }],
      ...limits,
    });

    expect(outcome).toMatchObject({ status: 'ok', text: 'A red light' });
  });
});

describe('faults of a real server', () => {
  const faults: [kind: string, status: string, errorKind: string | null, ofDocument?: string][] = [
    ['http_400', 'failed', 'http_400'],
    ['http_401', 'stop_lane', 'http_401'],
    ['http_402', 'stop_lane', 'http_402'],
    ['http_403', 'stop_lane', 'http_403'],
    ['http_404', 'stop_lane', 'http_404'],
    ['http_408', 'retry', 'http_408'],
    ['http_409', 'retry', 'http_409'],
    ['http_413', 'failed', 'http_413'],
    ['http_429', 'retry', 'http_429'],
    ['http_451', 'refused', 'http_451'],
    ['http_500', 'retry', 'http_500'],
    ['http_503', 'retry', 'http_503'],
    ['http_529', 'retry', 'http_529'],
    ['reset', 'retry', 'connection_reset'],
    ['hang', 'retry', 'timeout'],
    ['cut_stream', 'retry', 'connection_reset'],
    ['no_finish_reason', 'retry', 'incomplete_stream'],
    ['empty', 'retry', 'empty_response'],
    ['length', 'length', null],
    ['content_filter', 'refused', 'finish_content_filter'],
    ['refusal', 'refused', 'provider_refusal'],
    ['bad_json', 'retry', 'invalid_response'],
    ['html_200', 'retry', 'invalid_response'],
    ['error_200', 'retry', 'http_500'],
  ];

  it.each(faults.flatMap((fault) => [true, false].map((stream) => [...fault.slice(0, 3), stream] as const)))(
    '%s is %s %s (stream: %s), and the next call succeeds',
    async (kind, status, errorKind, stream) => {
      const server = await mock({ faults: [{ kind: kind as 'reset', firstAttempts: 1 }] });
      const client = clientOf(server.url, { settings: { stream: stream as boolean } });

      const first = await client.call(question(), { ...limits, deadlineMs: kind === 'hang' ? 300 : 20_000 });
      const second = await client.call(question(), limits);

      expect([first.status, kindOf(first)]).toEqual([status, errorKind]);
      expect(second).toMatchObject({ status: 'ok', text: 'A red light' });
      expect(server.stats()).toMatchObject({ requests: 2, replies: 1, byFault: { [kind as string]: 1 } });
    },
  );

  it('carries the wait that a provider asks for', async () => {
    const server = await mock({ faults: [{ kind: 'http_429', rate: 1, retryAfterSeconds: 1.5 }] });

    const outcome = await clientOf(server.url).call(question(), limits);

    expect(outcome).toMatchObject({ status: 'retry', retryAfterSeconds: 1.5 });
  });

  it.each([
    ['http_429', 'insufficient_quota', 'stop_lane'],
    ['http_400', 'content_policy_violation', 'refused'],
  ] as const)('tells %s %s apart: %s', async (kind, code, status) => {
    const server = await mock({ faults: [{ kind, code, rate: 1 }] });

    expect((await clientOf(server.url).call(question(), limits)).status).toBe(status);
  });

  it('knows that a model does not exist', async () => {
    const server = await mock();

    const outcome = await clientOf(server.url, { model: 'other' }).call(question(), limits);

    expect(outcome).toMatchObject({
      status: 'stop_lane',
      kind: 'http_404',
      message: expect.stringContaining('other'),
    });
  });

  it('ends a stream that falls silent', async () => {
    const server = opening(
      await startRawServer(
        (socket) => void socket.write(Buffer.concat([Buffer.from(streamHead), chunk(': hi\n\n')])),
      ),
    );

    const outcome = await clientOf(server.url, { idleTimeoutMs: 60 }).call(question(), limits);

    expect(outcome).toMatchObject({ status: 'retry', kind: 'timeout', httpStatus: 200 });
  });

  it('ends a reply that grows without end', async () => {
    const server = opening(
      await startRawServer((socket) => {
        socket.write(streamHead);
        const more = () => {
          if (!socket.destroyed) socket.write(chunk(`: ${'x'.repeat(5000)}\n\n`), () => setImmediate(more));
        };
        more();
      }),
    );

    const outcome = await clientOf(server.url, { maxReplyBytes: 50_000 }).call(question(), limits);

    expect(outcome).toMatchObject({ status: 'failed', kind: 'invalid_response' });
  });
});

describe('pieces on the wire', () => {
  const bytes = Buffer.from(
    [
      { choices: [{ index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null }] },
      { choices: [{ index: 0, delta: { content: 'A red light, ' }, finish_reason: null }] },
      { choices: [{ index: 0, delta: { content: 'then 蓝 🔵.' }, finish_reason: null }] },
      { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] },
      { choices: [], usage: { prompt_tokens: 1305, completion_tokens: 9 } },
    ]
      .map((event) => `data: ${JSON.stringify(event)}\n\n`)
      .concat('data: [DONE]\n\n')
      .join(''),
  );
  const expected = {
    status: 'ok',
    text: 'A red light, then 蓝 🔵.',
    usage: { inputTokens: 1305, outputTokens: 9 },
  };
  const piecesOf = (cuts: number[]): Buffer[] => {
    const ends = [...new Set(cuts.map((cut) => cut % bytes.length)), bytes.length].sort((a, b) => a - b);
    return ends
      .map((end, index) => bytes.subarray(ends[index - 1] ?? 0, end))
      .filter((piece) => piece.length > 0);
  };

  it('may be single bytes', async () => {
    const server = opening(
      await startRawServer(async (socket) => {
        socket.write(streamHead);
        for (const byte of bytes) {
          socket.write(chunk(Buffer.of(byte)));
          await new Promise(setImmediate);
        }
        socket.write(lastChunk);
      }),
    );

    expect(await clientOf(server.url).call(question(), limits)).toMatchObject(expected);
  });

  it('do not change the outcome, wherever they are cut', async () => {
    let pieces: Buffer[] = [];
    const server = opening(
      await startRawServer(async (socket) => {
        socket.write(streamHead);
        for (const piece of pieces) {
          socket.write(chunk(piece));
          await new Promise(setImmediate);
        }
        socket.write(lastChunk);
      }),
    );
    const client = clientOf(server.url, { maxInFlight: 1 });

    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(), { maxLength: 12 }), async (cuts) => {
        pieces = piecesOf(cuts);
        expect(await client.call(question(), limits)).toMatchObject(expected);
      }),
      { numRuns: 60 },
    );
  });

  it('are no reply when the connection ends between them, however it ends', async () => {
    let cut = 0;
    let regular = false;
    const server = opening(
      await startRawServer((socket) => {
        socket.write(streamHead);
        if (cut > 0) socket.write(chunk(bytes.subarray(0, cut)));
        if (regular) socket.end(lastChunk);
        else socket.end();
      }),
    );
    const client = clientOf(server.url);
    const finished = bytes.indexOf('"stop"');
    const doneAt = bytes.indexOf('[DONE]');

    await fc.assert(
      fc.asyncProperty(fc.nat({ max: bytes.length - 1 }), fc.boolean(), async (at, isRegular) => {
        [cut, regular] = [at, isRegular];

        const outcome = await client.call(question(), limits);

        // What counts as complete: a regular end after the finish reason, or [DONE].
        if (outcome.status === 'ok') {
          expect(outcome.text).toBe(expected.text);
          expect(cut).toBeGreaterThan(regular ? finished : doneAt);
        } else expect(outcome.status).toBe('retry');
      }),
      { numRuns: 150 },
    );
  });
});
