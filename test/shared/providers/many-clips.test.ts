import { createServer } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { ResolvedMessage } from '../../../shared/domain/request.ts';
import type { ClipSource, LoadedClip, WantedClip } from '../../../shared/ports/model-client.ts';
import { createModelClient } from '../../../shared/providers/registry.ts';
import { answering, asking, callLane, endOf } from './lane-under-test.ts';
import { startRawServer, whole } from './raw-server.ts';

const paths = (count: number): string[] => Array.from({ length: count }, (_, index) => `${index}.wav`);
/** Sessions of one sound each, with a system turn before and the question as the last sound. */
const history = (sounds: readonly string[]): ResolvedMessage[] => [
  { role: 'system', text: 'Be brief. 蓝' },
  ...sounds.flatMap((audio, index) => [
    ...(index === 0 ? [] : [answering(`Noted "${index}".`)]),
    asking({ text: `Session timestamp: ${index}` }, { audio }),
  ]),
];
/** 30,000 bytes of a clip's own. */
const contentOf = (path: string): string => path.padEnd(10, '-').repeat(3000);
const inlineClip = (path: string): LoadedClip => ({
  type: 'inline',
  mime: 'audio/wav',
  base64: Buffer.from(contentOf(path)).toString('base64'),
});
// 40 clips of 40,000 characters.
const large = paths(40);
const clips = Object.fromEntries(large.map((path) => [path, inlineClip(path)]));

describe('a body of many clips', () => {
  it.each([
    ['vllm', 'local'],
    ['openai-compatible', 'm'],
    ['stepfun', 'stepaudio-2.5-chat'],
  ])('%s: is the same as a small one, byte for byte as long as it says', async (provider, model) => {
    const { body, text, head } = await callLane({ provider, model, messages: history(large), clips });

    expect(Buffer.byteLength(text)).toBeGreaterThan(1_600_000);
    expect(head).toMatch(new RegExp(`\\r\\ncontent-length: ${Buffer.byteLength(text)}(\\r\\n|$)`));
    expect(head).not.toMatch(/transfer-encoding/i);
    const { messages } = body;
    expect(messages).toHaveLength(80);
    expect(messages[0]).toEqual({ role: 'system', content: 'Be brief. 蓝' });
    expect(messages[2]).toEqual({ role: 'assistant', content: 'Noted "1".' });
    for (const [index, path] of large.entries()) {
      const sound = JSON.stringify(messages[1 + 2 * index].content);
      expect(sound).toContain(Buffer.from(contentOf(path)).toString('base64'));
    }
  });

  it('gemini: is refused before it is sent where it is too large', async () => {
    // 377 · 40,000 · 4/3 characters are above 20 MB.
    const many = paths(377);
    const source = Object.fromEntries(
      many.map((path): [string, LoadedClip] => [
        path,
        { type: 'inline', mime: 'audio/wav', base64: 'QUFB'.repeat(13_334) },
      ]),
    );

    const { outcome, text } = await callLane({
      provider: 'gemini',
      model: 'gemini-3.8-flash',
      messages: history(many),
      clips: source,
    });

    expect(endOf(outcome)).toEqual({ status: 'failed', kind: 'request_too_large', wait: null });
    expect(text).toBe('');
  });
});

const clientTo = (baseUrl: string, source: ClipSource, provider = 'vllm', model = 'local') => {
  const client = createModelClient(
    { provider, model, baseUrl, settings: { stream: false }, maxInFlight: 1 },
    { apiKey: 'test', clips: source, recording: null },
  );
  onTestFinished(() => client.close());
  return client;
};
const inlineSource: ClipSource = { load: async ({ path }) => [inlineClip(path)] };
/** A server that reads some of a request and then does as told. */
const halfway = async (then: (socket: import('node:net').Socket) => void): Promise<string> => {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => then(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as { port: number }).port}/v1`;
};
const callWith = (url: string, limits: { deadlineMs?: number; signal?: AbortSignal } = {}) =>
  clientTo(url, inlineSource).call(
    { requestId: 'r1', messages: history(large) },
    { maxTokens: 9, deadlineMs: 10_000, ...limits },
  );

describe('faults while a large body is written', () => {
  it('are a reset', async () => {
    const url = await halfway((socket) => socket.resetAndDestroy());

    expect(endOf(await callWith(url))).toMatchObject({ status: 'retry', kind: 'connection_reset' });
  });

  it('are a refusal that comes early', async () => {
    const url = await halfway((socket) =>
      socket.write(whole('{"error":{"message":"too large"}}', 'application/json', '413 Too Large')),
    );

    expect(endOf(await callWith(url))).toMatchObject({ status: 'failed', kind: 'http_413' });
  });

  it('are a time that is over', async () => {
    const url = await halfway((socket) => socket.pause());

    expect(endOf(await callWith(url, { deadlineMs: 100 }))).toMatchObject({
      status: 'retry',
      kind: 'timeout',
    });
  });

  it('are a call that is broken off', async () => {
    const stop = new AbortController();
    const url = await halfway((socket) => {
      socket.pause();
      stop.abort(new Error('enough'));
    });

    await expect(callWith(url, { signal: stop.signal })).rejects.toThrow('enough');
  });

  it('leave the next call to the same client alone', async () => {
    let calls = 0;
    const server = await startRawServer((socket) => {
      calls += 1;
      if (calls === 1) socket.resetAndDestroy();
      else
        socket.write(
          whole(
            JSON.stringify({
              choices: [{ message: { content: 'Two.' }, finish_reason: 'stop' }],
              model: 'm',
            }),
          ),
        );
    });
    onTestFinished(() => server.close());
    const client = clientTo(`${server.url}/v1`, inlineSource);
    const request = { requestId: 'r1', messages: history(large) };

    const first = await client.call(request, { maxTokens: 9, deadlineMs: 10_000 });
    const second = await client.call(request, { maxTokens: 9, deadlineMs: 10_000 });

    expect([endOf(first).kind, second.status]).toEqual(['connection_reset', 'ok']);
    expect(server.requests[1]).toBe(server.requests[0]);
  });
});

/** A source of clips of so many bytes that says in which way each was asked for. */
const measuredSource = (bytes: number, givesUrls: boolean) => {
  const wanted: WantedClip['inlineBytesAtMost'][] = [];
  const source: ClipSource = {
    givesUrls,
    bytesOf: async () => bytes,
    load: async ({ path }, { inlineBytesAtMost }) => {
      wanted.push(inlineBytesAtMost);
      return inlineBytesAtMost === 0
        ? [{ type: 'url', mime: 'audio/wav', url: `https://clips.example/${path}` }]
        : [{ type: 'inline', mime: 'audio/wav', base64: 'QUFB' }];
    },
  };
  return { source, wanted };
};

describe('clips that are too much to go inline together', () => {
  const usual = 7 * 1024 * 1024;
  // DashScope takes bodies of 6,291,456 bytes: 100 clips of 46,800 bytes are 6,240,000 characters, the text is short.
  it.each([
    ['all fit', 100, 46_800, true, usual],
    ['the body is too small for them', 100, 47_250, true, 0],
    ['the body is too small, and nobody gives addresses', 100, 47_250, false, usual],
    ['they are as many as data URIs are taken', 250, 3, true, usual],
    ['they are more', 251, 3, true, 0],
    ['they are more, and nobody gives addresses', 251, 3, false, usual],
  ])('%s', async (_name, count, bytes, givesUrls, expected) => {
    const server = await startRawServer((socket) => socket.destroy());
    onTestFinished(() => server.close());
    const { source, wanted } = measuredSource(bytes, givesUrls);
    const client = clientTo(`${server.url}/v1`, source, 'dashscope', 'qwen3.8-omni-flash');

    await client.call(
      { requestId: 'r1', messages: history(paths(count)) },
      { maxTokens: 9, deadlineMs: 10_000 },
    );

    expect(wanted).toHaveLength(count);
    expect(new Set(wanted)).toEqual(new Set([expected]));
    const sent = server.requests[0]!.match(/https:\/\/clips\.example\/\d+\.wav/g) ?? [];
    expect(sent).toHaveLength(expected === 0 ? count : 0);
  });

  it('stay inline where the server fetches nothing', async () => {
    const server = await startRawServer((socket) => socket.destroy());
    onTestFinished(() => server.close());
    const { source, wanted } = measuredSource(1_000_000, true);

    await clientTo(`${server.url}/v1`, source).call(
      { requestId: 'r1', messages: history(paths(300)) },
      { maxTokens: 9, deadlineMs: 10_000 },
    );

    expect(new Set(wanted)).toEqual(new Set([null]));
  });
});
