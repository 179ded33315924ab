import { describe, expect, it } from 'vitest';
import { asking, base64Of, callLane, endOf, inline, refusal, stream } from '../lane-under-test.ts';

const provider = 'llamacpp';
const model = 'local';
const clips = {
  'bell.wav': inline('audio/wav', 'bell'),
  'street.mp4': ['one', 'two'].map((frame) => inline('image/jpeg', frame)),
};
const replyTo = async (reply: Parameters<typeof callLane>[0]['reply']) =>
  (await callLane({ provider, model, reply })).outcome;

describe('a request', () => {
  it('has bare sound, and pictures for a video', async () => {
    const { body, wanted } = await callLane({
      provider,
      model,
      settings: { fps: 1, temperature: 0 },
      messages: [asking({ video: 'street.mp4' }, { audio: 'bell.wav' }, { text: 'What happens?' })],
      clips,
    });

    const picture = (frame: string) => ({
      type: 'image_url',
      image_url: { url: `data:image/jpeg;base64,${base64Of(frame)}` },
    });
    expect(body).toEqual({
      model,
      stream: true,
      stream_options: { include_usage: true },
      temperature: 0,
      max_tokens: 256,
      chat_template_kwargs: { enable_thinking: false },
      messages: [
        {
          role: 'user',
          content: [
            picture('one'),
            picture('two'),
            { type: 'input_audio', input_audio: { data: base64Of('bell'), format: 'wav' } },
            { type: 'text', text: 'What happens?' },
          ],
        },
      ],
    });
    expect(wanted['street.mp4']?.form).toEqual({ kind: 'frames', maxSide: 768, fps: 1 });
  });
});

describe('an effort', () => {
  it('goes to the chat template', async () => {
    const { body } = await callLane({ provider, model, settings: { reasoningEffort: 'high' } });

    expect(body).not.toHaveProperty('reasoning_effort');
    expect(body.chat_template_kwargs).toEqual({ enable_thinking: true, reasoning_effort: 'high' });
  });
});

describe('a reply', () => {
  it('is read beside its timings', async () => {
    expect(await replyTo(stream(provider, 'reply.sse'))).toMatchObject({
      status: 'ok',
      text: 'Two bells, then 猫 🐱.',
      finishReason: 'stop',
      usage: { inputTokens: 1290, outputTokens: 11, audioInputTokens: null },
    });
  });

  it('that breaks off in the way of older builds is asked for again', async () => {
    expect(await replyTo(stream(provider, 'error-line.sse'))).toMatchObject({
      status: 'retry',
      kind: 'http_500',
      message: 'the reply reports an error: slot unavailable',
    });
  });
});

describe('a fault', () => {
  it.each([
    ['no-mmproj.json', '500 Internal Server Error', 'failed', 'http_500'],
    ['loading.json', '503 Service Unavailable', 'retry', 'http_503'],
    ['no-mmproj.json', '200 OK', 'failed', 'http_500'],
  ])('%s under %s is %s', async (name, status, expected, kind) => {
    expect(endOf(await replyTo({ ...stream(provider, name), status }))).toMatchObject({
      status: expected,
      kind,
    });
  });

  it.each([
    ['unsupported content[].type', 'failed'],
    ['Failed to load image or audio file', 'failed'],
    ['the request exceeds the available context size', 'failed'],
    ['Compute error.', 'retry'],
  ])('500 %s is %s', async (message, status) => {
    const reply = refusal(500, { code: 500, message, type: 'server_error' });

    expect(endOf(await replyTo(reply))).toMatchObject({ status, kind: 'http_500' });
  });

  it('of a prompt that is too long is final', async () => {
    const error = { code: 400, message: 'the request exceeds it', type: 'exceed_context_size_error' };

    expect(endOf(await replyTo(refusal(400, error)))).toMatchObject({ status: 'failed', kind: 'http_400' });
  });
});
