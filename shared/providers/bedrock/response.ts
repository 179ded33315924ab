import type { CallFacts, CallOutcome, ErrorKind } from '../../domain/outcome.ts';
import { cleanMessage, failedOutcome, verdictOf } from '../chat-completions/errors.ts';
import { retryAfterSeconds } from '../transport.ts';
import type { ConverseStreamOutput, TokenUsage } from './converse-sdk.ts';
import { rules, statusOfException } from './errors.ts';
import { readUsage } from './usage.ts';

/** What has arrived of a reply. */
export interface Reading {
  text: string;
  stopReason: string | null;
  usage: Partial<TokenUsage> | undefined;
  /** Null until the reply has begun. */
  httpStatus: number | null;
  requestId: string | null;
}

export const emptyReading = (): Reading => ({
  text: '',
  stopReason: null,
  usage: undefined,
  httpStatus: null,
  requestId: null,
});

/** Takes one event of a stream. Thinking is left out; events that are not known say nothing of the reply. */
export const takeEvent = (reading: Reading, event: ConverseStreamOutput): void => {
  reading.text += event.contentBlockDelta?.delta?.text ?? '';
  reading.stopReason = event.messageStop?.stopReason ?? reading.stopReason;
  reading.usage = event.metadata?.usage ?? reading.usage;
};

const factsOf = (reading: Reading): CallFacts => ({
  httpStatus: reading.httpStatus,
  responseId: reading.requestId,
  servedModel: null,
  finishReason: reading.stopReason,
  usage: readUsage(reading.usage),
});

/**
 * The outcome of a reply without a fault (return-protocol §4). A full context window is not `length`: a higher cap
 * cannot help, and asking again would only pay for the prompt again.
 */
export const replyOutcome = (reading: Reading, apiKey: string | null): CallOutcome => {
  const facts = factsOf(reading);
  const { text, stopReason } = reading;
  const retry = (kind: ErrorKind, message: string) =>
    failedOutcome({ verdict: 'retry', kind }, message, facts);
  const message = cleanMessage(`the reply ended with stop reason ${stopReason}`, apiKey);
  switch (stopReason) {
    case null:
      return retry('incomplete_stream', 'the reply ended without a stop reason');
    case 'end_turn':
    case 'stop_sequence':
      if (text.trim() === '') return retry('empty_response', 'the reply has no text');
      return { status: 'ok', text, ...facts };
    case 'max_tokens':
      return { status: 'length', text, ...facts };
    case 'content_filtered':
      return { status: 'refused', kind: 'finish_content_filter', message, ...facts };
    // Guardrails stop prompts and replies with the same word.
    case 'guardrail_intervened':
      return { status: 'refused', kind: 'provider_refusal', message, ...facts };
    default: {
      const words = stopReason.toLowerCase().match(/[a-z0-9]+/g) ?? ['unknown'];
      return { status: 'failed', kind: `finish_${words.join('_').slice(0, 40)}`, message, ...facts };
    }
  }
};

/** Members of the SDK's errors that we read. */
interface SdkError extends Error {
  code?: string;
  syscall?: string;
  errors?: SdkError[];
  $fault?: string;
  $metadata?: { httpStatusCode?: number; requestId?: string };
  $response?: { statusCode?: number; headers?: Record<string, string> };
}

const plainNames = ['Error', 'SyntaxError', 'RangeError', 'AggregateError', 'TimeoutError', 'AbortError'];

const transportKind = (error: SdkError): ErrorKind | null => {
  // A host with several addresses fails with all of their errors.
  const { code = '', syscall } = error.errors?.[0] ?? error;
  if (code === '') return null;
  if (syscall === 'connect' || syscall === 'getaddrinfo' || /CERT|SIGNATURE|TLS|SSL/.test(code)) {
    return 'connect_failed';
  }
  return code.startsWith('HPE_') ? 'protocol_error' : 'connection_reset';
};

/**
 * The outcome of a call that the SDK ended with an error. A reply whose stop reason had arrived is complete, whatever
 * broke then, and is not paid for twice. `now` in ms since the epoch. Rethrows what is no fault of the call.
 */
export const faultOutcome = (
  error: unknown,
  reading: Reading,
  { apiKey, now }: { apiKey: string | null; now: number },
): CallOutcome => {
  if (!(error instanceof Error)) throw error;
  const fault = error as SdkError;
  const status = fault.$metadata?.httpStatusCode ?? fault.$response?.statusCode ?? null;
  const facts = factsOf({
    ...reading,
    httpStatus: reading.httpStatus ?? status,
    requestId: reading.requestId ?? fault.$metadata?.requestId ?? null,
  });
  // The SDK adds a second line of advice to programmers.
  const said = fault.message.split('\n')[0]!;
  const retry = (kind: ErrorKind, message = said) =>
    failedOutcome({ verdict: 'retry', kind }, cleanMessage(message, apiKey), facts);

  const isException =
    fault.$fault !== undefined || (reading.httpStatus !== null && !plainNames.includes(fault.name));
  if (isException || (status !== null && status >= 300)) {
    const named = plainNames.includes(fault.name) ? null : fault.name;
    const judged = verdictOf(
      {
        status: (reading.httpStatus === null ? status : null) ?? statusOfException[fault.name] ?? null,
        codes: named === null ? [] : [named.toLowerCase()],
        message: said,
      },
      rules,
    );
    const text = named === null ? `HTTP ${status}: ${said}` : `${named}: ${said}`;
    // Bedrock documents no such header; whoever stands in between may send one.
    const wait = retryAfterSeconds(fault.$response?.headers ?? {}, now, status ?? 0);
    return failedOutcome(judged, cleanMessage(text, apiKey), facts, wait);
  }
  if (/^(Credentials|Token)ProviderError$/.test(fault.name)) {
    const message = cleanMessage(`no AWS credentials: ${said}`, apiKey);
    return { status: 'stop_lane', kind: 'connect_failed', message, ...facts };
  }
  const kind = transportKind(fault);
  const hasBegun = reading.httpStatus !== null || status !== null;
  if (kind === null && !hasBegun) throw error;
  if (reading.stopReason !== null) return replyOutcome(reading, apiKey);
  if (kind !== null) return retry(kind);
  if (fault.name === 'TypeError') throw error;
  return /^Truncated event message/.test(said) && reading.httpStatus !== null
    ? retry('incomplete_stream', 'the reply ended inside an event')
    : retry('invalid_response', `the server sent what is no reply: ${said}`);
};

/** The outcome of a call that our own clock ended. */
export const timeoutOutcome = (message: string, reading: Reading, apiKey: string | null): CallOutcome =>
  reading.stopReason === null
    ? failedOutcome({ verdict: 'retry', kind: 'timeout' }, message, factsOf(reading))
    : replyOutcome(reading, apiKey);

/** The outcome of a reply that grew beyond what any reply has. */
export const tooLargeOutcome = (reading: Reading, charactersAtMost: number): CallOutcome => ({
  status: 'failed',
  kind: 'invalid_response',
  message: `the reply is longer than ${charactersAtMost} characters`,
  ...factsOf(reading),
});
