import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { errorNames, TurnsweepError } from '../shared/errors.ts';
import type { Clock } from '../shared/ports/clock.ts';
import { requestFingerprint } from './fingerprint.ts';
import { judgeReply } from './judge.ts';
import type { ReplyTable, Scenario, ScenarioFault, ScenarioInput, ScenarioModel } from './scenario.ts';
import { loadScenario, loadTable, parseScenario, tableKey } from './scenario.ts';
import type { ChatRequest } from './wire.ts';
import { BadRequest, createClipReader, readChatRequest } from './wire.ts';

export interface MockStats {
  requests: number;
  /** Complete replies with finish reason `stop`, the ones that a client can use. */
  replies: number;
  inFlight: number;
  peakInFlight: number;
  /** 429s, those of `capacity` and those of faults. */
  rateLimited: number;
  /** Requests refused as malformed. */
  malformed: number;
  /** Connections opened since the start. */
  connections: number;
  byModel: Record<string, { requests: number; replies: number; peakInFlight: number; rateLimited: number }>;
  byFault: Record<string, number>;
  /** By `<model> <fingerprint>`; 429s of `capacity` are no attempts and not counted here. */
  requestsByFingerprint: Record<string, number>;
  repliesByFingerprint: Record<string, number>;
}

export interface MockProvider {
  /** Base URL with `/v1`. */
  url: string;
  port: number;
  stats(): MockStats;
  reset(): void;
  /** Another scenario from the next request on, counts kept. */
  setScenario(scenario: ScenarioInput): void;
  close(): Promise<void>;
}

const largestBody = 64 * 1024 * 1024;

/** Uniform number in [0, 1) that depends on the text alone (FNV-1a with a final mix of its bits). */
const hashedShare = (text: string): number => {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32;
};

const errorTypes: Record<number, string> = {
  401: 'authentication_error',
  403: 'permission_error',
  429: 'rate_limit_error',
};

const errorBody = (
  status: number,
  message: string,
  code: string | null,
  param: string | null = null,
): string => {
  const type = errorTypes[status] ?? (status >= 500 ? 'server_error' : 'invalid_request_error');
  return JSON.stringify({ error: { message, type, param, code } });
};

const send = (
  response: ServerResponse,
  status: number,
  body: string,
  headers: Record<string, string> = {},
) => {
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    ...headers,
  });
  response.end(body);
};

const waitHeader = (seconds: number | null | undefined): Record<string, string> =>
  seconds === null || seconds === undefined ? {} : { 'retry-after': String(seconds) };

interface Reply {
  id: string;
  text: string;
  finishReason: string | null;
  refusal: string | null;
}

const usageOf = (request: ChatRequest, text: string, { tokens }: ScenarioModel) => {
  const textTokens = Math.ceil(request.textChars / 4);
  // 16 kHz mono WAV: 32,000 bytes and 25 tokens a second.
  const audioTokens = Math.ceil(request.audioBytes / 1280);
  const videoTokens = 640 * request.videoParts;
  const prompt = tokens.input ?? textTokens + audioTokens + videoTokens;
  const completion = tokens.output ?? Math.ceil(text.length / 4);
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: {
      text_tokens: textTokens,
      ...(request.audioParts > 0 && { audio_tokens: audioTokens }),
      ...(request.videoParts > 0 && { video_tokens: videoTokens }),
      cached_tokens: 0,
    },
  };
};

const created = 1_790_000_000;

const replyDocument = (request: ChatRequest, reply: Reply, model: ScenarioModel): string =>
  JSON.stringify({
    id: reply.id,
    object: 'chat.completion',
    created,
    model: request.model,
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: reply.refusal === null ? reply.text : null,
          refusal: reply.refusal,
        },
        logprobs: null,
        finish_reason: reply.finishReason,
      },
    ],
    usage: usageOf(request, reply.text, model),
  });

/** Events of a streamed reply, `[DONE]` included. The text goes out in two pieces. */
const replyEvents = (request: ChatRequest, reply: Reply, model: ScenarioModel): string[] => {
  const head = `data: {"id":${JSON.stringify(reply.id)},"object":"chat.completion.chunk","created":${created},"model":${JSON.stringify(request.model)},`;
  const chunk = (delta: object, finishReason: string | null) =>
    `${head}"choices":[{"index":0,"delta":${JSON.stringify(delta)},"logprobs":null,"finish_reason":${JSON.stringify(finishReason)}}],"usage":null}\n\n`;
  const letters = reply.text.length > 1 ? Array.from(reply.text) : [reply.text];
  const half = Math.ceil(letters.length / 2);
  const events = [chunk({ role: 'assistant', content: '' }, null)];
  if (reply.refusal !== null) events.push(chunk({ refusal: reply.refusal }, null));
  else {
    events.push(chunk({ content: letters.slice(0, half).join('') }, null));
    if (letters.length > half) events.push(chunk({ content: letters.slice(half).join('') }, null));
  }
  if (reply.finishReason !== null) events.push(chunk({}, reply.finishReason));
  if (request.includeUsage) {
    events.push(`${head}"choices":[],"usage":${JSON.stringify(usageOf(request, reply.text, model))}}\n\n`);
  }
  events.push('data: [DONE]\n\n');
  return events;
};

const eventStream = { 'content-type': 'text/event-stream; charset=utf-8' };

/**
 * Starts the fake provider: an OpenAI-compatible server whose replies, delays and faults a scenario scripts
 * (mock/README.md). The same seed and the same requests give the same faults, in whatever order they come.
 * Throws `UsageWrong` for a scenario that is not valid or a port that is taken.
 */
export const startMockProvider = async (options: {
  /** 0 takes any free port. */
  port?: number;
  host?: string;
  /** A scenario, or the path of its file. */
  scenario: ScenarioInput | string;
  /** Sleeps through the latencies; the system's timers by default. */
  clock?: Pick<Clock, 'sleep'>;
  /** Told the body of every chat request as it came, for tests of what is sent. */
  onRequest?: (body: string) => void;
}): Promise<MockProvider> => {
  const { port = 0, host = '127.0.0.1', clock } = options;
  const tables = new Map<string, ReplyTable>();
  let scenario: Scenario;
  const use = (found: Scenario) => {
    for (const { reply } of Object.values(found.models)) {
      if ('table' in reply && !tables.has(reply.table)) tables.set(reply.table, loadTable(reply.table));
    }
    scenario = found;
  };
  use(
    typeof options.scenario === 'string' ? loadScenario(options.scenario) : parseScenario(options.scenario),
  );

  const freshCounts = () => ({
    requests: 0,
    replies: 0,
    rateLimited: 0,
    malformed: 0,
    byModel: new Map<
      string,
      { requests: number; replies: number; peakInFlight: number; rateLimited: number }
    >(),
    byFault: new Map<string, number>(),
    requestsByFingerprint: new Map<string, number>(),
    repliesByFingerprint: new Map<string, number>(),
  });
  let counts = freshCounts();
  let connections = 0;
  let inFlight = 0;
  let peakInFlight = 0;
  const inFlightByModel = new Map<string, number>();
  const readClip = createClipReader();
  const bump = (map: Map<string, number>, key: string, by = 1): number => {
    const value = (map.get(key) ?? 0) + by;
    map.set(key, value);
    return value;
  };
  const modelCounts = (name: string) => {
    let found = counts.byModel.get(name);
    if (!found) {
      found = { requests: 0, replies: 0, peakInFlight: 0, rateLimited: 0 };
      counts.byModel.set(name, found);
    }
    return found;
  };
  const rateLimited = (name: string) => {
    counts.rateLimited += 1;
    modelCounts(name).rateLimited += 1;
  };

  const faultOf = (model: ScenarioModel, request: ChatRequest, key: string, attempt: number) =>
    model.faults.find((fault, index) => {
      if (fault.match && !request.lastText.includes(fault.match.lastText)) return false;
      if (
        fault.kind === 'length' &&
        (request.maxTokens ?? Infinity) >= (fault.succeedAtMaxTokens ?? Infinity)
      ) {
        return false;
      }
      if (fault.firstAttempts !== undefined) return attempt <= fault.firstAttempts;
      return hashedShare(`${scenario.seed} ${index} ${key} ${attempt}`) < fault.rate!;
    }) ?? null;

  const replyText = (
    model: ScenarioModel,
    request: ChatRequest,
    fingerprint: string,
    fault: string | null,
  ): string => {
    const { reply } = model;
    if ('text' in reply) return reply.text;
    if ('echo' in reply) return request.lastText || '(no text)';
    if ('judge' in reply) return judgeReply(request.lastText, fault);
    const { byFingerprint, byLastText } = tables.get(reply.table)!;
    const scripted =
      byLastText.get(tableKey(request.model, request.lastText)) ??
      byLastText.get(tableKey(null, request.lastText)) ??
      byFingerprint.get(tableKey(request.model, fingerprint)) ??
      byFingerprint.get(tableKey(null, fingerprint)) ??
      reply.fallback;
    if (scripted === undefined) throw new BadRequest(`no reply scripted for ${fingerprint}`, 'messages');
    return scripted;
  };

  const answer = (
    response: ServerResponse,
    request: ChatRequest,
    model: ScenarioModel,
    fault: ScenarioFault | null,
    text: string,
    call: { key: string; id: string },
  ): void => {
    const kind = fault?.kind ?? null;
    if (kind === 'hang') return;
    if (kind === 'reset') {
      response.socket?.resetAndDestroy();
      return;
    }
    if (kind?.startsWith('http_')) {
      const status = Number(kind.slice(5));
      if (status === 429) rateLimited(request.model);
      send(response, status, errorBody(status, `scripted fault ${kind}`, fault?.code ?? null), {
        ...waitHeader(fault?.retryAfterSeconds),
      });
      return;
    }
    if (kind === 'html_200') {
      send(response, 200, '<!doctype html><title>proxy</title>', { 'content-type': 'text/html' });
      return;
    }
    if (kind === 'error_200' && !request.stream) {
      send(response, 200, errorBody(500, 'scripted fault error_200', fault?.code ?? '500'));
      return;
    }
    const short = text.slice(0, Math.ceil(text.length / 2)).replace(/[\ud800-\udbff]$/, '');
    const finishReason =
      kind === 'no_finish_reason' ? null : kind === 'length' || kind === 'content_filter' ? kind : 'stop';
    const reply: Reply = {
      id: call.id,
      text: kind === 'empty' ? '' : finishReason === 'stop' ? text : short,
      finishReason,
      refusal: kind === 'refusal' ? 'I will not answer that.' : null,
    };
    if (!request.stream) {
      const document = replyDocument(request, reply, model);
      if (kind === 'cut_stream') {
        response.writeHead(200, {
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(document),
        });
        response.write(document.slice(0, document.length / 2), () => response.socket?.resetAndDestroy());
        return;
      }
      send(response, 200, kind === 'bad_json' ? document.slice(0, document.length / 2) : document);
    } else {
      const events = replyEvents(request, reply, model);
      response.writeHead(200, eventStream);
      if (kind === 'cut_stream') {
        response.write(events.slice(0, 2).join(''), () => response.socket?.resetAndDestroy());
        return;
      }
      if (kind === 'error_200') {
        const error = errorBody(500, 'scripted fault error_200', fault?.code ?? '500');
        response.end(`${events.slice(0, 2).join('')}data: ${error}\n\ndata: [DONE]\n\n`);
        return;
      }
      if (kind === 'bad_json') events.splice(1, 1, 'data: {"id":"broken\n\n');
      if (kind === 'no_finish_reason') events.splice(-1, 1);
      response.end(events.join(''));
    }
    const usable = kind === null || ['rubbish', 'missing_id', 'fenced'].includes(kind);
    if (!usable) return;
    counts.replies += 1;
    modelCounts(request.model).replies += 1;
    bump(counts.repliesByFingerprint, call.key);
  };

  const complete = (response: ServerResponse, body: string): void => {
    counts.requests += 1;
    options.onRequest?.(body);
    const request = readChatRequest(body, readClip);
    const model = scenario.models[request.model] ?? scenario.models['*'];
    if (!model) {
      send(
        response,
        404,
        errorBody(404, `the model ${request.model} does not exist`, 'model_not_found', 'model'),
      );
      return;
    }
    const ofModel = modelCounts(request.model);
    ofModel.requests += 1;
    const running = inFlightByModel.get(request.model) ?? 0;
    if (model.capacity !== null && running >= model.capacity) {
      rateLimited(request.model);
      const body429 = errorBody(429, 'too many requests at once', 'rate_limit_exceeded');
      send(response, 429, body429, waitHeader(model.retryAfterSeconds));
      return;
    }
    const fingerprint = requestFingerprint(request.messages);
    const key = `${request.model} ${fingerprint}`;
    const attempt = (counts.requestsByFingerprint.get(key) ?? 0) + 1;
    const fault = faultOf(model, request, key, attempt);
    const text = replyText(model, request, fingerprint, fault?.kind ?? null);
    counts.requestsByFingerprint.set(key, attempt);
    if (fault) bump(counts.byFault, fault.kind);

    inFlight += 1;
    peakInFlight = Math.max(peakInFlight, inFlight);
    ofModel.peakInFlight = Math.max(ofModel.peakInFlight, bump(inFlightByModel, request.model));
    response.once('close', () => {
      inFlight -= 1;
      bump(inFlightByModel, request.model, -1);
    });
    const finish = () => {
      if (!response.destroyed) {
        answer(response, request, model, fault, text, {
          key,
          id: `mock-${fingerprint.slice(0, 16)}-${attempt}`,
        });
      }
    };
    const { latencyMs } = model;
    const wait =
      typeof latencyMs === 'number'
        ? latencyMs
        : latencyMs.min +
          (latencyMs.max - latencyMs.min) * hashedShare(`${scenario.seed} latency ${key} ${attempt}`);
    if (wait === 0) finish();
    else if (clock) void clock.sleep(wait).then(finish);
    else setTimeout(finish, wait);
  };

  const refuse = (response: ServerResponse, error: unknown): void => {
    if (error instanceof BadRequest) {
      counts.malformed += 1;
      send(response, 400, errorBody(400, error.message, 'invalid_value', error.param));
    } else {
      send(response, 500, errorBody(500, `the fake provider failed: ${(error as Error).message}`, null));
    }
  };

  const stats = (): MockStats => ({
    requests: counts.requests,
    replies: counts.replies,
    inFlight,
    peakInFlight,
    rateLimited: counts.rateLimited,
    malformed: counts.malformed,
    connections,
    byModel: Object.fromEntries(counts.byModel),
    byFault: Object.fromEntries(counts.byFault),
    requestsByFingerprint: Object.fromEntries(counts.requestsByFingerprint),
    repliesByFingerprint: Object.fromEntries(counts.repliesByFingerprint),
  });
  const reset = () => {
    counts = freshCounts();
    peakInFlight = inFlight;
  };

  const readBody = (request: IncomingMessage, response: ServerResponse): void => {
    const chunks: Buffer[] = [];
    let size = 0;
    request.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size <= largestBody) chunks.push(chunk);
    });
    request.on('end', () => {
      if (size > largestBody) {
        send(response, 413, errorBody(413, `the body is larger than ${largestBody} bytes`, null));
        return;
      }
      try {
        complete(response, Buffer.concat(chunks, size).toString('utf8'));
      } catch (error) {
        refuse(response, error);
      }
    });
  };

  const server = createServer((request, response) => {
    const route = `${request.method} ${request.url?.split('?')[0]}`;
    if (route === 'POST /v1/chat/completions') {
      if (request.headers['content-type']?.startsWith('application/json')) readBody(request, response);
      else refuse(response, new BadRequest('content-type is not application/json'));
    } else if (route === 'GET /v1/models') {
      const data = Object.keys(scenario.models)
        .filter((id) => id !== '*')
        .map((id) => ({ id, object: 'model', created, owned_by: 'mock' }));
      send(response, 200, JSON.stringify({ object: 'list', data }));
    } else if (route === 'GET /stats') {
      const { requestsByFingerprint, repliesByFingerprint, ...totals } = stats();
      const brief = request.url?.includes('fingerprints=no');
      send(
        response,
        200,
        JSON.stringify(brief ? totals : { ...totals, requestsByFingerprint, repliesByFingerprint }),
      );
    } else if (route === 'POST /reset') {
      reset();
      send(response, 200, '{}');
    } else send(response, 404, errorBody(404, `no such address: ${route}`, null));
  });
  server.on('connection', () => {
    connections += 1;
  });

  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause: NodeJS.ErrnoException) => {
      const taken = cause.code === 'EADDRINUSE';
      reject(
        new TurnsweepError(errorNames.usage, taken ? 'port is in use' : `cannot listen: ${cause.message}`, {
          where: `${host}:${port}`,
          remedy: taken ? 'stop its owner or choose another port' : undefined,
          cause,
        }),
      );
    });
    // A burst of new connections must not meet a full backlog.
    server.listen({ port, host, backlog: 4096 }, resolve);
  });
  const bound = (server.address() as AddressInfo).port;

  return {
    url: `http://${host}:${bound}/v1`,
    port: bound,
    stats,
    reset,
    setScenario: (next) => use(parseScenario(next)),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
};
