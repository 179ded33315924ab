import type { Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterEach, describe, expect, it } from 'vitest';
import { asksToWaitTooLong } from '../../../../shared/domain/backoff.ts';
import {
  type ChatCallerOptions,
  createChatCaller,
} from '../../../../shared/providers/chat-completions/client.ts';
import { commonProfile } from '../../../../shared/providers/openai-compatible/provider.ts';
import { chunk, head, lastChunk, pause, startRawServer, streamHead, whole } from '../raw-server.ts';

// One row for each kind of fault that a server of this dialect was seen to make, from bytes to outcome.

const opened: { close(): Promise<void> }[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((item) => item.close()));
});

const askServer = async (
  script: (socket: Socket, requestNumber: number) => unknown,
  {
    deadlineMs = 20_000,
    calls = 1,
    ...options
  }: Partial<ChatCallerOptions> & {
    deadlineMs?: number;
    calls?: number;
  } = {},
) => {
  const server = await startRawServer(script);
  const caller = createChatCaller({
    baseUrl: server.url,
    apiKey: null,
    model: 'm',
    maxInFlight: 1,
    profile: commonProfile,
    ...options,
  });
  opened.push(server, caller);
  const outcomes = [];
  for (let call = 0; call < calls; call += 1) {
    outcomes.push(
      await caller.complete({ messages: [{ role: 'user', content: 'x' }], maxTokens: 8, deadlineMs }),
    );
  }
  return { outcomes, outcome: outcomes[0]!, requests: server.requests.length };
};

const text = 'Two bells, then 猫 🐱.';
const event = (value: unknown) => `data: ${typeof value === 'string' ? value : JSON.stringify(value)}\n\n`;
const delta = (content: unknown, finishReason: string | null = null, more: object = {}) =>
  event({
    id: 'tt-1',
    model: 'm',
    choices: [{ index: 0, delta: { content, ...more }, finish_reason: finishReason }],
  });
const usage = (tokens: unknown) => event({ id: 'tt-1', choices: [], usage: tokens });
const spoken = [delta(''), delta('Two bells, '), delta('then 猫 🐱.')];
const finished = [...spoken, delta('', 'stop')];
const counted = usage({ prompt_tokens: 1290, completion_tokens: 11 });
const done = event('[DONE]');
const document = (choice: object, more: object = {}) =>
  JSON.stringify({ id: 'tt-1', model: 'm', choices: [choice], ...more });
const message = (content: unknown, finishReason: unknown = 'stop') =>
  document({ index: 0, message: { role: 'assistant', content }, finish_reason: finishReason });

const streaming = (...events: string[]) => whole(events.join(''), 'text/event-stream');
/** Writes a stream and leaves it open. */
const openStream = (socket: Socket, events: readonly string[]) => {
  socket.write(streamHead);
  for (const item of events) socket.write(chunk(item));
};

const whole200: [id: string, what: string, bytes: Buffer, expected: object][] = [
  [
    'F-18',
    'length after text',
    streaming(delta('Two '), delta('', 'length'), done),
    { status: 'length', text: 'Two ' },
  ],
  [
    'F-19',
    'length inside the reasoning',
    streaming(delta(null, null, { reasoning_content: 'hm' }), delta('', 'length'), done),
    { status: 'length', text: '' },
  ],
  [
    'F-20',
    'stop without text',
    streaming(delta(''), delta('', 'stop'), done),
    { status: 'retry', kind: 'empty_response' },
  ],
  [
    'F-21',
    'a finish that nobody knows',
    streaming(delta('Two '), delta('', 'repetition_truncation'), done),
    { status: 'failed', kind: 'finish_repetition_truncation', finishReason: 'repetition_truncation' },
  ],
  [
    'F-21',
    'abort',
    streaming(delta('Two '), delta('', 'abort'), done),
    { status: 'retry', kind: 'incomplete_stream', finishReason: 'abort' },
  ],
  ['F-22', 'neither finish nor [DONE]', streaming(...spoken), { status: 'retry', kind: 'incomplete_stream' }],
  [
    'F-23',
    'no usage after the finish',
    streaming(...finished, done),
    { status: 'ok', text, usage: expect.objectContaining({ inputTokens: null, outputTokens: null }) },
  ],
  [
    'F-24',
    'two usages, the last one counts',
    streaming(...finished, usage({ prompt_tokens: 7, completion_tokens: 1 }), counted, done),
    { status: 'ok', usage: expect.objectContaining({ inputTokens: 1290, outputTokens: 11 }) },
  ],
  [
    'F-25',
    'one broken chunk among good ones',
    streaming(spoken[0]!, 'data: {"id":"tt-1","cho\n\n', ...finished.slice(1), counted, done),
    { status: 'retry', kind: 'invalid_response' },
  ],
  [
    'F-26',
    'half a document of the right length',
    whole(message(text).slice(0, 60)),
    { status: 'retry', kind: 'invalid_response' },
  ],
  [
    'F-28',
    'a web page',
    whole('<html>busy</html>', 'text/html'),
    { status: 'retry', kind: 'invalid_response' },
  ],
  ['F-29', 'no content type', whole(message(text), ''), { status: 'ok', text }],
  [
    'F-30',
    'an error as a reply',
    whole('{"error":{"message":"x","code":503}}'),
    { status: 'retry', kind: 'http_503' },
  ],
  [
    'F-31',
    'an error in mid-stream, then [DONE]',
    streaming(
      delta('Two '),
      event({ error: { message: 'x', type: 'InternalServerError', code: 500 } }),
      done,
    ),
    { status: 'retry', kind: 'http_500', httpStatus: 200 },
  ],
  [
    'F-32',
    'the error line of old llama.cpp',
    streaming(delta('Two '), 'error: {"code":500,"message":"x"}\n\n'),
    { status: 'retry', kind: 'http_500' },
  ],
  [
    'F-40',
    'comments, pings and empty events',
    streaming(
      ': keep-alive\n\n',
      ...spoken,
      'event: ping\ndata: {}\n\n',
      'data:\n\n',
      delta('', 'stop'),
      counted,
      done,
    ),
    { status: 'ok', text },
  ],
  [
    'F-41',
    'CRLF',
    streaming([...finished, counted, done].join('').replaceAll('\n', '\r\n')),
    { status: 'ok', text },
  ],
  [
    'F-41',
    'one event on two data lines',
    streaming(
      ...spoken,
      'data: {"choices":[{"index":0,"delta":{},\ndata: "finish_reason":"stop"}]}\n\n',
      done,
    ),
    { status: 'ok', text },
  ],
  [
    'F-43',
    'gzip',
    whole(
      gzipSync([...finished, counted, done].join('')),
      'text/event-stream',
      '200 OK',
      'content-encoding: gzip\r\n',
    ),
    { status: 'ok', text },
  ],
  [
    'F-45',
    'a reply that the server cut at its time limit',
    whole(message('Two '), 'application/json', '200 OK', 'x-dashscope-partialresponse: true\r\n'),
    { status: 'length', text: 'Two ' },
  ],
  [
    'F-47',
    'content as a list of parts',
    whole(
      message([
        { type: 'text', text: 'Two bells, ' },
        { type: 'text', text: 'then 猫 🐱.' },
      ]),
    ),
    { status: 'ok', text },
  ],
  ...[{ prompt_tokens: -3 }, { prompt_tokens: '12' }, {}, 'many', [5]].map(
    (tokens): [string, string, Buffer, object] => [
      'F-48',
      `usage ${JSON.stringify(tokens)}`,
      streaming(...finished, usage(tokens), done),
      { status: 'ok', text, usage: expect.objectContaining({ inputTokens: null, outputTokens: null }) },
    ],
  ),
  [
    'F-49',
    'no choice in a document',
    whole('{"id":"tt-1","choices":[]}'),
    { status: 'retry', kind: 'invalid_response' },
  ],
];

describe('a 200', () => {
  it.each(whole200)('%s %s', async (_id, _what, bytes, expected) => {
    const { outcome, requests } = await askServer((socket) => void socket.write(bytes));

    expect(outcome).toMatchObject(expected);
    expect(requests).toBe(1);
  });

  it('F-53 with equal text and another id is another reply', async () => {
    const { outcomes } = await askServer(
      (socket, number) => void socket.write(whole(message(text).replace('tt-1', `tt-${number}`))),
      { calls: 2 },
    );

    expect(outcomes).toMatchObject([
      { status: 'ok', text, responseId: 'tt-1' },
      { status: 'ok', text, responseId: 'tt-2' },
    ]);
  });
});

describe('a status', () => {
  it.each([500, 502, 503, 504, 529])('F-13 %i is asked again, by the caller', async (status) => {
    const { outcome, requests } = await askServer(
      (socket) =>
        void socket.write(whole('{"error":{"message":"x"}}', 'application/json', `${status} Fault`)),
    );

    expect(outcome).toMatchObject({ status: 'retry', kind: `http_${status}`, retryAfterSeconds: null });
    expect(requests).toBe(1);
  });

  it('F-14 with a web page is the same', async () => {
    const { outcome } = await askServer(
      (socket) => void socket.write(whole('<html>busy</html>', 'text/html', '503 Busy')),
    );

    expect(outcome).toMatchObject({ status: 'retry', kind: 'http_503', message: 'HTTP 503: a web page' });
  });

  it.each([
    ['F-02 a date', 'retry-after: Mon, 30 Nov 2026 07:00:03 GMT\r\n', 3],
    ['F-03 milliseconds before seconds', 'retry-after-ms: 1500\r\nretry-after: 9\r\n', 1.5],
    ['F-04 nothing', '', null],
    ['F-06 a word', 'retry-after: banana\r\n', null],
    ['F-06 a negative number', 'retry-after: -1\r\n', null],
    ['F-12 an allowance', 'x-ratelimit-reset-tokens: 1m2.5s\r\n', 62.5],
  ])('429 with %s', async (_name, headers, retryAfterSeconds) => {
    const { outcome } = await askServer(
      (socket) => void socket.write(whole('{}', 'application/json', '429 Slow', headers)),
      { now: () => Date.UTC(2026, 10, 30, 7, 0, 0) },
    );

    expect(outcome).toMatchObject({ status: 'retry', kind: 'http_429', retryAfterSeconds });
  });

  it('F-05 429 with a day to wait is no wait at all', async () => {
    const { outcome } = await askServer(
      (socket) => void socket.write(whole('{}', 'application/json', '429 Slow', 'retry-after: 86400\r\n')),
    );

    expect(outcome).toMatchObject({ status: 'retry', retryAfterSeconds: 86_400 });
    expect(asksToWaitTooLong(86_400)).toBe(true);
    expect(asksToWaitTooLong(300)).toBe(false);
    expect(asksToWaitTooLong(null)).toBe(false);
  });

  it.each([307, 308])('F-46 %i is not followed', async (status) => {
    const other = await startRawServer((socket) => void socket.write(whole(message(text))));
    opened.push(other);

    const { outcome } = await askServer(
      (socket) => void socket.write(whole('', '', `${status} Elsewhere`, `location: ${other.url}/v1\r\n`)),
    );

    expect(outcome).toMatchObject({ status: 'failed', kind: `http_${status}` });
    expect(other.connections).toBe(0);
  });

  it.each(['413 Too Large', '431 Head Too Large'])('F-51 %s with a web page is final', async (status) => {
    const { outcome } = await askServer(
      (socket) => void socket.write(whole('<html></html>', 'text/html', status)),
    );

    expect(outcome).toMatchObject({ status: 'failed', kind: `http_${status.slice(0, 3)}` });
  });
});

describe('a connection', () => {
  it('F-27 that ends before the length it named', async () => {
    const { outcome } = await askServer(
      (socket) =>
        void socket.end(`${head('content-type: application/json\r\ncontent-length: 5000')}${message(text)}`),
    );

    expect(outcome).toMatchObject({ status: 'retry', kind: 'connection_reset', httpStatus: 200 });
  });

  it('F-33 that is reset before the head', async () => {
    const { outcome } = await askServer((socket) => socket.resetAndDestroy());

    expect(outcome).toMatchObject({ status: 'retry', kind: 'connection_reset', httpStatus: null });
  });

  it('F-34 that is reset after two chunks', async () => {
    const { outcome } = await askServer(async (socket) => {
      openStream(socket, spoken.slice(0, 2));
      await pause(30);
      socket.resetAndDestroy();
    });

    expect(outcome).toMatchObject({
      status: 'retry',
      kind: 'connection_reset',
      httpStatus: 200,
      responseId: 'tt-1',
    });
    expect(outcome).not.toHaveProperty('text');
  });

  it('F-35 that never brings a head', async () => {
    const { outcome } = await askServer(() => {}, { deadlineMs: 150 });

    expect(outcome).toMatchObject({ status: 'retry', kind: 'timeout', httpStatus: null });
  });

  it('F-36 that falls silent', async () => {
    const { outcome } = await askServer((socket) => openStream(socket, spoken.slice(0, 2)), {
      idleTimeoutMs: 80,
    });

    expect(outcome).toMatchObject({
      status: 'retry',
      kind: 'timeout',
      message: 'the reply stopped for 80 ms',
    });
  });

  it('F-37 that drips beyond the deadline', async () => {
    const { outcome } = await askServer(
      async (socket) => {
        socket.write(streamHead);
        while (!socket.destroyed) {
          socket.write(chunk(delta('x')));
          await pause(10);
        }
      },
      { deadlineMs: 200, idleTimeoutMs: 10_000 },
    );

    expect(outcome).toMatchObject({
      status: 'retry',
      kind: 'timeout',
      message: 'no complete reply within 200 ms',
    });
  });

  it('F-38, F-42 that drips byte for byte inside it', async () => {
    const { outcome } = await askServer(
      async (socket) => {
        socket.write(streamHead);
        for (const byte of Buffer.from([...finished, counted, done].join(''))) {
          socket.write(chunk(Buffer.of(byte)));
          await new Promise(setImmediate);
        }
        socket.write(lastChunk);
      },
      { idleTimeoutMs: 10_000 },
    );

    expect(outcome).toMatchObject({ status: 'ok', text, usage: { inputTokens: 1290, outputTokens: 11 } });
  });

  it('F-39 that the caller gives up', async () => {
    const server = await startRawServer((socket) => openStream(socket, finished));
    const caller = createChatCaller({
      baseUrl: server.url,
      apiKey: null,
      model: 'm',
      maxInFlight: 1,
      profile: commonProfile,
    });
    opened.push(server, caller);
    const abort = new AbortController();

    const running = caller.complete({
      messages: [{ role: 'user', content: 'x' }],
      maxTokens: 8,
      deadlineMs: 20_000,
      signal: abort.signal,
    });
    setTimeout(() => abort.abort(new Error('given up')), 50);

    await expect(running).rejects.toThrow('given up');
  });

  it('F-44 that brings 50 MB and more', async () => {
    let sent = 0;
    const filler = chunk(delta('x'.repeat(64 * 1024)));
    const { outcome } = await askServer((socket) => {
      socket.write(streamHead);
      const more = () => {
        if (socket.destroyed || sent > 50 * 1024 * 1024) return;
        sent += filler.length;
        socket.write(filler, () => setImmediate(more));
      };
      more();
    });

    // Asking again would only pay for it again.
    expect(outcome).toMatchObject({ status: 'failed', kind: 'invalid_response' });
    expect(sent).toBeLessThan(50 * 1024 * 1024);
  });
});
