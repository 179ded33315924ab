import type { ClipForms } from '../../domain/media.ts';
import type { CallOutcome } from '../../domain/outcome.ts';
import { errorNames, TurnsweepError } from '../../errors.ts';
import type { ClipSource, ModelClient } from '../../ports/model-client.ts';
import type { LaneSettings } from '../provider.ts';
import { createTransport, endpointUrl } from '../transport.ts';
import type { CallShape, ChatProfile, JsonPiece } from './profile.ts';
import { bodyHead, encodeBody, mediaMessages, type TextMessage, textMessages } from './request.ts';
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

  const send: ChatCaller['send'] = async (messages, limits) => {
    const body = encodeBody(bodyHead(profile, model, settings, limits), messages);
    const result = await transport.post(body, limits);
    const context = { apiKey, now: now(), profile };
    return 'reply' in result ? replyOutcome(result.reply, context) : failureOutcome(result.failure, context);
  };

  return {
    send,
    complete: ({ messages, ...limits }) => send([textMessages(messages)], limits),
    close: () => transport.close(),
  };
};

/** Model client of this dialect as the options' profile speaks it. */
export const createChatClient = (
  options: ChatCallerOptions & { clips: ClipSource; forms: ClipForms },
): ModelClient => {
  const caller = createChatCaller(options);
  const { clips, forms, profile } = options;
  const loading = { clips, forms, profile, fps: options.settings?.fps ?? null };
  return {
    call: async ({ messages }, limits) => {
      const { pieces, sent } = await mediaMessages(messages, loading);
      const outcome = await caller.send(pieces, limits);
      return { ...outcome, consumed: sent };
    },
    close: () => caller.close(),
  };
};
