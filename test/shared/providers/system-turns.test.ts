import { describe, expect, it, onTestFinished } from 'vitest';
import { type MockProvider, startMockProvider } from '../../../mock/server.ts';
import type { ResolvedMessage } from '../../../shared/domain/request.ts';
import { foldSystemTurn } from '../../../shared/domain/system-turn.ts';
import { createModelClient, providerOf, providers } from '../../../shared/providers/registry.ts';
import { wav } from '../../mock/dialects/requests.ts';
import { answering, asking, base64Of, callLane, inline } from './lane-under-test.ts';

const prompt = 'Answer from the "conversation".\nSay so if it does not tell. 蓝';
const messages: ResolvedMessage[] = [
  { role: 'system', text: prompt },
  asking({ text: 'Session timestamp: 1' }, { audio: 'a.wav' }),
  answering('Noted.'),
  asking({ audio: 'b.wav' }),
];
const clips = { 'a.wav': inline('audio/wav', 'one'), 'b.wav': inline('audio/wav', 'two') };

/** Models that hear, by provider. */
const hearing = {
  openai: 'gpt-audio-mini',
  'openai-compatible': 'm',
  vllm: 'local',
  sglang: 'local',
  llamacpp: 'local',
  dashscope: 'qwen3.8-omni-flash',
  ark: 'doubao-seed-2-0-lite-260428',
  stepfun: 'stepaudio-2.5-chat',
} as const;
const chatProviders = Object.keys(hearing) as (keyof typeof hearing)[];

const systemTurn = { role: 'system', content: prompt };
const stamp = { type: 'text', text: 'Session timestamp: 1' };
const sound = (content: string) => expect.stringContaining(base64Of(content));
const soundOf = (part: Record<string, unknown>) => JSON.stringify(part);

describe('a system turn on the wire', () => {
  it.each(chatProviders)('%s: is a message of its own before all others', async (provider) => {
    const { body } = await callLane({ provider, model: hearing[provider], messages, clips });

    expect(body.messages.map(({ role }: { role: string }) => role)).toEqual([
      'system',
      'user',
      'assistant',
      'user',
    ]);
    expect(body.messages[0]).toEqual(systemTurn);
    expect(body.messages[1].content[0]).toEqual(stamp);
    expect(soundOf(body.messages[1].content[1])).toEqual(sound('one'));
    expect(body.messages[2]).toEqual({ role: 'assistant', content: 'Noted.' });
    expect(soundOf(body.messages[3].content[0])).toEqual(sound('two'));
  });

  it.each(chatProviders)('%s: folded, is the first text of the first user message', async (provider) => {
    const { body } = await callLane({
      provider,
      model: hearing[provider],
      settings: { systemPrompt: 'folded' },
      messages: foldSystemTurn(messages),
      clips,
    });

    expect(body.messages.map(({ role }: { role: string }) => role)).toEqual(['user', 'assistant', 'user']);
    expect(body.messages[0].content.slice(0, 2)).toEqual([{ type: 'text', text: prompt }, stamp]);
    expect(body.messages[0].content).toHaveLength(3);
    // The wish is ours and goes to nobody.
    expect(JSON.stringify(body)).not.toContain('systemPrompt');
  });

  it('gemini: is the system instruction, and no content', async () => {
    const { body } = await callLane({ provider: 'gemini', model: 'gemini-3.8-flash', messages, clips });

    expect(body.systemInstruction).toEqual({ parts: [{ text: prompt }] });
    expect(body.contents).toEqual([
      {
        role: 'user',
        parts: [
          { text: 'Session timestamp: 1' },
          { inlineData: { mimeType: 'audio/wav', data: base64Of('one') } },
        ],
      },
      { role: 'model', parts: [{ text: 'Noted.' }] },
      { role: 'user', parts: [{ inlineData: { mimeType: 'audio/wav', data: base64Of('two') } }] },
    ]);
  });

  it('bedrock: is the list beside the messages', async () => {
    const model = 'us.amazon.nova-2-omni-v1:0';

    const { body } = await callLane({ provider: 'bedrock', model, messages, clips });

    const block = (content: string) => ({ audio: { format: 'wav', source: { bytes: base64Of(content) } } });
    expect(body.system).toEqual([{ text: prompt }]);
    expect(body.messages).toEqual([
      { role: 'user', content: [{ text: 'Session timestamp: 1' }, block('one')] },
      { role: 'assistant', content: [{ text: 'Noted.' }] },
      { role: 'user', content: [block('two')] },
    ]);
  });

  it('of a recording is passed over', async () => {
    const lines = async function* () {
      yield '{"request_id":"r1","status":"ok","raw_text":"Hello"}';
    };
    const client = createModelClient(
      { provider: 'recorded', model: 'm', baseUrl: null, settings: {}, maxInFlight: 1 },
      { apiKey: null, clips: { load: async () => [] }, recording: { lines, origin: 'p.jsonl' } },
    );

    expect(await client.call({ requestId: 'r1', messages }, { maxTokens: 9, deadlineMs: 9 })).toMatchObject({
      status: 'ok',
      text: 'Hello',
      consumed: { audio: 2, video: 0 },
    });
  });

  it('is taken by every provider there is', () => {
    expect(
      providers.filter((name) => !providerOf(name, 'm').capabilities('some-model').takesSystemTurn),
    ).toEqual([]);
  });
});

const started = async (options: Parameters<typeof startMockProvider>[0] = {}): Promise<MockProvider> => {
  const server = await startMockProvider({ timeScale: 0.01, ...options });
  onTestFinished(() => server.close());
  return server;
};
const real = {
  ...hearing,
  gemini: 'gemini-3.8-flash',
  bedrock: 'us.amazon.nova-2-omni-v1:0',
} as const;
const { 'openai-compatible': _, ...spoken } = real;
const dialects = Object.keys(spoken) as (keyof typeof spoken)[];

const callMock = async (
  server: MockProvider,
  provider: (typeof dialects)[number],
  given: readonly ResolvedMessage[],
) => {
  const client = createModelClient(
    {
      provider,
      model: real[provider],
      baseUrl: server.urlOf(provider),
      settings: {},
      maxInFlight: 1,
    },
    {
      apiKey: `test-${provider === 'stepfun' ? 'step' : provider}`,
      clips: { load: async () => [{ type: 'inline', mime: 'audio/wav', base64: wav }] },
      recording: null,
    },
  );
  onTestFinished(() => client.close());
  return client.call({ requestId: 'r1', messages: [...given] }, { maxTokens: 64, deadlineMs: 10_000 });
};

describe('a system turn at a fake provider', () => {
  // First 8 hex digits of Python's hashlib.sha256 over the prompt in UTF-8.
  const digest = 'f9fae199';

  it.each(dialects)('%s: arrives native, and not at all where it is folded', async (provider) => {
    const server = await started();

    const native = await callMock(server, provider, messages);
    const folded = await callMock(server, provider, foldSystemTurn(messages));

    expect([native.status, folded.status]).toEqual(['ok', 'ok']);
    expect(server.stats().requestsBySystem).toEqual({
      [`${real[provider]} ${digest}`]: 1,
      [`${real[provider]} none`]: 1,
    });
  });

  it('vanishes in silence behind a template that drops it, or is refused', async () => {
    const dropping = await started({ profiles: { vllm: { systemTurn: 'dropped' } } });
    const refusing = await started({ profiles: { vllm: { systemTurn: 'refused' } } });

    expect((await callMock(dropping, 'vllm', messages)).status).toBe('ok');
    expect(dropping.stats().requestsBySystem).toEqual({ 'local none': 1 });
    expect(await callMock(refusing, 'vllm', messages)).toMatchObject({ status: 'failed', kind: 'http_400' });
    expect((await callMock(refusing, 'vllm', foldSystemTurn(messages))).status).toBe('ok');
  });
});
