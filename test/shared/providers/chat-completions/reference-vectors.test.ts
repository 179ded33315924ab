import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { createChatCaller } from '../../../../shared/providers/chat-completions/client.ts';
import { openAiProfile } from '../../../../shared/providers/openai/request.ts';
import type { LaneSettings } from '../../../../shared/providers/provider.ts';
import { asking, callLane, endOf, type Kept } from '../lane-under-test.ts';
import { startRawServer } from '../raw-server.ts';

// Vectors that stand beside the checkout, not in it: written by others, so they check request and reader alike.

const reference = path.join(
  import.meta.dirname,
  '..',
  '..',
  '..',
  '..',
  '..',
  'shared',
  'reference',
  'provider-apis.md',
);
const isThere = existsSync(reference);
if (!isThere) console.warn('reference-vectors: ../shared/reference is not there, its vectors are not run');
const page = isThere ? readFileSync(reference, 'utf8') : '';

/** Text of the first fenced block after a vector's name. */
const vector = (name: string): string => {
  const from = page.slice(page.indexOf(`**${name}`));
  return /```(?:json|sse)\n([\s\S]*?)```/.exec(from)![1]!;
};
/** Base64 of a fixture of the page's table. */
const bytesOf = (name: string): string => {
  const row = page.split('\n').find((line) => line.startsWith(`| \`${name}\` `))!;
  return /`([A-Za-z0-9+/=]+)` \|$/.exec(row)![1]!;
};
const request = (name: string) =>
  JSON.parse(vector(name).replaceAll(/<(WAV|MP4|RED|BLUE)>/g, (_, fixture) => bytesOf(fixture)));
const file = (mime: string, base64: string): Kept => ({ type: 'inline', mime, base64 });

interface Row {
  vector: string;
  provider: string;
  model: string;
  settings?: LaneSettings;
  message: Parameters<typeof asking>;
  clips: () => Record<string, Kept>;
  /** What we send beside the vector, and why it may: every call has a cap, and switches thinking off. */
  more: object;
}
const wav = () => ({ a: file('audio/wav', bytesOf('WAV')) });
const noThinking = { chat_template_kwargs: { enable_thinking: false } };
const rows: Row[] = [
  {
    vector: 'A-OAI-1',
    provider: 'openai',
    model: 'gpt-audio-mini',
    message: [{ audio: 'a' }, { text: 'What do you hear?' }],
    clips: wav,
    more: {},
  },
  {
    vector: 'A-VLLM-1',
    provider: 'vllm',
    model: 'Qwen/Qwen3-Omni-30B-A3B-Instruct',
    settings: { temperature: 0, seed: 7, fps: 2 },
    message: [{ video: 'v' }, { audio: 'a' }, { text: 'What happens?' }],
    clips: () => ({ ...wav(), v: file('video/mp4', bytesOf('MP4')) }),
    more: {},
  },
  {
    vector: 'A-VLLM-2',
    provider: 'vllm',
    model: 'Qwen/Qwen3-VL-8B-Instruct',
    settings: { stream: false },
    message: [{ video: 'v' }, { text: 'Order?' }],
    clips: () => ({
      v: ['<JPEG1>', '<JPEG2>'].map((base64) => ({
        type: 'inline' as const,
        mime: 'image/jpeg',
        base64: Buffer.from(base64).toString('base64'),
      })),
    }),
    more: { max_tokens: 256, ...noThinking },
  },
  {
    vector: 'A-SGL-1',
    provider: 'sglang',
    model: 'default',
    message: [{ audio: 'a' }, { text: 'What do you hear?' }],
    clips: wav,
    more: { max_tokens: 256, ...noThinking },
  },
  {
    vector: 'A-LCP-1',
    provider: 'llamacpp',
    model: 'local',
    message: [{ audio: 'a' }, { text: 'What do you hear?' }],
    clips: wav,
    more: { max_tokens: 256, ...noThinking },
  },
];

describe.runIf(isThere)('requests of the reference', () => {
  it.each(rows)('$vector', async ({ vector: name, provider, model, settings, message, clips, more }) => {
    const expected = request(name);
    for (const part of expected.messages[0].content) {
      // Servers know equal clips by their content: no names of our own are sent.
      delete part.uuid;
      if (name === 'A-VLLM-2' && part.video_url) {
        part.video_url.url = part.video_url.url.replaceAll(/<JPEG\d>/g, (frame: string) =>
          Buffer.from(frame).toString('base64'),
        );
      }
    }

    const { body } = await callLane({
      provider,
      model,
      settings,
      messages: [asking(...message)],
      clips: clips(),
    });

    expect(body).toEqual({ ...expected, ...more });
  });

  it('A-OAI-2', async () => {
    const { model, messages, response_format, reasoning_effort, ...rest } = request('A-OAI-2');
    const server = await startRawServer((socket) => socket.destroy());
    const caller = createChatCaller({
      baseUrl: server.url,
      apiKey: null,
      model,
      settings: { stream: false },
      profile: openAiProfile,
      maxInFlight: 1,
    });

    await caller.complete({
      messages,
      maxTokens: 512,
      deadlineMs: 5000,
      reasoningEffort: reasoning_effort,
      responseFormat: response_format,
    });
    await caller.close();
    await server.close();

    expect(JSON.parse(server.requests[0]!.split('\r\n\r\n')[1]!)).toEqual({
      model,
      messages,
      response_format,
      reasoning_effort,
      ...rest,
    });
  });
});

describe.runIf(isThere)('replies of the reference', () => {
  const sse = 'text/event-stream; charset=utf-8';
  const ok = { status: 'ok', text: 'A red light, then 蓝 🔵.', finishReason: 'stop' };

  it.each([
    [
      'S-OAI-OK',
      'openai',
      { inputTokens: 37, outputTokens: 9, audioInputTokens: 25, videoInputTokens: null },
    ],
    [
      'S-VLLM-OK',
      'vllm',
      { inputTokens: 1305, outputTokens: 9, audioInputTokens: null, videoInputTokens: null },
    ],
    ['S-VLLM-OK', 'sglang', { inputTokens: 1305, outputTokens: 9, audioInputTokens: null }],
    ['S-VLLM-OK', 'llamacpp', { inputTokens: 1305, outputTokens: 9, audioInputTokens: null }],
  ])('%s by %s', async (name, provider, usage) => {
    const { outcome } = await callLane({ provider, model: 'm', reply: { body: vector(name), type: sse } });

    expect(outcome).toMatchObject({ ...ok, usage });
  });

  it.each([
    ['S-OAI-REFUSAL', 'openai', '200 OK', 'refused', 'provider_refusal'],
    ['E-OAI', 'openai', '400 Bad Request', 'failed', 'http_400'],
    ['E-VLLM**', 'vllm', '400 Bad Request', 'failed', 'http_400'],
    ['E-VLLM-OLD', 'vllm', '400 Bad Request', 'failed', 'http_400'],
  ])('%s by %s', async (name, provider, status, expected, kind) => {
    const { outcome } = await callLane({ provider, model: 'm', reply: { body: vector(name), status } });

    expect(endOf(outcome)).toMatchObject({ status: expected, kind });
  });

  it.each([
    ['F-18 bytes', 'length', null],
    ['F-19 bytes', 'length', null],
    ['F-22 bytes', 'retry', 'incomplete_stream'],
    ['F-31 bytes', 'retry', 'http_500'],
  ])('%s', async (name, status, kind) => {
    const { outcome } = await callLane({
      provider: 'vllm',
      model: 'm',
      reply: { body: vector(name), type: sse },
    });

    expect(endOf(outcome)).toMatchObject({ status, kind });
  });
});
