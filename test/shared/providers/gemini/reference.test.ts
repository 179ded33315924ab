import { GoogleGenAI } from '@google/genai';
import { describe, expect, it } from 'vitest';
import { asTheyAre } from '../../../../shared/domain/media.ts';
import { unknownUsage } from '../../../../shared/domain/outcome.ts';
import type { ResolvedMessage } from '../../../../shared/domain/request.ts';
import type { LoadedClip } from '../../../../shared/ports/model-client.ts';
import { createGeminiCaller, type GeminiCallLimits } from '../../../../shared/providers/gemini/client.ts';
import { mediaContents } from '../../../../shared/providers/gemini/request.ts';
import { answering, asking, endOf } from '../lane-under-test.ts';
import { startRawServer, whole } from '../raw-server.ts';
import { fixtureBase64, hasReference, vectorText } from '../reference-vectors.ts';

const model = 'gemini-3.8-flash';
/** Google's own client wants the empty line after the last event too. */
const streamed = hasReference ? `${vectorText('S-GEM-OK')}\n` : '';

const calling = async (
  reply: Buffer,
  messages: readonly ResolvedMessage[] = [asking({ text: 'What happens?' })],
  more: Partial<GeminiCallLimits> = {},
  settings = {},
) => {
  const server = await startRawServer((socket) => void socket.write(reply));
  const clip = (path: string): LoadedClip =>
    path.endsWith('.mp4')
      ? { type: 'inline', mime: 'video/mp4', base64: fixtureBase64('MP4') }
      : { type: 'inline', mime: 'audio/wav', base64: fixtureBase64('WAV') };
  const caller = createGeminiCaller({
    baseUrl: `${server.url}/gemini/v1beta`,
    apiKey: 'test-gemini',
    model,
    settings,
    maxInFlight: 1,
  });
  const clips = { load: async ({ path }: { path: string }) => [clip(path)] };
  const { pieces } = await mediaContents(messages, { clips, forms: asTheyAre, fps: 2 });
  const outcome = await caller.send(pieces, { maxTokens: 256, deadlineMs: 10_000, ...more });
  await caller.close();
  await server.close();
  const [head, body] = server.requests[0]!.split('\r\n\r\n') as [string, string];
  return { outcome, head, body: JSON.parse(body) };
};

describe.runIf(hasReference)('vectors of the reference (needs ../shared/reference)', () => {
  it('A-GEM-1 is what is sent; beyond it, all four safety filters are off', async () => {
    const expected = JSON.parse(vectorText('A-GEM-1'));

    const { head, body } = await calling(
      whole('{}'),
      [
        asking({ video: 'a.mp4' }, { audio: 'a.wav' }, { text: 'What happens?' }),
        answering('A door opens.'),
        asking({ text: 'And the sound?' }),
      ],
      { system: 'Answer in one line.' },
      { temperature: 0, seed: 7, reasoningEffort: 'minimal' },
    );

    expect(head).toMatch(
      /^POST \/gemini\/v1beta\/models\/gemini-3\.8-flash:streamGenerateContent\?alt=sse HTTP/,
    );
    expect(head).toMatch(/\r\nx-goog-api-key: test-gemini\r\n/);
    expect({ ...body, safetySettings: body.safetySettings.slice(0, 1) }).toEqual(expected);
  });

  it('S-GEM-OK is read in its normal form', async () => {
    const { outcome } = await calling(whole(streamed, 'text/event-stream'));

    expect(outcome).toEqual({
      status: 'ok',
      text: 'A red light, then 蓝 🔵.',
      finishReason: 'STOP',
      httpStatus: 200,
      responseId: 'fx-gem-1',
      servedModel: model,
      usage: {
        ...unknownUsage,
        inputTokens: 1305,
        outputTokens: 13,
        reasoningTokens: 4,
        audioInputTokens: 32,
        videoInputTokens: 1261,
        textInputTokens: 12,
      },
    });
  });

  it('S-GEM-BLOCK is a refusal', async () => {
    const { outcome } = await calling(whole(vectorText('S-GEM-BLOCK')));

    expect(outcome).toMatchObject({
      status: 'refused',
      kind: 'provider_refusal',
      responseId: 'fx-gem-2',
      usage: { inputTokens: 1305, outputTokens: 0 },
    });
  });

  it('E-GEM waits as long as it asks', async () => {
    const { outcome } = await calling(whole(vectorText('E-GEM'), 'application/json', '429 X'));

    expect(endOf(outcome)).toEqual({ status: 'retry', kind: 'http_429', wait: 2 });
  });

  it("the provider's own client reads the same text, end and counts", async () => {
    const server = await startRawServer((socket) => void socket.write(whole(streamed, 'text/event-stream')));
    const client = new GoogleGenAI({ apiKey: 'test-gemini', httpOptions: { baseUrl: server.url } });
    const { outcome } = await calling(whole(streamed, 'text/event-stream'));

    let text = '';
    let finishReason: string | undefined;
    let output = 0;
    for await (const part of await client.models.generateContentStream({
      model,
      contents: 'What happens?',
    })) {
      text += part.text ?? '';
      finishReason = part.candidates?.[0]?.finishReason ?? finishReason;
      const { candidatesTokenCount = 0, thoughtsTokenCount = 0 } = part.usageMetadata ?? {};
      output = candidatesTokenCount + thoughtsTokenCount;
    }
    await server.close();

    expect(outcome).toMatchObject({ text, finishReason, usage: { outputTokens: output } });
    expect(server.requests[0]).toMatch(
      /^POST \/v1(?:beta)?\/models\/gemini-3\.8-flash:streamGenerateContent\?alt=sse /,
    );
    expect(server.requests[0]).toMatch(/\r\nx-goog-api-key: test-gemini\r\n/i);
  });
});
