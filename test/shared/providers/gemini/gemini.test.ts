import { describe, expect, it } from 'vitest';
import { misfits } from '../../../../shared/domain/capabilities.ts';
import { unknownUsage } from '../../../../shared/domain/outcome.ts';
import { createGeminiCaller } from '../../../../shared/providers/gemini/client.ts';
import { providerOf } from '../../../../shared/providers/registry.ts';
import {
  answering,
  asking,
  base64Of,
  bodyOfJudge,
  callLane,
  endOf,
  inline,
  refusal,
  type Served,
} from '../lane-under-test.ts';
import { chunk, lastChunk, pause, startRawServer, streamHead, whole } from '../raw-server.ts';

const provider = 'gemini';
const flash = 'gemini-3.8-flash';

const event = (document: unknown): string => `data: ${JSON.stringify(document)}\r\n\r\n`;
const said = (parts: unknown[], more: Record<string, unknown> = {}, usage?: Record<string, unknown>) => ({
  candidates: [{ content: { role: 'model', parts }, index: 0, ...more }],
  ...(usage ? { usageMetadata: usage } : {}),
  modelVersion: 'gemini-3.8-flash-001',
  responseId: 'g-1',
});
const usageAfter = (candidatesTokenCount?: number) => ({
  promptTokenCount: 700,
  candidatesTokenCount,
  thoughtsTokenCount: 6,
  cachedContentTokenCount: 100,
  totalTokenCount: 706 + (candidatesTokenCount ?? 0),
  promptTokensDetails: [
    { modality: 'TEXT', tokenCount: 20 },
    { modality: 'VIDEO', tokenCount: 600 },
    { modality: 'AUDIO', tokenCount: 50 },
    { modality: 'AUDIO', tokenCount: 30 },
  ],
});
const goodEvents = [
  event(said([{ text: 'Let me see.', thought: true }], {}, usageAfter())),
  event(said([{ text: 'A bell, ' }], {}, usageAfter(3))),
  event(
    said(
      [{ text: 'dann 蓝 🔵.' }, { text: '', thoughtSignature: 'c2ln' }],
      { finishReason: 'STOP' },
      usageAfter(8),
    ),
  ),
];
const sse = (events: readonly string[]): Served => ({ body: events.join(''), type: 'text/event-stream' });
const fault = (status: number, name: string, details: unknown[] = [], message = 'fake: no'): Served =>
  refusal(status, { code: status, message, status: name, details });
const ended = async (reply: Served, more: Partial<Parameters<typeof callLane>[0]> = {}) =>
  (await callLane({ provider, model: flash, reply, ...more })).outcome;

describe('requests', () => {
  it('have media as bare base64, the rate on the video, and earlier replies as turns of the model', async () => {
    const { body, head, wanted } = await callLane({
      provider,
      model: flash,
      settings: { temperature: 0, topP: 0.5, seed: 7, fps: 2, videoMaxSide: 512 },
      messages: [
        asking({ video: 'a.mp4' }, { audio: 'a.wav' }, { text: 'What "happens"?' }),
        answering('A door\nopens.'),
        asking({ text: 'And then?' }, { audio: 'b.mp3' }),
      ],
      clips: {
        'a.mp4': inline('video/mp4', 'picture'),
        'a.wav': inline('audio/wav', 'sound'),
        'b.mp3': inline('audio/mpeg', 'more sound'),
      },
    });

    expect(head).toMatch(/^POST \/v1\/models\/gemini-3\.8-flash:streamGenerateContent\?alt=sse HTTP/);
    expect(head).toMatch(/\r\nx-goog-api-key: test-gemini\r\n/);
    expect(head.split('\r\n')[0]).not.toContain('test-gemini');
    expect(body).toEqual({
      contents: [
        {
          role: 'user',
          parts: [
            { inlineData: { mimeType: 'video/mp4', data: base64Of('picture') }, videoMetadata: { fps: 2 } },
            { inlineData: { mimeType: 'audio/wav', data: base64Of('sound') } },
            { text: 'What "happens"?' },
          ],
        },
        { role: 'model', parts: [{ text: 'A door\nopens.' }] },
        {
          role: 'user',
          parts: [
            { text: 'And then?' },
            { inlineData: { mimeType: 'audio/mp3', data: base64Of('more sound') } },
          ],
        },
      ],
      generationConfig: {
        temperature: 0,
        topP: 0.5,
        seed: 7,
        maxOutputTokens: 256,
        thinkingConfig: { thinkingLevel: 'LOW' },
      },
      safetySettings: [
        { category: 'HARM_CATEGORY_HARASSMENT', threshold: 'BLOCK_NONE' },
        { category: 'HARM_CATEGORY_HATE_SPEECH', threshold: 'BLOCK_NONE' },
        { category: 'HARM_CATEGORY_SEXUALLY_EXPLICIT', threshold: 'BLOCK_NONE' },
        { category: 'HARM_CATEGORY_DANGEROUS_CONTENT', threshold: 'BLOCK_NONE' },
      ],
    });
    expect(wanted).toEqual({
      'a.mp4': { form: { kind: 'video', maxSide: 512, fps: 2 }, inlineBytesAtMost: null },
      'a.wav': { form: { kind: 'wav' }, inlineBytesAtMost: null },
      'b.mp3': { form: { kind: 'wav' }, inlineBytesAtMost: null },
    });
  });

  it('go to another method where no stream is wanted', async () => {
    const { head } = await callLane({ provider, model: flash, settings: { stream: false } });

    expect(head).toMatch(/^POST \/v1\/models\/gemini-3\.8-flash:generateContent HTTP/);
  });

  it.each([
    [flash, {}, { thinkingLevel: 'LOW' }],
    ['gemini-3.6-flash', { reasoningEffort: 'minimal' }, { thinkingLevel: 'MINIMAL' }],
    ['gemini-3.1-pro-preview', { reasoningEffort: 'high' }, { thinkingLevel: 'HIGH' }],
    ['gemini-2.5-flash', {}, { thinkingBudget: 0 }],
    ['gemini-2.5-flash', { thinking: true }, { thinkingBudget: -1 }],
    ['gemini-2.5-flash', { reasoningEffort: 'medium' }, { thinkingBudget: 8192 }],
    ['gemini-2.5-pro', { thinking: false }, { thinkingBudget: 128 }],
  ])('of %s with %j say how much to think', async (model, settings, thinkingConfig) => {
    const { body } = await callLane({ provider, model, settings });

    expect(body.generationConfig).toEqual({ maxOutputTokens: 256, thinkingConfig });
  });

  it('of a judge have their effort and system text', async () => {
    const effort = await bodyOfJudge(provider, flash, {
      maxTokens: 512,
      content: 'Judge it.',
      reasoningEffort: 'medium',
    });
    const server = await startRawServer((socket) => socket.destroy());
    const caller = createGeminiCaller({ baseUrl: server.url, apiKey: 'k', model: flash, maxInFlight: 1 });
    await caller.complete({
      messages: [
        { role: 'system', content: 'You judge.' },
        { role: 'user', content: 'Judge it.' },
      ],
      maxTokens: 8,
      deadlineMs: 5000,
    });
    await caller.close();
    await server.close();

    expect(effort.generationConfig).toEqual({
      maxOutputTokens: 512,
      thinkingConfig: { thinkingLevel: 'MEDIUM' },
    });
    expect(JSON.parse(server.requests[0]!.split('\r\n\r\n')[1]!)).toMatchObject({
      systemInstruction: { parts: [{ text: 'You judge.' }] },
      contents: [{ role: 'user', parts: [{ text: 'Judge it.' }] }],
    });
  });

  it('are not sent where they are larger than the provider takes', async () => {
    const { outcome, head } = await callLane({
      provider,
      model: flash,
      messages: [asking({ video: 'a.mp4' }, { text: 'What happens?' })],
      clips: { 'a.mp4': { type: 'inline', mime: 'video/mp4', base64: 'A'.repeat(20_000_000) } },
    });

    expect(outcome).toMatchObject({ status: 'failed', kind: 'request_too_large', httpStatus: null });
    expect(head).toBe('');
  });

  it.each([
    [{ type: 'inline', mime: 'audio/wav', base64: 'data:audio/wav;base64,AAAA' } as const],
    [[inline('audio/wav', 'a'), inline('audio/wav', 'b')]],
  ])('refuse the clip %j', async (clip) => {
    await expect(
      callLane({ provider, model: flash, messages: [asking({ audio: 'a.wav' })], clips: { 'a.wav': clip } }),
    ).rejects.toMatchObject({ name: 'ContractViolated', message: expect.stringContaining('a.wav') });
  });
});

describe('replies', () => {
  it('have their text without thoughts, and the last of the running totals', async () => {
    expect(await ended(sse(goodEvents))).toEqual({
      status: 'ok',
      text: 'A bell, dann 蓝 🔵.',
      finishReason: 'STOP',
      httpStatus: 200,
      responseId: 'g-1',
      servedModel: 'gemini-3.8-flash-001',
      consumed: { audio: 0, video: 0 },
      usage: {
        inputTokens: 700,
        outputTokens: 14,
        cachedInputTokens: 100,
        reasoningTokens: 6,
        audioInputTokens: 80,
        videoInputTokens: 600,
        imageInputTokens: null,
        textInputTokens: 20,
      },
    });
  });

  it('may be one document', async () => {
    const reply = { body: JSON.stringify(said([{ text: 'A bell.' }], { finishReason: 'STOP' })) };

    expect(await ended(reply, { settings: { stream: false } })).toMatchObject({
      status: 'ok',
      text: 'A bell.',
      usage: unknownUsage,
    });
  });

  it.each([
    [{ promptTokenCount: 5, thoughtsTokenCount: 9, totalTokenCount: 14 }, 5, 9, 9],
    [{ promptTokenCount: 5, candidatesTokenCount: 2, totalTokenCount: 7 }, 5, 2, null],
    [{ promptTokenCount: 5, totalTokenCount: 5 }, 5, 0, null],
    [{ promptTokenCount: -1, candidatesTokenCount: '2', totalTokenCount: 7.5 }, null, null, null],
  ])('count %j', async (counts, inputTokens, outputTokens, reasoningTokens) => {
    const outcome = await ended(sse([event(said([{ text: 'A' }], { finishReason: 'STOP' }, counts))]));

    expect(outcome.usage).toEqual({ ...unknownUsage, inputTokens, outputTokens, reasoningTokens });
  });

  it.each([
    ['MAX_TOKENS', 'length', null],
    ['SAFETY', 'refused', 'finish_content_filter'],
    ['PROHIBITED_CONTENT', 'refused', 'finish_content_filter'],
    ['BLOCKLIST', 'refused', 'finish_content_filter'],
    ['SPII', 'refused', 'finish_content_filter'],
    ['RECITATION', 'refused', 'finish_content_filter'],
    ['OTHER', 'failed', 'finish_other'],
    ['LANGUAGE', 'failed', 'finish_language'],
    ['MALFORMED_FUNCTION_CALL', 'failed', 'finish_malformed_function_call'],
  ])('that end with %s are %s', async (finishReason, status, kind) => {
    const outcome = await ended(
      sse([event(said([{ text: 'A red' }])), event({ candidates: [{ finishReason }] })]),
    );

    expect(endOf(outcome)).toEqual({ status, kind, wait: null });
    expect(outcome.finishReason).toBe(finishReason);
  });

  it('may be cut while the model still thinks', async () => {
    const outcome = await ended(
      sse([
        event(said([{ text: 'hm', thought: true }])),
        event({ candidates: [{ finishReason: 'MAX_TOKENS' }] }),
      ]),
    );

    expect(outcome).toMatchObject({ status: 'length', text: '' });
  });

  it.each([true, false])('that only block the prompt are refusals (stream: %s)', async (stream) => {
    const blocked = {
      promptFeedback: { blockReason: 'OTHER' },
      usageMetadata: { promptTokenCount: 90, totalTokenCount: 90 },
    };
    const reply = stream ? sse([event(blocked)]) : { body: JSON.stringify(blocked) };

    expect(await ended(reply, { settings: { stream } })).toMatchObject({
      status: 'refused',
      kind: 'provider_refusal',
      finishReason: 'OTHER',
      usage: { inputTokens: 90, outputTokens: 0 },
    });
  });

  const [first, second, last] = goodEvents as [string, string, string];
  it.each<[string, Served, string]>([
    ['no finish reason', sse([first, second]), 'incomplete_stream'],
    ['half an event at the end', sse([first, second, last.slice(0, 60)]), 'incomplete_stream'],
    ['nothing at all', sse([]), 'incomplete_stream'],
    ['no text', sse([event(said([], { finishReason: 'STOP' }))]), 'empty_response'],
    [
      'thoughts alone',
      sse([event(said([{ text: 'x', thought: true }], { finishReason: 'STOP' }))]),
      'empty_response',
    ],
    ['a broken event', sse([first, 'data: {"candidates":[{"con\r\n\r\n', last]), 'invalid_response'],
    ['a line that is no field', sse([first, 'candidates\r\n\r\n', last]), 'invalid_response'],
    ['text after the end', sse([last, second]), 'invalid_response'],
    ['two candidates', sse([event({ candidates: [{}, {}] })]), 'invalid_response'],
    ['a part that is no text', sse([event(said([{ functionCall: {} }]))]), 'invalid_response'],
    ['a document without candidates', { body: '{}' }, 'invalid_response'],
    ['half a document', { body: '{"candidates":[{"content"' }, 'invalid_response'],
    ['a web page', { body: '<html>hello</html>', type: 'text/html' }, 'invalid_response'],
  ])('with %s are asked for again', async (_, reply, kind) => {
    expect(endOf(await ended(reply))).toEqual({ status: 'retry', kind, wait: null });
  });

  it('may stop for an error in the middle', async () => {
    const error = { error: { code: 503, message: 'fake: overloaded', status: 'UNAVAILABLE' } };

    expect(await ended(sse([first, event(error)]))).toMatchObject({
      status: 'retry',
      kind: 'http_503',
      httpStatus: 200,
      message: 'the reply reports an error: UNAVAILABLE: fake: overloaded',
    });
  });
});

describe('errors', () => {
  const retryInfo = (retryDelay: string) => ({
    '@type': 'type.googleapis.com/google.rpc.RetryInfo',
    retryDelay,
  });
  const quota = (...quotaIds: string[]) => ({
    '@type': 'type.googleapis.com/google.rpc.QuotaFailure',
    violations: quotaIds.map((quotaId) => ({ quotaId })),
  });

  it.each<[Served, string, string, number | null]>([
    [fault(429, 'RESOURCE_EXHAUSTED', [retryInfo('2s')]), 'retry', 'http_429', 2],
    [fault(429, 'RESOURCE_EXHAUSTED', [retryInfo('27.5s')]), 'retry', 'http_429', 27.5],
    [fault(429, 'RESOURCE_EXHAUSTED', [retryInfo('soon')]), 'retry', 'http_429', null],
    [{ ...fault(429, 'RESOURCE_EXHAUSTED'), headers: 'retry-after: 9\r\n' }, 'retry', 'http_429', 9],
    // Whoever keeps to the longer of two waits keeps to both.
    [
      { ...fault(429, 'RESOURCE_EXHAUSTED', [retryInfo('2s')]), headers: 'retry-after: 86400\r\n' },
      'retry',
      'http_429',
      86_400,
    ],
    [
      { ...fault(429, 'RESOURCE_EXHAUSTED', [retryInfo('2s')]), headers: 'retry-after: 1\r\n' },
      'retry',
      'http_429',
      2,
    ],
    [
      fault(429, 'RESOURCE_EXHAUSTED', [
        quota('GenerateRequestsPerMinutePerProjectPerModel'),
        retryInfo('3s'),
      ]),
      'retry',
      'http_429',
      3,
    ],
    [
      fault(429, 'RESOURCE_EXHAUSTED', [
        quota(
          'GenerateRequestsPerMinutePerProjectPerModel',
          'GenerateRequestsPerDayPerProjectPerModel-FreeTier',
        ),
        retryInfo('3s'),
      ]),
      'stop_lane',
      'http_429',
      null,
    ],
    [fault(500, 'INTERNAL'), 'retry', 'http_500', null],
    [fault(503, 'UNAVAILABLE'), 'retry', 'http_503', null],
    [fault(504, 'DEADLINE_EXCEEDED'), 'retry', 'http_504', null],
    [fault(400, 'INVALID_ARGUMENT'), 'failed', 'http_400', null],
    [fault(400, 'INVALID_ARGUMENT', [{ reason: 'API_KEY_INVALID' }]), 'stop_lane', 'http_400', null],
    [fault(400, 'FAILED_PRECONDITION'), 'stop_lane', 'http_400', null],
    [fault(401, 'UNAUTHENTICATED'), 'stop_lane', 'http_401', null],
    [fault(403, 'PERMISSION_DENIED'), 'stop_lane', 'http_403', null],
    [fault(404, 'NOT_FOUND'), 'stop_lane', 'http_404', null],
    [{ body: '<html>too large</html>', type: 'text/html', status: '413 X' }, 'failed', 'http_413', null],
    [{ body: '', status: '307 X', headers: 'location: http://127.0.0.1:1/\r\n' }, 'failed', 'http_307', null],
  ])('such as %j are %s', async (reply, status, kind, wait) => {
    expect(endOf(await ended(reply))).toEqual({ status, kind, wait });
  });

  it('may come in a list, and lose the key in their message', async () => {
    const body = JSON.stringify([
      { error: { code: 400, message: 'key test-gemini is bad', status: 'INVALID_ARGUMENT' } },
    ]);

    expect(await ended({ body, status: '400 Bad' })).toMatchObject({
      status: 'failed',
      message: 'HTTP 400: INVALID_ARGUMENT: key [key] is bad',
    });
  });
});

describe('connections', () => {
  const limits = { maxTokens: 9, deadlineMs: 10_000, messages: [{ role: 'user' as const, content: 'x' }] };
  const calling = async (
    script: Parameters<typeof startRawServer>[0],
    more: { idleTimeoutMs?: number; deadlineMs?: number; signal?: AbortSignal } = {},
  ) => {
    const server = await startRawServer(script);
    const { idleTimeoutMs, ...call } = more;
    const caller = createGeminiCaller({
      baseUrl: server.url,
      apiKey: 'k',
      model: flash,
      maxInFlight: 1,
      idleTimeoutMs,
    });
    try {
      return await caller.complete({ ...limits, ...call });
    } finally {
      await caller.close();
      await server.close();
    }
  };

  it('may write single bytes', async () => {
    const outcome = await calling(async (socket) => {
      socket.write(streamHead);
      for (const byte of Buffer.from(goodEvents.join(''))) {
        socket.write(chunk(Buffer.of(byte)));
        await new Promise(setImmediate);
      }
      socket.write(lastChunk);
    });

    expect(outcome).toMatchObject({ status: 'ok', text: 'A bell, dann 蓝 🔵.' });
  });

  it.each([
    [2, 'retry', 'connection_reset'],
    [3, 'ok', null],
  ])('that are reset after %i of 3 events leave %s', async (events, status, kind) => {
    const outcome = await calling(async (socket) => {
      socket.write(Buffer.concat([Buffer.from(streamHead), chunk(goodEvents.slice(0, events).join(''))]));
      await pause(50);
      socket.resetAndDestroy();
    });

    expect(endOf(outcome)).toEqual({ status, kind, wait: null });
  });

  it('that fall silent or drip for too long time out', async () => {
    const silent = await calling(
      (socket) => void socket.write(Buffer.concat([Buffer.from(streamHead), chunk(goodEvents[0]!)])),
      { idleTimeoutMs: 60 },
    );
    const dripping = await calling(
      async (socket) => {
        socket.write(streamHead);
        while (!socket.destroyed) {
          socket.write(chunk(': drip\n'));
          await pause(20);
        }
      },
      { deadlineMs: 200 },
    );

    expect(silent).toMatchObject({ status: 'retry', kind: 'timeout', httpStatus: 200 });
    expect(dripping).toMatchObject({ status: 'retry', kind: 'timeout', httpStatus: 200 });
  });

  it('end with the caller', async () => {
    const abort = new AbortController();

    const running = calling(
      (socket) => {
        socket.write(Buffer.concat([Buffer.from(streamHead), chunk(goodEvents[0]!)]));
        setTimeout(() => abort.abort(new Error('interrupted')), 20);
      },
      { signal: abort.signal },
    );

    await expect(running).rejects.toThrow('interrupted');
  });

  it('are not made with a key that no header carries', () => {
    expect(() =>
      createGeminiCaller({ baseUrl: 'http://127.0.0.1:1', apiKey: 'a b', model: flash, maxInFlight: 1 }),
    ).toThrow(expect.objectContaining({ name: 'UsageWrong' }));
  });

  it('may be repeated on the same caller', async () => {
    const server = await startRawServer(
      (socket) => void socket.write(whole(goodEvents.join(''), 'text/event-stream')),
    );
    const caller = createGeminiCaller({ baseUrl: server.url, apiKey: 'k', model: flash, maxInFlight: 1 });

    const outcomes = [await caller.complete(limits), await caller.complete(limits)];
    await caller.close();
    await server.close();

    expect(outcomes.map(({ status }) => status)).toEqual(['ok', 'ok']);
    expect(server.connections).toBe(1);
  });
});

describe('what does not fit', () => {
  const needs = {
    channels: ['V', 'A'] as const,
    clipsPerRequest: { audio: 4, video: 4 },
    mixesMedia: true,
    largestClipBytes: 1_000_000,
  };
  const misfitsOf = (model: string, more: Partial<typeof needs> = {}, settings = {}) =>
    misfits(providerOf(provider, model).capabilities(model), { ...needs, ...more }, settings, false);

  it('is told before any call', () => {
    expect(misfitsOf(flash, {}, { temperature: 0, seed: 1, fps: 2, reasoningEffort: 'low' })).toEqual([]);
    expect(misfitsOf(flash, { clipsPerRequest: { audio: 0, video: 11 } })).toHaveLength(1);
    expect(misfitsOf(flash, { largestClipBytes: 15_000_000 })).toEqual([]);
    expect(misfitsOf(flash, { largestClipBytes: 15_000_001 })).toHaveLength(1);
    expect(misfitsOf(flash, {}, { fps: 25 })).toHaveLength(1);
    expect(misfitsOf(flash, {}, { reasoningEffort: 'minimal' })).toHaveLength(1);
    expect(misfitsOf(flash, {}, { thinking: false })).toHaveLength(1);
    expect(misfitsOf('gemini-3.6-flash', {}, { reasoningEffort: 'minimal' })).toEqual([]);
    expect(misfitsOf('gemini-2.5-flash', {}, { thinking: false })).toEqual([]);
    expect(misfitsOf('gemini-2.5-pro', {}, { reasoningEffort: 'none' })).toHaveLength(1);
  });
});
