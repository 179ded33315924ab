import { describe, expect, it } from 'vitest';
import { misfits } from '../../../../shared/domain/capabilities.ts';
import type { LoadedClip } from '../../../../shared/ports/model-client.ts';
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

const provider = 'stepfun';
const hearing = 'stepaudio-2.5-chat';
const seeing = 'step-3.7-flash';

describe('requests that the provider takes', () => {
  it('have text first and sound as a data URI without a format', async () => {
    const { body, head, wanted } = await callLane({
      provider,
      model: hearing,
      messages: [asking({ audio: 'a.wav' }, { text: 'What do you hear?' })],
      clips: { 'a.wav': inline('audio/wav', 'sound') },
    });

    expect(body).toEqual({
      model: hearing,
      stream: true,
      modalities: ['text'],
      max_tokens: 256,
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'What do you hear?' },
            { type: 'input_audio', input_audio: { data: `data:audio/wav;base64,${base64Of('sound')}` } },
          ],
        },
      ],
    });
    expect(head).toMatch(/\r\nauthorization: Bearer test-stepfun\r\n/);
    expect(wanted).toEqual({ 'a.wav': { form: { kind: 'wav' }, inlineBytesAtMost: null } });
  });

  it('have video by its address alone, cut to the rate of the lane', async () => {
    const { body, wanted } = await callLane({
      provider,
      model: seeing,
      settings: { reasoningEffort: 'low', fps: 2 },
      messages: [asking({ video: 'a.mp4' }, { text: 'What happens?' })],
      clips: { 'a.mp4': address('video/mp4', 'https://media.test/v/a.mp4') },
    });

    expect(body).toEqual({
      model: seeing,
      stream: true,
      reasoning_effort: 'low',
      max_tokens: 256,
      messages: [
        {
          role: 'user',
          content: [
            { type: 'video_url', video_url: { url: 'https://media.test/v/a.mp4' } },
            { type: 'text', text: 'What happens?' },
          ],
        },
      ],
    });
    expect(wanted).toEqual({
      'a.mp4': { form: { kind: 'video', maxSide: 768, fps: 2 }, inlineBytesAtMost: 0 },
    });
  });

  it('keep the sound of every turn', async () => {
    const { body, outcome } = await callLane({
      provider,
      model: 'step-audio-2',
      messages: [
        asking({ audio: 'a.wav' }, { text: 'One' }),
        answering('First.'),
        asking({ audio: 'b.wav' }, { text: 'Two' }),
        answering('Second.'),
        asking({ text: 'Three' }),
      ],
      clips: { 'a.wav': inline('audio/wav', 'bell'), 'b.wav': inline('audio/mpeg', 'horn') },
    });

    expect(body.messages.map((message: { content: unknown }) => message.content)).toEqual([
      [
        { type: 'text', text: 'One' },
        { type: 'input_audio', input_audio: { data: `data:audio/wav;base64,${base64Of('bell')}` } },
      ],
      'First.',
      [
        { type: 'text', text: 'Two' },
        { type: 'input_audio', input_audio: { data: `data:audio/mpeg;base64,${base64Of('horn')}` } },
      ],
      'Second.',
      [{ type: 'text', text: 'Three' }],
    ]);
    expect(outcome.consumed).toEqual({ audio: 2, video: 0 });
  });

  it('name no seed, and no stream options beside a stream', async () => {
    const { body } = await callLane({ provider, model: hearing, settings: { seed: 7, stream: false } });

    expect(body).toEqual({
      model: hearing,
      modalities: ['text'],
      max_tokens: 256,
      messages: [{ role: 'user', content: [{ type: 'text', text: 'What happens?' }] }],
    });
  });

  it.each([
    [seeing, {}, 'low'],
    [seeing, { reasoningEffort: 'high' }, 'high'],
    [hearing, {}, undefined],
    ['step-audio-r1.5', {}, undefined],
    ['step-1o-turbo-vision', {}, undefined],
  ])('of %s with %j have the effort %s', async (model, settings, effort) => {
    expect((await callLane({ provider, model, settings })).body.reasoning_effort).toBe(effort);
  });

  it('ask a judge for JSON', async () => {
    const body = await bodyOfJudge(provider, seeing, {
      maxTokens: 512,
      content: 'Judge it.',
      reasoningEffort: 'medium',
      responseFormat: { type: 'json_object' },
    });

    expect(body).toEqual({
      model: seeing,
      stream: true,
      reasoning_effort: 'medium',
      max_tokens: 512,
      response_format: { type: 'json_object' },
      messages: [{ role: 'user', content: 'Judge it.' }],
    });
  });
});

describe('clips that are never sent', () => {
  it.each<[what: string, model: string, clip: LoadedClip]>([
    ['sound by address', hearing, address('audio/wav', 'https://media.test/a.wav')],
    ['sound as OGG', hearing, inline('audio/ogg', 'sound')],
    ['sound as FLAC', hearing, inline('audio/flac', 'sound')],
    ['video as content', seeing, inline('video/mp4', 'picture')],
    ['video from a bucket', seeing, address('video/mp4', 's3://media/a.mp4')],
    ['video as WebM', seeing, address('video/webm', 'https://media.test/a.webm')],
    ['frames', seeing, inline('image/jpeg', 'frame')],
  ])('%s', async (_what, model, clip) => {
    const part = model === hearing ? { audio: 'clip' } : { video: 'clip' };

    const call = callLane({ provider, model, messages: [asking(part)], clips: { clip } });

    await expect(call).rejects.toMatchObject({
      name: 'UsageWrong',
      message: expect.stringContaining(`${clip.type} ${clip.mime}`),
    });
  });
});

describe('replies', () => {
  const call = (reply: Served) => callLane({ provider, model: hearing, reply });
  const of = (name: string) => stream(provider, name);

  it('count the last of their running totals and end where a finish reason has text', async () => {
    expect((await call(of('ok.sse'))).outcome).toEqual({
      status: 'ok',
      text: 'A bell, then 蓝 🔵.',
      httpStatus: 200,
      responseId: 'turnsweep-step-1',
      servedModel: hearing,
      finishReason: 'stop',
      usage: {
        inputTokens: 40,
        outputTokens: 12,
        cachedInputTokens: 0,
        reasoningTokens: null,
        audioInputTokens: null,
        videoInputTokens: null,
        imageInputTokens: null,
        textInputTokens: null,
      },
      consumed: { audio: 0, video: 0 },
    });
  });

  it('keep what a cut reply had', async () => {
    expect((await call(of('length.sse'))).outcome).toMatchObject({ status: 'length', text: 'A bell' });
    expect((await call(of('length-in-reasoning.sse'))).outcome).toMatchObject({ status: 'length', text: '' });
  });

  it.each([
    ['no-finish.sse', 'retry', 'incomplete_stream'],
    ['stop-empty.sse', 'retry', 'empty_response'],
    ['content-filter.sse', 'refused', 'finish_content_filter'],
  ])('%s is %s %s and no text', async (name, status, kind) => {
    const { outcome } = await call(of(name));

    expect(endOf(outcome)).toMatchObject({ status, kind });
    expect(outcome).not.toHaveProperty('text');
  });
});

describe('errors', () => {
  it.each<[status: number, message: string, end: string]>([
    [400, 'bad parameter', 'failed'],
    [400, 'image download failed: not found', 'failed'],
    [400, 'too many images in the request', 'failed'],
    [400, 'the model step-3.7-flash does not support audio input', 'failed'],
    [400, 'the model could not read the clip: unknown format', 'failed'],
    [400, 'model step-9 not found', 'stop_lane'],
    [400, 'The model `step-9` does not exist', 'stop_lane'],
    [400, 'unknown model: step-9', 'stop_lane'],
    [400, 'fake: model "step-9" is unknown', 'stop_lane'],
    [401, 'incorrect key', 'stop_lane'],
    [402, 'no balance', 'stop_lane'],
    [404, 'no such path', 'stop_lane'],
    [429, 'rate limit reached', 'retry'],
    [451, 'content check failed', 'refused'],
    [500, 'internal', 'retry'],
    [503, 'overloaded', 'retry'],
  ])('%i %s is %s', async (status, message, end) => {
    const reply = refusal(status, { message, type: 'invalid_request_error' });

    const { outcome } = await callLane({ provider, model: hearing, reply });

    expect(endOf(outcome)).toEqual({ status: end, kind: `http_${status}`, wait: null });
  });

  it.each([
    ['content check failed', 'invalid_request_error', 'refused', 'http_451'],
    ['too fast', 'rate_limit_error', 'retry', 'http_429'],
    ['it broke', 'InternalServerError', 'retry', 'http_500'],
    ['it broke', 'server_error', 'retry', 'http_500'],
  ])('%s (%s) in the middle of a stream is %s', async (message, type, end, kind) => {
    const body = `data: ${JSON.stringify({ error: { message, type } })}\n\n`;

    const { outcome } = await callLane({
      provider,
      model: hearing,
      reply: { body, type: 'text/event-stream' },
    });

    expect(endOf(outcome)).toEqual({ status: end, kind, wait: null });
  });
});

describe('what planning refuses', () => {
  const needsOf = (...channels: ('V' | 'A')[]) => ({
    channels,
    clipsPerRequest: { audio: 5, video: 5 },
    mixesMedia: channels.length > 1,
    largestClipBytes: null,
  });
  const misfitsOf = (model: string, needs: Parameters<typeof misfits>[1], settings: LaneSettings) => {
    const { capabilities, clipForms } = providerOf(provider, model);
    return misfits(capabilities(model), needs, settings, clipForms({ model, settings }).mux);
  };

  it.each([hearing, 'stepaudio-3-chat-preview', 'step-audio-2-mini', 'step-1o-audio', 'step-audio-r1.1'])(
    'nothing of sound alone: %s',
    (model) => {
      expect(misfitsOf(model, needsOf('A'), { temperature: 0 })).toEqual([]);
      expect(providerOf(provider, model).capabilities(model).partOrder).toBe('text-first');
    },
  );

  it('video where nobody gives it an address', () => {
    const needs = { ...needsOf('V'), largestClipBytes: 1000 };

    expect(misfitsOf(seeing, { ...needs, givesUrls: false }, {})).toEqual([
      'takes video by its address only',
    ]);
    expect(misfitsOf(seeing, { ...needs, givesUrls: true }, {})).toEqual([]);
  });

  it('nothing of video alone with a rate and an effort', () => {
    expect(misfitsOf(seeing, needsOf('V'), { fps: 2, reasoningEffort: 'low' })).toEqual([]);
    expect(providerOf(provider, seeing).capabilities(seeing)).toMatchObject({
      takesInlineVideo: false,
      partOrder: 'frozen',
    });
  });

  it.each<[model: string, channels: ('V' | 'A')[], settings: LaneSettings, reasons: string[]]>([
    [hearing, ['V'], {}, ['takes no video']],
    [seeing, ['A'], {}, ['takes no audio']],
    [hearing, ['V', 'A'], {}, ['takes no video']],
    [hearing, ['A'], { seed: 7 }, ['has no setting seed']],
    [hearing, ['A'], { thinking: false }, ['has no setting thinking']],
    [hearing, ['A'], { reasoningEffort: 'low' }, ['has no setting reasoningEffort']],
    [seeing, ['V'], { reasoningEffort: 'none' }, ['has the reasoning efforts low, medium, high, not none']],
  ])('%s for %j with %j: %j', (model, channels, settings, reasons) => {
    expect(misfitsOf(model, needsOf(...channels), settings)).toEqual(reasons);
  });
});
