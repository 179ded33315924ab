import OpenAI from 'openai';
import { afterEach, describe, expect, it } from 'vitest';
import { createChatCaller } from '../../../../shared/providers/chat-completions/client.ts';
import { openAiProfile } from '../../../../shared/providers/openai/request.ts';
import { stream } from '../lane-under-test.ts';
import { chunk, lastChunk, startRawServer, streamHead } from '../raw-server.ts';

// The official client reads a well-formed stream as we do: an oracle that nobody here wrote.

const opened: { close(): Promise<void> }[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((item) => item.close()));
});

const serve = async (body: string) => {
  const bytes = Buffer.from(body);
  const server = await startRawServer(async (socket) => {
    socket.write(streamHead);
    for (let at = 0; at < bytes.length; at += 37) {
      socket.write(chunk(bytes.subarray(at, at + 37)));
      await new Promise(setImmediate);
    }
    socket.write(lastChunk);
  });
  opened.push(server);
  return server;
};

const readByThem = async (baseURL: string) => {
  const client = new OpenAI({ baseURL, apiKey: 'sk-test', maxRetries: 0, logLevel: 'off' });
  const chunks = await client.chat.completions.create({
    model: 'm',
    stream: true,
    messages: [{ role: 'user', content: 'x' }],
  });
  let text = '';
  let finishReason: string | null = null;
  let outputTokens: number | null = null;
  for await (const { choices, usage } of chunks) {
    text += choices[0]?.delta.content ?? '';
    finishReason = choices[0]?.finish_reason ?? finishReason;
    outputTokens = usage?.completion_tokens ?? outputTokens;
  }
  return { text, finishReason, outputTokens };
};

const readByUs = async (baseUrl: string) => {
  const caller = createChatCaller({
    baseUrl,
    apiKey: 'sk-test',
    model: 'm',
    maxInFlight: 1,
    profile: openAiProfile,
  });
  opened.push(caller);
  const outcome = await caller.complete({
    messages: [{ role: 'user', content: 'x' }],
    maxTokens: 8,
    deadlineMs: 20_000,
  });
  return {
    text: 'text' in outcome ? outcome.text : null,
    finishReason: outcome.finishReason,
    outputTokens: outcome.usage.outputTokens,
  };
};

describe('the official client', () => {
  it.each([
    ['openai', 'reply.sse', 'stop', 11],
    ['vllm', 'reply.sse', 'stop', 11],
    ['vllm', 'reasoning.sse', 'stop', 19],
    ['vllm', 'inline-thinking.sse', 'stop', 11],
    ['vllm', 'inline-thinking-cut.sse', 'length', 64],
    ['sglang', 'reply.sse', 'stop', 11],
    ['llamacpp', 'reply.sse', 'stop', 11],
  ])('reads %s/%s as we do', async (provider, name, finishReason, outputTokens) => {
    const server = await serve(stream(provider, name).body);

    const theirs = await readByThem(server.url);
    const ours = await readByUs(server.url);

    expect(ours).toEqual(theirs);
    expect(theirs).toMatchObject({ finishReason, outputTokens });
  });

  it('takes half a stream for a reply, and we do not', async () => {
    const body = stream('openai', 'reply.sse').body.split('\n\n').slice(0, 2).join('\n\n');
    const server = await serve(`${body}\n\n`);

    expect(await readByThem(server.url)).toMatchObject({ text: 'Two bells, ', finishReason: null });
    expect(await readByUs(server.url)).toMatchObject({ text: null, finishReason: null });
  });
});
