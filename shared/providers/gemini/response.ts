import { isUtf8 } from 'node:buffer';
import { createParser } from 'eventsource-parser';
import type { CallFacts, CallOutcome, ErrorKind } from '../../domain/outcome.ts';
import { unknownUsage } from '../../domain/outcome.ts';
import { cleanMessage, failedOutcome, verdictOf } from '../chat-completions/errors.ts';
import type { TransportFailure, TransportReply } from '../transport.ts';
import { headerText, retryAfterSeconds } from '../transport.ts';
import { type GeminiError, readErrorBody, rules } from './errors.ts';
import { readUsage } from './usage.ts';

type Json = Record<string, unknown>;

/** What was found in a 200: a reply, whole or not, or the first fault in it. */
interface Reading {
  text: string;
  finishReason: string | null;
  finishMessage: string | null;
  /** Why the prompt was turned down before the model saw it. */
  blockReason: string | null;
  id: string | null;
  servedModel: string | null;
  usage: unknown;
  fault: { error: GeminiError } | { malformed: string } | null;
}

const emptyReading = (): Reading => ({
  text: '',
  finishReason: null,
  finishMessage: null,
  blockReason: null,
  id: null,
  servedModel: null,
  usage: undefined,
  fault: null,
});

const record = (value: unknown): Json | null =>
  value !== null && typeof value === 'object' && !Array.isArray(value) ? (value as Json) : null;

const nonEmpty = (value: unknown): string | null =>
  typeof value === 'string' && value !== '' ? value : null;

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};

/** Visible text of a candidate, thoughts left out; null where a part is neither text nor a mere signature. */
const contentText = (content: unknown): string | null => {
  const parts = record(content)?.parts ?? [];
  if (!Array.isArray(parts)) return null;
  let text = '';
  for (const part of parts.map(record)) {
    if (typeof part?.text !== 'string') {
      if (part === null || !('thoughtSignature' in part)) return null;
    } else if (part.thought !== true) text += part.text;
  }
  return text;
};

/** Takes one JSON document, a whole reply or an event of a stream, into the reading. */
const take = (reading: Reading, document: unknown, isWhole: boolean): void => {
  const error = readErrorBody(document);
  if (error) {
    reading.fault = { error };
    return;
  }
  const reply = record(document);
  if (!reply) {
    reading.fault = { malformed: `${isWhole ? 'a body' : 'an event'} that is not a JSON object` };
    return;
  }
  reading.id ??= nonEmpty(reply.responseId);
  reading.servedModel ??= nonEmpty(reply.modelVersion);
  // Every event has the running totals: the last one counts.
  reading.usage = reply.usageMetadata ?? reading.usage;
  reading.blockReason ??= nonEmpty(record(reply.promptFeedback)?.blockReason);
  const candidates = reply.candidates ?? [];
  if (!Array.isArray(candidates) || candidates.length > 1) {
    reading.fault = { malformed: 'a reply that has not one candidate' };
    return;
  }
  if (candidates.length === 0) {
    const isReply = !isWhole || reading.blockReason !== null;
    if (!isReply) reading.fault = { malformed: 'a reply without candidates' };
    return;
  }
  const candidate = record(candidates[0]);
  const text = candidate && contentText(candidate.content);
  if (!candidate || text === null) {
    reading.fault = { malformed: 'a candidate without readable parts' };
    return;
  }
  if (text !== '' && reading.finishReason !== null) {
    reading.fault = { malformed: 'text after the finish reason' };
    return;
  }
  reading.text += text;
  reading.finishReason = nonEmpty(candidate.finishReason) ?? reading.finishReason;
  reading.finishMessage = nonEmpty(candidate.finishMessage) ?? reading.finishMessage;
};

/**
 * Reads a whole event stream. An event that is not understood makes the reply malformed; only the rest of an event that
 * the end of the body cuts off is dropped. There is no `[DONE]`: the event with the finish reason is the last.
 */
const readStream = (body: string): Reading => {
  const reading = emptyReading();
  let cutOff = false;
  const parser = createParser({
    onEvent: ({ data }) => {
      if (reading.fault || data === '') return;
      const document = parse(data);
      if (document !== undefined || !cutOff) take(reading, document, false);
    },
    onError: ({ type }) => {
      if (reading.fault || cutOff || type === 'invalid-retry') return;
      reading.fault = { malformed: 'a line that is no event field' };
    },
  });
  parser.feed(body);
  cutOff = true;
  parser.feed('\n\n');
  return reading;
};

const readBody = (headers: TransportReply['headers'], bytes: Buffer): Reading => {
  if (!isUtf8(bytes)) return { ...emptyReading(), fault: { malformed: 'a body that is not UTF-8 text' } };
  const body = bytes.toString('utf8').replace(/^\ufeff/, '');
  const type = headerText(headers, 'content-type')?.toLowerCase() ?? '';
  const streamed = type === '' ? !/^\s*[[{<]/.test(body) : type.includes('text/event-stream');
  if (streamed) return readStream(body);
  if (type.includes('html') || /^\s*</.test(body)) {
    return { ...emptyReading(), fault: { malformed: 'a web page instead of a reply' } };
  }
  const reading = emptyReading();
  take(reading, parse(body), true);
  return reading;
};

export interface ReplyContext {
  apiKey: string | null;
  /** Milliseconds since the epoch, for waits that are given as a date. */
  now: number;
}

const factsOf = (reply: TransportReply | null, reading: Reading | null): CallFacts => ({
  httpStatus: reply?.status ?? null,
  responseId: reading?.id ?? null,
  servedModel: reading?.servedModel ?? null,
  finishReason: reading?.finishReason ?? reading?.blockReason ?? null,
  usage: reading?.usage === undefined ? unknownUsage : readUsage(reading.usage),
});

/** The policy of the provider cut the reply: safety, its lists of words, copied text, personal data. */
const isFiltered = (finishReason: string): boolean =>
  /^(SAFETY|RECITATION|BLOCKLIST|PROHIBITED_CONTENT|SPII|IMAGE_SAFETY|IMAGE_PROHIBITED_CONTENT|IMAGE_RECITATION)$/.test(
    finishReason,
  );

const finishKind = (finishReason: string): ErrorKind => {
  const words = finishReason.toLowerCase().match(/[a-z0-9]+/g) ?? ['unknown'];
  return `finish_${words.join('_').slice(0, 40)}`;
};

/** Body and header may each name a wait: who keeps to the longer one keeps to both. */
const longer = (a: number | null, b: number | null): number | null =>
  a === null || b === null ? (a ?? b) : Math.max(a, b);

const successOutcome = (reply: TransportReply, reading: Reading, context: ReplyContext): CallOutcome => {
  const facts = factsOf(reply, reading);
  const { fault, text, finishReason, blockReason } = reading;
  const line = (message: string) => cleanMessage(message, context.apiKey);
  const wait = retryAfterSeconds(reply.headers, context.now, reply.status);
  const retry = (kind: ErrorKind, message: string) =>
    failedOutcome({ verdict: 'retry', kind }, line(message), facts, wait);

  if (fault && 'error' in fault) {
    const { error } = fault;
    const message = line(`the reply reports an error: ${error.message || 'no message'}`);
    return failedOutcome(verdictOf(error, rules), message, facts, longer(error.waitSeconds, wait));
  }
  if (fault) return retry('invalid_response', `the server sent ${fault.malformed}`);
  if (blockReason !== null) {
    const message = line(`the prompt was blocked: ${blockReason}`);
    return { status: 'refused', kind: 'provider_refusal', message, ...facts };
  }
  if (finishReason === null) return retry('incomplete_stream', 'the reply ended without a finish reason');
  if (finishReason === 'MAX_TOKENS') return { status: 'length', text, ...facts };
  if (finishReason !== 'STOP') {
    const more = reading.finishMessage === null ? '' : `: ${reading.finishMessage}`;
    const message = line(`the reply ended with finish reason ${finishReason}${more}`);
    return isFiltered(finishReason)
      ? { status: 'refused', kind: 'finish_content_filter', message, ...facts }
      : { status: 'failed', kind: finishKind(finishReason), message, ...facts };
  }
  if (text.trim() === '') return retry('empty_response', 'the reply has no text');
  return { status: 'ok', text, ...facts };
};

/** The outcome of a reply that arrived whole (return-protocol §4). */
export const replyOutcome = (reply: TransportReply, context: ReplyContext): CallOutcome => {
  const { status, headers, body } = reply;
  if (status === 200) return successOutcome(reply, readBody(headers, body), context);
  const text = body.toString('utf8');
  const error = readErrorBody(parse(text));
  const said = error?.message || (text.trim().startsWith('<') ? 'a web page' : text.slice(0, 16_384));
  const message = cleanMessage(`HTTP ${status}${said ? `: ${said}` : ''}`, context.apiKey);
  return failedOutcome(
    status < 300
      ? { verdict: 'retry', kind: 'invalid_response' }
      : verdictOf({ status, codes: error?.codes ?? [], message: said }, rules),
    message,
    factsOf(reply, null),
    longer(error?.waitSeconds ?? null, retryAfterSeconds(headers, context.now, status)),
  );
};

/**
 * The outcome of a call whose connection failed. A reply whose finish reason had arrived is complete and is not paid for
 * twice; any other part of one is only evidence.
 */
export const failureOutcome = (failure: TransportFailure, { apiKey, now }: ReplyContext): CallOutcome => {
  const { kind, partial } = failure;
  const reading = partial?.status === 200 ? readBody(partial.headers, partial.body) : null;
  if (partial && reading && reading.finishReason !== null && reading.fault === null) {
    return successOutcome(partial, reading, { apiKey, now });
  }
  const facts = factsOf(partial, reading);
  const message = cleanMessage(failure.message, apiKey);
  return kind === 'reply_too_large'
    ? { status: 'failed', kind: 'invalid_response', message, ...facts }
    : failedOutcome({ verdict: 'retry', kind }, message, facts);
};
