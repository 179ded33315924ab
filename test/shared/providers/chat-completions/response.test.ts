import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { CallOutcome } from '../../../../shared/domain/outcome.ts';
import { failureOutcome, replyOutcome } from '../../../../shared/providers/chat-completions/response.ts';
import { commonProfile } from '../../../../shared/providers/openai-compatible/provider.ts';

const context = { apiKey: null, now: 0, profile: commonProfile };
const text = 'A red light, then 蓝 🔵.';

const outcomeOf = (body: string | Buffer, type = 'application/json', headers: Record<string, string> = {}) =>
  replyOutcome(
    { status: 200, headers: { ...(type && { 'content-type': type }), ...headers }, body: Buffer.from(body) },
    context,
  );
const document = (choice: object, more: object = {}) =>
  JSON.stringify({ id: 'id-1', model: 'served', choices: [choice], ...more });
const message = (content: unknown, finishReason: unknown = 'stop', more: object = {}) =>
  document({ index: 0, message: { role: 'assistant', content, ...more }, finish_reason: finishReason });

const event = (value: unknown) => `data: ${typeof value === 'string' ? value : JSON.stringify(value)}\n\n`;
const delta = (content: unknown, finishReason: unknown = null, more: object = {}) =>
  event({
    id: 'id-1',
    model: 'served',
    choices: [{ index: 0, delta: { content, ...more }, finish_reason: finishReason }],
    usage: null,
  });
const usageEvent = (usage: unknown) => event({ id: 'id-1', model: 'served', choices: [], usage });
const done = event('[DONE]');
const streamed = (...events: string[]) => outcomeOf(events.join(''), 'text/event-stream; charset=utf-8');
const good = [delta(''), delta('A red light, '), delta('then 蓝 🔵.'), delta('', 'stop')];

describe('whole replies', () => {
  it('gives text, ids and usage, unknown counts as null', () => {
    const outcome = outcomeOf(
      document(
        { message: { content: text }, finish_reason: 'stop' },
        {
          usage: {
            prompt_tokens: 1305,
            completion_tokens: 25,
            prompt_tokens_details: {
              text_tokens: 12,
              audio_tokens: 13,
              video_tokens: 1280,
              cached_tokens: 0,
            },
            completion_tokens_details: { reasoning_tokens: 16 },
          },
        },
      ),
    );

    expect(outcome).toEqual({
      status: 'ok',
      text,
      httpStatus: 200,
      responseId: 'id-1',
      servedModel: 'served',
      finishReason: 'stop',
      usage: {
        inputTokens: 1305,
        outputTokens: 25,
        cachedInputTokens: 0,
        reasoningTokens: 16,
        audioInputTokens: 13,
        videoInputTokens: 1280,
        imageInputTokens: null,
        textInputTokens: 12,
      },
    });
  });

  it.each([
    ['no usage', undefined, null],
    ['null', null, null],
    ['a negative count', { prompt_tokens: -1 }, null],
    ['a count as text', { prompt_tokens: '12' }, null],
    ['a fraction', { prompt_tokens: 1.5 }, null],
    ['a list', [1], null],
    ['zero', { prompt_tokens: 0 }, 0],
  ])('usage: %s', (_name, usage, inputTokens) => {
    const outcome = outcomeOf(document({ message: { content: 'x' }, finish_reason: 'stop' }, { usage }));

    expect(outcome).toMatchObject({ status: 'ok', usage: { inputTokens, audioInputTokens: null } });
  });

  it('finds cached tokens beside the prompt tokens', () => {
    const usage = { prompt_tokens: 40, cached_tokens: 8 };

    expect(
      outcomeOf(document({ message: { content: 'x' }, finish_reason: 'stop' }, { usage })).usage
        .cachedInputTokens,
    ).toBe(8);
  });

  it.each<[string, string, string, string | null]>([
    ['text', message('Red'), 'ok', null],
    ['text with spaces, kept raw', message(' Red\n'), 'ok', null],
    [
      'a list of parts',
      message([
        { type: 'text', text: 'Re' },
        { type: 'text', text: 'd' },
      ]),
      'ok',
      null,
    ],
    ['no content', message(null), 'retry', 'empty_response'],
    ['empty text', message(''), 'retry', 'empty_response'],
    ['white space', message(' \n\t'), 'retry', 'empty_response'],
    ['reasoning alone', message(null, 'stop', { reasoning_content: 'hm' }), 'retry', 'empty_response'],
    ['a number as content', message(5), 'retry', 'invalid_response'],
    ['length', message('A red', 'length'), 'length', null],
    ['length without text', message(null, 'length'), 'length', null],
    ['content filter', message('A red', 'content_filter'), 'refused', 'finish_content_filter'],
    ['tool calls', message(null, 'tool_calls'), 'failed', 'finish_tool_calls'],
    ['an unknown finish', message('A', 'Repetition Truncation!'), 'failed', 'finish_repetition_truncation'],
    ['abort', message('A red', 'abort'), 'retry', 'incomplete_stream'],
    ['no finish reason', message('A red', null), 'retry', 'incomplete_stream'],
    ['an empty finish reason', message('A red', ''), 'retry', 'incomplete_stream'],
    ['a refusal', message(null, 'stop', { refusal: 'I will not.' }), 'refused', 'provider_refusal'],
    ['no choices', '{"id":"x"}', 'retry', 'invalid_response'],
    ['empty choices', '{"choices":[]}', 'retry', 'invalid_response'],
    [
      'two choices',
      '{"choices":[{"message":{"content":"a"},"finish_reason":"stop"},{}]}',
      'retry',
      'invalid_response',
    ],
    ['a choice without a message', document({ finish_reason: 'stop' }), 'retry', 'invalid_response'],
    ['an array', '[]', 'retry', 'invalid_response'],
    ['null', 'null', 'retry', 'invalid_response'],
    ['a text', '"Red"', 'retry', 'invalid_response'],
    ['nothing', '', 'retry', 'invalid_response'],
    ['half a document', message(text).slice(0, 40), 'retry', 'invalid_response'],
    ['a page', '<html></html>', 'retry', 'invalid_response'],
  ])('%s', (_name, body, status, kind) => {
    const outcome = outcomeOf(body);

    expect(outcome.status).toBe(status);
    expect('kind' in outcome ? outcome.kind : null).toBe(kind);
  });

  it('keeps the text of a reply that was cut', () => {
    expect(outcomeOf(message('A red', 'length'))).toMatchObject({ text: 'A red', finishReason: 'length' });
  });

  it('reads a reply without content type, and one behind a byte order mark', () => {
    expect(outcomeOf(message(text), '')).toMatchObject({ status: 'ok', text });
    expect(outcomeOf(`\ufeff${message(text)}`)).toMatchObject({ status: 'ok', text });
  });

  it('takes no page for a reply, whatever its content type says', () => {
    expect(outcomeOf(message(text), 'text/html')).toMatchObject({ kind: 'invalid_response' });
    expect(outcomeOf('<html></html>', '')).toMatchObject({ kind: 'invalid_response' });
  });

  it('takes no bytes that are not UTF-8', () => {
    const bytes = Buffer.from(message('x蓝'));
    bytes[bytes.indexOf('蓝') + 1] = 0x28;

    expect(outcomeOf(bytes)).toMatchObject({ status: 'retry', kind: 'invalid_response' });
  });

  it('believes the header of a reply that the server cut at its time limit', () => {
    expect(
      outcomeOf(message('A red'), 'application/json', { 'x-dashscope-partialresponse': 'true' }),
    ).toMatchObject({ status: 'length', text: 'A red' });
  });
});

describe('streams', () => {
  const usage = { prompt_tokens: 1305, completion_tokens: 9 };
  const okWithUsage = {
    status: 'ok',
    text,
    finishReason: 'stop',
    usage: { inputTokens: 1305, outputTokens: 9 },
  };

  it.each([
    ['a whole stream', [...good, usageEvent(usage), done]],
    ['no [DONE] after the finish reason', [...good, usageEvent(usage)]],
    ['an end without a newline', [...good, usageEvent(usage), 'data: [DONE]']],
    [
      'comments, pings and empty events',
      [': hi\n\n', ...good, 'event: ping\ndata: {"x":1}\n\n', 'data:\n\n', usageEvent(usage), done],
    ],
    ['retry and id fields', ['retry: 5\nid: 7\n', ...good, usageEvent(usage), done]],
    [
      'running totals, the last one counts',
      [
        ...good.slice(0, 2),
        usageEvent({ prompt_tokens: 1, completion_tokens: 1 }),
        ...good.slice(2),
        usageEvent(usage),
        done,
      ],
    ],
    ['something after [DONE]', [...good, usageEvent(usage), done, 'data: rubbish\n\n']],
    ['CRLF', [...good, usageEvent(usage), done].map((line) => line.replaceAll('\n', '\r\n'))],
    [
      'one event on two data lines',
      [
        ...good.slice(0, 3),
        'data: {"choices":[{"delta":{},\ndata: "finish_reason":"stop"}]}\n\n',
        usageEvent(usage),
        done,
      ],
    ],
    [
      'no space after the colon',
      [...good, usageEvent(usage), done].map((line) => line.replace('data: ', 'data:')),
    ],
  ])('%s', (_name, events) => {
    expect(streamed(...events)).toMatchObject(okWithUsage);
  });

  it('is read without a content type too', () => {
    expect(outcomeOf([...good, done].join(''), '')).toMatchObject({ status: 'ok', text });
  });

  it('leaves usage unknown where its event is missing', () => {
    expect(streamed(...good, done)).toMatchObject({ status: 'ok', text, usage: { inputTokens: null } });
  });

  it('keeps reasoning out of the text', () => {
    const events = [
      delta(null, null, { reasoning_content: 'I look first.' }),
      delta(null, null, { reasoning: 'hm' }),
    ];

    expect(streamed(...events, ...good, done)).toMatchObject({ status: 'ok', text });
  });

  it('reads chunks whose finish reason is missing or empty until the end', () => {
    const bare = event({ choices: [{ delta: { content: 'Red' }, index: 0 }] });
    const empty = delta('!', '');

    expect(streamed(bare, empty, delta('', 'stop'), done)).toMatchObject({ status: 'ok', text: 'Red!' });
  });

  it.each<[string, string[], string, string | null]>([
    ['no finish reason', [...good.slice(0, 3)], 'retry', 'incomplete_stream'],
    ['[DONE] without a finish reason', [...good.slice(0, 3), done], 'retry', 'incomplete_stream'],
    ['nothing at all', [], 'retry', 'incomplete_stream'],
    ['an empty reply', [delta(''), delta('', 'stop'), done], 'retry', 'empty_response'],
    ['length', [delta('A red '), delta('', 'length'), done], 'length', null],
    [
      'length in the middle of reasoning',
      [delta(null, null, { reasoning_content: 'hm' }), delta('', 'length'), done],
      'length',
      null,
    ],
    [
      'content filter',
      [delta('A red '), delta('', 'content_filter'), done],
      'refused',
      'finish_content_filter',
    ],
    ['abort', [delta('A red '), delta('', 'abort'), done], 'retry', 'incomplete_stream'],
    [
      'a refusal in pieces',
      [
        delta(null, null, { refusal: 'I will ' }),
        delta(null, null, { refusal: 'not.' }),
        delta(null, 'stop'),
        done,
      ],
      'refused',
      'provider_refusal',
    ],
    [
      'a broken event between good ones',
      [good[0]!, 'data: {"id":\n\n', ...good.slice(1), done],
      'retry',
      'invalid_response',
    ],
    [
      'an event that is no object',
      [good[0]!, 'data: 5\n\n', ...good.slice(1), done],
      'retry',
      'invalid_response',
    ],
    [
      'a line that is no field',
      [good[0]!, '<p>oops</p>\n\n', ...good.slice(1), done],
      'retry',
      'invalid_response',
    ],
    ['text after the finish reason', [...good, delta('more'), done], 'retry', 'invalid_response'],
    ['an event without choices', [event({ id: 'x' }), ...good, done], 'retry', 'invalid_response'],
    [
      'a server error',
      [delta('A red '), event({ error: { message: 'died', type: 'InternalServerError', code: 500 } }), done],
      'retry',
      'http_500',
    ],
    [
      'a server error after the finish reason',
      [...good, event({ error: { message: 'died', code: 500 } }), done],
      'retry',
      'http_500',
    ],
    [
      'a policy error',
      [
        delta('A red '),
        event({ error: { code: 'data_inspection_failed', message: 'Output refused' }, request_id: 'r' }),
      ],
      'refused',
      'provider_refusal',
    ],
    [
      'the error field of old llama.cpp',
      [delta('A red '), 'error: {"code":500,"message":"died"}\n\n'],
      'retry',
      'http_500',
    ],
  ])('%s', (_name, events, status, kind) => {
    const outcome = streamed(...events);

    expect(outcome.status).toBe(status);
    expect('kind' in outcome ? outcome.kind : null).toBe(kind);
  });

  it('joins the pieces of a refusal', () => {
    const events = [
      delta(null, null, { refusal: 'I will ' }),
      delta(null, 'stop', { refusal: 'not.' }),
      done,
    ];

    expect(streamed(...events)).toMatchObject({ message: 'the model refused: I will not.' });
  });
});

describe('connections that failed', () => {
  const failed = (
    body: string | null,
    kind: 'connection_reset' | 'timeout' | 'reply_too_large' = 'connection_reset',
  ) =>
    failureOutcome(
      {
        kind,
        message: 'other side closed',
        partial:
          body === null
            ? null
            : { status: 200, headers: { 'content-type': 'text/event-stream' }, body: Buffer.from(body) },
      },
      context,
    );

  it('are asked again, with what is known of the reply', () => {
    expect(failed(null)).toMatchObject({
      status: 'retry',
      kind: 'connection_reset',
      httpStatus: null,
      responseId: null,
    });
    expect(failed(good.slice(0, 2).join(''), 'timeout')).toMatchObject({
      status: 'retry',
      kind: 'timeout',
      message: 'other side closed',
      httpStatus: 200,
      responseId: 'id-1',
    });
  });

  it('are no reply after the finish reason alone, and a paid reply after [DONE]', () => {
    expect(failed(good.join(''))).toMatchObject({ status: 'retry', kind: 'connection_reset' });
    expect(failed([...good, done].join(''))).toMatchObject({ status: 'ok', text });
    expect(failed([...good.slice(0, 3), done].join(''))).toMatchObject({
      status: 'retry',
      kind: 'incomplete_stream',
    });
  });

  it('are final where the reply was too large', () => {
    expect(failed(good.join(''), 'reply_too_large')).toMatchObject({
      status: 'failed',
      kind: 'invalid_response',
    });
  });
});

describe('whatever the server sends', () => {
  const words = fc.array(fc.string({ unit: 'grapheme', maxLength: 6 }), { maxLength: 5 });
  const lineEnd = fc.constantFrom('\n', '\r\n', '\r');
  const framed = (events: string[], end: string) => events.join('').replaceAll('\n', end);

  it('a stream cut anywhere never gives a text other than the whole one, and none before its finish reason', () => {
    fc.assert(
      fc.property(words, lineEnd, fc.nat(), (pieces, end, at) => {
        const before = framed(
          pieces.map((piece) => delta(piece)),
          end,
        );
        const finish = framed([delta('', 'stop')], end);
        const bytes = Buffer.from(before + finish + framed([usageEvent({ prompt_tokens: 3 }), done], end));
        const cut = at % bytes.length;

        const outcome = outcomeOf(bytes.subarray(0, cut), 'text/event-stream');

        if (outcome.status === 'ok') {
          expect(outcome.text).toBe(pieces.join(''));
          // All of the finish event but its newlines.
          expect(cut).toBeGreaterThanOrEqual(Buffer.byteLength(before + finish) - 2 * end.length);
        } else expect(outcome.status).toBe('retry');
      }),
      { numRuns: 500 },
    );
  });

  it('a document cut anywhere is never a reply', () => {
    fc.assert(
      fc.property(words, fc.nat(), (pieces, at) => {
        const bytes = Buffer.from(message(pieces.join('')));

        expect(outcomeOf(bytes.subarray(0, at % bytes.length)).status).toBe('retry');
      }),
      { numRuns: 300 },
    );
  });

  it('rubbish ends in an outcome, never in an exception or a reply', () => {
    const rubbish: fc.Arbitrary<string | Buffer> = fc.oneof(
      fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
      fc.string({ unit: 'binary', maxLength: 200 }),
      fc.json(),
      fc.json().map((json) => `data: ${json}\n\n`),
      fc
        .json()
        .map(
          (json) =>
            `{"choices":[{"message":${json},"delta":${json},"finish_reason":${json}}],"usage":${json}}`,
        ),
    );
    fc.assert(
      fc.property(
        rubbish,
        fc.constantFrom('application/json', 'text/event-stream', '', 'text/html'),
        (body, type) => {
          const outcome: CallOutcome = outcomeOf(body, type);

          expect(['retry', 'refused', 'failed', 'stop_lane']).toContain(outcome.status);
        },
      ),
      { numRuns: 1000 },
    );
  });
});
