import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import type { ProviderName } from '../../../mock/dialects/dialect.ts';
import {
  accepted,
  answerOf,
  audioUrl,
  bedrockPath,
  blue,
  eventsOf,
  geminiPath,
  jpegs,
  jsonOf,
  mp4,
  type Request,
  red,
  send,
  startedMock,
  text,
  user,
  videoUrl,
  wav,
  whole,
  withParts,
} from './requests.ts';

const lastUsage = (body: string) => {
  const value = eventsOf(body).at(-1)!;
  return value.usage ?? value.usageMetadata;
};

// Digests from Python's hashlib over the media bytes in order; of a URL that nobody serves, over its text.
const digests: Record<keyof typeof accepted, string> = {
  dashscope: 'turns=1;media=video,audio;sha=d234756c',
  ark: 'turns=1;media=video,audio;sha=e117c852',
  stepfun: 'turns=1;media=audio;sha=c1f17541',
  openai: 'turns=1;media=audio;sha=c1f17541',
  vllm: 'turns=1;media=video,audio;sha=1fefcf39',
  sglang: 'turns=1;media=audio;sha=c1f17541',
  llamacpp: 'turns=1;media=audio;sha=c1f17541',
  gemini: 'turns=1;media=video,audio;sha=1fefcf39',
  bedrock: 'turns=1;media=video,audio;sha=f9b7670f',
};
const names = Object.keys(accepted) as (keyof typeof accepted)[];

describe('a request in the dialect of its provider', () => {
  it.each(names)('%s: is answered with what arrived, as a stream and as a document', async (name) => {
    const server = await startedMock();

    const one = await send(server, accepted[name]());
    const other = await send(server, whole(accepted[name]()));

    expect([one.status, other.status]).toEqual([200, 200]);
    expect(await answerOf(one)).toBe(digests[name]);
    expect(await answerOf(other)).toBe(digests[name]);
    expect(server.stats()).toMatchObject({ requests: 2, replies: 2, malformed: 0 });
  });

  // 18 characters in the dialects with a system text (9 + 9), else 9; video 640 a frame a second; a begun second of
  // sound 13 on DashScope, 32 on Gemini, 25 elsewhere; the answer of 38 characters is 10 tokens, of 32 it is 8.
  it.each<[keyof typeof accepted, object]>([
    [
      'dashscope',
      {
        prompt_tokens: 5 + 1280 + 13,
        completion_tokens: 10,
        total_tokens: 1308,
        prompt_tokens_details: { text_tokens: 5, audio_tokens: 13, video_tokens: 1280, cached_tokens: 0 },
        completion_tokens_details: { text_tokens: 10 },
      },
    ],
    [
      'ark',
      {
        prompt_tokens: 3 + 1280 + 25,
        completion_tokens: 10,
        total_tokens: 1318,
        prompt_tokens_details: { cached_tokens: 0, audio_tokens: 25 },
        completion_tokens_details: { reasoning_tokens: 0 },
      },
    ],
    ['stepfun', {}],
    [
      'openai',
      {
        prompt_tokens: 28,
        completion_tokens: 8,
        total_tokens: 36,
        prompt_tokens_details: { cached_tokens: 0, audio_tokens: 25, text_tokens: 3 },
        completion_tokens_details: {
          reasoning_tokens: 0,
          audio_tokens: 0,
          accepted_prediction_tokens: 0,
          rejected_prediction_tokens: 0,
        },
      },
    ],
    ['vllm', { prompt_tokens: 3 + 1280 + 25, total_tokens: 1318, completion_tokens: 10 }],
    ['sglang', { prompt_tokens: 28, total_tokens: 36, completion_tokens: 8 }],
    ['llamacpp', { prompt_tokens: 28, total_tokens: 36, completion_tokens: 8 }],
    [
      'gemini',
      {
        promptTokenCount: 5 + 1280 + 32,
        candidatesTokenCount: 10,
        totalTokenCount: 1327,
        promptTokensDetails: [
          { modality: 'TEXT', tokenCount: 5 },
          { modality: 'VIDEO', tokenCount: 1280 },
          { modality: 'AUDIO', tokenCount: 32 },
        ],
      },
    ],
  ])('%s: counts its tokens by the rule', async (name, expected) => {
    const server = await startedMock();

    const body = await (await send(server, accepted[name]())).text();

    if (name === 'stepfun') {
      // Cumulative in every chunk; the one before [DONE] has it all.
      const counts = eventsOf(body).map(({ usage }) => usage!.completion_tokens);
      expect(counts).toEqual([0, 4, 8, 8]);
    } else expect(lastUsage(body)).toEqual(expected);
  });

  it('shows a medium that is missing, another order and another turn', async () => {
    const server = await startedMock();
    const video = { type: 'video_url', video_url: { url: `data:video/mp4;base64,${mp4}` } };
    const sound = { type: 'audio_url', audio_url: { url: `data:audio/wav;base64,${wav}` } };
    const asked = async (...messages: object[]) =>
      answerOf(await send(server, whole(accepted.vllm({ messages }))));

    expect(await asked(user(video, text('x')))).toBe('turns=1;media=video;sha=754ed2f2');
    expect(await asked(user(text('x')))).toBe('turns=1;media=none;sha=none');
    const first = await asked(user(video), { role: 'assistant', content: 'Seen.' }, user(sound));
    expect(first).toBe('turns=2;media=video,audio;sha=1fefcf39');
    expect(await asked(user(sound, video))).not.toContain('1fefcf39');
  });

  it('hears the sound of a video where the model does', async () => {
    const server = await startedMock();
    const box = (name: string, ...content: Buffer[]) => {
      const size = Buffer.alloc(4);
      size.writeUInt32BE(8 + Buffer.concat(content).length);
      return Buffer.concat([size, Buffer.from(name), ...content]);
    };
    // Movie header of version 0 with 600 units a second and 1,500 units: 2.5 seconds.
    const times = Buffer.alloc(20);
    times.writeUInt32BE(600, 12);
    times.writeUInt32BE(1500, 16);
    const handler = (kind: string) =>
      box('trak', box('mdia', box('hdlr', Buffer.alloc(8), Buffer.from(kind))));
    const movie = (...tracks: string[]) =>
      Buffer.concat([Buffer.from(mp4, 'base64'), box('moov', box('mvhd', times), ...tracks.map(handler))]);
    const audioTokens = async (model: string, ...tracks: string[]) => {
      const url = `data:video/mp4;base64,${movie(...tracks).toString('base64')}`;
      const thinking = model.includes('omni') ? {} : { enable_thinking: false };
      const request = withParts(
        accepted.dashscope({ model, reasoning_effort: undefined, ...thinking }),
        { type: 'video_url', video_url: { url } },
        text('x'),
      );
      return eventsOf(await (await send(server, request)).text()).at(-1)!.usage;
    };

    // 3 begun seconds of 13 tokens.
    expect(await audioTokens('qwen3-omni-flash', 'vide', 'soun')).toMatchObject({
      prompt_tokens_details: { video_tokens: 1280, audio_tokens: 39 },
    });
    expect(await audioTokens('qwen3-omni-flash', 'vide')).not.toHaveProperty(
      'prompt_tokens_details.audio_tokens',
    );
    expect(await audioTokens('qwen3-vl-plus', 'vide', 'soun')).not.toHaveProperty(
      'prompt_tokens_details.audio_tokens',
    );
  });

  it('is answered with JSON that keeps the schema where it asks for it', async () => {
    const server = await startedMock();
    const schema = {
      type: 'object',
      properties: {
        verdict: { type: 'string', enum: ['pass', 'fail'] },
        why: { type: 'string' },
        points: { type: 'array', items: { type: 'integer' } },
      },
      required: ['verdict', 'why', 'points'],
      additionalProperties: false,
    };
    const request: Request = {
      provider: 'openai',
      body: {
        model: 'gpt-5.4-mini',
        reasoning_effort: 'none',
        response_format: { type: 'json_schema', json_schema: { name: 'verdict', strict: true, schema } },
        messages: [{ role: 'user', content: 'Judge it.' }],
      },
    };

    const answer = JSON.parse(await answerOf(await send(server, request)));

    expect(answer).toEqual({ verdict: 'pass', why: 'turns=1;media=none;sha=none', points: [0] });
  });

  it('thinks where the provider does unless it is told not to', async () => {
    const server = await startedMock();
    const reasoning = async (request: Request) => {
      const { choices, usage } = await jsonOf(await send(server, whole(request)));
      return { message: choices![0]!.message, details: usage!.completion_tokens_details };
    };

    const off = await reasoning(accepted.dashscope());
    const usual = await reasoning(accepted.dashscope({ reasoning_effort: undefined }));
    const ark = await reasoning(accepted.ark({ thinking: undefined }));

    expect(off.message).not.toHaveProperty('reasoning_content');
    expect(usual.message?.reasoning_content).toBe('I look first.');
    expect(usual.details).toMatchObject({ reasoning_tokens: 16 });
    expect(ark.message?.reasoning_content).toBe('I look first.');
  });

  it.each<[string, Request, string]>([
    [
      'frames of DashScope',
      {
        provider: 'dashscope',
        body: {
          model: 'qwen3-vl-plus',
          stream: true,
          enable_thinking: false,
          messages: [
            user(
              {
                type: 'video',
                video: [red, blue, red, blue].map((frame) => `data:image/png;base64,${frame}`),
                fps: 2,
              },
              text('Order?'),
            ),
          ],
        },
      },
      'turns=1;media=frames;sha=caf5efe1',
    ],
    [
      'one medium a message of qwen3-omni-flash',
      {
        provider: 'dashscope',
        body: {
          model: 'qwen3-omni-flash',
          stream: true,
          messages: [
            user({ type: 'video_url', video_url: { url: `data:;base64,${mp4}` }, fps: 1 }, text('See.')),
            { role: 'assistant', content: 'Seen.' },
            user({ type: 'input_audio', input_audio: { data: `data:;base64,${wav}` } }, text('Hear.')),
          ],
        },
      },
      'turns=2;media=video,audio;sha=1fefcf39',
    ],
    [
      'images with time stamps of Ark',
      withParts(
        accepted.ark(),
        text('t=0.0s'),
        { type: 'image_url', image_url: { url: `data:image/png;base64,${red}`, detail: 'low' } },
        text('t=0.5s'),
        { type: 'image_url', image_url: { url: `data:image/png;base64,${blue}`, detail: 'low' } },
        text('Last?'),
      ),
      'turns=1;media=image,image;sha=0b226015',
    ],
    [
      'audio of Ark as base64',
      withParts(
        accepted.ark(),
        { type: 'input_audio', input_audio: { data: wav, format: 'wav' } },
        text('x'),
      ),
      'turns=1;media=audio;sha=c1f17541',
    ],
    [
      'video of StepFun',
      withParts(
        accepted.stepfun({ model: 'step-3.7-flash', modalities: undefined, reasoning_effort: 'low' }),
        { type: 'video_url', video_url: { url: videoUrl } },
        text('x'),
      ),
      'turns=1;media=video;sha=0323af47',
    ],
    [
      'a frame list of vLLM',
      withParts(
        accepted.vllm(),
        { type: 'video_url', video_url: { url: `data:video/jpeg;base64,${jpegs.join(',')}` } },
        text('x'),
      ),
      'turns=1;media=frames;sha=29bfb7b2',
    ],
    [
      'a URL with a signature, which is no part of the medium',
      withParts(
        accepted.ark(),
        { type: 'video_url', video_url: { url: `${videoUrl}?X-Amz-Signature=abc` } },
        { type: 'input_audio', input_audio: { url: `${audioUrl}?X-Amz-Signature=def` } },
        text('x'),
      ),
      'turns=1;media=video,audio;sha=e117c852',
    ],
  ])('takes %s', async (_name, request, digest) => {
    const server = await startedMock();

    const response = await send(server, request);

    expect(response.status).toBe(200);
    expect(await answerOf(response)).toBe(digest);
  });
});

const reference = path.join(import.meta.dirname, '../../../../shared/reference/provider-apis.md');
describe.runIf(existsSync(reference))('the accepted requests of the reference', () => {
  const page = existsSync(reference) ? readFileSync(reference, 'utf8') : '';
  const vector = (id: string): string => {
    const start = page.indexOf('```json\n', page.indexOf(`**${id}`)) + 8;
    return page
      .slice(start, page.indexOf('\n```', start))
      .replaceAll('<WAV>', wav)
      .replaceAll('<RED>', red)
      .replaceAll('<BLUE>', blue)
      .replaceAll('<MP4>', mp4)
      .replace('<JPEG1>', jpegs[0])
      .replace('<JPEG2>', jpegs[1]);
  };
  it.each<[string, ProviderName, string?]>([
    ['A-DS-1', 'dashscope'],
    ['A-DS-2', 'dashscope'],
    ['A-DS-3', 'dashscope'],
    ['A-DS-4', 'dashscope'],
    ['A-ARK-1', 'ark'],
    ['A-ARK-2', 'ark'],
    ['A-STEP-1', 'stepfun'],
    ['A-STEP-2', 'stepfun'],
    ['A-OAI-1', 'openai'],
    ['A-OAI-2', 'openai'],
    ['A-VLLM-1', 'vllm'],
    ['A-VLLM-2', 'vllm'],
    ['A-SGL-1', 'sglang'],
    ['A-LCP-1', 'llamacpp'],
    ['A-GEM-1', 'gemini', geminiPath()],
    ['A-BED-1', 'bedrock', bedrockPath()],
  ])('%s is accepted', async (id, provider, at) => {
    const server = await startedMock();

    const response = await send(server, { provider, path: at, body: JSON.parse(vector(id)) });

    expect(response.status).toBe(200);
    expect(await answerOf(response)).toContain('sha=');
  });
});
