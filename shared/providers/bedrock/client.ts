import type { ClipForms } from '../../domain/media.ts';
import type { CallOutcome } from '../../domain/outcome.ts';
import { errorNames, TurnsweepError } from '../../errors.ts';
import type { ChatCaller } from '../../ports/chat-caller.ts';
import type { ClipSource, ModelClient } from '../../ports/model-client.ts';
import { checkKey } from '../chat-completions/client.ts';
import { requestTooLarge } from '../inline-clip.ts';
import type { LaneSettings } from '../provider.ts';
import { endpointUrl } from '../transport.ts';
import { bodyBytesAtMost } from './capabilities.ts';
import type { ConverseCommandInput, Message, Runtime } from './converse-sdk.ts';
import { alternating, type BedrockCall, converseInput, inlineBytes, mediaMessages } from './request.ts';
import {
  emptyReading,
  faultOutcome,
  type Reading,
  replyOutcome,
  takeEvent,
  timeoutOutcome,
  tooLargeOutcome,
} from './response.ts';

export interface BedrockOptions {
  /** Endpoint of a region, such as `https://bedrock-runtime.us-east-1.amazonaws.com`. */
  baseUrl: string;
  /** A Bedrock API key; null: the credentials of the environment sign each call. */
  apiKey: string | null;
  model: string;
  settings?: LaneSettings;
  maxInFlight: number;
  /** Longest silence inside a stream that has begun. */
  idleTimeoutMs?: number;
  maxReplyCharacters?: number;
}

export interface BedrockCallLimits extends BedrockCall {
  /** Whole-call deadline in milliseconds, body included. */
  deadlineMs: number;
  signal?: AbortSignal;
}

export interface BedrockCaller extends ChatCaller {
  /** One call, one attempt, with messages as `mediaMessages` makes them. Rejects when `signal` aborts. */
  send(messages: Message[], limits: BedrockCallLimits): Promise<CallOutcome>;
}

const longestTimerMs = 2 ** 31 - 1;

/** Region of an endpoint, private ones (`vpce-….bedrock-runtime.eu-west-1.vpce.amazonaws.com`) included. */
export const regionOf = (baseUrl: string): string | undefined =>
  /(?:^|\.)bedrock-runtime(?:-fips)?\.([a-z0-9-]+)\./.exec(new URL(baseUrl).hostname)?.[1];

/**
 * Caller of one model behind Bedrock's Converse. The AWS SDK is loaded by the first call.
 * Throws `UsageWrong` for an address or a key that cannot be sent.
 */
export const createBedrockCaller = (options: BedrockOptions): BedrockCaller => {
  const { apiKey, model, settings = {}, idleTimeoutMs = 60_000, maxReplyCharacters = 16_000_000 } = options;
  checkKey(apiKey, model);
  const endpoint = endpointUrl(options.baseUrl, '').replace(/\/$/, '');
  // A key is good wherever it is sent, but the SDK asks for a region all the same.
  const region = regionOf(endpoint) ?? (apiKey === null ? undefined : 'us-east-1');
  let opening: Promise<Runtime> | null = null;
  const opened = (): Promise<Runtime> => {
    opening ??= import('./converse-sdk.ts').then(({ openRuntime }) =>
      openRuntime({ endpoint, region, apiKey, connections: options.maxInFlight }),
    );
    return opening;
  };

  const readWhole = async (input: ConverseCommandInput, reading: Reading, signal: AbortSignal) => {
    const { $metadata, output, stopReason, usage } = await (await opened()).converse(input, signal);
    reading.httpStatus = $metadata.httpStatusCode ?? null;
    reading.requestId = $metadata.requestId ?? null;
    reading.usage = usage;
    if (output?.message === undefined) throw new Error('a reply without a message');
    reading.text = (output.message.content ?? []).map(({ text }) => text ?? '').join('');
    reading.stopReason = stopReason ?? null;
  };

  /** False where the reply grew too long. */
  const readStream = async (
    input: ConverseCommandInput,
    reading: Reading,
    signal: AbortSignal,
    onEvent: () => void,
  ): Promise<boolean> => {
    const { $metadata, stream } = await (await opened()).converseStream(input, signal);
    reading.httpStatus = $metadata.httpStatusCode ?? null;
    reading.requestId = $metadata.requestId ?? null;
    onEvent();
    for await (const event of stream ?? []) {
      onEvent();
      takeEvent(reading, event);
      if (reading.text.length > maxReplyCharacters) return false;
    }
    return true;
  };

  const send: BedrockCaller['send'] = async (messages, { deadlineMs, signal, ...call }) => {
    signal?.throwIfAborted();
    const bytes = inlineBytes(messages);
    if (bytes > bodyBytesAtMost) return requestTooLarge(bytes, bodyBytesAtMost);
    const input = converseInput(model, settings, messages, call);
    const reading = emptyReading();
    const clock = new AbortController();
    const stopAfter = (ms: number, message: string) =>
      setTimeout(() => clock.abort(message), Math.min(ms, longestTimerMs));
    const deadline = stopAfter(deadlineMs, `no complete reply within ${deadlineMs} ms`);
    let silence: NodeJS.Timeout | undefined;
    const onEvent = () => {
      clearTimeout(silence);
      silence = stopAfter(idleTimeoutMs, `the reply stopped for ${idleTimeoutMs} ms`);
    };
    const either = signal === undefined ? clock.signal : AbortSignal.any([signal, clock.signal]);
    try {
      if (settings.stream === false) await readWhole(input, reading, either);
      else if (!(await readStream(input, reading, either, onEvent))) {
        clock.abort();
        return tooLargeOutcome(reading, maxReplyCharacters);
      }
      return replyOutcome(reading, apiKey);
    } catch (error) {
      signal?.throwIfAborted();
      if (clock.signal.aborted) return timeoutOutcome(clock.signal.reason, reading, apiKey);
      if (error instanceof Error && error.message === 'Region is missing') {
        throw new TurnsweepError(errorNames.usage, 'the AWS region is not known', {
          where: model,
          remedy: 'name the regional endpoint in baseUrl or set AWS_REGION',
          cause: error,
        });
      }
      return faultOutcome(error, reading, { apiKey, now: Date.now() });
    } finally {
      clearTimeout(deadline);
      clearTimeout(silence);
    }
  };

  return {
    send,
    complete: ({ messages, ...limits }) =>
      send(
        alternating(
          messages
            .filter(({ role }) => role === 'user')
            .map(({ content }) => ({ role: 'user', content: [{ text: content }] })),
        ),
        { ...limits, system: messages.filter(({ role }) => role === 'system').map(({ content }) => content) },
      ),
    close: async () => (await opening)?.close(),
  };
};

/** Model client of one Bedrock model. Throws as `createBedrockCaller`. */
export const createBedrockClient = (
  options: BedrockOptions & { clips: ClipSource; forms: ClipForms },
): ModelClient => {
  const caller = createBedrockCaller(options);
  return {
    call: async (request, limits) => {
      const { system, messages, sent } = await mediaMessages(request.messages, options);
      return { ...(await caller.send(messages, { ...limits, system })), consumed: sent };
    },
    close: () => caller.close(),
  };
};
