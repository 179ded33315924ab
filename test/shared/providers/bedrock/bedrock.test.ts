import { createHash } from 'node:crypto';
import type { Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { misfits } from '../../../../shared/domain/capabilities.ts';
import { unknownUsage } from '../../../../shared/domain/outcome.ts';
import type { ResolvedMessage } from '../../../../shared/domain/request.ts';
import {
  type BedrockOptions,
  createBedrockCaller,
  createBedrockClient,
  regionOf,
} from '../../../../shared/providers/bedrock/client.ts';
import { createModelClient, providerOf } from '../../../../shared/providers/registry.ts';
import { answering, asking, base64Of, endOf, inline, type Kept } from '../lane-under-test.ts';
import { chunk, pause, startRawServer, whole } from '../raw-server.ts';
import { delta, event, exception, metered, reply, stopped, streamHead } from './event-stream.ts';

const omni = 'us.amazon.nova-2-omni-v1:0';
const goodFrames = [
  event('messageStart', { role: 'assistant' }),
  event('contentBlockDelta', { contentBlockIndex: 0, delta: { reasoningContent: { text: 'hm' } } }),
  event('contentBlockStop', { contentBlockIndex: 0 }),
  delta('A bell, '),
  delta('dann 蓝 🔵.'),
  event('somethingNew', { a: 1 }),
  stopped('end_turn'),
  metered({ inputTokens: 700, outputTokens: 8, totalTokens: 708 }),
];
const whatFollows = goodFrames.slice(0, 5);

afterEach(() => {
  vi.unstubAllEnvs();
});

interface Calling {
  options?: Partial<BedrockOptions>;
  messages?: ResolvedMessage[];
  clips?: Record<string, Kept>;
  deadlineMs?: number;
  signal?: AbortSignal;
}

/** One call to a real server that answers with these bytes, or as the script has it. */
const calling = async (
  answer: Buffer | ((socket: Socket) => unknown),
  { options = {}, messages = [asking({ text: 'What happens?' })], clips = {}, ...limits }: Calling = {},
) => {
  const server = await startRawServer((socket) =>
    typeof answer === 'function' ? answer(socket) : void socket.write(answer),
  );
  const client = createBedrockClient({
    baseUrl: `${server.url}/bedrock`,
    apiKey: 'test-bedrock',
    model: omni,
    maxInFlight: 1,
    clips: { load: async ({ path }) => [clips[path] ?? []].flat() },
    forms: { video: null, audio: null, mux: false },
    ...options,
  });
  try {
    const outcome = await client.call(
      { requestId: 'r1', messages },
      { maxTokens: 256, deadlineMs: 10_000, ...limits },
    );
    const [head = '', body = ''] = (server.requests[0] ?? '').split('\r\n\r\n');
    return { outcome, head, body: body === '' ? null : JSON.parse(body), requests: server.requests.length };
  } finally {
    await client.close();
    await server.close();
  }
};
const failing = (status: number, name: string, message = 'fake: no') =>
  whole(JSON.stringify({ message }), 'application/json', `${status} X`, `x-amzn-errortype: ${name}\r\n`);

describe('requests', () => {
  it('have merged roles, raw bytes of clips and no member that nobody set', async () => {
    const { body, head } = await calling(reply(...goodFrames), {
      messages: [
        asking({ video: 'a.mp4' }, { text: 'Watch.' }),
        asking({ audio: 'a.wav' }, { text: 'And listen.' }),
        answering('Done.'),
        asking({ video: 'b.mp4' }, { text: 'And now?' }),
      ],
      clips: {
        'a.mp4': inline('video/mp4', 'picture'),
        'a.wav': inline('audio/wav', 'sound'),
        'b.mp4': { type: 'url', mime: 'video/mp4', url: 's3://media/b.mp4' },
      },
      options: { settings: { temperature: 0, topP: 0.5 } },
    });

    expect(head).toMatch(
      /^POST \/bedrock\/model\/us\.amazon\.nova-2-omni-v1%3A0\/converse-stream HTTP\/1\.1/,
    );
    expect(head).toMatch(/\r\nauthorization: Bearer test-bedrock\r\n/i);
    expect(body).toEqual({
      messages: [
        {
          role: 'user',
          content: [
            { video: { format: 'mp4', source: { bytes: base64Of('picture') } } },
            { text: 'Watch.' },
            { audio: { format: 'wav', source: { bytes: base64Of('sound') } } },
            { text: 'And listen.' },
          ],
        },
        { role: 'assistant', content: [{ text: 'Done.' }] },
        {
          role: 'user',
          content: [
            { video: { format: 'mp4', source: { s3Location: { uri: 's3://media/b.mp4' } } } },
            { text: 'And now?' },
          ],
        },
      ],
      inferenceConfig: { maxTokens: 256, temperature: 0, topP: 0.5 },
    });
  });

  it('are signed for the region where no key is given', async () => {
    vi.stubEnv('AWS_ACCESS_KEY_ID', 'AKIATEST');
    vi.stubEnv('AWS_SECRET_ACCESS_KEY', 'secret');
    vi.stubEnv('AWS_REGION', 'eu-north-1');
    vi.stubEnv('AWS_BEARER_TOKEN_BEDROCK', undefined);

    const { head, outcome } = await calling(reply(...goodFrames), { options: { apiKey: null } });

    expect(head).toMatch(
      /\r\nauthorization: AWS4-HMAC-SHA256 Credential=AKIATEST\/\d{8}\/eu-north-1\/bedrock\/aws4_request, /i,
    );
    expect(outcome.status).toBe('ok');
  });

  it('think as much as they are told', async () => {
    const thinking = (settings: BedrockOptions['settings']) =>
      calling(reply(...goodFrames), { options: { settings } });

    expect((await thinking({ reasoningEffort: 'low' })).body.additionalModelRequestFields).toEqual({
      reasoningConfig: { type: 'enabled', maxReasoningEffort: 'low' },
    });
    expect((await thinking({ reasoningEffort: 'none' })).body).not.toHaveProperty(
      'additionalModelRequestFields',
    );
    await expect(thinking({ reasoningEffort: 'high' })).rejects.toMatchObject({ name: 'UsageWrong' });
  });

  it('of a judge have its system text', async () => {
    const server = await startRawServer((socket) => void socket.write(reply(...goodFrames)));
    const caller = createBedrockCaller({ baseUrl: server.url, apiKey: 'k', model: omni, maxInFlight: 1 });

    const outcome = await caller.complete({
      messages: [
        { role: 'system', content: 'You judge.' },
        { role: 'user', content: 'Judge it.' },
      ],
      maxTokens: 8,
      deadlineMs: 10_000,
    });
    await caller.close();
    await server.close();

    expect(outcome).toMatchObject({ status: 'ok', text: 'A bell, dann 蓝 🔵.' });
    expect(JSON.parse(server.requests[0]!.split('\r\n\r\n')[1]!)).toEqual({
      system: [{ text: 'You judge.' }],
      messages: [{ role: 'user', content: [{ text: 'Judge it.' }] }],
      inferenceConfig: { maxTokens: 8 },
    });
  });

  it('are not sent where their clips are larger than the provider takes', async () => {
    const { outcome, requests } = await calling(reply(...goodFrames), {
      messages: [asking({ video: 'a.mp4' }, { text: 'What happens?' })],
      clips: { 'a.mp4': { type: 'inline', mime: 'video/mp4', base64: 'A'.repeat(25_000_004) } },
    });

    expect(outcome).toMatchObject({ status: 'failed', kind: 'request_too_large', httpStatus: null });
    expect(requests).toBe(0);
  });

  it.each<[string, ResolvedMessage[], Record<string, Kept>, string]>([
    ['a first message of the model', [answering('Hi'), asking({ text: 'x' })], {}, 'ContractViolated'],
    [
      'a clip at an address',
      [asking({ video: 'a.mp4' })],
      { 'a.mp4': { type: 'url', mime: 'video/mp4', url: 'https://media.test/a.mp4' } },
      'ContractViolated',
    ],
    [
      'a format that is not known',
      [asking({ audio: 'a.wav' })],
      { 'a.wav': inline('audio/x', 'a') },
      'UsageWrong',
    ],
  ])('refuse %s', async (_, messages, clips, name) => {
    await expect(calling(reply(...goodFrames), { messages, clips })).rejects.toMatchObject({ name });
  });
});

describe('replies', () => {
  it('have their text without thoughts', async () => {
    expect((await calling(reply(...goodFrames))).outcome).toEqual({
      status: 'ok',
      text: 'A bell, dann 蓝 🔵.',
      finishReason: 'end_turn',
      httpStatus: 200,
      responseId: 'b-1',
      servedModel: null,
      consumed: { audio: 0, video: 0 },
      usage: { ...unknownUsage, inputTokens: 700, outputTokens: 8 },
    });
  });

  it('may be one document', async () => {
    const document = {
      output: { message: { role: 'assistant', content: [{ text: 'A ' }, { text: 'bell.' }] } },
      stopReason: 'stop_sequence',
      usage: { inputTokens: 3, outputTokens: 2, totalTokens: 5 },
      metrics: { latencyMs: 1 },
    };

    const { outcome, head } = await calling(whole(JSON.stringify(document)), {
      options: { settings: { stream: false } },
    });

    expect(head).toMatch(/^POST \/bedrock\/model\/us\.amazon\.nova-2-omni-v1%3A0\/converse HTTP/);
    expect(outcome).toMatchObject({ status: 'ok', text: 'A bell.', finishReason: 'stop_sequence' });
  });

  it.each([
    ['no output', { stopReason: 'end_turn' }],
    ['no message', { output: {}, stopReason: 'end_turn' }],
  ])('is none with %s; its tokens were paid', async (_name, document) => {
    const usage = { inputTokens: 3, outputTokens: 2, totalTokens: 5 };

    const { outcome } = await calling(whole(JSON.stringify({ ...document, usage })), {
      options: { settings: { stream: false } },
    });

    expect(outcome).toMatchObject({
      status: 'retry',
      kind: 'invalid_response',
      usage: { inputTokens: 3, outputTokens: 2 },
    });
  });

  it.each([
    ['whole', 1, { status: 'ok', text: 'A bell, dann 蓝 🔵.' }],
    ['cut', 0.5, { status: 'retry' }],
  ])('may be compressed: %s', async (_name, share, expected) => {
    const packed = gzipSync(Buffer.concat(goodFrames));

    const { outcome } = await calling(
      whole(
        packed.subarray(0, Math.ceil(packed.length * share)),
        'application/vnd.amazon.eventstream',
        '200 OK',
        'content-encoding: gzip\r\n',
      ),
    );

    expect(outcome).toMatchObject(expected);
  });

  it.each([
    [{ inputTokens: 10, outputTokens: 2, totalTokens: 42, cacheReadInputTokens: 30 }, 40, 30],
    [{ inputTokens: 40, outputTokens: 2, totalTokens: 42, cacheReadInputTokens: 30 }, 40, 30],
    [{ inputTokens: 10, outputTokens: 2, totalTokens: 12, cacheReadInputTokens: 30 }, 10, null],
  ])('count %j', async (counts, inputTokens, cachedInputTokens) => {
    const { outcome } = await calling(reply(delta('A'), stopped('end_turn'), metered(counts)));

    expect(outcome.usage).toEqual({ ...unknownUsage, inputTokens, outputTokens: 2, cachedInputTokens });
  });

  it.each([
    ['end_turn', 'ok', null],
    ['stop_sequence', 'ok', null],
    ['max_tokens', 'length', null],
    ['model_context_window_exceeded', 'failed', 'finish_model_context_window_exceeded'],
    ['content_filtered', 'refused', 'finish_content_filter'],
    ['guardrail_intervened', 'refused', 'provider_refusal'],
    ['tool_use', 'failed', 'finish_tool_use'],
    ['malformed_model_output', 'failed', 'finish_malformed_model_output'],
    ['something_new', 'failed', 'finish_something_new'],
  ])('that stop with %s are %s', async (stopReason, status, kind) => {
    const { outcome } = await calling(reply(delta('A red'), stopped(stopReason)));

    expect(endOf(outcome)).toEqual({ status, kind, wait: null });
    expect(outcome).toMatchObject({ finishReason: stopReason, usage: unknownUsage });
  });

  const broken = Buffer.from(delta('A red'));
  broken[broken.length - 1]! ^= 1;
  it.each<[string, Buffer, string, boolean]>([
    ['no stop', reply(...whatFollows), 'incomplete_stream', true],
    [
      'half a frame at the end',
      reply(...whatFollows, stopped('end_turn').subarray(0, 20)),
      'incomplete_stream',
      true,
    ],
    ['nothing at all', reply(), 'incomplete_stream', true],
    ['no text', reply(stopped('end_turn')), 'empty_response', true],
    [
      'a frame that is no JSON',
      reply(...whatFollows, event('contentBlockDelta', '{"del')),
      'invalid_response',
      true,
    ],
    ['a damaged frame', reply(...whatFollows, broken), 'invalid_response', true],
    ['a document in place of frames', whole('{"message":"hello"}'), 'invalid_response', true],
    ['a web page', whole('<html>hello</html>', 'text/html'), 'invalid_response', false],
    ['a document without a message', whole('{}'), 'invalid_response', false],
    ['half a document', whole('{"output":{"mess'), 'invalid_response', false],
  ])('with %s are asked for again', async (_, answer, kind, stream) => {
    const { outcome, requests } = await calling(answer, { options: { settings: { stream } } });

    expect(endOf(outcome)).toEqual({ status: 'retry', kind, wait: null });
    expect(outcome.httpStatus).toBe(200);
    expect(requests).toBe(1);
  });

  it('do not grow without end', async () => {
    const { outcome } = await calling(
      (socket) => {
        socket.write(streamHead);
        const more = () => {
          if (!socket.destroyed) socket.write(chunk(delta('x'.repeat(1000))), () => setImmediate(more));
        };
        more();
      },
      { options: { maxReplyCharacters: 20_000 } },
    );

    expect(outcome).toMatchObject({ status: 'failed', kind: 'invalid_response' });
  });
});

describe('errors', () => {
  it.each<[number, string, string, string, string?]>([
    [429, 'ThrottlingException', 'retry', 'http_429'],
    [
      429,
      'ThrottlingException',
      'stop_lane',
      'http_429',
      'Too many tokens per day, please wait before trying again.',
    ],
    [429, 'ModelNotReadyException', 'retry', 'http_429'],
    [408, 'ModelTimeoutException', 'retry', 'http_408'],
    [424, 'ModelErrorException', 'retry', 'http_424'],
    [500, 'InternalServerException', 'retry', 'http_500'],
    [503, 'ServiceUnavailableException', 'retry', 'http_503'],
    [400, 'ValidationException', 'failed', 'http_400'],
    [400, 'ValidationException', 'stop_lane', 'http_400', 'The provided model identifier is invalid.'],
    [400, 'ServiceQuotaExceededException', 'stop_lane', 'http_400'],
    [403, 'AccessDeniedException', 'stop_lane', 'http_403'],
    [403, 'UnrecognizedClientException:http://internal', 'stop_lane', 'http_403'],
    [404, 'ResourceNotFoundException', 'stop_lane', 'http_404'],
    [401, 'SomethingNew', 'stop_lane', 'http_401'],
  ])('of status %i %s are %s %s, after one attempt', async (status, name, end, kind, message) => {
    const { outcome, requests } = await calling(failing(status, name, message));

    expect(endOf(outcome)).toEqual({ status: end, kind, wait: null });
    expect(outcome.httpStatus).toBe(status);
    expect(requests).toBe(1);
  });

  it('say what was wrong, without the key', async () => {
    const { outcome } = await calling(failing(400, 'ValidationException', 'fake: test-bedrock\n is bad'));

    expect(outcome).toMatchObject({ message: 'ValidationException: fake: [key]' });
  });

  it.each([
    ['retry-after: 7\r\n', 7],
    ['retry-after-ms: 1500\r\nretry-after: 9\r\n', 1.5],
    ['retry-after: 86400\r\n', 86_400],
    ['retry-after: banana\r\n', null],
  ])('name the wait of whoever stands in between: %j', async (headers, wait) => {
    const { outcome } = await calling(
      whole(
        '{"message":"slow"}',
        'application/json',
        '429 X',
        `x-amzn-errortype: ThrottlingException\r\n${headers}`,
      ),
    );

    expect(endOf(outcome)).toEqual({ status: 'retry', kind: 'http_429', wait });
  });

  it('may be a web page', async () => {
    const { outcome } = await calling(whole('<html>busy</html>', 'text/html', '503 X'));

    expect(endOf(outcome)).toEqual({ status: 'retry', kind: 'http_503', wait: null });
  });

  it('do not lead to another host', async () => {
    const { outcome, requests } = await calling(whole('', '', '307 X', 'location: http://127.0.0.1:1/\r\n'));

    expect(endOf(outcome)).toEqual({ status: 'failed', kind: 'http_307', wait: null });
    expect(requests).toBe(1);
  });

  it.each([
    ['throttlingException', 'retry', 'http_429'],
    ['modelStreamErrorException', 'retry', 'http_424'],
    ['internalServerException', 'retry', 'http_500'],
    ['serviceUnavailableException', 'retry', 'http_503'],
    ['validationException', 'failed', 'http_400'],
    ['strangeException', 'retry', 'invalid_response'],
  ])('in the middle of a stream: %s is %s', async (name, status, kind) => {
    const { outcome } = await calling(reply(...whatFollows, exception(name, { message: 'fake: no' })));

    expect(endOf(outcome)).toEqual({ status, kind, wait: null });
    expect(outcome).toMatchObject({ httpStatus: 200, responseId: 'b-1' });
  });
});

describe('connections', () => {
  const writing =
    (frames: readonly Buffer[], then: (socket: Socket) => unknown) => async (socket: Socket) => {
      socket.write(Buffer.concat([Buffer.from(streamHead), ...frames.map((frame) => chunk(frame))]));
      await pause(50);
      then(socket);
    };
  const reset = (socket: Socket) => socket.resetAndDestroy();

  it('may write single bytes', async () => {
    const { outcome } = await calling(async (socket) => {
      socket.write(streamHead);
      for (const byte of Buffer.concat(goodFrames)) {
        socket.write(chunk(Buffer.of(byte)));
        await new Promise(setImmediate);
      }
      socket.write('0\r\n\r\n');
    });

    expect(outcome).toMatchObject({ status: 'ok', text: 'A bell, dann 蓝 🔵.' });
  });

  it.each([
    [5, 'retry', 'connection_reset'],
    [7, 'ok', null],
  ])('that are reset after %i of 8 frames leave %s', async (frames, status, kind) => {
    const { outcome } = await calling(writing(goodFrames.slice(0, frames), reset));

    expect(endOf(outcome)).toEqual({ status, kind, wait: null });
  });

  it('that are reset before a reply, or refused, are asked for again', async () => {
    const early = await calling(reset);
    const refused = await calling(reset, { options: { baseUrl: 'http://127.0.0.1:1' } });

    expect(early.outcome).toMatchObject({ status: 'retry', kind: 'connection_reset', httpStatus: null });
    expect(refused.outcome).toMatchObject({ status: 'retry', kind: 'connect_failed', httpStatus: null });
  });

  it('that fall silent, drip or never answer time out', async () => {
    const silent = await calling(
      writing(whatFollows, () => {}),
      { options: { idleTimeoutMs: 100 } },
    );
    const dripping = await calling(
      async (socket) => {
        socket.write(streamHead);
        while (!socket.destroyed) {
          socket.write(chunk(delta('x')));
          await pause(20);
        }
      },
      { deadlineMs: 300 },
    );
    const mute = await calling(() => {}, { deadlineMs: 100 });

    expect(silent.outcome).toMatchObject({
      status: 'retry',
      kind: 'timeout',
      httpStatus: 200,
      message: 'the reply stopped for 100 ms',
    });
    expect(dripping.outcome).toMatchObject({ status: 'retry', kind: 'timeout', httpStatus: 200 });
    expect(mute.outcome).toMatchObject({
      status: 'retry',
      kind: 'timeout',
      httpStatus: null,
      message: 'no complete reply within 100 ms',
    });
  });

  it('end with the caller, before a call and within', async () => {
    const abort = new AbortController();

    const running = calling(
      writing(whatFollows, () => abort.abort(new Error('interrupted'))),
      { signal: abort.signal },
    );

    await expect(running).rejects.toThrow('interrupted');
    await expect(calling(reply(...goodFrames), { signal: abort.signal })).rejects.toThrow('interrupted');
  });
});

describe('access', () => {
  it('without credentials stops the lane', async () => {
    for (const name of [
      'AWS_ACCESS_KEY_ID',
      'AWS_SECRET_ACCESS_KEY',
      'AWS_PROFILE',
      'AWS_BEARER_TOKEN_BEDROCK',
    ])
      vi.stubEnv(name, undefined);
    vi.stubEnv('AWS_REGION', 'us-east-1');
    vi.stubEnv('AWS_EC2_METADATA_DISABLED', 'true');
    vi.stubEnv('AWS_SHARED_CREDENTIALS_FILE', '/nowhere');
    vi.stubEnv('AWS_CONFIG_FILE', '/nowhere');

    const { outcome, requests } = await calling(reply(...goodFrames), { options: { apiKey: null } });

    expect(outcome).toMatchObject({ status: 'stop_lane', kind: 'connect_failed', httpStatus: null });
    expect(requests).toBe(0);
  });

  it('needs an endpoint, and knows its region', () => {
    const lane = { provider: 'bedrock', model: omni, baseUrl: null, settings: {}, maxInFlight: 1 };

    expect(() =>
      createModelClient(lane, { apiKey: null, clips: { load: async () => [] }, recording: null }),
    ).toThrow(expect.objectContaining({ name: 'UsageWrong' }));
    expect(regionOf('https://bedrock-runtime.us-east-1.amazonaws.com')).toBe('us-east-1');
    expect(regionOf('https://bedrock-runtime-fips.us-gov-west-1.amazonaws.com')).toBe('us-gov-west-1');
    expect(regionOf('https://vpce-1.bedrock-runtime.eu-west-1.vpce.amazonaws.com')).toBe('eu-west-1');
    expect(regionOf('http://127.0.0.1:80/bedrock')).toBeUndefined();
  });
});

describe('what does not fit', () => {
  const needs = {
    channels: ['V', 'A'] as const,
    clipsPerRequest: { audio: 1, video: 1 },
    mixesMedia: true,
    largestClipBytes: 1_000_000,
  };
  const misfitsOf = (model: string, more: object = {}, settings = {}) =>
    misfits(providerOf('bedrock', model).capabilities(model), { ...needs, ...more }, settings, false);

  it.each<[string, object, object, number]>([
    [omni, {}, { temperature: 0, reasoningEffort: 'low' }, 0],
    [omni, {}, { seed: 1 }, 1],
    [omni, {}, { fps: 2 }, 1],
    [omni, {}, { reasoningEffort: 'high' }, 1],
    [omni, { largestClipBytes: 18_750_000 }, {}, 0],
    [omni, { largestClipBytes: 18_750_001 }, {}, 1],
    ['us.amazon.nova-2-lite-v1:0', {}, {}, 1],
    ['us.amazon.nova-2-lite-v1:0', { channels: ['V'] }, {}, 0],
    ['amazon.nova-lite-v1:0', { channels: ['V'], clipsPerRequest: { audio: 0, video: 2 } }, {}, 1],
    ['global.anthropic.claude-x-v1:0', {}, {}, 2],
    ['arn:aws:bedrock:us-east-1:1:application-inference-profile/x', {}, {}, 0],
  ])('%s with %j and %j is told before any call', (model, more, settings, count) => {
    expect(misfitsOf(model, more, settings)).toHaveLength(count);
  });
});

it('bytes of a clip arrive as they are', async () => {
  const bytes = Buffer.from(Array.from({ length: 257 }, (_, index) => index % 256));

  const { body } = await calling(reply(...goodFrames), {
    messages: [asking({ audio: 'a.wav' })],
    clips: { 'a.wav': { type: 'inline', mime: 'audio/wav', base64: bytes.toString('base64') } },
  });

  const sha256 = (content: Buffer) => createHash('sha256').update(content).digest('hex');
  expect(sha256(Buffer.from(body.messages[0].content[0].audio.source.bytes, 'base64'))).toBe(sha256(bytes));
});
