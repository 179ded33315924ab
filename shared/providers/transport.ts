import { Readable } from 'node:stream';
import { brotliDecompressSync, gunzipSync, inflateSync } from 'node:zlib';
import type { Dispatcher } from 'undici';
import { Pool } from 'undici';
import { asksToWaitTooLong } from '../domain/backoff.ts';
import { errorNames, TurnsweepError } from '../errors.ts';

type ResponseHeaders = Record<string, string | string[] | undefined>;

export interface TransportReply {
  status: number;
  headers: ResponseHeaders;
  body: Buffer;
}

export interface TransportFailure {
  kind: 'connect_failed' | 'connection_reset' | 'timeout' | 'protocol_error' | 'reply_too_large';
  message: string;
  /** What had arrived before the fault; null where not even the headers had. */
  partial: TransportReply | null;
}

export type TransportResult = { reply: TransportReply } | { failure: TransportFailure };

/** A body that is written piece by piece, each once: what is written need not be kept while the reply is waited for. */
export interface BodyInPieces {
  bytes: number;
  pieces: AsyncIterable<Buffer>;
}

export interface Transport {
  /**
   * One POST, one attempt. Faults of the connection are results; only an abort of `signal` rejects, with
   * the signal's reason. `deadlineMs` bounds everything from the call to the last byte of the body.
   */
  post(
    body: Buffer | BodyInPieces,
    limits: { deadlineMs: number; signal?: AbortSignal },
  ): Promise<TransportResult>;
  /** Drops all connections; calls in flight end as `connection_reset`. */
  close(): Promise<void>;
}

export interface TransportOptions {
  url: string;
  headers: Readonly<Record<string, string>>;
  /** Connections at most; further calls wait for one, on their own deadline. */
  connections: number;
  /** Longest silence inside a reply that has begun. Before its first byte only the deadline counts. */
  idleTimeoutMs?: number;
  maxReplyBytes?: number;
}

const longestTimerMs = 2 ** 31 - 1;

/** First value of a header that may be repeated. */
export const headerText = (headers: ResponseHeaders, name: string): string | null => {
  const value = headers[name];
  return (Array.isArray(value) ? value[0] : value) ?? null;
};

const failureKind = (error: Error & { code?: string }, sent: boolean): TransportFailure['kind'] => {
  if (!sent) return 'connect_failed';
  const broken = error.name === 'HTTPParserError' || error.code === 'UND_ERR_HEADERS_OVERFLOW';
  return broken ? 'protocol_error' : 'connection_reset';
};

const errorText = (error: Error & { code?: string }): string => {
  // A host with several addresses fails with an AggregateError, whose own message is empty.
  const inner = error instanceof AggregateError ? (error.errors[0] as Error) : error;
  return inner.message || error.code || inner.name;
};

const decoded = (reply: TransportReply, maxOutputLength: number): Buffer => {
  const encoding = headerText(reply.headers, 'content-encoding')?.toLowerCase() ?? 'identity';
  if (encoding === 'identity' || reply.body.length === 0) return reply.body;
  if (encoding === 'gzip' || encoding === 'x-gzip') return gunzipSync(reply.body, { maxOutputLength });
  if (encoding === 'br') return brotliDecompressSync(reply.body, { maxOutputLength });
  if (encoding === 'deflate') return inflateSync(reply.body, { maxOutputLength });
  throw new Error(`unknown content encoding ${encoding}`);
};

/**
 * JSON over HTTP/1.1 to one address, over connections that are kept. Redirects are not followed: body and key
 * would go along to another host.
 */
export const createTransport = (options: TransportOptions): Transport => {
  const { connections, idleTimeoutMs = 60_000, maxReplyBytes = 16 * 1024 * 1024 } = options;
  const url = new URL(options.url);
  // undici's own time-outs have a resolution of about a second and do not bound the whole call.
  const pool = new Pool(url.origin, { connections, pipelining: 1, headersTimeout: 0, bodyTimeout: 0 });
  const path = url.pathname + url.search;
  const headers = Object.entries({ 'content-type': 'application/json', ...options.headers }).flat();

  return {
    post: (body, { deadlineMs, signal }) =>
      new Promise((resolve, reject) => {
        if (signal?.aborted) {
          reject(signal.reason);
          return;
        }
        const startedAt = performance.now();
        let lastByteAt = Number.POSITIVE_INFINITY;
        let controller: Dispatcher.DispatchController | null = null;
        let settled = false;
        let reply: TransportReply | null = null;
        const chunks: Buffer[] = [];
        let received = 0;

        const settle = (): boolean => {
          if (settled) return false;
          settled = true;
          clearTimeout(timer);
          signal?.removeEventListener('abort', onAbort);
          return true;
        };
        const stop = (why: string) => controller?.abort(new Error(why));
        const fail = (kind: TransportFailure['kind'], message: string) => {
          if (!settle()) return;
          const partial = reply && { ...reply, body: Buffer.concat(chunks, received) };
          resolve({ failure: { kind, message, partial } });
        };
        const onAbort = () => {
          if (!settle()) return;
          reject(signal?.reason);
          stop('aborted');
        };
        const onTimer = () => {
          const now = performance.now();
          const untilDeadline = startedAt + deadlineMs - now;
          const untilIdle = lastByteAt + idleTimeoutMs - now;
          if (untilDeadline <= 0 || untilIdle <= 0) {
            fail(
              'timeout',
              untilDeadline <= 0
                ? `no complete reply within ${deadlineMs} ms`
                : `the reply stopped for ${idleTimeoutMs} ms`,
            );
            stop('timeout');
            return;
          }
          timer = setTimeout(
            onTimer,
            Math.ceil(Math.min(untilDeadline, untilIdle, idleTimeoutMs, longestTimerMs)),
          );
        };
        let timer = setTimeout(onTimer, Math.min(deadlineMs, idleTimeoutMs, longestTimerMs));
        signal?.addEventListener('abort', onAbort, { once: true });

        pool.dispatch(
          Buffer.isBuffer(body)
            ? { method: 'POST', path, headers, body }
            : {
                method: 'POST',
                path,
                headers: [...headers, 'content-length', String(body.bytes)],
                body: Readable.from(body.pieces, { objectMode: false }),
              },
          {
            onRequestStart(given) {
              controller = given;
              // The call ended while it waited for a connection: nothing may be sent any more.
              if (settled) stop('ended before it was sent');
            },
            onResponseStart(_, status, responseHeaders) {
              if (status < 200) return;
              lastByteAt = performance.now();
              reply = { status, headers: responseHeaders, body: Buffer.alloc(0) };
            },
            onResponseData(_, chunk) {
              lastByteAt = performance.now();
              received += chunk.length;
              if (received > maxReplyBytes) {
                received -= chunk.length;
                fail('reply_too_large', `the reply is larger than ${maxReplyBytes} bytes`);
                stop('reply too large');
                return;
              }
              chunks.push(chunk);
            },
            onResponseEnd() {
              if (!reply || !settle()) return;
              reply.body = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, received);
              try {
                reply.body = decoded(reply, maxReplyBytes);
                resolve({ reply });
              } catch (error) {
                const tooLarge = (error as { code?: string }).code === 'ERR_BUFFER_TOO_LARGE';
                resolve({
                  failure: {
                    kind: tooLarge ? 'reply_too_large' : 'protocol_error',
                    message: tooLarge
                      ? `the reply is larger than ${maxReplyBytes} bytes`
                      : `the reply cannot be decoded: ${errorText(error as Error)}`,
                    partial: null,
                  },
                });
              }
            },
            onResponseError(_, error) {
              fail(failureKind(error, controller !== null), errorText(error));
            },
          },
        );
      }),
    close: () => pool.destroy(),
  };
};

/**
 * Address of an endpoint below a base URL, the base's query kept.
 * Throws `UsageWrong` for anything but http(s), and for a URL that carries a user name or password.
 */
export const endpointUrl = (baseUrl: string, endpoint: string): string => {
  const url = URL.canParse(baseUrl) ? new URL(baseUrl) : null;
  if (!url || !/^https?:$/.test(url.protocol)) {
    throw new TurnsweepError(errorNames.usage, 'base URL is not an http or https address', {
      where: baseUrl,
      remedy: 'give an address such as https://host/v1',
    });
  }
  if (url.username || url.password) {
    throw new TurnsweepError(errorNames.usage, 'base URL carries a user name or password', {
      where: url.host,
      remedy: 'name the variable of the key in apiKeyEnv',
    });
  }
  url.pathname = `${url.pathname.replace(/\/+$/, '')}/${endpoint}`;
  return url.href;
};

const httpDate = /^(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?,? /i;

/** Seconds of a duration such as `1m2.5s` or `6ms`; null for anything else. */
const durationSeconds = (text: string): number | null => {
  const parts = /^(?:(\d{1,4})h)?(?:(\d{1,6})m)?(?:(\d{1,9}(?:\.\d+)?)s)?(?:(\d{1,9}(?:\.\d+)?)ms)?$/.exec(
    text,
  );
  if (parts === null || text === '') return null;
  const [hours = 0, minutes = 0, seconds = 0, milliseconds = 0] = parts
    .slice(1)
    .map((part) => Number(part ?? 0));
  return hours * 3600 + minutes * 60 + seconds + milliseconds / 1000;
};

/**
 * Seconds until a spent allowance is whole again, by the headers of OpenAI (developers.openai.com, rate limits).
 * The allowance of requests counts only where nothing is left of it: it may be one of a day. What asks for longer than
 * we hold on is no wish to wait: the next call may go long before the allowance is whole.
 */
const resetSeconds = (headers: ResponseHeaders): number | null => {
  const reset = (of: string) => durationSeconds(headerText(headers, `x-ratelimit-reset-${of}`)?.trim() ?? '');
  const requestsLeft = headerText(headers, 'x-ratelimit-remaining-requests')?.trim() ?? '0';
  const waits = [reset('tokens'), requestsLeft === '0' ? reset('requests') : null].filter(
    (wait) => wait !== null,
  );
  const longest = waits.length === 0 ? null : Math.max(...waits);
  return asksToWaitTooLong(longest) ? null : longest;
};

/** What `retry-after-ms` or `retry-after` say in seconds; null where neither can be read. */
const headerSeconds = (headers: ResponseHeaders, now: number): number | null => {
  const milliseconds = headerText(headers, 'retry-after-ms')?.trim() ?? '';
  if (/^\d{1,12}(\.\d+)?$/.test(milliseconds)) return Number(milliseconds) / 1000;
  const after = headerText(headers, 'retry-after')?.trim() ?? '';
  if (/^\d{1,9}(\.\d+)?$/.test(after)) return Number(after);
  if (!httpDate.test(after)) return null;
  const at = Date.parse(/gmt$/i.test(after) ? after : `${after} GMT`);
  // By the server's own clock where it tells the time: this machine's may be hours off.
  const sentAt = Date.parse(headerText(headers, 'date') ?? '');
  return Number.isNaN(at) ? null : Math.max(0, (at - (Number.isNaN(sentAt) ? now : sentAt)) / 1000);
};

/**
 * Seconds that the provider asks to wait, or null where it did not say so in a form that can be read.
 * `retry-after-ms` goes before `retry-after` (seconds, fractions of them, or an HTTP date of RFC 9110 §5.6.7; a
 * date that has passed is 0), and both before `x-ratelimit-reset-tokens` and `-requests`, which stand on every reply
 * and mean a wait only on a 429. There is no upper bound: that is the caller's policy. `now` in ms since the epoch.
 */
export const retryAfterSeconds = (headers: ResponseHeaders, now: number, status = 429): number | null =>
  headerSeconds(headers, now) ?? (status === 429 ? resetSeconds(headers) : null);
