import { describe, expect, it } from 'vitest';
import { vllm } from '../../../../shared/providers/vllm/provider.ts';
import {
  answering,
  asking,
  base64Of,
  bodyOfJudge,
  callLane,
  endOf,
  inline,
  stream,
} from '../lane-under-test.ts';

const provider = 'vllm';
const model = 'Qwen/Qwen3-Omni-30B-A3B-Instruct';
const clips = {
  'bell.wav': inline('audio/wav', 'bell'),
  'street.mp4': inline('video/mp4', 'street'),
  'frames.mp4': ['one', 'two'].map((frame) => inline('image/jpeg', frame)),
};
const replyTo = async (reply: Parameters<typeof callLane>[0]['reply']) =>
  (await callLane({ provider, model, reply })).outcome;

describe('a request', () => {
  it('has data URLs, the rate at the top level and no thinking', async () => {
    const { body, wanted } = await callLane({
      provider,
      model,
      settings: { temperature: 0, seed: 7, fps: 2 },
      messages: [
        asking({ video: 'street.mp4' }, { audio: 'bell.wav' }, { text: 'What happens?' }),
        answering('A car stops.'),
        asking({ audio: 'bell.wav' }, { text: 'And now?' }),
      ],
      clips,
    });

    const sound = { type: 'audio_url', audio_url: { url: `data:audio/wav;base64,${base64Of('bell')}` } };
    expect(body).toEqual({
      model,
      stream: true,
      stream_options: { include_usage: true },
      temperature: 0,
      seed: 7,
      max_tokens: 256,
      mm_processor_kwargs: { fps: 2, do_sample_frames: true },
      chat_template_kwargs: { enable_thinking: false },
      messages: [
        {
          role: 'user',
          content: [
            { type: 'video_url', video_url: { url: `data:video/mp4;base64,${base64Of('street')}` } },
            sound,
            { type: 'text', text: 'What happens?' },
          ],
        },
        { role: 'assistant', content: 'A car stops.' },
        { role: 'user', content: [sound, { type: 'text', text: 'And now?' }] },
      ],
    });
    // The server samples: the file keeps its own rate.
    expect(wanted['street.mp4']?.form).toEqual({ kind: 'video', maxSide: 768, fps: null });
  });

  it('leaves the sampling of frames to the server where the lane names no rate', async () => {
    const { body } = await callLane({ provider, model, settings: { stream: false } });

    expect(body).toEqual({
      model,
      max_tokens: 256,
      chat_template_kwargs: { enable_thinking: false },
      messages: [{ role: 'user', content: [{ type: 'text', text: 'What happens?' }] }],
    });
  });

  it('joins frames in one URL', async () => {
    const { body } = await callLane({ provider, model, messages: [asking({ video: 'frames.mp4' })], clips });

    expect(body.messages[0].content).toEqual([
      {
        type: 'video_url',
        video_url: { url: `data:video/jpeg;base64,${base64Of('one')},${base64Of('two')}` },
      },
    ]);
  });

  it.each([
    [{}, false],
    [{ thinking: true }, true],
    [{ thinking: false }, false],
    [{ reasoningEffort: 'high' }, true],
    [{ reasoningEffort: 'none' }, false],
  ])('with %j thinks: %s', async (settings, thinks) => {
    const { body } = await callLane({ provider, model, settings });

    expect(body.chat_template_kwargs).toEqual({ enable_thinking: thinks });
  });

  it('of a judge has its effort', async () => {
    const body = await bodyOfJudge(provider, model, {
      maxTokens: 9,
      content: 'x',
      reasoningEffort: 'medium',
    });

    expect(body).toMatchObject({
      max_tokens: 9,
      reasoning_effort: 'medium',
      chat_template_kwargs: { enable_thinking: true },
    });
  });

  it('may have any number of clips until the lane knows the limits of its server', () => {
    expect(vllm.capabilities(model).clipsPerRequest).toEqual({ audio: null, video: null });
  });
});

describe('a reply', () => {
  it('has no split of its tokens', async () => {
    expect(await replyTo(stream(provider, 'reply.sse'))).toEqual({
      status: 'ok',
      text: 'Two bells, then 猫 🐱.',
      httpStatus: 200,
      responseId: 'chatcmpl-tt-vllm-1',
      servedModel: 'local',
      finishReason: 'stop',
      consumed: { audio: 0, video: 0 },
      usage: {
        inputTokens: 1290,
        outputTokens: 11,
        cachedInputTokens: null,
        reasoningTokens: null,
        audioInputTokens: null,
        videoInputTokens: null,
        imageInputTokens: null,
        textInputTokens: null,
      },
    });
  });

  it('is free of the reasoning that stands beside it, whichever name that has', async () => {
    expect(await replyTo(stream(provider, 'reasoning.sse'))).toMatchObject({
      status: 'ok',
      text: 'Two bells, then 猫 🐱.',
      usage: { outputTokens: 19 },
    });
  });

  it('of a server without a reasoning parser is kept raw', async () => {
    expect(await replyTo(stream(provider, 'inline-thinking.sse'))).toMatchObject({
      status: 'ok',
      text: '<think>\nI listen.\n</think>\n\nTwo bells, then 猫 🐱.',
    });
  });

  it('that was cut in its thinking is no answer', async () => {
    expect(endOf(await replyTo(stream(provider, 'inline-thinking-cut.sse')))).toMatchObject({
      status: 'length',
    });
  });
});

describe('a fault', () => {
  it('inside a stream is asked again, though [DONE] follows', async () => {
    expect(await replyTo(stream(provider, 'error-in-stream.sse'))).toMatchObject({
      status: 'retry',
      kind: 'http_500',
      httpStatus: 200,
      message: 'the reply reports an error: EngineCore encountered an issue.',
    });
  });

  it.each([
    ['bad-part.json', '400 Bad Request', 'failed', 'http_400', 'HTTP 400: Unknown part type: video'],
    [
      'bad-part-old.json',
      '400 Bad Request',
      'failed',
      'http_400',
      'HTTP 400: At most 1 audio(s) may be provided in one prompt.',
    ],
    ['bad-part-old.json', '200 OK', 'failed', 'http_400', expect.stringContaining('At most 1 audio')],
  ])('%s under %s', async (name, status, expected, kind, message) => {
    expect(await replyTo({ ...stream(provider, name), status })).toMatchObject({
      status: expected,
      kind,
      message,
    });
  });

  it.each([
    ['401 Unauthorized', { error: 'Unauthorized' }, 'stop_lane'],
    [
      '404 Not Found',
      {
        error: { message: 'The model `m` does not exist.', type: 'NotFoundError', param: 'model', code: 404 },
      },
      'stop_lane',
    ],
    ['500 Internal', { error: { message: 'x', type: 'InternalServerError', code: 500 } }, 'retry'],
    ['503 Service Unavailable', '', 'retry'],
  ])('%s is %j: %s', async (status, body, expected) => {
    const reply = { body: typeof body === 'string' ? body : JSON.stringify(body), status };

    expect(endOf(await replyTo(reply))).toMatchObject({ status: expected });
  });
});
