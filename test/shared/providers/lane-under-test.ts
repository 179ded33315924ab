import { readFileSync } from 'node:fs';
import type { CallOutcome } from '../../../shared/domain/outcome.ts';
import type { ResolvedMessage } from '../../../shared/domain/request.ts';
import type { LoadedClip, WantedClip } from '../../../shared/ports/model-client.ts';
import type { LaneConnection, LaneSettings } from '../../../shared/providers/provider.ts';
import { createChatCallerFor, createModelClient } from '../../../shared/providers/registry.ts';
import { startRawServer, whole } from './raw-server.ts';

export type Kept = LoadedClip[] | LoadedClip;

/** Bytes of a reply with their status and content type. */
export interface Served {
  body: string;
  type?: string;
  status?: string;
  headers?: string;
}

export const stream = (provider: string, name: string, headers = ''): Served => ({
  body: readFileSync(new URL(`../../fixtures/providers/${provider}/${name}`, import.meta.url), 'utf8'),
  type: name.endsWith('.sse') ? 'text/event-stream; charset=utf-8' : 'application/json',
  headers,
});

export const refusal = (status: number, error: Record<string, unknown>, more = {}): Served => ({
  body: JSON.stringify({ error, ...more }),
  status: `${status} Fault`,
});

const nothing = refusal(500, {});

const serving = async <T>(reply: Served, use: (url: string) => Promise<T>) => {
  const server = await startRawServer((socket) => {
    socket.write(whole(reply.body, reply.type ?? 'application/json', reply.status, reply.headers));
  });
  try {
    const result = await use(`${server.url}/v1`);
    const [head, ...body] = server.requests.flatMap((request) => request.split('\r\n\r\n'));
    return { result, head: head ?? '', text: body[0] ?? '' };
  } finally {
    await server.close();
  }
};

export interface LaneCall {
  provider: string;
  model: string;
  settings?: LaneSettings;
  messages?: ResolvedMessage[];
  maxTokens?: number;
  /** What the clip source holds, by path. */
  clips?: Record<string, Kept>;
  reply?: Served;
}

/** One call of a lane to a real HTTP server: what was sent, what came of it, in which forms clips were asked for. */
export const callLane = async ({
  provider,
  model,
  settings = {},
  messages = [asking({ text: 'What happens?' })],
  maxTokens = 256,
  clips = {},
  reply = nothing,
}: LaneCall) => {
  const wanted: Record<string, WantedClip> = {};
  const source = {
    load: async ({ path }: { path: string }, want: WantedClip) => {
      wanted[path] = want;
      return [clips[path] ?? []].flat();
    },
  };
  const { result, head, text } = await serving(reply, async (baseUrl) => {
    const lane: LaneConnection = { provider, model, baseUrl, settings, maxInFlight: 1 };
    const client = createModelClient(lane, { apiKey: `test-${provider}`, clips: source, recording: null });
    try {
      return await client.call({ requestId: 'r1', messages }, { maxTokens, deadlineMs: 10_000 });
    } finally {
      await client.close();
    }
  });
  return { outcome: result, head, text, body: text === '' ? null : JSON.parse(text), wanted };
};

/** The same for a judge: text alone. */
export const bodyOfJudge = async (
  provider: string,
  model: string,
  call: { maxTokens: number; content: string; reasoningEffort?: string; responseFormat?: unknown },
) => {
  const { content, ...shape } = call;
  const { text } = await serving(nothing, async (baseUrl) => {
    const caller = createChatCallerFor({ provider, model, baseUrl, maxInFlight: 1 }, `test-${provider}`);
    await caller.complete({ messages: [{ role: 'user', content }], deadlineMs: 10_000, ...shape });
    await caller.close();
  });
  return JSON.parse(text);
};

type Part = { text: string } | { video: string } | { audio: string };

export const asking = (...parts: Part[]): ResolvedMessage => ({
  role: 'user',
  content: parts.map((part) => {
    if ('text' in part) return { type: 'text', text: part.text };
    return 'video' in part
      ? { type: 'video', path: part.video, sha256: 'a'.repeat(64) }
      : { type: 'audio', path: part.audio, sha256: 'b'.repeat(64) };
  }),
});

export const answering = (text: string): ResolvedMessage => ({ role: 'assistant', text });

export const base64Of = (content: string): string => Buffer.from(content).toString('base64');

export const inline = (mime: string, content: string): LoadedClip => ({
  type: 'inline',
  mime,
  base64: base64Of(content),
});

export const address = (mime: string, url: string): LoadedClip => ({ type: 'url', mime, url });

/** What a call came to, in short. */
export const endOf = (outcome: CallOutcome) => ({
  status: outcome.status,
  kind: 'kind' in outcome ? outcome.kind : null,
  wait: outcome.status === 'retry' ? outcome.retryAfterSeconds : null,
});
