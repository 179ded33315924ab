import { describe, expect, it } from 'vitest';
import { asTheyAre } from '../../../../shared/domain/media.ts';
import { unknownUsage } from '../../../../shared/domain/outcome.ts';
import type { LoadedClip } from '../../../../shared/ports/model-client.ts';
import { createBedrockCaller } from '../../../../shared/providers/bedrock/client.ts';
import { mediaMessages } from '../../../../shared/providers/bedrock/request.ts';
import { asking, endOf } from '../lane-under-test.ts';
import { startRawServer, whole } from '../raw-server.ts';
import { fixtureBase64, hasReference, vectorText } from '../reference-vectors.ts';
import { delta, event, exception, metered, reply, stopped } from './event-stream.ts';

const calling = async (answer: Buffer, stream = true) => {
  const server = await startRawServer((socket) => void socket.write(answer));
  const caller = createBedrockCaller({
    baseUrl: `${server.url}/bedrock`,
    apiKey: 'test-bedrock',
    model: 'us.amazon.nova-2-omni-v1:0',
    settings: { temperature: 0, stream },
    maxInFlight: 1,
  });
  const clips = {
    load: async ({ path }: { path: string }): Promise<LoadedClip[]> =>
      path.endsWith('.mp4')
        ? [{ type: 'url', mime: 'video/mp4', url: 's3://test-media/a.mp4' }]
        : [{ type: 'inline', mime: 'audio/wav', base64: fixtureBase64('WAV') }],
  };
  const { messages } = await mediaMessages(
    [asking({ video: 'a.mp4' }, { audio: 'a.wav' }, { text: 'What happens?' })],
    { clips, forms: asTheyAre },
  );
  const outcome = await caller.send(messages, {
    maxTokens: 256,
    deadlineMs: 10_000,
    system: ['Answer in one line.'],
  });
  await caller.close();
  await server.close();
  const [head, body] = server.requests[0]!.split('\r\n\r\n') as [string, string];
  return { outcome, head, body: JSON.parse(body) };
};

describe.runIf(hasReference)('vectors of the reference (needs ../shared/reference)', () => {
  const normal = {
    status: 'ok',
    text: 'A red light, then 蓝 🔵.',
    finishReason: 'end_turn',
    httpStatus: 200,
    usage: { ...unknownUsage, inputTokens: 1305, outputTokens: 9 },
  };

  it('A-BED-1 is exactly what is sent, and S-BED-OK is read', async () => {
    const { outcome, head, body } = await calling(whole(vectorText('S-BED-OK')), false);

    expect(head).toMatch(/^POST \/bedrock\/model\/us\.amazon\.nova-2-omni-v1%3A0\/converse HTTP/);
    expect(body).toEqual(JSON.parse(vectorText('A-BED-1')));
    expect(outcome).toMatchObject({ ...normal, usage: { ...normal.usage, cachedInputTokens: 0 } });
  });

  it('S-BED-STREAM is read in its normal form', async () => {
    const { outcome } = await calling(
      reply(
        event('messageStart', { role: 'assistant' }),
        delta('A red light, '),
        delta('then 蓝 🔵.'),
        event('contentBlockStop', { contentBlockIndex: 0 }),
        stopped('end_turn'),
        metered({ inputTokens: 1305, outputTokens: 9, totalTokens: 1314 }),
      ),
    );

    expect(outcome).toMatchObject(normal);
  });

  it('S-BED-STREAM with an exception after its first delta is retried', async () => {
    const { outcome } = await calling(
      reply(
        event('messageStart', { role: 'assistant' }),
        delta('A red light, '),
        exception('throttlingException', { message: 'fake: slow down' }),
      ),
    );

    expect(endOf(outcome)).toEqual({ status: 'retry', kind: 'http_429', wait: null });
  });

  it('E-BED is retried', async () => {
    const { outcome } = await calling(
      whole(vectorText('E-BED'), 'application/json', '429 X', 'x-amzn-errortype: ThrottlingException\r\n'),
    );

    expect(endOf(outcome)).toEqual({ status: 'retry', kind: 'http_429', wait: null });
  });
});
