import { describe, expect, it } from 'vitest';
import { asTheyAre } from '../../../../shared/domain/media.ts';
import type { ResolvedMessage } from '../../../../shared/domain/request.ts';
import type { ClipSource } from '../../../../shared/ports/model-client.ts';
import {
  bodyHead,
  encodeBody,
  mediaMessages,
} from '../../../../shared/providers/chat-completions/request.ts';
import { commonProfile } from '../../../../shared/providers/openai-compatible/provider.ts';

const clipsOf = (contents: Record<string, string>): ClipSource => ({
  load: async ({ type, path }) => {
    const base64 = contents[path];
    if (base64 === undefined) throw Object.assign(new Error(path), { name: 'ObjectMissing' });
    return [{ type: 'inline', mime: type === 'audio' ? 'audio/wav' : 'video/mp4', base64 }];
  },
});
const loading = (clips: ClipSource) => ({ clips, forms: asTheyAre, fps: null, profile: commonProfile });
const clips = clipsOf({ 'a.wav': 'QUFB', 'b.mp4': 'QkI=', 'c.wav': 'Q0M=' });
const call = { maxTokens: 64 };
const sentBy = async (messages: ResolvedMessage[]) => {
  const { pieces, sent } = await mediaMessages(messages, loading(clips));
  return {
    body: JSON.parse(encodeBody(bodyHead(commonProfile, 'm', {}, call), pieces).toString('utf8')),
    sent,
  };
};

describe('messages on the wire', () => {
  it('keeps the frozen order of parts and turns, media of every turn included', async () => {
    const messages: ResolvedMessage[] = [
      {
        role: 'user',
        content: [
          { type: 'audio', path: 'a.wav', sha256: 'x' },
          { type: 'video', path: 'b.mp4', sha256: 'y' },
          { type: 'text', text: 'What is "this"?\nA. 蓝 🔵' },
        ],
      },
      { role: 'assistant', text: 'Blue \\ grey' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'And now?' },
          { type: 'audio', path: 'c.wav', sha256: null },
        ],
      },
    ];

    const { body, sent } = await sentBy(messages);

    expect(body.messages).toEqual([
      {
        role: 'user',
        content: [
          { type: 'input_audio', input_audio: { data: 'QUFB', format: 'wav' } },
          { type: 'video_url', video_url: { url: 'data:video/mp4;base64,QkI=' } },
          { type: 'text', text: 'What is "this"?\nA. 蓝 🔵' },
        ],
      },
      { role: 'assistant', content: 'Blue \\ grey' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'And now?' },
          { type: 'input_audio', input_audio: { data: 'Q0M=', format: 'wav' } },
        ],
      },
    ]);
    expect(sent).toEqual({ audio: 2, video: 1 });
  });

  it('sends a lone surrogate as JSON can carry it', async () => {
    const { body } = await sentBy([{ role: 'user', content: [{ type: 'text', text: 'x\ud83d' }] }]);

    expect(body.messages[0].content[0].text).toBe('x\ud83d');
  });

  it.each([['data:audio/wav;base64,QUFB'], ['QUF']])('refuses clip content %j', async (content) => {
    const messages: ResolvedMessage[] = [
      { role: 'user', content: [{ type: 'audio', path: 'a.wav', sha256: null }] },
    ];

    await expect(mediaMessages(messages, loading(clipsOf({ 'a.wav': content })))).rejects.toMatchObject({
      name: 'ContractViolated',
      message: expect.stringContaining('a.wav'),
    });
  });

  it('passes on that a clip is missing', async () => {
    const messages: ResolvedMessage[] = [
      { role: 'user', content: [{ type: 'audio', path: 'gone.wav', sha256: null }] },
    ];

    await expect(mediaMessages(messages, loading(clips))).rejects.toMatchObject({ name: 'ObjectMissing' });
  });
});

describe('settings on the wire', () => {
  const settingsOf = (head: string) => JSON.parse(`${head}]}`);

  it('streams with usage by default and names nothing that is not set', () => {
    expect(settingsOf(bodyHead(commonProfile, 'm', {}, call))).toEqual({
      model: 'm',
      max_tokens: 64,
      stream: true,
      stream_options: { include_usage: true },
      messages: [],
    });
  });

  it('names everything that is set, zeros included', () => {
    const head = bodyHead(
      {
        body: (model, settings, shape) => ({
          ...commonProfile.body(model, settings, shape),
          mm_processor_kwargs: { fps: 2 },
        }),
      },
      'm',
      {
        temperature: 0,
        topP: 0.5,
        seed: 0,
        reasoningEffort: 'low',
        stream: false,
      },
      { maxTokens: 8, reasoningEffort: 'none', responseFormat: { type: 'json_object' } },
    );

    expect(settingsOf(head)).toEqual({
      model: 'm',
      max_tokens: 8,
      temperature: 0,
      top_p: 0.5,
      seed: 0,
      reasoning_effort: 'none',
      response_format: { type: 'json_object' },
      mm_processor_kwargs: { fps: 2 },
      messages: [],
    });
  });
});
