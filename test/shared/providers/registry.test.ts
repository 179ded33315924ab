import { describe, expect, it } from 'vitest';
import { callsOut, uncalledProviders } from '../../../shared/domain/reply-source.ts';
import type { ClientPorts, LaneConnection } from '../../../shared/providers/provider.ts';
import { createModelClient, judgeProviders, providers } from '../../../shared/providers/registry.ts';
import { startRawServer } from './raw-server.ts';

const lane = (more: Partial<LaneConnection> = {}): LaneConnection => ({
  provider: 'openai-compatible',
  model: 'm',
  baseUrl: 'http://127.0.0.1:1/v1',
  settings: {},
  maxInFlight: 1,
  ...more,
});
const ports = (more: Partial<ClientPorts> = {}): ClientPorts => ({
  apiKey: null,
  clips: { load: async () => [] },
  recording: null,
  ...more,
});
const request = {
  requestId: 'r1',
  messages: [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'Hi' }] }],
};
const limits = { maxTokens: 7, deadlineMs: 5000 };

describe('createModelClient', () => {
  it.each([
    ['openai', 'max_completion_tokens'],
    ['openai-compatible', 'max_tokens'],
    ['vllm', 'max_tokens'],
    ['sglang', 'max_tokens'],
    ['llamacpp', 'max_tokens'],
  ])('%s names its cap %s', async (provider, member) => {
    const server = await startRawServer((socket) => socket.destroy());
    const client = createModelClient(lane({ provider, baseUrl: server.url }), ports());

    await client.call(request, limits);
    await client.close();
    await server.close();

    expect(JSON.parse(server.requests[0]!.split('\r\n\r\n')[1]!)).toMatchObject({ model: 'm', [member]: 7 });
  });

  it('plays recordings', async () => {
    const lines = async function* () {
      yield '{"request_id":"r1","status":"ok","raw_text":"Hello"}';
    };
    const client = createModelClient(
      lane({ provider: 'recorded', baseUrl: null }),
      ports({ recording: { lines, origin: 'p.jsonl' } }),
    );

    expect(await client.call(request, limits)).toMatchObject({ status: 'ok', text: 'Hello' });
  });

  it('gives the same reply to every request, for no tokens', async () => {
    const client = createModelClient(
      lane({ provider: 'fixed-reply', baseUrl: null, reply: 'The evidence is insufficient.' }),
      ports(),
    );

    const outcome = await client.call(
      { requestId: 'r2', messages: [{ role: 'user', content: [{ type: 'audio', path: 'a', sha256: 'b' }] }] },
      limits,
    );

    expect(outcome).toEqual({
      status: 'ok',
      text: 'The evidence is insufficient.',
      httpStatus: null,
      responseId: null,
      servedModel: null,
      finishReason: null,
      consumed: { audio: 0, video: 0 },
      usage: {
        inputTokens: 0,
        outputTokens: 0,
        cachedInputTokens: 0,
        reasoningTokens: 0,
        audioInputTokens: 0,
        videoInputTokens: 0,
        imageInputTokens: 0,
        textInputTokens: 0,
      },
    });
    expect(await client.call(request, limits)).toEqual(outcome);
  });

  it('knows the providers that call nobody, none of them a judge', () => {
    expect(uncalledProviders).toEqual(['recorded', 'fixed-reply']);
    expect(providers.filter((name) => !callsOut(name))).toEqual(uncalledProviders);
    expect(judgeProviders.filter((name) => !callsOut(name))).toEqual([]);
  });

  it.each([
    [
      { provider: 'telepathy' },
      `provider telepathy is not supported (m); use one of ${providers.join(', ')}`,
    ],
    [{ baseUrl: null }, 'provider openai-compatible needs baseUrl (m)'],
    [{ provider: 'recorded' }, 'provider recorded needs a recording (m)'],
    [{ provider: 'fixed-reply' }, 'provider fixed-reply needs a reply (m)'],
    [{ provider: 'fixed-reply', reply: ' ' }, 'provider fixed-reply needs a reply (m)'],
  ])('refuses %j', (more, message) => {
    expect(() => createModelClient(lane(more), ports())).toThrow(
      expect.objectContaining({ name: 'UsageWrong', message }),
    );
  });
});
