import { describe, expect, it } from 'vitest';
import { sglang } from '../../../../shared/providers/sglang/provider.ts';
import { asking, base64Of, callLane, endOf, inline, stream } from '../lane-under-test.ts';

const provider = 'sglang';
const model = 'default';
const clips = {
  'bell.wav': inline('audio/wav', 'bell'),
  'street.mp4': inline('video/mp4', 'street'),
};
const replyTo = async (reply: Parameters<typeof callLane>[0]['reply']) =>
  (await callLane({ provider, model, reply })).outcome;

describe('a request', () => {
  it('has its sound as audio_url, and no rate: the file has it', async () => {
    const { body, wanted } = await callLane({
      provider,
      model,
      settings: { fps: 2 },
      messages: [asking({ audio: 'bell.wav' }, { video: 'street.mp4' }, { text: 'What happens?' })],
      clips,
    });

    expect(body).toEqual({
      model,
      stream: true,
      stream_options: { include_usage: true },
      max_tokens: 256,
      chat_template_kwargs: { enable_thinking: false },
      messages: [
        {
          role: 'user',
          content: [
            { type: 'audio_url', audio_url: { url: `data:audio/wav;base64,${base64Of('bell')}` } },
            { type: 'video_url', video_url: { url: `data:video/mp4;base64,${base64Of('street')}` } },
            { type: 'text', text: 'What happens?' },
          ],
        },
      ],
    });
    expect(wanted['street.mp4']?.form).toEqual({ kind: 'video', maxSide: 768, fps: 2 });
  });

  it('keeps the rate of a clip where the lane names none', () => {
    expect(sglang.clipForms({ model, settings: { videoMaxSide: 320 } }).video).toEqual({
      kind: 'video',
      maxSide: 320,
      fps: null,
    });
  });
});

describe('a reply', () => {
  it('is read beside fields that no one else has', async () => {
    expect(await replyTo(stream(provider, 'reply.sse'))).toMatchObject({
      status: 'ok',
      text: 'Two bells, then 猫 🐱.',
      finishReason: 'stop',
      usage: { inputTokens: 1290, outputTokens: 11, audioInputTokens: null, cachedInputTokens: null },
    });
  });

  it('that the server gave up is asked for again', async () => {
    expect(await replyTo(stream(provider, 'abort.sse'))).toMatchObject({
      status: 'retry',
      kind: 'incomplete_stream',
      finishReason: 'abort',
    });
  });

  it('that refuses a part is final', async () => {
    const body = JSON.stringify({
      object: 'error',
      message: 'Input tag input_audio',
      type: 'BadRequest',
      code: 400,
    });

    expect(endOf(await replyTo({ body, status: '400 Bad Request' }))).toMatchObject({
      status: 'failed',
      kind: 'http_400',
    });
  });
});
