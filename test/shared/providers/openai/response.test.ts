import { describe, expect, it } from 'vitest';
import { callLane, endOf, refusal, stream } from '../lane-under-test.ts';

const provider = 'openai';
const replyTo = async (reply: Parameters<typeof callLane>[0]['reply']) =>
  (await callLane({ provider, model: 'gpt-audio-mini', reply })).outcome;
const named = (code: string | null, type = 'invalid_request_error', message = 'No.') => ({
  message,
  type,
  param: null,
  code,
});

describe('replies', () => {
  it('are read with their usage', async () => {
    const outcome = await replyTo(stream(provider, 'reply.sse', 'x-request-id: req_1\r\n'));

    expect(outcome).toEqual({
      status: 'ok',
      text: 'Two bells, then 猫 🐱.',
      httpStatus: 200,
      responseId: 'chatcmpl-tt-oai-1',
      servedModel: 'gpt-audio-mini-2026-01-01',
      finishReason: 'stop',
      consumed: { audio: 0, video: 0 },
      usage: {
        inputTokens: 71,
        outputTokens: 11,
        cachedInputTokens: 4,
        reasoningTokens: 0,
        audioInputTokens: 50,
        videoInputTokens: null,
        imageInputTokens: null,
        textInputTokens: 21,
      },
    });
  });

  it('that refuse are refusals', async () => {
    expect(await replyTo(stream(provider, 'refusal.json'))).toMatchObject({
      status: 'refused',
      kind: 'provider_refusal',
      message: 'the model refused: I will not judge that.',
      usage: { inputTokens: 33, outputTokens: 8 },
    });
  });

  it('that a filter cut are refusals too', async () => {
    expect(endOf(await replyTo(stream(provider, 'content-filter.sse')))).toMatchObject({
      status: 'refused',
      kind: 'finish_content_filter',
    });
  });

  it('that end in an empty wallet stop the lane', async () => {
    expect(endOf(await replyTo(stream(provider, 'quota-in-stream.sse')))).toMatchObject({
      status: 'stop_lane',
    });
  });
});

describe('errors', () => {
  it.each<[number, ReturnType<typeof named>, string, string]>([
    [400, named('invalid_value'), 'failed', 'http_400'],
    [400, named('unsupported_value'), 'failed', 'http_400'],
    [400, named('context_length_exceeded'), 'failed', 'http_400'],
    [400, named('content_policy_violation'), 'refused', 'provider_refusal'],
    [400, named('content_filter'), 'refused', 'provider_refusal'],
    [400, named('invalid_prompt'), 'refused', 'provider_refusal'],
    [400, named('cyber_policy'), 'refused', 'provider_refusal'],
    [401, named('invalid_api_key'), 'stop_lane', 'http_401'],
    [403, named('unsupported_country_region_territory'), 'stop_lane', 'http_403'],
    [404, named('model_not_found'), 'stop_lane', 'http_404'],
    [429, named('insufficient_quota', 'insufficient_quota'), 'stop_lane', 'http_429'],
    [429, named('rate_limit_exceeded', 'tokens', 'Rate limit reached for gpt-audio.'), 'retry', 'http_429'],
    [
      429,
      named(
        'rate_limit_exceeded',
        'tokens',
        'Request too large for gpt-audio: Limit 30000, Requested 61337.',
      ),
      'failed',
      'http_429',
    ],
    [500, named(null, 'server_error'), 'retry', 'http_500'],
    [503, named(null, 'overloaded'), 'retry', 'http_503'],
  ])('%i %j is %s %s', async (status, error, expected, kind) => {
    expect(endOf(await replyTo(refusal(status, error)))).toMatchObject({ status: expected, kind });
  });

  it.each([
    [named('rate_limit_exceeded', 'tokens'), 'retry', 'http_429'],
    [named('context_length_exceeded'), 'failed', 'http_400'],
    [named(null, 'server_error'), 'retry', 'http_500'],
    [named('insufficient_quota'), 'stop_lane', 'http_429'],
  ])('inside a stream: %j', async (error, status, kind) => {
    const body = `data: ${JSON.stringify({ error })}\n\n`;

    expect(endOf(await replyTo({ body, type: 'text/event-stream' }))).toMatchObject({ status, kind });
  });

  it('keep the id of the request', async () => {
    const reply = {
      ...stream(provider, 'bad-part.json', 'x-request-id: req_2\r\n'),
      status: '400 Bad Request',
    };

    expect(await replyTo(reply)).toMatchObject({
      status: 'failed',
      kind: 'http_400',
      responseId: 'req_2',
      message: "HTTP 400: invalid_value: Invalid value: 'ogg'.",
    });
  });

  it.each([
    ['x-ratelimit-reset-tokens: 1m2.5s\r\n', 62.5],
    ['retry-after: 9\r\nx-ratelimit-reset-tokens: 1m2.5s\r\n', 9],
    ['retry-after-ms: 1500\r\nretry-after: 9\r\n', 1.5],
    ['', null],
  ])('say how long to wait: %j', async (headers, wait) => {
    const reply = { ...refusal(429, named('rate_limit_exceeded')), headers };

    expect(endOf(await replyTo(reply))).toMatchObject({ status: 'retry', wait });
  });

  it('mean no wait by an allowance that was not the matter', async () => {
    const reply = {
      ...refusal(500, named(null, 'server_error')),
      headers: 'x-ratelimit-reset-tokens: 40s\r\n',
    };

    expect(endOf(await replyTo(reply))).toMatchObject({ status: 'retry', wait: null });
  });
});
