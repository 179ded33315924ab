import { describe, expect, it } from 'vitest';
import { misfits } from '../../../../shared/domain/capabilities.ts';
import { unknownUsage } from '../../../../shared/domain/outcome.ts';
import type { LaneSettings } from '../../../../shared/providers/provider.ts';
import { providerOf } from '../../../../shared/providers/registry.ts';
import {
  address,
  answering,
  asking,
  base64Of,
  bodyOfJudge,
  callLane,
  endOf,
  inline,
  refusal,
  type Served,
  stream,
} from '../lane-under-test.ts';

const provider = 'ark';
const lite = 'doubao-seed-2-0-lite-260428';

describe('requests that the provider takes', () => {
  it('have the rate inside the video and sound by address beside it', async () => {
    const { body, head } = await callLane({
      provider,
      model: lite,
      settings: { temperature: 0, fps: 2 },
      messages: [asking({ video: 'a.mp4' }, { audio: 'a.wav' }, { text: 'What happens?' })],
      clips: {
        'a.mp4': address('video/mp4', 'https://media.test/v/a.mp4'),
        'a.wav': address('audio/wav', 'https://media.test/a/a.wav'),
      },
    });

    expect(body).toEqual({
      model: lite,
      stream: true,
      stream_options: { include_usage: true },
      thinking: { type: 'disabled' },
      max_tokens: 256,
      temperature: 0,
      messages: [
        {
          role: 'user',
          content: [
            { type: 'video_url', video_url: { url: 'https://media.test/v/a.mp4', fps: 2 } },
            { type: 'input_audio', input_audio: { url: 'https://media.test/a/a.wav', format: 'wav' } },
            { type: 'text', text: 'What happens?' },
          ],
        },
      ],
    });
    expect(head).toMatch(/\r\nauthorization: Bearer test-ark\r\n/);
  });

  it('have content as a data URI of video and bare base64 of sound', async () => {
    const { body } = await callLane({
      provider,
      model: lite,
      messages: [asking({ audio: 'a.wav' }, { video: 'a.mp4' }, { text: 'What happens?' })],
      clips: { 'a.mp4': inline('video/mp4', 'picture'), 'a.wav': inline('audio/wav', 'sound') },
    });

    expect(body.messages[0].content).toEqual([
      { type: 'input_audio', input_audio: { data: base64Of('sound'), format: 'wav' } },
      { type: 'video_url', video_url: { url: `data:video/mp4;base64,${base64Of('picture')}` } },
      { type: 'text', text: 'What happens?' },
    ]);
  });

  it('have frames as pictures after their times', async () => {
    const png = (content: string) => inline('image/png', content);

    const { body } = await callLane({
      provider,
      model: lite,
      settings: { fps: 2, stream: false },
      messages: [asking({ video: 'a.mp4' }, { text: 'Which colour is last?' })],
      clips: { 'a.mp4': [png('red'), png('blue')] },
    });

    const picture = (content: string) => ({
      type: 'image_url',
      image_url: { url: `data:image/png;base64,${base64Of(content)}`, detail: 'low' },
    });
    expect(body).toEqual({
      model: lite,
      thinking: { type: 'disabled' },
      max_tokens: 256,
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 't=0.0s' },
            picture('red'),
            { type: 'text', text: 't=0.5s' },
            picture('blue'),
            { type: 'text', text: 'Which colour is last?' },
          ],
        },
      ],
    });
  });

  it('have frames without times where no rate is known, and times to the hundredth where needed', async () => {
    const frames = {
      provider,
      model: lite,
      messages: [asking({ video: 'a.mp4' })],
      clips: { 'a.mp4': ['a', 'b', 'c', 'd'].map((content) => inline('image/jpeg', content)) },
    };

    const plain = await callLane(frames);
    const timed = await callLane({ ...frames, settings: { fps: 4 } });

    const texts = ({ body }: typeof plain) =>
      body.messages[0].content.flatMap((part: { text?: string }) => part.text ?? []);
    expect(texts(plain)).toEqual([]);
    expect(texts(timed)).toEqual(['t=0.0s', 't=0.25s', 't=0.5s', 't=0.75s']);
  });

  it('keep the media of every turn', async () => {
    const { body, outcome } = await callLane({
      provider,
      model: lite,
      messages: [
        asking({ video: 'a.mp4' }, { text: 'One' }),
        answering('First.'),
        asking({ audio: 'b.wav' }, { text: 'Two' }),
        answering('Second.'),
        asking({ text: 'Three' }),
      ],
      clips: { 'a.mp4': inline('video/mp4', 'picture'), 'b.wav': inline('audio/wav', 'sound') },
    });

    expect(body.messages).toHaveLength(5);
    expect(JSON.stringify(body.messages[0])).toContain(base64Of('picture'));
    expect(body.messages[1]).toEqual({ role: 'assistant', content: 'First.' });
    expect(JSON.stringify(body.messages[2])).toContain(base64Of('sound'));
    expect(outcome.consumed).toEqual({ audio: 1, video: 1 });
  });

  it('name one cap and no seed, whatever the lane has', async () => {
    const { body } = await callLane({ provider, model: lite, settings: { seed: 7, topP: 0.5 } });

    expect(body).toMatchObject({ max_tokens: 256, top_p: 0.5 });
    expect(body).not.toHaveProperty('max_completion_tokens');
    expect(body).not.toHaveProperty('seed');
  });

  it.each<[settings: LaneSettings, sent: Record<string, unknown>]>([
    [{}, { thinking: { type: 'disabled' } }],
    [{ thinking: false }, { thinking: { type: 'disabled' } }],
    [{ reasoningEffort: 'minimal' }, { thinking: { type: 'disabled' } }],
    [{ thinking: true }, { thinking: { type: 'enabled' } }],
    [{ reasoningEffort: 'low' }, { thinking: { type: 'enabled' }, reasoning_effort: 'low' }],
    [
      { thinking: true, reasoningEffort: 'high' },
      { thinking: { type: 'enabled' }, reasoning_effort: 'high' },
    ],
  ])('say with %j that thinking is %j', async (settings, sent) => {
    const { body } = await callLane({ provider, model: lite, settings });

    const { thinking, reasoning_effort } = body;
    expect({ thinking, ...(reasoning_effort !== undefined && { reasoning_effort }) }).toEqual(sent);
  });

  it('take the effort of a judge', async () => {
    const body = await bodyOfJudge(provider, lite, {
      maxTokens: 512,
      content: 'Judge it.',
      reasoningEffort: 'medium',
    });

    expect(body).toEqual({
      model: lite,
      stream: true,
      stream_options: { include_usage: true },
      thinking: { type: 'enabled' },
      reasoning_effort: 'medium',
      max_tokens: 512,
      messages: [{ role: 'user', content: 'Judge it.' }],
    });
  });

  it('ask for silent video and WAV, above 37 MB by address', async () => {
    const { wanted } = await callLane({
      provider,
      model: lite,
      messages: [asking({ audio: 'a.wav' }, { video: 'a.mp4' })],
      clips: { 'a.mp4': inline('video/mp4', 'picture'), 'a.wav': inline('audio/wav', 'sound') },
    });

    expect(wanted).toEqual({
      'a.mp4': { form: { kind: 'video', maxSide: 768, fps: null }, inlineBytesAtMost: 37_000_000 },
      'a.wav': { form: { kind: 'wav' }, inlineBytesAtMost: 37_000_000 },
    });
    expect(4 * Math.ceil(37_000_000 / 3)).toBeLessThan(50_000_000);
  });
});

describe('replies', () => {
  const call = (reply: Served) => callLane({ provider, model: lite, reply });
  const of = (name: string) => stream(provider, name);

  it('are read though their chunks lack the finish reason', async () => {
    expect((await call(of('ok.sse'))).outcome).toEqual({
      status: 'ok',
      text: 'A bell, then 蓝 🔵.',
      httpStatus: 200,
      responseId: 'turnsweep-ark-1',
      servedModel: lite,
      finishReason: 'stop',
      usage: {
        inputTokens: 1305,
        outputTokens: 9,
        cachedInputTokens: 0,
        reasoningTokens: 0,
        audioInputTokens: 25,
        videoInputTokens: null,
        imageInputTokens: null,
        textInputTokens: null,
      },
      consumed: { audio: 0, video: 0 },
    });
  });

  it('keep thoughts out of the text', async () => {
    expect((await call(of('think.sse'))).outcome).toMatchObject({
      status: 'ok',
      text: 'A bell, then 蓝 🔵.',
      usage: { outputTokens: 30, reasoningTokens: 21, cachedInputTokens: 256, audioInputTokens: null },
    });
  });

  it('may lack the usage, which is then unknown', async () => {
    expect((await call(of('no-usage.sse'))).outcome).toMatchObject({ status: 'ok', usage: unknownUsage });
  });

  it('keep what a cut reply had', async () => {
    expect((await call(of('length.sse'))).outcome).toMatchObject({ status: 'length', text: 'A bell' });
    expect((await call(of('length-in-reasoning.sse'))).outcome).toMatchObject({ status: 'length', text: '' });
  });

  it.each([
    ['content-filter.sse', 'refused', 'finish_content_filter'],
    ['output-refused.sse', 'refused', 'provider_refusal'],
    ['stop-empty.sse', 'retry', 'empty_response'],
    ['no-finish.sse', 'retry', 'incomplete_stream'],
  ])('%s is %s %s and no text', async (name, status, kind) => {
    const { outcome } = await call(of(name));

    expect(endOf(outcome)).toMatchObject({ status, kind });
    expect(outcome).not.toHaveProperty('text');
  });
});

describe('errors', () => {
  it.each<[status: number, code: string, end: string, kind: string]>([
    [400, 'InputTextSensitiveContentDetected', 'refused', 'provider_refusal'],
    [400, 'InputImageSensitiveContentDetected', 'refused', 'provider_refusal'],
    [400, 'InputVideoSensitiveContentDetected', 'refused', 'provider_refusal'],
    [400, 'InputAudioSensitiveContentDetected', 'refused', 'provider_refusal'],
    [400, 'InputTextRiskDetection', 'refused', 'provider_refusal'],
    [400, 'ContentSecurityDetectionError', 'refused', 'provider_refusal'],
    [400, 'OutputTextSensitiveContentDetected', 'refused', 'provider_refusal'],
    [400, 'InvalidImageURL.EmptyURL', 'failed', 'http_400'],
    [400, 'InvalidParameter.Whatever', 'failed', 'http_400'],
    [400, 'InvalidParameter', 'failed', 'http_400'],
    [400, 'MissingParameter', 'failed', 'http_400'],
    [400, 'OutofContextError', 'failed', 'http_400'],
    [401, 'AuthenticationError', 'stop_lane', 'http_401'],
    [403, 'AccountOverdueError', 'stop_lane', 'http_403'],
    [403, 'AccessDenied', 'stop_lane', 'http_403'],
    [404, 'InvalidEndpointOrModel.NotFound', 'stop_lane', 'http_404'],
    [404, 'ModelNotOpen', 'stop_lane', 'http_404'],
    [429, 'SetLimitExceeded', 'stop_lane', 'http_429'],
    [429, 'QuotaExceeded', 'stop_lane', 'http_429'],
    [429, 'RateLimitExceeded.EndpointRPMExceeded', 'retry', 'http_429'],
    [429, 'RateLimitExceeded.EndpointTPMExceeded', 'retry', 'http_429'],
    [429, 'ModelAccountRpmRateLimitExceeded', 'retry', 'http_429'],
    [429, 'ModelAccountTpmRateLimitExceeded', 'retry', 'http_429'],
    [429, 'ModelAccountIpmRateLimitExceeded', 'retry', 'http_429'],
    [429, 'APIAccountRpmRateLimitExceeded', 'retry', 'http_429'],
    [429, 'AccountRateLimitExceeded', 'retry', 'http_429'],
    [429, 'ServerOverloaded', 'retry', 'http_429'],
    [429, 'RequestBurstTooFast', 'retry', 'http_429'],
    [429, 'InflightBatchsizeExceeded', 'retry', 'http_429'],
    [500, 'InternalServiceError', 'retry', 'http_500'],
  ])('%i %s is %s', async (status, code, end, kind) => {
    const reply = refusal(status, {
      code,
      message: 'x. Request id: turnsweep-ark-9',
      param: 'messages',
      type: status === 429 ? 'TooManyRequests' : 'BadRequest',
    });

    const { outcome } = await callLane({ provider, model: lite, reply });

    expect(endOf(outcome)).toEqual({ status: end, kind, wait: null });
  });

  it.each([
    ['InternalServiceError', 'retry', 'http_500'],
    ['ModelAccountTpmRateLimitExceeded', 'retry', 'http_429'],
    ['RateLimitExceeded.EndpointRPMExceeded', 'retry', 'http_429'],
    ['ServerOverloaded', 'retry', 'http_429'],
    ['InvalidParameter.Whatever', 'failed', 'http_400'],
    ['SetLimitExceeded', 'stop_lane', 'http_429'],
    ['OutputTextSensitiveContentDetected', 'refused', 'provider_refusal'],
  ])('%s in the middle of a stream is %s %s', async (code, status, kind) => {
    const reply = {
      body: `data: ${JSON.stringify({ error: { code, message: 'x', type: 'BadRequest' } })}\n\n`,
      type: 'text/event-stream',
    };

    expect((await callLane({ provider, model: lite, reply })).outcome).toMatchObject({ status, kind });
  });
});

describe('what planning refuses', () => {
  const needs = {
    channels: ['V', 'A'] as const,
    clipsPerRequest: { audio: 5, video: 5 },
    mixesMedia: true,
    largestClipBytes: null,
  };
  const misfitsOf = (model: string, settings: LaneSettings) => {
    const { capabilities, clipForms } = providerOf(provider, model);
    return misfits(capabilities(model), needs, settings, clipForms({ model, settings }).mux);
  };

  it.each<[model: string, settings: LaneSettings]>([
    [lite, { temperature: 0, fps: 2, thinking: false, stream: false }],
    ['doubao-seed-2-0-mini-260428', { fps: 0.2, reasoningEffort: 'minimal' }],
    ['seed-2-0-lite-260428', { fps: 5 }],
    ['ep-20260428120000-abcde', { thinking: true, reasoningEffort: 'high' }],
  ])('nothing: %s with %j', (model, settings) => {
    expect(misfitsOf(model, settings)).toEqual([]);
  });

  it.each<[model: string, settings: LaneSettings, reason: string]>([
    [lite, { seed: 7 }, 'has no setting seed'],
    [lite, { fps: 6 }, 'takes fps from 0.2 to 5, not 6'],
    [lite, { fps: 0.1 }, 'takes fps from 0.2 to 5, not 0.1'],
    [lite, { reasoningEffort: 'xhigh' }, 'has the reasoning efforts minimal, low, medium, high, not xhigh'],
    [lite, { thinking: true, reasoningEffort: 'minimal' }, 'cannot have thinking true with effort minimal'],
    ['doubao-seed-2-0-pro-260215', {}, 'takes no audio'],
    ['doubao-seed-2-0-lite-260215', {}, 'takes no audio'],
  ])('%s with %j: %s', (model, settings, reason) => {
    expect(misfitsOf(model, settings)).toEqual([reason]);
  });
});
