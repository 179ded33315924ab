import { randomUUID } from 'node:crypto';
import { Pool } from 'undici';
import { type CallFacts, type CallOutcome, type ErrorKind, unknownUsage } from '../../domain/outcome.ts';
import type { BatchFault, BatchJob, ChatBatch } from '../../ports/chat-batch.ts';
import { checkKey } from '../chat-completions/client.ts';
import { cleanMessage, failedOutcome, readErrorBody, verdictOf } from '../chat-completions/errors.ts';
import type { ChatProfile } from '../chat-completions/profile.ts';
import { bodyHead, encodeBody, textMessages } from '../chat-completions/request.ts';
import { failureOutcome, replyOutcome } from '../chat-completions/response.ts';
import { endpointUrl, type TransportFailure, type TransportReply } from '../transport.ts';

export interface OpenAiBatchOptions {
  /** Address up to and with the version, such as `https://host/v1`. */
  baseUrl: string;
  apiKey: string | null;
  model: string;
  profile: ChatProfile;
  /** Longest time of one operation in milliseconds, body included. */
  deadlineMs?: number;
  /** The same for one that carries a file. */
  fileDeadlineMs?: number;
  /** Milliseconds since the epoch; only dates in Retry-After need it. */
  now?: () => number;
}

type Json = Record<string, unknown>;

/** developers.openai.com, batch guide (Aug 2026): a file has at most 50,000 requests and 200 MB, at half the price. */
const facts = { requestsAtMost: 50_000, bytesAtMost: 200_000_000, priceMultiplier: 0.5 } as const;
/** The only window that is documented. */
const completionWindow = '24h';
const endpoint = '/v1/chat/completions';
const tagName = 'turnsweep_batch';

const usualDeadlineMs = 60_000;
const usualFileDeadlineMs = 600_000;
/** Longest silence inside a reply. */
const idleTimeoutMs = 60_000;
const longestAnswer = 16 * 1024 * 1024;

const noFacts: CallFacts = {
  httpStatus: null,
  responseId: null,
  servedModel: null,
  finishReason: null,
  usage: unknownUsage,
};

/** States of a batch (OpenAPI file 2.3.0, Aug 2026); one that is not known is left to end. */
const states: Readonly<Record<string, BatchJob['state']>> = {
  completed: 'ended',
  expired: 'expired',
  cancelled: 'cancelled',
  failed: 'failed',
};

/** Errors of an attempt to connect: nothing was sent. */
const connectErrors =
  /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT|CERT_.*|ERR_TLS_.*|DEPTH_ZERO_SELF_SIGNED_CERT|UNABLE_TO_.*)$/;

const record = (value: unknown): Json | null =>
  value !== null && typeof value === 'object' && !Array.isArray(value) ? (value as Json) : null;

const text = (value: unknown): string | null => (typeof value === 'string' && value !== '' ? value : null);

const parse = (json: string): Json | null => {
  try {
    return record(JSON.parse(json));
  } catch {
    return null;
  }
};

/** The OpenAI batch interface: a JSONL file is uploaded, a batch of it is made, and its result files are read. */
export const createOpenAiBatch = (options: OpenAiBatchOptions): ChatBatch => {
  const { apiKey, model, profile, now = Date.now } = options;
  const { deadlineMs = usualDeadlineMs, fileDeadlineMs = usualFileDeadlineMs } = options;
  checkKey(apiKey, model);
  const base = new URL(endpointUrl(options.baseUrl, ''));
  const pool = new Pool(base.origin, { connections: 4, pipelining: 1, bodyTimeout: idleTimeoutMs });
  const context = () => ({ apiKey, now: now(), profile });
  const authorization = apiKey === null ? {} : { authorization: `Bearer ${apiKey}` };

  const pathOf = (below: string, query: Readonly<Record<string, string>> = {}): string => {
    const url = new URL(base);
    url.pathname += below;
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
    return url.pathname + url.search;
  };

  const send = (
    method: 'GET' | 'POST',
    path: string,
    limitMs: number,
    body?: { type: string; content: Buffer },
  ) =>
    pool.request({
      method,
      path,
      headers: { ...authorization, ...(body && { 'content-type': body.type }) },
      body: body?.content,
      headersTimeout: limitMs,
      signal: AbortSignal.timeout(limitMs),
    });

  const broken = (error: unknown, limitMs: number): TransportFailure => {
    const { code, name, message } = error as Error & { code?: string };
    if (/timeout/i.test(name) && !connectErrors.test(code ?? '')) {
      return { kind: 'timeout', message: `no complete answer within ${limitMs} ms`, partial: null };
    }
    const kind = connectErrors.test(code ?? '') ? 'connect_failed' : 'connection_reset';
    return { kind, message: message || code || name, partial: null };
  };

  const asFault = (outcome: CallOutcome): BatchFault =>
    outcome.status === 'ok' || outcome.status === 'length'
      ? invalid('an answer that belongs to another request')
      : outcome;
  const invalid = (what: string, httpStatus: number | null = 200): BatchFault =>
    failedOutcome(
      { verdict: 'retry', kind: 'invalid_response' },
      cleanMessage(`the server sent ${what}`, apiKey),
      { ...noFacts, httpStatus },
    ) as BatchFault;

  /** The JSON document that an operation answers with. */
  const ask = async (
    ...request: Parameters<typeof send>
  ): Promise<{ document: Json } | { fault: BatchFault; status: number | null }> => {
    let reply: TransportReply;
    try {
      const { statusCode, headers, body } = await send(...request);
      reply = { status: statusCode, headers, body: await readAll(body) };
    } catch (error) {
      return { fault: asFault(failureOutcome(broken(error, request[2]), context())), status: null };
    }
    if (reply.status < 200 || reply.status > 299) {
      return { fault: asFault(replyOutcome(reply, context())), status: reply.status };
    }
    const document = parse(reply.body.toString('utf8'));
    if (document !== null) return { document };
    return { fault: invalid('a body that is not a JSON object'), status: reply.status };
  };

  const jobOf = (document: Json): BatchJob | null => {
    const id = text(document.id);
    const status = text(document.status);
    if (id === null || status === null) return null;
    const state = states[status] ?? 'working';
    const resultFiles = [document.output_file_id, document.error_file_id].flatMap((file) => text(file) ?? []);
    return { id, state, failure: state === 'failed' ? failureOf(document) : null, resultFiles };
  };

  const failureOf = (document: Json): BatchFault => {
    const listed = record(document.errors)?.data;
    const first = record(Array.isArray(listed) ? listed[0] : null) ?? {};
    const code = text(first.code)?.toLowerCase() ?? null;
    const said = [code, text(first.message)].filter((part) => part !== null).join(': ');
    const message = cleanMessage(`the batch failed: ${said || 'no reason given'}`, apiKey);
    // More tokens are waiting than the account may queue (github.com/openai/openai-python/issues/2084).
    if (code === 'token_limit_exceeded') return passing('batch_too_large', message);
    const judged = verdictOf({ status: null, codes: code === null ? [] : [code], message }, profile.rules);
    return failedOutcome({ ...judged, kind: 'batch_failed' }, message, noFacts) as BatchFault;
  };

  const passing = (kind: ErrorKind, message: string): BatchFault =>
    failedOutcome({ verdict: 'retry', kind }, message, noFacts) as BatchFault;

  const upload = async (requests: readonly Buffer[]) => {
    const boundary = `turnsweep-${randomUUID()}`;
    const newline = Buffer.from('\n');
    const content = Buffer.concat([
      Buffer.from(
        `--${boundary}\r\ncontent-disposition: form-data; name="purpose"\r\n\r\nbatch\r\n` +
          `--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="batch.jsonl"\r\n` +
          'content-type: application/jsonl\r\n\r\n',
      ),
      ...requests.flatMap((request) => [request, newline]),
      Buffer.from(`\r\n--${boundary}--\r\n`),
    ]);
    const type = `multipart/form-data; boundary=${boundary}`;
    const answer = await ask('POST', pathOf('files'), fileDeadlineMs, { type, content });
    if ('fault' in answer) return answer;
    const file = text(answer.document.id);
    return file === null ? { fault: invalid('a file without an id'), status: 200 } : { file };
  };

  const outcomeOf = (line: Json): CallOutcome => {
    const response = record(line.response);
    const body = record(response?.body);
    if (response !== null && typeof response.status_code === 'number') {
      const headers = { 'content-type': 'application/json', 'x-request-id': text(response.request_id) ?? '' };
      const sent = Buffer.from(JSON.stringify(body ?? {}));
      return replyOutcome({ status: response.status_code, headers, body: sent }, context());
    }
    const error = readErrorBody(line);
    const codes = error?.codes ?? [];
    const message = cleanMessage(`the batch gave no reply: ${error?.message || 'no reason given'}`, apiKey);
    if (codes.includes('batch_expired')) return passing('batch_expired', message);
    if (codes.includes('batch_cancelled')) return passing('batch_cancelled', message);
    const judged = verdictOf({ status: error?.statusInBody ?? null, codes, message }, profile.rules);
    const kind = judged.kind === 'invalid_response' ? 'batch_error' : judged.kind;
    return failedOutcome({ ...judged, kind }, message, noFacts);
  };

  return {
    ...facts,
    encode: (id, { messages, ...call }) => {
      const head = bodyHead(profile, model, { stream: false }, call);
      const body = encodeBody(head, [textMessages(messages)]);
      const start = `{"custom_id":${JSON.stringify(id)},"method":"POST","url":"${endpoint}","body":`;
      return Buffer.concat([Buffer.from(start), body, Buffer.from('}')]);
    },

    async submit(requests, tag) {
      const uploaded = await upload(requests);
      if ('fault' in uploaded) return { fault: uploaded.fault, mayExist: false };
      const content = Buffer.from(
        JSON.stringify({
          input_file_id: uploaded.file,
          endpoint,
          completion_window: completionWindow,
          metadata: { [tagName]: tag },
        }),
      );
      const type = 'application/json';
      const answer = await ask('POST', pathOf('batches'), deadlineMs, { type, content });
      if ('fault' in answer) {
        const { fault, status } = answer;
        const wasRefused = status === null ? fault.kind === 'connect_failed' : status >= 300 && status < 500;
        return { fault, mayExist: !wasRefused };
      }
      const job = jobOf(answer.document);
      return job === null ? { fault: invalid('a batch without id or status'), mayExist: true } : { job };
    },

    async find(tag) {
      const seen = new Set<string>();
      for (let after: string | null = null; ; ) {
        const query: Record<string, string> = { limit: '100', ...(after !== null && { after }) };
        const answer = await ask('GET', pathOf('batches', query), deadlineMs);
        if ('fault' in answer) return { fault: answer.fault };
        const { data, has_more: hasMore } = answer.document;
        if (!Array.isArray(data)) return { fault: invalid('a list without entries') };
        const entries = data.map(record).filter((entry) => entry !== null);
        const found = entries.find((entry) => record(entry.metadata)?.[tagName] === tag);
        if (found !== undefined) {
          const job = jobOf(found);
          return job === null ? { fault: invalid('a batch without id or status') } : { job };
        }
        after = text(answer.document.last_id) ?? text(entries.at(-1)?.id);
        if (hasMore !== true) return { job: null };
        // The rest of the list cannot be seen: whether the batch is in it must not be guessed.
        if (after === null || seen.has(after)) return { fault: invalid('a list that does not go on') };
        seen.add(after);
      }
    },

    async look(batchId) {
      const answer = await ask('GET', pathOf(`batches/${encodeURIComponent(batchId)}`), deadlineMs);
      if ('fault' in answer) return { fault: answer.fault };
      const job = jobOf(answer.document);
      return job === null ? { fault: invalid('a batch without id or status') } : { job };
    },

    async results({ resultFiles }, take) {
      for (const file of resultFiles) {
        const path = pathOf(`files/${encodeURIComponent(file)}/content`);
        let isTaking = false;
        try {
          const { statusCode: status, headers, body } = await send('GET', path, fileDeadlineMs);
          if (status !== 200) {
            const reply = { status, headers, body: await readAll(body) };
            return { fault: asFault(replyOutcome(reply, context())) };
          }
          for await (const json of linesOf(body)) {
            const line = parse(json);
            const id = text(line?.custom_id);
            // What cannot be told apart has no result: its request is missing and is asked again.
            if (line === null || id === null) continue;
            isTaking = true;
            await take(id, outcomeOf(line));
            isTaking = false;
          }
        } catch (error) {
          // What the taker throws is its own affair.
          if (isTaking) throw error;
          return { fault: asFault(failureOutcome(broken(error, fileDeadlineMs), context())) };
        }
      }
      return { fault: null };
    },

    close: () => pool.destroy(),
  };
};

const readAll = async (body: AsyncIterable<Buffer>): Promise<Buffer> => {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > longestAnswer) throw new Error(`the answer is larger than ${longestAnswer} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
};

/** Lines of a file of any size; only one of them is in memory. */
async function* linesOf(body: AsyncIterable<Buffer>): AsyncGenerator<string> {
  let pending: Buffer[] = [];
  let size = 0;
  for await (const chunk of body) {
    let start = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, start)) {
      yield Buffer.concat([...pending, chunk.subarray(start, end)]).toString('utf8');
      [pending, size, start] = [[], 0, end + 1];
    }
    const rest = chunk.subarray(start);
    pending.push(rest);
    size += rest.length;
    if (size > longestAnswer) throw new Error(`a line is longer than ${longestAnswer} bytes`);
  }
  const last = Buffer.concat(pending).toString('utf8');
  if (last !== '') yield last;
}
