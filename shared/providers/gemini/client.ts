import type { ClipForms } from '../../domain/media.ts';
import type { CallOutcome } from '../../domain/outcome.ts';
import type { ResolvedMessage } from '../../domain/request.ts';
import type { ChatCaller } from '../../ports/chat-caller.ts';
import type { ClipSource, ModelClient } from '../../ports/model-client.ts';
import { checkKey } from '../chat-completions/client.ts';
import type { JsonPiece } from '../chat-completions/profile.ts';
import { requestBody } from '../chat-completions/request.ts';
import { requestTooLarge } from '../inline-clip.ts';
import type { LaneSettings } from '../provider.ts';
import { type BodyInPieces, createTransport, endpointUrl } from '../transport.ts';
import { bodyBytesAtMost } from './capabilities.ts';
import { bodyHead, type GeminiCall, mediaContents } from './request.ts';
import { failureOutcome, replyOutcome } from './response.ts';

export interface GeminiOptions {
  /** Address up to and with the version, such as `https://host/v1beta`. */
  baseUrl: string;
  apiKey: string | null;
  model: string;
  settings?: LaneSettings;
  maxInFlight: number;
  idleTimeoutMs?: number;
  maxReplyBytes?: number;
  /** Milliseconds since the epoch; only dates in Retry-After need it. */
  now?: () => number;
}

export interface GeminiCallLimits extends GeminiCall {
  /** Whole-call deadline in milliseconds, body included. */
  deadlineMs: number;
  signal?: AbortSignal;
}

export interface GeminiCaller extends ChatCaller {
  /** One call, one attempt, with contents as `mediaContents` makes them. Rejects only when `signal` aborts. */
  send(contents: readonly JsonPiece[], limits: GeminiCallLimits): Promise<CallOutcome>;
}

const addressOf = (baseUrl: string, model: string, stream: boolean): string => {
  const method = stream ? 'streamGenerateContent' : 'generateContent';
  const url = new URL(endpointUrl(baseUrl, `models/${encodeURIComponent(model)}:${method}`));
  if (stream) url.searchParams.set('alt', 'sse');
  return url.href;
};

/** Caller of one Gemini model. Throws `UsageWrong` for an address or a key that cannot be sent. */
export const createGeminiCaller = (options: GeminiOptions): GeminiCaller => {
  const { apiKey, model, settings = {}, now = Date.now } = options;
  checkKey(apiKey, model);
  const transport = createTransport({
    url: addressOf(options.baseUrl, model, settings.stream ?? true),
    headers: apiKey === null ? {} : { 'x-goog-api-key': apiKey },
    connections: options.maxInFlight,
    idleTimeoutMs: options.idleTimeoutMs,
    maxReplyBytes: options.maxReplyBytes,
  });

  const post = async (body: Buffer | BodyInPieces, limits: GeminiCallLimits): Promise<CallOutcome> => {
    const bytes = Buffer.isBuffer(body) ? body.length : body.bytes;
    if (bytes > bodyBytesAtMost) return requestTooLarge(bytes, bodyBytesAtMost);
    const result = await transport.post(body, limits);
    const context = { apiKey, now: now() };
    return 'reply' in result ? replyOutcome(result.reply, context) : failureOutcome(result.failure, context);
  };

  // No frame that waits holds the pieces: beside the body they would double what a large request keeps in memory.
  const send: GeminiCaller['send'] = (contents, limits) =>
    post(requestBody(bodyHead(model, settings, limits), contents), limits);

  return {
    send,
    complete: async ({ messages, ...limits }) => {
      const texts = (role: 'system' | 'user') =>
        messages.filter((message) => message.role === role).map(({ content }) => content);
      const system = texts('system');
      const contents = texts('user').map((text) => JSON.stringify({ role: 'user', parts: [{ text }] }));
      return send([contents.join(',')], {
        ...limits,
        system: system.length === 0 ? undefined : system.join('\n\n'),
      });
    },
    close: () => transport.close(),
  };
};

/** Model client of one Gemini model. Throws as `createGeminiCaller`. */
export const createGeminiClient = (
  options: GeminiOptions & { clips: ClipSource; forms: ClipForms },
): ModelClient => {
  const caller = createGeminiCaller(options);
  const loading = { clips: options.clips, forms: options.forms, fps: options.settings?.fps ?? null };
  const start = async (messages: readonly ResolvedMessage[], limits: GeminiCallLimits) => {
    const { system, pieces, sent } = await mediaContents(messages, loading);
    return { sent, ending: caller.send(pieces, { ...limits, system }) };
  };
  return {
    call: async ({ messages }, limits) => {
      const { sent, ending } = await start(messages, limits);
      return { ...(await ending), consumed: sent };
    },
    close: () => caller.close(),
  };
};
