import {
  BedrockRuntimeClient,
  ConverseCommand,
  ConverseStreamCommand,
} from '@aws-sdk/client-bedrock-runtime';
import { GoogleGenAI } from '@google/genai';
import { NodeHttpHandler } from '@smithy/node-http-handler';
import OpenAI, { APIError } from 'openai';
import { describe, expect, it } from 'vitest';
import type { MockProvider } from '../../mock/server.ts';
import { accepted, startedMock, wav } from './dialects/requests.ts';

// Clients that others wrote: the fake is not shaped to ours.

const sample = 'A red light, then 蓝 🔵.';
type Chat = 'dashscope' | 'ark' | 'stepfun' | 'openai' | 'vllm' | 'sglang' | 'llamacpp';
const chats: readonly Chat[] = ['dashscope', 'ark', 'stepfun', 'openai', 'vllm', 'sglang', 'llamacpp'];

describe('the openai package', () => {
  const clientOf = (server: MockProvider, provider: Chat) =>
    new OpenAI({
      apiKey: `test-${provider === 'stepfun' ? 'step' : provider}`,
      baseURL: server.urlOf(provider),
      maxRetries: 0,
    });
  const read = async (server: MockProvider, provider: Chat) => {
    const body = accepted[provider]().body as unknown as OpenAI.ChatCompletionCreateParamsStreaming;
    let text = '';
    let finish: string | null = null;
    let output: number | undefined;
    for await (const chunk of await clientOf(server, provider).chat.completions.create(body)) {
      text += chunk.choices[0]?.delta?.content ?? '';
      finish = chunk.choices[0]?.finish_reason || finish;
      output = chunk.usage?.completion_tokens ?? output;
    }
    return { text, finish, output };
  };

  it.each(chats)('reads the stream of %s', async (provider) => {
    const server = await startedMock();

    const { text, finish, output } = await read(server, provider);

    expect(text).toMatch(/^turns=1;media=(video,)?audio;sha=[0-9a-f]{8}$/);
    expect(finish).toBe('stop');
    expect(output).toBe(text.length === 38 ? 10 : 8);
  });

  it.each<[Chat, string, number]>([
    ['dashscope', 'S-DS-OK', 9],
    ['dashscope', 'S-DS-THINK', 25],
    ['ark', 'S-ARK-OK', 9],
    ['stepfun', 'S-STEP-OK', 12],
    ['openai', 'S-OAI-OK', 9],
    ['vllm', 'S-VLLM-OK', 9],
    ['openai', 'F-40:comments', 9],
    ['openai', 'F-41', 9],
    ['openai', 'F-42', 9],
    ['openai', 'F-43', 9],
  ])('reads %s %s', async (provider, id, output) => {
    const server = await startedMock();
    server.control({ provider, queue: [id] });

    expect(await read(server, provider)).toEqual({ text: sample, finish: 'stop', output });
  });

  it.each<[Chat, string, object]>([
    ['dashscope', 'F-16', { code: 'data_inspection_failed' }],
    ['vllm', 'F-31', { code: 500 }],
    ['ark', 'F-04', { status: 429, code: 'ModelAccountRpmRateLimitExceeded' }],
    ['openai', 'F-07', { status: 429, code: 'insufficient_quota', type: 'insufficient_quota' }],
  ])('throws at %s %s', async (provider, id, error) => {
    const server = await startedMock();
    server.control({ provider, queue: [id] });

    const failure = await read(server, provider).catch((cause: unknown) => cause);

    expect(failure).toBeInstanceOf(APIError);
    expect(failure).toMatchObject(error);
  });

  it('takes the cut stream F-22 for a whole one, as it is known to', async () => {
    const server = await startedMock();
    server.control({ provider: 'openai', queue: ['F-22'] });

    expect(await read(server, 'openai')).toMatchObject({ text: 'A red ', finish: null });
  });

  it('reads an incomplete response', async () => {
    const server = await startedMock();
    server.control({ provider: 'openai', queue: ['ok', 'S-OAI-RESP'] });
    const client = clientOf(server, 'openai');

    const good = await client.responses.create({ model: 'gpt-5.4-mini', input: 'Judge it.' });
    const cut = await client.responses.create({ model: 'gpt-5.4-mini', input: 'Judge it.' });

    expect(good).toMatchObject({ status: 'completed', output_text: 'turns=1;media=none;sha=none' });
    expect(cut).toMatchObject({
      status: 'incomplete',
      output_text: '{"verdict":"pa',
      incomplete_details: { reason: 'max_output_tokens' },
    });
  });
});

describe("Google's package", () => {
  const clientOf = (server: MockProvider) =>
    new GoogleGenAI({
      apiKey: 'test-gemini',
      httpOptions: { baseUrl: server.urlOf('gemini').replace(/\/v1beta$/, ''), apiVersion: 'v1beta' },
    });
  const contents = [
    {
      role: 'user',
      parts: [{ inlineData: { mimeType: 'audio/wav', data: wav } }, { text: 'What now?' }],
    },
  ];

  it('reads documents and streams', async () => {
    const server = await startedMock();
    const { models } = clientOf(server);
    const request = { model: 'gemini-3.8-flash', contents };

    const whole = await models.generateContent(request);
    let streamed = '';
    for await (const chunk of await models.generateContentStream(request)) streamed += chunk.text ?? '';

    expect(whole.text).toBe('turns=1;media=audio;sha=c1f17541');
    expect(streamed).toBe('turns=1;media=audio;sha=c1f17541');
    expect(whole.usageMetadata).toMatchObject({ promptTokenCount: 3 + 32, thoughtsTokenCount: 16 });
  });

  it('sees a block and a limit', async () => {
    const server = await startedMock();
    server.control({ provider: 'gemini', queue: ['F-15', 'F-04'] });
    const { models } = clientOf(server);
    const ask = () => models.generateContent({ model: 'gemini-3.8-flash', contents });

    const blocked = await ask();
    expect(blocked.promptFeedback?.blockReason).toBe('PROHIBITED_CONTENT');
    await expect(ask()).rejects.toMatchObject({ status: 429 });
  });

  it('uploads a file, waits for it and names it', async () => {
    const server = await startedMock();
    const client = clientOf(server);
    const bytes = Buffer.from(wav, 'base64');

    const file = await client.files.upload({
      file: new Blob([bytes], { type: 'audio/wav' }),
      config: { mimeType: 'audio/wav' },
    });
    const ask = () =>
      client.models.generateContent({
        model: 'gemini-3.8-flash',
        contents: [
          {
            role: 'user',
            parts: [{ fileData: { fileUri: file.uri, mimeType: file.mimeType } }, { text: 'x' }],
          },
        ],
      });
    const early = await ask().catch((error: unknown) => error);
    const first = await client.files.get({ name: file.name! });
    const second = await client.files.get({ name: file.name! });
    const answer = await ask();

    expect(early).toMatchObject({ status: 400 });
    expect([file.state, first.state, second.state]).toEqual(['PROCESSING', 'PROCESSING', 'ACTIVE']);
    expect(second.sizeBytes).toBe('60');
    expect(answer.text).toBe('turns=1;media=audio;sha=c1f17541');
    await client.files.delete({ name: file.name! });
    await expect(ask()).rejects.toMatchObject({ status: 403 });
  });
});

describe("Amazon's package", () => {
  const clientOf = (server: MockProvider) =>
    new BedrockRuntimeClient({
      region: 'us-east-1',
      endpoint: server.urlOf('bedrock'),
      credentials: { accessKeyId: 'AKIDTEST', secretAccessKey: 'test' },
      maxAttempts: 1,
      // The fake speaks HTTP/1.1; of itself the client speaks HTTP/2.
      requestHandler: new NodeHttpHandler(),
    });
  const input = {
    modelId: 'us.amazon.nova-2-omni-v1:0',
    messages: [
      {
        role: 'user' as const,
        content: [
          { audio: { format: 'wav' as const, source: { bytes: Buffer.from(wav, 'base64') } } },
          { text: 'What now?' },
        ],
      },
    ],
  };

  it('reads a document', async () => {
    const client = clientOf(await startedMock());

    const { output, stopReason, usage } = await client.send(new ConverseCommand(input));

    expect(output?.message?.content).toEqual([{ text: 'turns=1;media=audio;sha=c1f17541' }]);
    expect([stopReason, usage?.inputTokens, usage?.outputTokens]).toEqual(['end_turn', 28, 8]);
  });

  it('reads the frames of a stream, and an exception among them', async () => {
    const server = await startedMock();
    server.control({ provider: 'bedrock', queue: ['S-BED-STREAM', 'F-52:throttled'] });
    const client = clientOf(server);
    const events: string[] = [];
    let text = '';

    const good = await client.send(new ConverseStreamCommand(input));
    for await (const event of good.stream!) {
      events.push(Object.keys(event)[0]!);
      text += event.contentBlockDelta?.delta?.text ?? '';
    }
    const read = async () => {
      const { stream } = await client.send(new ConverseStreamCommand(input));
      for await (const event of stream!) events.push(Object.keys(event)[0]!);
    };

    await expect(read()).rejects.toMatchObject({ name: 'ThrottlingException' });
    expect(text).toBe(sample);
    expect(events).toEqual([
      'messageStart',
      'contentBlockDelta',
      'contentBlockDelta',
      'contentBlockStop',
      'messageStop',
      'metadata',
      'messageStart',
      'contentBlockDelta',
    ]);
  });

  it('throws the exception that an error names', async () => {
    const server = await startedMock();
    server.control({ provider: 'bedrock', queue: ['F-04', 'F-52', 'F-10'] });
    const client = clientOf(server);
    const names: string[] = [];

    for (let call = 0; call < 3; call += 1) {
      const error = await client.send(new ConverseCommand(input)).catch((cause: Error) => cause);
      names.push((error as Error).name);
    }

    expect(names).toEqual(['ThrottlingException', 'ModelTimeoutException', 'ServiceQuotaExceededException']);
  });
});
