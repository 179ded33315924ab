import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { errorNames, TurnsweepError } from '../shared/errors.ts';
import type { Clock } from '../shared/ports/clock.ts';
import { createBatches, usualBatchPlan } from './batches.ts';
import { playSteps } from './byte-script.ts';
import type { ControlCommand, ControlInput, LoggedRequest } from './control.ts';
import { createRequestLog, parseCommand } from './control.ts';
import type { MockStats } from './counts.ts';
import { createCounts } from './counts.ts';
import type { Dialect, ErrorFacts, Profile, ProviderName, ReadRequest, Route } from './dialects/dialect.ts';
import { created, providerNames, Refused } from './dialects/dialect.ts';
import { fetchMedia } from './dialects/mapped-media.ts';
import type { FetchedMedium } from './dialects/media.ts';
import { createPlainDialect } from './dialects/plain.ts';
import { dialects } from './dialects/registry.ts';
import { createGeminiFiles } from './gemini-files.ts';
import type { ScenarioInput } from './scenario.ts';
import { loadScenario, parseScenario } from './scenario.ts';
import { createScript } from './script.ts';

export type { MockStats } from './counts.ts';

export interface MockProvider {
  /** Base URL: that of the provider that was chosen, else the plain one with `/v1`. */
  url: string;
  /** Base URL of a provider; every one is served. */
  urlOf(provider: ProviderName): string;
  port: number;
  stats(): MockStats;
  /** Counts, queues and the log back to the start. */
  reset(): void;
  /** Another scenario from the next request on, counts kept. */
  setScenario(scenario: ScenarioInput): void;
  /** Calls in flight at once from now on, of one model or of each; null: no limit. Goes before the scenario's. */
  setCapacity(slots: number | null, model?: string): void;
  /** What `POST /__control` does. Throws `UsageWrong`. */
  control(command: ControlInput): void;
  /** Requests below the providers' prefixes, oldest first. */
  log(): LoggedRequest[];
  close(): Promise<void>;
}

const largestBody = 256 * 1024 * 1024;
const largestChatBody = 64 * 1024 * 1024;

const waitHeader = (seconds: number | null | undefined): Record<string, string> =>
  seconds === null || seconds === undefined ? {} : { 'retry-after': String(seconds) };

const send = (
  response: ServerResponse,
  status: number,
  body: string | Buffer,
  headers: Record<string, string> = {},
) => {
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    ...headers,
  });
  response.end(body);
};

/** Requests of a dialect beyond its prefix. */
interface Address {
  dialect: Dialect;
  path: string;
  query: URLSearchParams;
}

/**
 * Starts the fake provider: a server that speaks a plain OpenAI format below `/v1` and each provider's own dialect
 * below a prefix of its own, whose replies, delays and faults a scenario or a control queue scripts
 * (mock/README.md). The same seed and the same requests give the same faults, in whatever order they come.
 * Throws `UsageWrong` for a scenario that is not valid or a port that is taken.
 */
export const startMockProvider = async (
  options: {
    /** 0 takes any free port. */
    port?: number;
    host?: string;
    /** A scenario, or the path of its file; without one every plain model says `ok` and every model of a provider
     * tells what it received. */
    scenario?: ScenarioInput | string;
    /** Whose base URL is `url`. */
    provider?: ProviderName;
    /** Real seconds for one second that the server waits; 1 by default. */
    timeScale?: number;
    /** Settings of the providers' servers at the start. */
    profiles?: Partial<Record<ProviderName, Profile>>;
    /** Hosts of media URLs that stand for the public internet, with the origins where they really are. */
    mediaOrigins?: Readonly<Record<string, string>>;
    /** Sleeps through the latencies; the system's timers by default. */
    clock?: Pick<Clock, 'sleep'>;
    /** Told the body of every chat request as it came, for tests of what is sent. */
    onRequest?: (body: string) => void;
  } = {},
): Promise<MockProvider> => {
  const { port = 0, host = '127.0.0.1', clock, mediaOrigins = {} } = options;
  let timeScale = options.timeScale ?? 1;
  const sleepSeconds = (seconds: number): Promise<void> => {
    const waitMs = seconds * 1000 * timeScale;
    return clock ? clock.sleep(waitMs) : new Promise((resolve) => setTimeout(resolve, waitMs));
  };

  const plain = createPlainDialect();
  const profiles = new Map<string, Profile>(Object.entries(options.profiles ?? {}));
  const log = createRequestLog();
  const files = createGeminiFiles();
  const batchesOf = new Map<string, ReturnType<typeof createBatches>>();
  let bound = 0;
  /** By model, `*` for every other one. */
  const capacityOf = new Map<string, { slots: number | null }>();
  let retryAfterOfAll: number | null | undefined;

  const counts = createCounts();
  const profileOf = ({ name }: Dialect): Profile => profiles.get(name) ?? {};
  const givenScenario =
    typeof options.scenario === 'string'
      ? loadScenario(options.scenario)
      : options.scenario && parseScenario(options.scenario);
  const script = createScript({
    scenario: givenScenario ?? null,
    counts,
    profileOf,
    // Another host name, by which a caller that follows redirects is known.
    elsewhere: () => `http://localhost:${bound}/__elsewhere`,
  });

  const answerFacts = (
    response: ServerResponse,
    { dialect }: Address,
    facts: ErrorFacts,
    headers: Record<string, string> = {},
  ): void => {
    const answer = dialect.error(facts, profileOf(dialect));
    send(response, answer.status, answer.body, {
      'content-type': dialect.contentType.document,
      ...answer.headers,
      ...headers,
    });
  };

  const complete = (
    response: ServerResponse,
    address: Address,
    request: ReadRequest,
    entry: LoggedRequest | null,
  ): void => {
    const { dialect } = address;
    const model = script.modelOf(dialect, request.model)!;
    counts.requestTo(request.model);
    const ownCapacity = capacityOf.get(request.model) ?? capacityOf.get('*');
    const { slots } = ownCapacity ?? { slots: model.capacity };
    if (slots !== null && counts.running(request.model) >= slots) {
      counts.rateLimited(request.model);
      if (entry) entry.outcome = 'capacity';
      const wait = retryAfterOfAll === undefined ? model.retryAfterSeconds : retryAfterOfAll;
      answerFacts(response, address, dialect.errors.limit, waitHeader(wait));
      return;
    }
    const { outcome, name, key, latencyMs } = script.decide(dialect, model, request);
    if (entry) entry.outcome = name;
    if (outcome.limited) counts.rateLimited(request.model);
    response.once('close', counts.enter(request.model));
    const finish = () => {
      if (response.destroyed) return;
      void playSteps(outcome.steps, response, sleepSeconds).then((end) => {
        if (end === 'played' && outcome.usable) counts.reply(request.model, key);
      });
    };
    if (latencyMs === 0) finish();
    else void sleepSeconds(latencyMs / 1000).then(finish);
  };

  const contextOf = (
    { dialect }: Address,
    route: Route,
    headers: IncomingMessage['headers'],
    bodyBytes: number,
    fetched: ReadonlyMap<string, FetchedMedium | null>,
  ) => ({
    route,
    headers,
    bodyBytes,
    profile: profileOf(dialect),
    hasModel: (name: string) => script.modelOf(dialect, name) !== null,
    fetched,
    file: files.find,
  });

  const refuse = (
    response: ServerResponse,
    address: Address,
    error: unknown,
    entry: LoggedRequest | null,
  ): void => {
    if (entry) entry.outcome = 'refused';
    if (error instanceof Refused) {
      if (![401, 403, 404].includes(error.facts.status)) counts.malformed();
      answerFacts(response, address, error.facts);
      return;
    }
    const message = `the fake provider failed: ${(error as Error).message}`;
    answerFacts(response, address, { status: 500, message });
  };

  const noMedia: ReadonlyMap<string, FetchedMedium | null> = new Map();
  const mapsMedia = Object.keys(mediaOrigins).length > 0;

  const chat = async (
    request: IncomingMessage,
    response: ServerResponse,
    address: Address,
    route: Route,
    bytes: Buffer,
  ): Promise<void> => {
    const { dialect } = address;
    counts.request();
    const entry =
      dialect.name === 'plain'
        ? null
        : log.add(dialect.name, request.method ?? '', address.path, request.headers, bytes);
    if (entry) {
      response.once('close', () => {
        entry.status = response.headersSent ? response.statusCode : null;
        entry.callerGone = !response.writableFinished;
      });
    }
    try {
      if (bytes.length > largestChatBody) {
        answerFacts(response, address, {
          ...dialect.errors.badRequest(`the body is larger than ${largestChatBody} bytes`, null),
          status: 413,
        });
        return;
      }
      const body = bytes.toString('utf8');
      options.onRequest?.(body);
      const wrongKey = dialect.checkKey(request.headers);
      if (wrongKey) throw new Refused(wrongKey);
      const fetched = mapsMedia ? await fetchMedia(body, mediaOrigins) : noMedia;
      const context = contextOf(address, route, request.headers, bytes.length, fetched);
      complete(response, address, dialect.read(body, context), entry);
    } catch (error) {
      refuse(response, address, error, entry);
    }
  };

  /** Answers a line of a batch as a call would; calls of batches take no slot. */
  const answerLine =
    (dialect: Dialect) =>
    (body: string): { status: number; body: string } => {
      const address = { dialect, path: '', query: new URLSearchParams() };
      try {
        const read = dialect.read(body, contextOf(address, { operation: 'chat' }, {}, body.length, noMedia));
        const request = { ...read, stream: false };
        const model = script.modelOf(dialect, request.model)!;
        counts.requestTo(request.model);
        const { outcome, key } = script.decide(dialect, model, request);
        const head = outcome.steps.find((step) => typeof step === 'object' && 'head' in step);
        const sent = outcome.steps.find((step) => typeof step === 'object' && 'send' in step);
        const status = head && typeof head === 'object' && 'head' in head ? head.head.status : 500;
        if (outcome.usable) counts.reply(request.model, key);
        const text = sent && typeof sent === 'object' && 'send' in sent ? sent.send.toString('utf8') : '';
        if (!text.startsWith('{')) return dialect.error(dialect.errors.server(500));
        return { status, body: text };
      } catch (error) {
        if (!(error instanceof Refused)) throw error;
        return dialect.error(error.facts);
      }
    };
  for (const name of ['openai', 'dashscope'] as const) {
    const dialect = dialects[name];
    batchesOf.set(
      name,
      createBatches({ answerLine: answerLine(dialect), error: (facts) => dialect.error(facts) }),
    );
  }
  const useBatchPlan = () => {
    for (const batches of batchesOf.values()) batches.setPlan(script.batchPlan() ?? usualBatchPlan);
  };
  useBatchPlan();

  const reset = () => {
    counts.reset();
    script.clearQueues();
    log.clear();
  };
  const setScenario = (next: unknown) => {
    script.use(next);
    useBatchPlan();
  };
  const setCapacity = (slots: number | null, model = '*') => {
    capacityOf.set(model, { slots });
  };
  const apply = (command: ControlCommand): void => {
    const { provider } = command;
    if (provider !== undefined) {
      if (command.queue) script.queue(provider, command.queue);
      if (command.profile) profiles.set(provider, { ...profiles.get(provider), ...command.profile });
      if (command.batch) batchesOf.get(provider)?.setPlan(command.batch);
      for (const file of command.files ?? []) files.register(file);
      if (command.uploads) files.setUploads(command.uploads);
    }
    if (command.capacity !== undefined) setCapacity(command.capacity, command.model);
    if (command.retryAfterSeconds !== undefined) retryAfterOfAll = command.retryAfterSeconds;
    if (command.timeScale !== undefined) timeScale = command.timeScale;
    if (command.scenario !== undefined) setScenario(command.scenario);
  };

  const bodyOf = (request: IncomingMessage): Promise<Buffer | null> =>
    new Promise((resolve) => {
      const chunks: Buffer[] = [];
      let size = 0;
      request.on('data', (chunk: Buffer) => {
        size += chunk.length;
        if (size <= largestBody) chunks.push(chunk);
      });
      request.on('end', () => resolve(size > largestBody ? null : Buffer.concat(chunks, size)));
    });

  const atProvider = async (
    request: IncomingMessage,
    response: ServerResponse,
    address: Address,
    bytes: Buffer,
  ): Promise<void> => {
    const { dialect, path, query } = address;
    const method = request.method ?? '';
    const route = dialect.route(method, path, query);
    if (route) {
      if (request.headers['content-type']?.startsWith('application/json')) {
        return chat(request, response, address, route, bytes);
      }
      counts.request();
      refuse(
        response,
        address,
        new Refused(dialect.errors.badRequest('content-type is not application/json', null)),
        null,
      );
      return;
    }
    const wrongKey = dialect.checkKey(request.headers);
    if (wrongKey) return answerFacts(response, address, wrongKey);
    const answer = await batchesOf
      .get(dialect.name)
      ?.handle(method, path, query, request.headers['content-type'] ?? '', bytes);
    if (answer) {
      log.add(dialect.name, method, path, request.headers, bytes).status = answer.status;
      if (answer.content) {
        send(response, answer.status, answer.content, { 'content-type': 'application/octet-stream' });
      } else send(response, answer.status, JSON.stringify(answer.body), dialect.replyHeaders);
      return;
    }
    if (method === 'GET' && path === '/models') {
      const data = script.modelNames().map((id) => ({ id, object: 'model', created, owned_by: 'mock' }));
      return send(response, 200, JSON.stringify({ object: 'list', data }));
    }
    const message = `no such address: ${method} ${dialect.prefix}${path}`;
    answerFacts(response, address, {
      ...dialect.errors.badRequest(message, null),
      code: undefined,
      status: 404,
    });
  };

  const controlled = (response: ServerResponse, bytes: Buffer): void => {
    try {
      apply(parseCommand(JSON.parse(bytes.toString('utf8'))));
      send(response, 200, '{}');
    } catch (error) {
      send(response, 400, JSON.stringify({ error: { message: (error as Error).message } }));
    }
  };

  const spoken: readonly Dialect[] = [plain, ...providerNames.map((name) => dialects[name])];
  const addressOf = (url: URL): Address | null => {
    const dialect = spoken.find(({ prefix }) => url.pathname.startsWith(`${prefix}/`));
    if (!dialect) return null;
    return { dialect, path: url.pathname.slice(dialect.prefix.length), query: url.searchParams };
  };

  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const url = new URL(request.url ?? '/', `http://${host}:${bound}`);
    const route = `${request.method} ${url.pathname}`;
    if (route === 'GET /stats') {
      const { requestsByFingerprint, repliesByFingerprint, ...totals } = counts.stats();
      const brief = url.searchParams.get('fingerprints') === 'no';
      send(
        response,
        200,
        JSON.stringify(brief ? totals : { ...totals, requestsByFingerprint, repliesByFingerprint }),
      );
      return;
    }
    if (route === 'GET /__log') return send(response, 200, JSON.stringify(log.all()));
    const bytes = await bodyOf(request);
    const address = addressOf(url);
    const fileAnswer = bytes && files.handle(request.method ?? '', url, request.headers, bytes);
    if (bytes === null) {
      answerFacts(response, address ?? { dialect: plain, path: '', query: url.searchParams }, {
        status: 413,
        message: `the body is larger than ${largestBody} bytes`,
      });
    } else if (route === 'POST /reset') {
      reset();
      send(response, 200, '{}');
    } else if (route === 'POST /__control') controlled(response, bytes);
    else if (url.pathname.startsWith('/__elsewhere')) {
      // Whoever followed a redirect is seen in the log.
      log.add('elsewhere', request.method ?? '', url.pathname, request.headers, bytes).status = 200;
      send(response, 200, '{}');
    } else if (fileAnswer) send(response, fileAnswer.status, fileAnswer.body, fileAnswer.headers);
    else if (address) await atProvider(request, response, address, bytes);
    else {
      answerFacts(
        response,
        { dialect: plain, path: '', query: url.searchParams },
        { status: 404, message: `no such address: ${route}` },
      );
    }
  };

  const server = createServer((request, response) => {
    serve(request, response).catch((error: Error) => {
      if (response.headersSent) response.destroy(error);
      else
        send(
          response,
          500,
          JSON.stringify({ error: { message: `the fake provider failed: ${error.message}` } }),
        );
    });
  });
  server.on('connection', () => {
    counts.connection();
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
  bound = (server.address() as AddressInfo).port;
  const origin = `http://${host}:${bound}`;
  const urlOf = (provider: ProviderName): string => `${origin}${dialects[provider].prefix}`;

  return {
    url: options.provider ? urlOf(options.provider) : `${origin}${plain.prefix}`,
    urlOf,
    port: bound,
    stats: counts.stats,
    reset,
    setScenario,
    setCapacity,
    control: (command) => apply(parseCommand(command)),
    log: log.all,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
};
