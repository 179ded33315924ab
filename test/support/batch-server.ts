import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';
import { judgeReply } from '../../mock/judge.ts';

interface ChatBody {
  model: string;
  messages: { role: string; content: string }[];
  [member: string]: unknown;
}

export interface BatchLine {
  custom_id: string;
  method: string;
  url: string;
  body: ChatBody;
}

export interface FakeBatch {
  id: string;
  status: string;
  inputFile: string;
  metadata: Record<string, string>;
  completionWindow: string;
  endpoint: string;
  lines: BatchLine[];
  looks: number;
}

/** What becomes of one request of a batch. */
export type Fate = 'reply' | 'missing' | 'http_400' | 'http_500' | 'expired' | 'rubbish' | 'length';

export interface Behaviour {
  /** By custom id and number of the batch, from 1. */
  fate: (id: string, batch: number) => Fate;
  /** How a batch ends, by its number; `failed:<code>` fails it before anything is run. */
  end: (batch: number) => string;
  /** States seen before the last one. */
  walk: readonly string[];
  /**
   * Said before an operation is done: an HTTP status, `reset` for a connection cut with nothing done, `done` for one
   * cut after it was done; null for what is usual.
   */
  intercept: (method: string, path: string) => number | 'reset' | 'done' | null;
  usage: { prompt_tokens: number; completion_tokens: number };
}

const usual: Behaviour = {
  fate: () => 'reply',
  end: () => 'completed',
  walk: ['validating', 'in_progress', 'finalizing'],
  intercept: () => null,
  usage: { prompt_tokens: 100, completion_tokens: 10 },
};

const readBody = async (request: IncomingMessage): Promise<string> => {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
};

/** Content of the parts of a multipart body by their names. */
const partsOf = (body: string, contentType: string): Record<string, string> => {
  const boundary = /boundary=(.+)$/.exec(contentType)![1]!;
  return Object.fromEntries(
    body
      .split(`--${boundary}`)
      .slice(1, -1)
      .map((part) => {
        const end = part.indexOf('\r\n\r\n');
        return [/ name="([^"]+)"/.exec(part.slice(0, end))![1]!, part.slice(end + 4, -2)];
      }),
  );
};

/** A provider's files, batches and direct calls over HTTP: the OpenAI batch interface with a simulated judge. */
export const startBatchServer = async (given: Partial<Behaviour> = {}) => {
  const behaviour: Behaviour = { ...usual, ...given };
  const files = new Map<string, string>();
  const batches: FakeBatch[] = [];
  const seen: { method: string; path: string; authorization: string | undefined; body: string }[] = [];
  const calls: ChatBody[] = [];

  const completion = (body: ChatBody, fate: Fate) => {
    const lastText = body.messages.at(-1)!.content;
    const content = judgeReply(lastText, fate === 'rubbish' ? 'rubbish' : null);
    return {
      id: `chatcmpl-${calls.length}`,
      object: 'chat.completion',
      model: body.model,
      choices: [
        {
          index: 0,
          finish_reason: fate === 'length' ? 'length' : 'stop',
          message: { role: 'assistant', content, refusal: null },
        },
      ],
      usage: behaviour.usage,
    };
  };
  const outputLine = (id: string, fields: object) =>
    JSON.stringify({ id: `batch_req_${id}`, custom_id: id, response: null, error: null, ...fields });
  const resultFiles = (batch: FakeBatch, number: number) => {
    const output: string[] = [];
    const errors: string[] = [];
    for (const { custom_id: id, body } of batch.lines) {
      const fate = behaviour.fate(id, number);
      const answered = (status: number, document: unknown) =>
        outputLine(id, { response: { status_code: status, request_id: `req_${id}`, body: document } });
      if (fate === 'missing') continue;
      if (fate === 'expired') {
        const error = { code: 'batch_expired', message: 'This request could not be executed in time.' };
        errors.push(outputLine(id, { error }));
      } else if (fate === 'http_400') {
        errors.push(answered(400, { error: { code: 'invalid_value', message: 'Bad.', type: 'x' } }));
      } else if (fate === 'http_500') {
        output.push(answered(500, { error: { code: null, message: 'Oops.', type: 'server_error' } }));
      } else output.push(answered(200, completion(body, fate)));
    }
    const put = (suffix: string, lines: string[]) => {
      if (lines.length === 0) return null;
      const file = `file-${batch.id}-${suffix}`;
      // Any order but that of the requests.
      files.set(file, `${lines.toReversed().join('\n')}\n`);
      return file;
    };
    return { output_file_id: put('output', output), error_file_id: put('error', errors) };
  };
  const documentOf = (batch: FakeBatch) => {
    const number = batches.indexOf(batch) + 1;
    const [end, code] = behaviour.end(number).split(':');
    const isOver = batch.looks > behaviour.walk.length;
    batch.status = isOver ? end! : (behaviour.walk[Math.max(0, batch.looks - 1)] ?? 'validating');
    const hasResults = isOver && end !== 'failed';
    return {
      id: batch.id,
      object: 'batch',
      endpoint: batch.endpoint,
      input_file_id: batch.inputFile,
      completion_window: batch.completionWindow,
      status: batch.status,
      created_at: 1,
      metadata: batch.metadata,
      errors: code ? { object: 'list', data: [{ code, message: 'See the guide.', line: null }] } : null,
      ...(hasResults ? resultFiles(batch, number) : { output_file_id: null, error_file_id: null }),
    };
  };

  const operate = (method: string, url: URL, type: string, body: string): [number, unknown] => {
    const { pathname } = url;
    if (method === 'POST' && pathname === '/v1/files') {
      const { purpose, file } = partsOf(body, type);
      if (purpose !== 'batch') return [400, { error: { message: 'purpose must be batch' } }];
      const id = `file-${files.size + 1}`;
      files.set(id, file!);
      return [200, { id, object: 'file', purpose }];
    }
    if (method === 'POST' && pathname === '/v1/batches') {
      const asked = JSON.parse(body);
      const input = files.get(asked.input_file_id);
      if (input === undefined) return [400, { error: { message: 'no such file' } }];
      const lines = input
        .split('\n')
        .filter((line) => line !== '')
        .map((line): BatchLine => JSON.parse(line));
      batches.push({
        id: `batch_${batches.length + 1}`,
        status: 'validating',
        inputFile: asked.input_file_id,
        metadata: asked.metadata,
        completionWindow: asked.completion_window,
        endpoint: asked.endpoint,
        lines,
        looks: 0,
      });
      return [200, documentOf(batches.at(-1)!)];
    }
    if (method === 'GET' && pathname === '/v1/batches') {
      const newestFirst = batches.toReversed();
      const after = url.searchParams.get('after');
      const start = after === null ? 0 : newestFirst.findIndex((batch) => batch.id === after) + 1;
      // Pages of two, whatever was asked for.
      const page = newestFirst.slice(start, start + 2);
      const hasMore = start + 2 < newestFirst.length;
      return [
        200,
        { object: 'list', data: page.map(documentOf), has_more: hasMore, last_id: page.at(-1)?.id ?? null },
      ];
    }
    const batch = batches.find(({ id }) => pathname === `/v1/batches/${id}`);
    if (method === 'GET' && batch !== undefined) {
      batch.looks += 1;
      return [200, documentOf(batch)];
    }
    const file = files.get(/^\/v1\/files\/([^/]+)\/content$/.exec(pathname)?.[1] ?? '');
    if (method === 'GET' && file !== undefined) return [200, file];
    if (method === 'POST' && pathname === '/v1/chat/completions') {
      calls.push(JSON.parse(body));
      const document = completion(calls.at(-1)!, 'reply');
      return [200, document];
    }
    return [404, { error: { code: 'not_found', message: `no ${pathname}` } }];
  };

  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    const body = await readBody(request);
    const method = request.method!;
    const url = new URL(request.url!, 'http://localhost');
    seen.push({ method, path: url.pathname, authorization: request.headers.authorization, body });
    const said = behaviour.intercept(method, url.pathname);
    if (said === 'reset') return response.socket!.destroy();
    if (typeof said === 'number') {
      response.writeHead(said, { 'content-type': 'application/json', location: 'http://127.0.0.1:9/' });
      return response.end(JSON.stringify({ error: { message: `said ${said}`, code: null } }));
    }
    const [status, document] = operate(method, url, request.headers['content-type'] ?? '', body);
    if (said === 'done') return response.socket!.destroy();
    const isJson = typeof document !== 'string';
    response.writeHead(status, { 'content-type': isJson ? 'application/json' : 'application/octet-stream' });
    return response.end(isJson ? JSON.stringify(document) : document);
  };
  const server = createServer((request, response) => {
    handle(request, response).catch((error: unknown) => response.destroy(error as Error));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(
    () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  );
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    batches,
    files,
    /** Every request of HTTP, in order of arrival. */
    seen,
    /** Bodies of direct calls. */
    calls,
    behave: (changes: Partial<Behaviour>) => Object.assign(behaviour, changes),
    count: (method: string, path: RegExp) =>
      seen.filter((request) => request.method === method && path.test(request.path)).length,
  };
};

export type BatchServer = Awaited<ReturnType<typeof startBatchServer>>;
