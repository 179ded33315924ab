import { describe, expect, it } from 'vitest';
import type { ClientPorts, LaneConnection } from '../../../shared/providers/provider.ts';
import { createModelClient, providers } from '../../../shared/providers/registry.ts';
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

  it.each([
    [
      { provider: 'telepathy' },
      `provider telepathy is not supported (m); use one of ${providers.join(', ')}`,
    ],
    [{ baseUrl: null }, 'provider openai-compatible needs baseUrl (m)'],
    [{ provider: 'recorded' }, 'provider recorded needs a recording (m)'],
  ])('refuses %j', (more, message) => {
    expect(() => createModelClient(lane(more), ports())).toThrow(
      expect.objectContaining({ name: 'UsageWrong', message }),
    );
  });
});
