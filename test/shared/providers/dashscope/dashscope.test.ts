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

const provider = 'dashscope';
const streamed = { stream: true, stream_options: { include_usage: true } };
const mp4 = (content: string) => inline('video/mp4', content);
const wav = (content: string) => inline('audio/wav', content);
const png = (content: string) => inline('image/png', content);

describe('requests that the provider takes', () => {
  it('mix video by address and sound in one message of qwen3.8-omni-flash', async () => {
    const { body, head } = await callLane({
      provider,
      model: 'qwen3.8-omni-flash',
      settings: { temperature: 0, seed: 7, fps: 2, reasoningEffort: 'none' },
      messages: [asking({ video: 'a.mp4' }, { audio: 'a.wav' }, { text: 'What happens?' })],
      clips: { 'a.mp4': address('video/mp4', 'https://media.test/v/a.mp4?sig="x"'), 'a.wav': wav('sound') },
    });

    expect(body).toEqual({
      model: 'qwen3.8-omni-flash',
      ...streamed,
      modalities: ['text'],
      reasoning_effort: 'none',
      temperature: 0,
      seed: 7,
      max_tokens: 256,
      messages: [
        {
          role: 'user',
          content: [
            { type: 'video_url', video_url: { url: 'https://media.test/v/a.mp4?sig="x"' }, fps: 2 },
            {
              type: 'input_audio',
              input_audio: { data: `data:audio/wav;base64,${base64Of('sound')}`, format: 'wav' },
            },
            { type: 'text', text: 'What happens?' },
          ],
        },
      ],
    });
    expect(head).toMatch(/^POST \/v1\/chat\/completions HTTP/);
    expect(head).toMatch(/\r\nauthorization: Bearer test-dashscope\r\n/);
  });

  it('list the frames of a video with their rate beside the list', async () => {
    const { body } = await callLane({
      provider,
      model: 'qwen3-vl-plus',
      settings: { fps: 2 },
      messages: [asking({ video: 'a.mp4' }, { text: 'Name the colours in order.' })],
      clips: { 'a.mp4': [png('red'), png('blue'), png('red'), png('blue')] },
    });

    const [red, blue] = ['red', 'blue'].map((colour) => `data:image/png;base64,${base64Of(colour)}`);
    expect(body).toEqual({
      model: 'qwen3-vl-plus',
      ...streamed,
      enable_thinking: false,
      max_tokens: 256,
      messages: [
        {
          role: 'user',
          content: [
            { type: 'video', video: [red, blue, red, blue], fps: 2 },
            { type: 'text', text: 'Name the colours in order.' },
          ],
        },
      ],
    });
  });

  it('have one medium in each message of qwen3-omni-flash', async () => {
    const { body } = await callLane({
      provider,
      model: 'qwen3-omni-flash',
      settings: { fps: 1 },
      messages: [
        asking({ video: 'a.mp4' }, { text: 'Watch.' }),
        answering('Watched.'),
        asking({ audio: 'a.wav' }, { text: 'And now?' }),
      ],
      clips: { 'a.mp4': mp4('picture'), 'a.wav': wav('sound') },
    });

    expect(body).toEqual({
      model: 'qwen3-omni-flash',
      ...streamed,
      modalities: ['text'],
      enable_thinking: false,
      max_tokens: 256,
      messages: [
        {
          role: 'user',
          content: [
            { type: 'video_url', video_url: { url: `data:video/mp4;base64,${base64Of('picture')}` }, fps: 1 },
            { type: 'text', text: 'Watch.' },
          ],
        },
        { role: 'assistant', content: 'Watched.' },
        {
          role: 'user',
          content: [
            {
              type: 'input_audio',
              input_audio: { data: `data:audio/wav;base64,${base64Of('sound')}`, format: 'wav' },
            },
            { type: 'text', text: 'And now?' },
          ],
        },
      ],
    });
  });

  it('ask a judge for JSON without thinking', async () => {
    const call = {
      maxTokens: 512,
      content: 'Return json with keys verdict and why.',
      responseFormat: { type: 'json_object' },
    };

    expect(await bodyOfJudge(provider, 'qwen3.7-plus', call)).toEqual({
      model: 'qwen3.7-plus',
      ...streamed,
      enable_thinking: false,
      max_tokens: 512,
      response_format: { type: 'json_object' },
      messages: [{ role: 'user', content: 'Return json with keys verdict and why.' }],
    });
    expect(await bodyOfJudge(provider, 'qwen3.7-plus', { ...call, reasoningEffort: 'medium' })).toMatchObject(
      { enable_thinking: true },
    );
    expect(await bodyOfJudge(provider, 'qwen3.7-plus', { ...call, reasoningEffort: 'none' })).toMatchObject({
      enable_thinking: false,
    });
  });

  it('keep the media of every turn and nothing but the visible answers', async () => {
    const { body, outcome } = await callLane({
      provider,
      model: 'qwen3.8-omni-flash',
      messages: [
        asking({ video: 'a.mp4' }, { text: 'One' }),
        answering('First.'),
        asking({ audio: 'b.wav' }, { text: 'Two' }),
        answering('Second.'),
        asking({ text: 'Three' }),
      ],
      clips: { 'a.mp4': mp4('picture'), 'b.wav': wav('sound') },
    });

    expect(body.messages.map((message: { role: string }) => message.role)).toEqual([
      'user',
      'assistant',
      'user',
      'assistant',
      'user',
    ]);
    expect(JSON.stringify(body.messages[0])).toContain(base64Of('picture'));
    expect(body.messages[1]).toEqual({ role: 'assistant', content: 'First.' });
    expect(JSON.stringify(body.messages[2])).toContain(base64Of('sound'));
    expect(outcome.consumed).toEqual({ audio: 1, video: 1 });
  });
});

describe('the forms of clips', () => {
  const messages = [asking({ audio: 'a.wav' }, { video: 'a.mp4' }, { text: 'What happens?' })];
  const clips = { 'a.mp4': mp4('picture'), 'a.wav': wav('sound') };

  it('are silent video and WAV, larger ones by address', async () => {
    const { wanted } = await callLane({
      provider,
      model: 'qwen3.5-omni-plus',
      settings: { fps: 2, videoMaxSide: 512 },
      messages,
      clips,
    });

    expect(wanted).toEqual({
      'a.mp4': { form: { kind: 'video', maxSide: 512, fps: 2 }, inlineBytesAtMost: 7_340_032 },
      'a.wav': { form: { kind: 'wav' }, inlineBytesAtMost: 7_340_032 },
    });
  });

  it.each(['qwen3-omni-flash', 'qwen3-omni-flash-2025-12-01', 'qwen-omni-turbo'])(
    'are one file with sound where %s would refuse two media',
    async (model) => {
      const { body, wanted, outcome } = await callLane({ provider, model, messages, clips });

      expect(wanted).toEqual({
        'a.mp4': {
          form: {
            kind: 'video-with-sound',
            maxSide: 768,
            fps: null,
            sound: { path: 'a.wav', sha256: 'b'.repeat(64) },
          },
          inlineBytesAtMost: 7_340_032,
        },
      });
      expect(body.messages[0].content).toEqual([
        { type: 'video_url', video_url: { url: `data:video/mp4;base64,${base64Of('picture')}` } },
        { type: 'text', text: 'What happens?' },
      ]);
      expect(outcome.consumed).toEqual({ audio: 1, video: 1 });
    },
  );

  it('keep a data URI of the largest inline clip below 10 MB', () => {
    const characters = 'data:video/mp4;base64,'.length + 4 * Math.ceil(7_340_032 / 3);

    expect(characters).toBeLessThan(10_000_000);
  });

  it.each([
    ['qwen3-omni-flash', 1, '2 to 128'],
    ['qwen3-omni-flash', 129, '2 to 128'],
    ['qwen3-vl-plus', 3, '4 to 2000'],
    ['qwen3.5-omni-flash', 2049, '2 to 2048'],
  ])('%s is not sent %i frames', async (model, frames, bounds) => {
    const call = callLane({
      provider,
      model,
      messages: [asking({ video: 'a.mp4' })],
      clips: { 'a.mp4': Array.from({ length: frames }, () => png('red')) },
    });

    await expect(call).rejects.toMatchObject({
      name: 'UsageWrong',
      message: expect.stringContaining(`takes ${bounds} frames`),
    });
  });
});

describe('thinking', () => {
  const members = (body: Record<string, unknown>) => ({
    ...('enable_thinking' in body && { enable_thinking: body.enable_thinking }),
    ...('reasoning_effort' in body && { reasoning_effort: body.reasoning_effort }),
  });

  it.each<[model: string, settings: LaneSettings, sent: Record<string, unknown>]>([
    ['qwen3.8-omni-flash', {}, { reasoning_effort: 'none' }],
    ['qwen3.8-omni-flash', { reasoningEffort: 'low' }, { reasoning_effort: 'low' }],
    ['qwen3.8-omni-flash', { thinking: false }, { reasoning_effort: 'none' }],
    ['qwen3.8-omni-flash', { thinking: true }, { reasoning_effort: 'xhigh' }],
    ['qwen3.5-omni-flash', {}, {}],
    ['qwen3.5-omni-plus-2026-03-15', { thinking: true }, {}],
    ['qwen-omni-turbo', {}, {}],
    ['qwen3-omni-flash', {}, { enable_thinking: false }],
    ['qwen3-omni-flash', { thinking: true }, { enable_thinking: true }],
    ['qwen3-vl-flash', { thinking: false }, { enable_thinking: false }],
    ['qwen3.7-plus', {}, { enable_thinking: false }],
    ['qwen3.7-plus', { thinking: true }, { enable_thinking: true }],
  ])('of %s with %j is said as %j', async (model, settings, sent) => {
    const { body } = await callLane({ provider, model, settings });

    expect(members(body)).toEqual(sent);
  });

  it('never goes with a request for audio', async () => {
    const { body } = await callLane({ provider, model: 'qwen3-omni-flash', settings: { thinking: true } });

    expect(body.modalities).toEqual(['text']);
  });

  it.each(['qwen3-vl-plus', 'qwen3.7-plus'])('of %s needs no modalities', async (model) => {
    expect((await callLane({ provider, model })).body).not.toHaveProperty('modalities');
  });
});

describe('replies', () => {
  const call = (reply: Served) => callLane({ provider, model: 'qwen3.8-omni-flash', reply });
  const of = (name: string) => stream(provider, name);
  const prompt = {
    audioInputTokens: 13,
    videoInputTokens: 1280,
    imageInputTokens: null,
    textInputTokens: 12,
  };

  it('are read with their tokens by medium', async () => {
    const { outcome } = await call(of('ok.sse'));

    expect(outcome).toEqual({
      status: 'ok',
      text: 'A bell, then 蓝 🔵.',
      httpStatus: 200,
      responseId: 'chatcmpl-turnsweep-ds-1',
      servedModel: 'qwen3.8-omni-flash',
      finishReason: 'stop',
      usage: {
        ...prompt,
        inputTokens: 1305,
        outputTokens: 9,
        cachedInputTokens: 0,
        reasoningTokens: null,
      },
      consumed: { audio: 0, video: 0 },
    });
  });

  it('keep thoughts out of the text and are complete without [DONE]', async () => {
    const { outcome } = await call(of('think.sse'));

    expect(outcome).toMatchObject({
      status: 'ok',
      text: 'A bell, then 蓝 🔵.',
      usage: { ...prompt, inputTokens: 1305, outputTokens: 25, reasoningTokens: 16, cachedInputTokens: null },
    });
  });

  it('may leave counts out, which are then unknown', async () => {
    expect((await call(of('text-only-usage.sse'))).outcome).toMatchObject({
      usage: { ...unknownUsage, inputTokens: 12, outputTokens: 9, textInputTokens: 12 },
    });
    expect((await call(of('no-usage.sse'))).outcome).toMatchObject({ status: 'ok', usage: unknownUsage });
  });

  it('count the last of two usages', async () => {
    expect((await call(of('two-usages.sse'))).outcome).toMatchObject({
      status: 'ok',
      usage: { inputTokens: 1305, outputTokens: 9 },
    });
  });

  it('keep what a cut reply had', async () => {
    expect((await call(of('length.sse'))).outcome).toMatchObject({
      status: 'length',
      text: 'A bell',
      usage: { inputTokens: 1305, outputTokens: 2 },
    });
    expect((await call(of('length-in-reasoning.sse'))).outcome).toMatchObject({
      status: 'length',
      text: '',
      usage: { outputTokens: 256, reasoningTokens: 256 },
    });
  });

  it.each(['partial.json', 'partial-without-finish.json'])(
    'are cut where the header says so: %s',
    async (name) => {
      const cut = await call(stream(provider, name, 'x-dashscope-partialresponse: true\r\n'));
      const whole = await call(stream(provider, name));

      expect(cut.outcome).toMatchObject({ status: 'length', text: 'A bell, then' });
      expect(whole.outcome.status).toBe(name === 'partial.json' ? 'ok' : 'retry');
    },
  );

  it.each([
    ['output-refused.sse', 'refused', 'provider_refusal'],
    ['content-filter.sse', 'refused', 'finish_content_filter'],
    ['stop-empty.sse', 'retry', 'empty_response'],
    ['unknown-finish.sse', 'failed', 'finish_repetition_truncation'],
    ['no-finish.sse', 'retry', 'incomplete_stream'],
  ])('%s is %s %s and no text', async (name, status, kind) => {
    const { outcome } = await call(of(name));

    expect(endOf(outcome)).toMatchObject({ status, kind });
    expect(outcome).not.toHaveProperty('text');
  });

  it('with an unknown finish keep its name', async () => {
    expect((await call(of('unknown-finish.sse'))).outcome.finishReason).toBe('repetition_truncation');
  });
});

describe('errors', () => {
  const fault = (status: number, code: string, type = code) =>
    refusal(status, { message: 'x', type, param: null, code }, { request_id: 'turnsweep-ds-9' });
  const bad = 'invalid_request_error';

  it.each<[status: number, code: string, type: string, end: string, kind: string, wait: number | null]>([
    [429, 'insufficient_quota', 'insufficient_quota', 'retry', 'http_429', 60],
    [429, 'Throttling.AllocationQuota', 'Throttling.AllocationQuota', 'retry', 'http_429', 60],
    [429, 'limit_requests', 'limit_requests', 'retry', 'http_429', null],
    [429, 'limit_burst_rate', 'limit_burst_rate', 'retry', 'http_429', null],
    [429, 'Throttling.RateQuota', 'Throttling.RateQuota', 'retry', 'http_429', null],
    [429, 'Throttling', 'Throttling', 'retry', 'http_429', null],
    [429, 'PrepaidBillOverdue', 'PrepaidBillOverdue', 'stop_lane', 'http_429', null],
    [429, 'PostpaidBillOverdue', 'PostpaidBillOverdue', 'stop_lane', 'http_429', null],
    [429, 'CommodityNotPurchased', 'CommodityNotPurchased', 'stop_lane', 'http_429', null],
    [400, 'Arrearage', 'Arrearage', 'stop_lane', 'http_400', null],
    [403, 'AllocationQuota.FreeTierOnly', 'AllocationQuota.FreeTierOnly', 'stop_lane', 'http_403', null],
    [429, 'AllocationQuota.FreeTierOnly', 'insufficient_quota', 'stop_lane', 'http_429', null],
    [403, 'access_denied', 'access_denied', 'stop_lane', 'http_403', null],
    [401, 'invalid_api_key', bad, 'stop_lane', 'http_401', null],
    [404, 'model_not_found', bad, 'stop_lane', 'http_404', null],
    [404, 'model_not_supported', bad, 'stop_lane', 'http_404', null],
    [400, 'data_inspection_failed', 'data_inspection_failed', 'refused', 'provider_refusal', null],
    [400, 'DataInspectionFailed', 'DataInspectionFailed', 'refused', 'provider_refusal', null],
    [400, 'InvalidParameter.DataInspection', bad, 'retry', 'http_400', null],
    [400, 'InvalidURL.Timeout', bad, 'retry', 'http_400', null],
    [400, 'InvalidURL', bad, 'failed', 'http_400', null],
    [400, 'InvalidURL.ConnectionRefused', bad, 'failed', 'http_400', null],
    [400, 'BadRequest.InputDownloadFailed', bad, 'failed', 'http_400', null],
    [400, 'BadRequest.TooLarge', bad, 'failed', 'http_400', null],
    [400, 'InvalidFile.Duration', bad, 'failed', 'http_400', null],
    [400, 'invalid_parameter_error', bad, 'failed', 'http_400', null],
    [400, 'InvalidParameter.NotSupportEnableThinking', bad, 'failed', 'http_400', null],
    [500, 'internal_error', 'internal_error', 'retry', 'http_500', null],
    [500, 'RequestTimeOut', 'RequestTimeOut', 'retry', 'http_500', null],
    [503, 'ModelServingError', 'ModelServingError', 'retry', 'http_503', null],
    [503, 'ModelUnavailable', 'ModelUnavailable', 'retry', 'http_503', null],
  ])('%i %s (%s) is %s', async (status, code, type, end, kind, wait) => {
    const { outcome } = await callLane({
      provider,
      model: 'qwen3.8-omni-flash',
      reply: fault(status, code, type),
    });

    expect(endOf(outcome)).toEqual({ status: end, kind, wait });
    expect(outcome).toMatchObject({ responseId: 'turnsweep-ds-9', usage: unknownUsage });
  });

  it.each([
    // The gate has to know a rate when it sees one, also without its status.
    ['insufficient_quota', 'retry', 'http_429', 60],
    ['limit_requests', 'retry', 'http_429', null],
    ['Throttling.BurstRate', 'retry', 'http_429', null],
    ['internal_error', 'retry', 'http_500', null],
    ['ModelServingError', 'retry', 'http_503', null],
    ['InvalidURL', 'failed', 'http_400', null],
    ['InvalidURL.Timeout', 'retry', 'http_400', null],
    ['Arrearage', 'stop_lane', 'invalid_response', null],
  ])('%s in the middle of a stream is %s %s', async (code, status, kind, wait) => {
    const event = JSON.stringify({ error: { message: 'x', type: code, code }, request_id: 'turnsweep-ds-9' });
    const reply = { body: `data: ${event}\n\n`, type: 'text/event-stream' };

    const { outcome } = await callLane({ provider, model: 'qwen3.8-omni-flash', reply });

    expect(endOf(outcome)).toEqual({ status, kind, wait });
  });

  it('honour the wait that a header names, should there be one', async () => {
    const reply = { ...fault(429, 'insufficient_quota'), headers: 'retry-after: 33\r\n' };

    const { outcome } = await callLane({ provider, model: 'qwen3.8-omni-flash', reply });

    expect(endOf(outcome)).toEqual({ status: 'retry', kind: 'http_429', wait: 33 });
  });

  it('may be a web page', async () => {
    const reply = { body: '<html>slow down</html>', type: 'text/html', status: '429 Slow' };

    const { outcome } = await callLane({ provider, model: 'qwen3.8-omni-flash', reply });

    expect(outcome).toMatchObject({ status: 'retry', kind: 'http_429', message: 'HTTP 429: a web page' });
  });
});

describe('what planning refuses', () => {
  const omniNeeds = {
    channels: ['V', 'A'] as const,
    clipsPerRequest: { audio: 5, video: 5 },
    mixesMedia: true,
    largestClipBytes: null,
  };
  const videoNeeds = { ...omniNeeds, channels: ['V'] as const, mixesMedia: false };
  const misfitsOf = (model: string, needs: Parameters<typeof misfits>[1], settings: LaneSettings) => {
    const { capabilities, clipForms } = providerOf(provider, model);
    return misfits(capabilities(model), needs, settings, clipForms({ model, settings }).mux);
  };

  it.each<[model: string, settings: LaneSettings]>([
    ['qwen3.8-omni-flash', { temperature: 0, seed: 7, fps: 2, reasoningEffort: 'none' }],
    ['qwen3.8-omni-flash', { thinking: true, reasoningEffort: 'high' }],
    ['qwen3.5-omni-plus', { temperature: 0, topP: 1, fps: 10, stream: true }],
    ['qwen3-omni-flash', { thinking: true, fps: 0.1 }],
  ])('nothing: %s with %j', (model, settings) => {
    expect(misfitsOf(model, omniNeeds, settings)).toEqual([]);
  });

  it.each<[model: string, settings: LaneSettings, reason: string]>([
    ['qwen3.8-omni-flash', { stream: false }, 'works with streams only'],
    [
      'qwen3.8-omni-flash',
      { reasoningEffort: 'medium-rare' },
      'has the reasoning efforts none, low, medium, high, xhigh, max, not medium-rare',
    ],
    [
      'qwen3.8-omni-flash',
      { thinking: false, reasoningEffort: 'low' },
      'cannot have thinking false with effort low',
    ],
    ['qwen3.5-omni-flash', { thinking: false }, 'has no setting thinking'],
    ['qwen3.5-omni-flash', { reasoningEffort: 'none' }, 'has no setting reasoningEffort'],
    ['qwen3-omni-flash', { stream: false }, 'works with streams only'],
    ['qwen3-omni-flash', { fps: 11 }, 'takes fps from 0.1 to 10, not 11'],
    ['qwen3-vl-plus', {}, 'takes no audio'],
    ['qwen3.7-plus', {}, 'takes no audio'],
    ['qwen-of-next-year', {}, 'takes no audio'],
  ])('%s with %j: %s', (model, settings, reason) => {
    expect(misfitsOf(model, omniNeeds, settings)).toEqual([reason]);
  });

  it.each(['qwen3-vl-plus', 'qwen3-vl-flash', 'qwen3.7-plus'])('nothing of video alone: %s', (model) => {
    expect(misfitsOf(model, videoNeeds, { fps: 2, thinking: false, stream: false })).toEqual([]);
  });

  it('two media in one message of qwen3-omni-flash, were they not one file', () => {
    const { capabilities } = providerOf(provider, 'x');

    expect(misfits(capabilities('qwen3-omni-flash'), omniNeeds, {}, false)).toEqual([
      'takes video or audio in one message, not both',
    ]);
  });

  it('more clips than data URIs are taken', () => {
    const needs = { ...omniNeeds, clipsPerRequest: { audio: 251, video: 5 } };

    // By their addresses 2,048 sounds pass.
    expect(misfitsOf('qwen3.8-omni-flash', { ...needs, givesUrls: true }, {})).toEqual([]);
    expect(misfitsOf('qwen3.8-omni-flash', { ...needs, givesUrls: false }, {})).toEqual([
      'takes 250 audio clips in a request, history included; 251 are needed',
    ]);
  });

  it('a clip too large for a body where nobody gives it an address', () => {
    // 4/3 of 4,718,592 bytes are 6,291,456 characters.
    const needsOf = (largestClipBytes: number, givesUrls: boolean) => ({
      ...omniNeeds,
      largestClipBytes,
      givesUrls,
    });

    expect(misfitsOf('qwen3.8-omni-flash', needsOf(4_718_592, false), {})).toEqual([]);
    expect(misfitsOf('qwen3.8-omni-flash', needsOf(4_718_593, false), {})).toEqual([
      'takes 6291456 bytes of an encoded clip in a request; the largest clip has 6291460',
    ]);
    expect(misfitsOf('qwen3.8-omni-flash', needsOf(900_000_000, true), {})).toEqual([]);
  });

  it('a lane without an address: keys belong to a region', () => {
    expect(providerOf(provider, 'x').usualBaseUrl).toBeNull();
  });
});
