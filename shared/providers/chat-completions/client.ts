import { type Capabilities, encodedSize } from '../../domain/capabilities.ts';
import { type ClipForms, sentParts } from '../../domain/media.ts';
import type { CallOutcome } from '../../domain/outcome.ts';
import { clipCounts, type ResolvedMessage } from '../../domain/request.ts';
import { errorNames, TurnsweepError } from '../../errors.ts';
import type { ClipSource, ModelClient } from '../../ports/model-client.ts';
import type { LaneSettings } from '../provider.ts';
import { type BodyInPieces, createTransport, endpointUrl } from '../transport.ts';
import type { CallShape, ChatProfile, JsonPiece } from './profile.ts';
import { bodyHead, mediaMessages, requestBody, type TextMessage, textMessages } from './request.ts';
import { failureOutcome, replyOutcome } from './response.ts';

export interface ChatCallerOptions {
  /** Address up to and with the version, such as `https://host/v1`. */
  baseUrl: string;
  /** Null for servers that ask for none. */
  apiKey: string | null;
  model: string;
  settings?: LaneSettings;
  profile: ChatProfile;
  maxInFlight: number;
  idleTimeoutMs?: number;
  maxReplyBytes?: number;
  /** Milliseconds since the epoch; only dates in Retry-After need it. */
  now?: () => number;
}

export interface ChatCallLimits extends CallShape {
  /** Whole-call deadline in milliseconds, body included. */
  deadlineMs: number;
  signal?: AbortSignal;
}

export interface ChatCaller {
  /** One call with text alone, one attempt. Rejects only when `signal` aborts. */
  complete(call: ChatCallLimits & { messages: readonly TextMessage[] }): Promise<CallOutcome>;
  /** The same with messages that are JSON already, as `mediaMessages` makes them. */
  send(messages: readonly JsonPiece[], limits: ChatCallLimits): Promise<CallOutcome>;
  close(): Promise<void>;
}

/** Throws `UsageWrong` for a key that no header can carry; `where` says whose it is. */
export const checkKey = (apiKey: string | null, where: string): void => {
  if (apiKey === null || /^[\x21-\x7e]+$/.test(apiKey)) return;
  throw new TurnsweepError(
    errorNames.usage,
    'API key is empty or holds characters that a header cannot carry',
    { where, remedy: 'check the variable named in apiKeyEnv for spaces and line ends' },
  );
};

/**
 * Caller of one model behind an OpenAI-compatible `chat/completions`.
 * Throws `UsageWrong` for an address or a key that cannot be sent.
 */
export const createChatCaller = (options: ChatCallerOptions): ChatCaller => {
  const { apiKey, model, profile, settings = {}, now = Date.now } = options;
  checkKey(apiKey, model);
  const transport = createTransport({
    url: endpointUrl(options.baseUrl, 'chat/completions'),
    headers: apiKey === null ? {} : { authorization: `Bearer ${apiKey}` },
    connections: options.maxInFlight,
    idleTimeoutMs: options.idleTimeoutMs,
    maxReplyBytes: options.maxReplyBytes,
  });

  const post = async (body: Buffer | BodyInPieces, limits: ChatCallLimits): Promise<CallOutcome> => {
    const result = await transport.post(body, limits);
    const context = { apiKey, now: now(), profile };
    return 'reply' in result ? replyOutcome(result.reply, context) : failureOutcome(result.failure, context);
  };
  // No frame that waits holds the pieces: beside the body they would double what a large request keeps in memory.
  const send: ChatCaller['send'] = (messages, limits) =>
    post(requestBody(bodyHead(profile, model, settings, limits), messages), limits);

  return {
    send,
    complete: async ({ messages, ...limits }) => send([textMessages(messages)], limits),
    close: () => transport.close(),
  };
};

/** What a provider takes inline in one request; left out: no limit is known, or everything goes inline anyway. */
export type InlineLimits = Pick<Capabilities, 'bodyBytesAtMost' | 'clipsPerRequest'>;

/**
 * Model client of this dialect as the options' profile speaks it. Where a request's clips are more than the provider
 * takes inline together, and it can fetch them, all of them go by their addresses.
 */
export const createChatClient = (
  options: ChatCallerOptions & { clips: ClipSource; forms: ClipForms; inlineLimits?: InlineLimits },
): ModelClient => {
  const caller = createChatCaller(options);
  const { clips, forms, profile, inlineLimits } = options;
  const loading = { clips, forms, profile, fps: options.settings?.fps ?? null };
  const byAddress = { ...loading, profile: { ...profile, inlineBytesAtMost: 0 } };
  const start = async (messages: readonly ResolvedMessage[], limits: ChatCallLimits) => {
    const isTooMuch =
      clips.givesUrls && inlineLimits && (await exceedsInline(messages, { clips, forms, inlineLimits }));
    const { pieces, sent } = await mediaMessages(messages, isTooMuch ? byAddress : loading);
    return { sent, ending: caller.send(pieces, limits) };
  };
  return {
    call: async ({ messages }, limits) => {
      const { sent, ending } = await start(messages, limits);
      return { ...(await ending), consumed: sent };
    },
    close: () => caller.close(),
  };
};

/** Whether a request's clips are too many, or too large together, to go inline. Unknown sizes count nothing. */
const exceedsInline = async (
  messages: readonly ResolvedMessage[],
  loading: { clips: ClipSource; forms: ClipForms; inlineLimits: InlineLimits },
): Promise<boolean> => {
  const { bodyBytesAtMost, clipsPerRequest } = loading.inlineLimits;
  const counts = clipCounts(messages);
  if (counts.audio > (clipsPerRequest.audio ?? Number.POSITIVE_INFINITY)) return true;
  if (counts.video > (clipsPerRequest.video ?? Number.POSITIVE_INFINITY)) return true;
  if (bodyBytesAtMost === null) return false;
  let encoded = 0;
  for (const message of messages) {
    if (message.role !== 'user') {
      encoded += Buffer.byteLength(message.text);
      continue;
    }
    for (const part of sentParts(message.content, loading.forms)) {
      if (part.type === 'text') encoded += Buffer.byteLength(part.text);
      else encoded += encodedSize((await loading.clips.bytesOf?.(part.clip, part.form)) ?? 0);
    }
  }
  return encoded > bodyBytesAtMost;
};
