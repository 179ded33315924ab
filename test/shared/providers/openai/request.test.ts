import { describe, expect, it } from 'vitest';
import { openAi } from '../../../../shared/providers/openai/provider.ts';
import { createChatCallerFor } from '../../../../shared/providers/registry.ts';
import { answering, asking, base64Of, bodyOfJudge, callLane, inline } from '../lane-under-test.ts';

const provider = 'openai';
const clips = {
  'bell.wav': inline('audio/wav', 'bell'),
  'drum.mp3': inline('audio/mpeg', 'drum'),
  'wind.flac': inline('audio/flac', 'wind'),
  'street.mp4': ['one', 'two', 'three'].map((frame) => inline('image/jpeg', frame)),
};
const picture = (frame: string) => ({
  type: 'image_url',
  image_url: { url: `data:image/jpeg;base64,${base64Of(frame)}` },
});

describe('what goes to an audio model', () => {
  it('is bare base64, and asks for text alone', async () => {
    const messages = [asking({ audio: 'bell.wav' }, { text: 'What rings?' })];

    const { body, wanted, head } = await callLane({ provider, model: 'gpt-audio-mini', messages, clips });

    expect(body).toEqual({
      model: 'gpt-audio-mini',
      stream: true,
      stream_options: { include_usage: true, include_obfuscation: false },
      modalities: ['text'],
      max_completion_tokens: 256,
      messages: [
        {
          role: 'user',
          content: [
            { type: 'input_audio', input_audio: { data: 'YmVsbA==', format: 'wav' } },
            { type: 'text', text: 'What rings?' },
          ],
        },
      ],
    });
    expect(wanted['bell.wav']?.form).toEqual({ kind: 'wav' });
    expect(head).toMatch(/^POST \/v1\/chat\/completions HTTP/);
    expect(head).toMatch(/\r\nauthorization: Bearer test-openai/);
  });

  it('names the kind of file, and nothing goes out that the part cannot name', async () => {
    const heard = (path: string) =>
      callLane({ provider, model: 'gpt-audio', messages: [asking({ audio: path })], clips });

    expect((await heard('drum.mp3')).body.messages[0].content[0].input_audio).toEqual({
      data: base64Of('drum'),
      format: 'mp3',
    });
    await expect(heard('wind.flac')).rejects.toMatchObject({
      name: 'UsageWrong',
      message: expect.stringContaining('audio/flac'),
    });
  });

  it('takes sampling settings as they are', async () => {
    const settings = { temperature: 0, topP: 0.5, seed: 7, stream: false };

    const { body } = await callLane({ provider, model: 'gpt-audio', settings });

    expect(body).toEqual({
      model: 'gpt-audio',
      modalities: ['text'],
      temperature: 0,
      top_p: 0.5,
      seed: 7,
      max_completion_tokens: 256,
      messages: [{ role: 'user', content: [{ type: 'text', text: 'What happens?' }] }],
    });
  });
});

describe('what goes to a model that sees', () => {
  it('is a video as pictures in its place, nothing added, earlier turns included', async () => {
    const messages = [
      asking({ text: 'Look:' }, { video: 'street.mp4' }, { text: 'Which colour?' }),
      answering('Red.'),
      asking({ video: 'street.mp4' }, { text: 'And now?' }),
    ];

    const { body, wanted, outcome } = await callLane({
      provider,
      model: 'gpt-5.4-mini',
      settings: { reasoningEffort: 'none' },
      messages,
      clips,
    });

    expect(body).toEqual({
      model: 'gpt-5.4-mini',
      stream: true,
      stream_options: { include_usage: true, include_obfuscation: false },
      reasoning_effort: 'none',
      max_completion_tokens: 256,
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'Look:' },
            picture('one'),
            picture('two'),
            picture('three'),
            { type: 'text', text: 'Which colour?' },
          ],
        },
        { role: 'assistant', content: 'Red.' },
        {
          role: 'user',
          content: [picture('one'), picture('two'), picture('three'), { type: 'text', text: 'And now?' }],
        },
      ],
    });
    expect(wanted['street.mp4']).toEqual({
      form: { kind: 'frames', maxSide: 768, fps: 2 },
      inlineBytesAtMost: null,
    });
    // A video counts as one, however many pictures it is.
    expect(outcome).toMatchObject({ consumed: { audio: 0, video: 2 } });
  });

  it('is cut at the rate and size of the lane', () => {
    expect(openAi.clipForms({ model: 'gpt-5.4', settings: { fps: 0.5, videoMaxSide: 512 } })).toEqual({
      video: { kind: 'frames', maxSide: 512, fps: 0.5 },
      audio: { kind: 'wav' },
      mux: false,
    });
  });

  it.each([
    ['gpt-5.5', {}, 'medium'],
    ['o4-mini', {}, 'medium'],
    ['gpt-5.5', { reasoningEffort: 'xhigh' }, 'xhigh'],
    ['ft:gpt-5.4-mini:org::1', {}, 'medium'],
    ['gpt-4.1', {}, undefined],
    ['gpt-5-chat-latest', {}, undefined],
    ['gpt-audio', {}, undefined],
    ['something-new', {}, undefined],
    ['something-new', { reasoningEffort: 'low' }, 'low'],
  ])('%s with %j has the effort %s', async (model, settings, effort) => {
    const { body } = await callLane({ provider, model, settings });

    expect(body.reasoning_effort).toBe(effort);
  });
});

describe('what goes to a judge', () => {
  it('has its effort and its format', async () => {
    const responseFormat = {
      type: 'json_schema',
      json_schema: { name: 'reviews', strict: true, schema: { type: 'object', additionalProperties: false } },
    };

    const body = await bodyOfJudge(provider, 'gpt-5.4-mini', {
      maxTokens: 512,
      content: 'Judge it.',
      reasoningEffort: 'none',
      responseFormat,
    });

    expect(body).toEqual({
      model: 'gpt-5.4-mini',
      stream: true,
      stream_options: { include_usage: true, include_obfuscation: false },
      reasoning_effort: 'none',
      max_completion_tokens: 512,
      response_format: responseFormat,
      messages: [{ role: 'user', content: 'Judge it.' }],
    });
  });

  it('does not go to an audio model', () => {
    expect(() =>
      createChatCallerFor({ provider, model: 'gpt-audio-mini', baseUrl: null, maxInFlight: 1 }, 'sk-test'),
    ).toThrow(
      expect.objectContaining({ name: 'UsageWrong', message: expect.stringContaining('gpt-audio-mini') }),
    );
  });
});
