import { isUtf8 } from 'node:buffer';
import { createParser } from 'eventsource-parser';
import type { CallFacts, CallOutcome, ErrorKind } from '../../domain/outcome.ts';
import { unknownUsage } from '../../domain/outcome.ts';
import type { TransportFailure, TransportReply } from '../transport.ts';
import { headerText, retryAfterSeconds } from '../transport.ts';
import { cleanMessage, failedOutcome, readErrorBody, verdictOf } from './errors.ts';
import type { ChatProfile } from './profile.ts';

type Json = Record<string, unknown>;

/** What was found in a 200: a reply, whole or not, or the first fault in it. */
interface Reading {
  text: string;
  refusal: string;
  finishReason: string | null;
  /** The server said that it was done. */
  ended: boolean;
  id: string | null;
  servedModel: string | null;
  usage: unknown;
  fault: { error: NonNullable<ReturnType<typeof readErrorBody>> } | { malformed: string } | null;
}

const emptyReading = (): Reading => ({
  text: '',
  refusal: '',
  finishReason: null,
  ended: false,
  id: null,
  servedModel: null,
  usage: undefined,
  fault: null,
});

const record = (value: unknown): Json | null =>
  value !== null && typeof value === 'object' && !Array.isArray(value) ? (value as Json) : null;

const nonEmpty = (value: unknown): string | null =>
  typeof value === 'string' && value !== '' ? value : null;

const parseObject = (text: string): Json | null => {
  try {
    return record(JSON.parse(text));
  } catch {
    return null;
  }
};

/** Text of a message or delta; null where it is neither text, a list of parts nor absent. */
const contentText = (content: unknown): string | null => {
  if (typeof content === 'string') return content;
  if (content === null || content === undefined) return '';
  if (!Array.isArray(content)) return null;
  return content
    .map((part) => record(part))
    .map((part) => (part?.type === 'text' && typeof part.text === 'string' ? part.text : ''))
    .join('');
};

/** Takes one JSON document, a whole reply (`message`) or a chunk of a stream (`delta`), into the reading. */
const take = (reading: Reading, document: Json, member: 'message' | 'delta'): void => {
  reading.id ??= nonEmpty(document.id) ?? nonEmpty(document.request_id);
  reading.servedModel ??= nonEmpty(document.model);
  // Some servers send running totals with every chunk: the last one counts.
  if (document.usage !== null && document.usage !== undefined) reading.usage = document.usage;
  const error = readErrorBody(document);
  if (error) {
    reading.fault = { error };
    return;
  }
  const { choices } = document;
  if (!Array.isArray(choices)) {
    reading.fault = { malformed: 'a reply without choices' };
    return;
  }
  if (choices.length === 0 && member === 'delta') return;
  const choice = record(choices[0]);
  if (choices.length !== 1 || !choice) {
    reading.fault = { malformed: `a reply with ${choices.length} choices` };
    return;
  }
  const message = record(choice[member]) ?? (member === 'delta' ? {} : null);
  const text = message && contentText(message.content);
  if (!message || text === null) {
    reading.fault = { malformed: `a choice without a readable ${member}` };
    return;
  }
  if (text !== '' && reading.finishReason !== null) {
    reading.fault = { malformed: 'text after the finish reason' };
    return;
  }
  reading.text += text;
  reading.refusal += nonEmpty(message.refusal) ?? '';
  reading.finishReason = nonEmpty(choice.finish_reason) ?? reading.finishReason;
};

const readDocument = (body: string): Reading => {
  const reading = emptyReading();
  const document = parseObject(body);
  if (document) take(reading, document, 'message');
  else reading.fault = { malformed: 'a body that is not a JSON object' };
  return reading;
};

/**
 * Reads a whole event stream. Nothing is skipped in silence: an event that is not understood makes the reply
 * malformed. Only the rest of an event that the end of the body cuts off is dropped, and then the finish reason
 * decides whether the reply was complete. `[DONE]` is expected but not needed: some providers never send it.
 */
const readStream = (body: string): Reading => {
  const reading = emptyReading();
  let cutOff = false;
  const parser = createParser({
    onEvent: ({ event, data }) => {
      if (reading.fault || reading.ended || data === '' || event === 'ping') return;
      if (data.trim() === '[DONE]') {
        reading.ended = true;
        return;
      }
      const document = parseObject(data);
      if (document) take(reading, document, 'delta');
      else if (!cutOff) reading.fault = { malformed: 'an event that is not a JSON object' };
    },
    onError: ({ type, field, value }) => {
      if (reading.fault || reading.ended || cutOff || type === 'invalid-retry') return;
      // Older llama.cpp servers report faults in a field of their own.
      const document = field === 'error' ? parseObject(value ?? '') : null;
      const error = document && readErrorBody({ error: document });
      reading.fault = error ? { error } : { malformed: `a line that is no event field` };
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
  // Without a content type the first character tells: a document is an object, a stream begins with a field.
  const streamed = type === '' ? !/^\s*[{<]/.test(body) : type.includes('text/event-stream');
  if (streamed) return readStream(body);
  if (type.includes('html') || /^\s*</.test(body)) {
    return { ...emptyReading(), fault: { malformed: 'a web page instead of a reply' } };
  }
  return readDocument(body);
};

const factsOf = (
  reply: TransportReply | null,
  reading: Reading | null,
  { profile }: ReplyContext,
): CallFacts => ({
  httpStatus: reply?.status ?? null,
  responseId: reading?.id ?? (reply ? headerText(reply.headers, 'x-request-id') : null),
  servedModel: reading?.servedModel ?? null,
  finishReason: reading?.finishReason ?? null,
  usage: reading?.usage === undefined ? unknownUsage : profile.readUsage(reading.usage),
});

const finishKind = (finishReason: string): ErrorKind => {
  const words = finishReason.toLowerCase().match(/[a-z0-9]+/g) ?? ['unknown'];
  return `finish_${words.join('_').slice(0, 40)}`;
};

export interface ReplyContext {
  apiKey: string | null;
  /** Milliseconds since the epoch, for waits that are given as a date. */
  now: number;
  profile: Pick<ChatProfile, 'rules' | 'readUsage'>;
}

const successOutcome = (reply: TransportReply, reading: Reading, context: ReplyContext): CallOutcome => {
  const { apiKey, now, profile } = context;
  const facts = factsOf(reply, reading, context);
  const { fault, text, finishReason } = reading;
  const wait = retryAfterSeconds(reply.headers, now, reply.status);
  const retry = (kind: ErrorKind, message: string) =>
    failedOutcome({ verdict: 'retry', kind }, cleanMessage(message, apiKey), facts, wait);

  if (fault && 'error' in fault) {
    const { codes, statusInBody, message } = fault.error;
    const verdict = verdictOf({ status: statusInBody, codes, message }, profile.rules);
    const line = cleanMessage(`the reply reports an error: ${message || 'no message'}`, apiKey);
    return failedOutcome(verdict, line, facts, wait);
  }
  if (fault) return retry('invalid_response', `the server sent ${fault.malformed}`);
  // DashScope cuts a reply at its own time limit and says so only in this header.
  const partial = headerText(reply.headers, 'x-dashscope-partialresponse') === 'true';
  if (finishReason === null && !partial) {
    return retry('incomplete_stream', 'the reply ended without a finish reason');
  }
  // SGLang ends a reply with `abort` when it gave up on it.
  if (finishReason === 'abort') return retry('incomplete_stream', 'the server gave the reply up');
  if (reading.refusal !== '') {
    const message = cleanMessage(`the model refused: ${reading.refusal}`, apiKey);
    return { status: 'refused', kind: 'provider_refusal', message, ...facts };
  }
  if (finishReason === 'length' || finishReason === null || (partial && finishReason === 'stop'))
    return { status: 'length', text, ...facts };
  if (finishReason !== 'stop') {
    const message = cleanMessage(`the reply ended with finish reason ${finishReason}`, apiKey);
    const status = finishReason === 'content_filter' ? 'refused' : 'failed';
    return { status, kind: finishKind(finishReason), message, ...facts };
  }
  if (text.trim() === '') return retry('empty_response', 'the reply has no text');
  return { status: 'ok', text, ...facts };
};

/** The outcome of a reply that arrived whole (return-protocol §4). */
export const replyOutcome = (reply: TransportReply, context: ReplyContext): CallOutcome => {
  const { status, headers, body } = reply;
  if (status === 200) return successOutcome(reply, readBody(headers, body), context);
  const text = body.subarray(0, 16_384).toString('utf8');
  const document = parseObject(body.toString('utf8'));
  const error = document && readErrorBody(document);
  const facts = factsOf(
    reply,
    document ? { ...emptyReading(), id: nonEmpty(document.id) ?? nonEmpty(document.request_id) } : null,
    context,
  );
  const said =
    error?.message || nonEmpty(document?.message) || (text.trim().startsWith('<') ? 'a web page' : text);
  const message = cleanMessage(`HTTP ${status}${said ? `: ${said}` : ''}`, context.apiKey);
  return failedOutcome(
    status < 300
      ? { verdict: 'retry', kind: 'invalid_response' }
      : verdictOf({ status, codes: error?.codes ?? [], message: said }, context.profile.rules),
    message,
    facts,
    retryAfterSeconds(headers, context.now, status),
  );
};

/**
 * The outcome of a call whose connection failed. A stream that had said `[DONE]` before is a complete reply and is
 * not paid for twice; any other part of one is only evidence.
 */
export const failureOutcome = (failure: TransportFailure, context: ReplyContext): CallOutcome => {
  const { kind, partial } = failure;
  const reading = partial?.status === 200 ? readBody(partial.headers, partial.body) : null;
  if (partial && reading?.ended) return successOutcome(partial, reading, context);
  const facts = factsOf(partial, reading, context);
  const message = cleanMessage(failure.message, context.apiKey);
  return kind === 'reply_too_large'
    ? { status: 'failed', kind: 'invalid_response', message, ...facts }
    : failedOutcome({ verdict: 'retry', kind }, message, facts);
};
