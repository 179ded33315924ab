import { gzipSync } from 'node:zlib';
import type { Step } from './byte-script.ts';
import type {
  Dialect,
  ErrorFacts,
  Json,
  Piece,
  Profile,
  ProviderName,
  ReadRequest,
  ReplyPlan,
  StreamEvent,
  Usage,
} from './dialects/dialect.ts';
import { characters, isObject, textTokens } from './dialects/dialect.ts';
import { eventStreamFrame, mapFramePayload } from './event-stream-frame.ts';
import { vectorSteps } from './vectors.ts';

/** What an outcome is made for. */
export interface OutcomeCall {
  dialect: Dialect;
  profile: Profile;
  request: ReadRequest;
  /** The reply's text; null takes the fixed sample of the test vectors. */
  text: string | null;
  id: string;
  /** Token counts that a scenario states. */
  tokens: { input?: number; output?: number };
  /** Details that a scenario's fault states. */
  code?: string;
  retryAfterSeconds?: number;
  /** Address under another host name that still is this server. */
  elsewhere: string;
}

export interface Outcome {
  steps: Step[];
  /** A client gets a whole reply with finish reason `stop`. */
  usable: boolean;
  /** Counts as rate limited. */
  limited: boolean;
}

type Make = (call: OutcomeCall) => Outcome;
interface Row {
  /** Providers that have it; all without. */
  only?: readonly Dialect['name'][];
  variants: Readonly<Record<string, Make>>;
}

const outcome = (steps: Step[], more: { usable?: boolean; limited?: boolean } = {}): Outcome => ({
  steps,
  usable: more.usable ?? false,
  limited: more.limited ?? false,
});

const whole = (status: number, headers: Record<string, string>, body: Buffer | string): Step[] => {
  const bytes = Buffer.from(body as string);
  return [
    { head: { status, headers: { 'content-length': String(bytes.length), ...headers } } },
    { send: bytes },
    'end',
  ];
};

const errorOutcome = (
  { dialect, profile, retryAfterSeconds }: OutcomeCall,
  facts: ErrorFacts,
  headers: Record<string, string> = {},
): Outcome => {
  const answer = dialect.error(facts, profile);
  const wait: Record<string, string> =
    retryAfterSeconds === undefined ? {} : { 'retry-after': String(retryAfterSeconds) };
  return outcome(
    whole(
      answer.status,
      { 'content-type': dialect.contentType.document, ...answer.headers, ...wait, ...headers },
      answer.body,
    ),
    { limited: answer.status === 429 },
  );
};

const pieceOf = (text: string, before: string, reasoning: number): Piece => ({
  text,
  outputSoFar: reasoning + textTokens(characters(before + text)),
});

/** The text in two pieces, cut between characters. */
const halves = (text: string, reasoning: number): Piece[] => {
  const letters = text.length > 1 ? Array.from(text) : [text];
  const half = Math.ceil(letters.length / 2);
  const first = letters.slice(0, half).join('');
  const second = letters.slice(half).join('');
  return [pieceOf(first, '', reasoning), ...(second === '' ? [] : [pieceOf(second, first, reasoning)])];
};

/** First half of a text, never half a character. */
const shortOf = (text: string): string =>
  text.slice(0, Math.ceil(text.length / 2)).replace(/[\ud800-\udbff]$/, '');

const thoughtTokens = 16;

const usageFor = ({ request, tokens }: OutcomeCall, text: string, reasoning: number): Usage => ({
  prompt: request.prompt,
  promptTotal: tokens.input ?? null,
  output: tokens.output ?? reasoning + textTokens(characters(text)),
  reasoning,
  cached: 0,
  split: true,
});

/** A complete reply: the scripted text, or the fixed sample with its fixed counts. */
const planOf = (call: OutcomeCall, more: Partial<ReplyPlan> = {}): ReplyPlan => {
  const { dialect, request } = call;
  const { sample } = dialect;
  const reasoning = request.thinks ? thoughtTokens : 0;
  const reply =
    call.text === null
      ? { reasoning: sample.reasoning, pieces: sample.pieces, usage: sample.usage }
      : {
          reasoning: request.thinks
            ? [
                { text: '', outputSoFar: 0 },
                { text: 'I look first.', outputSoFar: thoughtTokens },
              ]
            : [],
          pieces: halves(call.text, reasoning),
          usage: usageFor(call, call.text, reasoning),
        };
  return {
    id: call.text === null ? sample.id : call.id,
    model: request.model,
    finish: 'stop',
    refusal: null,
    blocked: false,
    includeUsage: request.includeUsage,
    obfuscates: request.obfuscates,
    operation: request.operation,
    ...reply,
    ...more,
  };
};

/** A reply that was cut: `A red ` of the sample, or half of the text, without reasoning. */
const cutPlan = (call: OutcomeCall, more: Partial<ReplyPlan> = {}): ReplyPlan => {
  const text = call.text === null ? 'A red ' : shortOf(call.text);
  const usage =
    call.text === null
      ? { ...call.dialect.sample.usage, output: 2, reasoning: 0, split: false }
      : usageFor(call, text, 0);
  return planOf(call, { reasoning: [], pieces: [pieceOf(text, '', 0)], usage, ...more });
};

const streamHead = ({ dialect, request }: OutcomeCall, headers: Record<string, string> = {}): Step => ({
  head: {
    status: 200,
    headers: {
      'content-type':
        request.operation === 'json_array' ? dialect.contentType.document : dialect.contentType.stream,
      ...dialect.replyHeaders,
      ...headers,
    },
  },
});

const documentSteps = (
  call: OutcomeCall,
  document: Buffer | string,
  headers: Record<string, string> = {},
): Step[] =>
  whole(
    200,
    { 'content-type': call.dialect.contentType.document, ...call.dialect.replyHeaders, ...headers },
    document,
  );

/** Bytes of a reply in the pieces that a network would carry: events, or the document in halves. */
const piecesOf = (call: OutcomeCall, plan: ReplyPlan): StreamEvent[] => {
  if (call.request.stream) return call.dialect.events(plan, call.profile);
  const bytes = Buffer.from(call.dialect.document(plan));
  const half = Math.ceil(bytes.length / 2);
  return [
    { kind: 'text', bytes: bytes.subarray(0, half) },
    { kind: 'end', bytes: bytes.subarray(half) },
  ];
};

const headOf = (call: OutcomeCall, headers: Record<string, string> = {}): Step =>
  call.request.stream
    ? streamHead(call, headers)
    : {
        head: {
          status: 200,
          headers: {
            'content-type': call.dialect.contentType.document,
            ...call.dialect.replyHeaders,
            ...headers,
          },
        },
      };

const joined = (events: readonly StreamEvent[]): Buffer => Buffer.concat(events.map(({ bytes }) => bytes));

/** A reply in the form that was asked for. */
const reply = (call: OutcomeCall, plan: ReplyPlan, headers: Record<string, string> = {}): Outcome => ({
  steps: call.request.stream
    ? [streamHead(call, headers), { send: joined(call.dialect.events(plan, call.profile)) }, 'end']
    : documentSteps(call, call.dialect.document(plan), headers),
  usable: plan.finish === 'stop' && plan.refusal === null && !plan.blocked,
  limited: false,
});

const streamed = (call: OutcomeCall, events: readonly Buffer[], usable = false): Outcome =>
  outcome([streamHead(call), { send: Buffer.concat(events) }, 'end'], { usable });

const bytesOf = (events: readonly StreamEvent[], ...kinds: StreamEvent['kind'][]): Buffer[] =>
  events.filter(({ kind }) => kinds.includes(kind)).map(({ bytes }) => bytes);

/** Opening chunk and texts of a plan, as a stream that stops there. */
const begunStream = (call: OutcomeCall, plan: ReplyPlan): Buffer[] =>
  bytesOf(call.dialect.events({ ...plan, finish: null, usage: plan.usage }, call.profile), 'open', 'text');

const limit =
  (headers: (call: OutcomeCall) => Record<string, string>): Make =>
  (call) =>
    errorOutcome(call, call.dialect.errors.limit, headers(call));
const waitHeader = (name: string, value: string) => limit(() => ({ [name]: value }));

const byStatus = (call: OutcomeCall, status: number): ErrorFacts => {
  const { errors, checkKey } = call.dialect;
  if (status === 429) return errors.limit;
  if (status >= 500) return errors.server(status);
  if (status === 404) return errors.unknownModel(call.request.model);
  if (status === 401 || status === 403) return { ...checkKey({}), status, message: 'fake: not allowed' };
  return { ...errors.badRequest(`fake: status ${status}`, null), status };
};

const server =
  (status: number): Make =>
  (call) =>
    errorOutcome(call, byStatus(call, status));

const html = (status: number): Make => {
  const page = '<!doctype html><title>proxy</title><h1>fake: this is a proxy</h1>\n';
  return () => outcome(whole(status, { 'content-type': 'text/html' }, page));
};

const inputSafety: Make = (call) => {
  const { inputSafety: facts, server: broken } = call.dialect.errors;
  if (facts === 'blocked') return reply(call, planOf(call, { blocked: true, pieces: [], reasoning: [] }));
  return errorOutcome(call, facts ?? broken(500));
};

const filtered: Make = (call) => reply(call, cutPlan(call, { finish: 'content_filter' }));

const outputSafety: Make = (call) => {
  const facts = call.dialect.errors.outputSafety;
  if (facts === null || facts === 'finish') return filtered(call);
  if (!call.request.stream) return errorOutcome(call, facts);
  const [first, second] = call.text === null ? ['A red ', 'light'] : [shortOf(call.text), '…'];
  const plan = cutPlan(call, { pieces: [pieceOf(first!, '', 0), pieceOf(second!, first!, 0)] });
  return streamed(call, [...begunStream(call, plan), call.dialect.streamError(facts)]);
};

const serverErrorInStream = (call: OutcomeCall, facts: ErrorFacts): Outcome =>
  call.request.stream
    ? streamed(call, [
        ...begunStream(call, cutPlan(call)),
        call.dialect.streamError(facts),
        call.dialect.streamEnd,
      ])
    : outcome(documentSteps(call, call.dialect.error(facts, call.profile).body));

const endsEarly: Make = (call) =>
  call.request.stream
    ? streamed(call, begunStream(call, cutPlan(call)))
    : reply(call, cutPlan(call, { finish: null }));

const brokenEvent = (name: Dialect['name']): Buffer =>
  name === 'bedrock'
    ? eventStreamFrame(
        { ':event-type': 'contentBlockDelta', ':content-type': 'application/json', ':message-type': 'event' },
        '{"contentBlockIndex":0,"delta":{"text":',
      )
    : Buffer.from('data: {"id":"broken\n\n');

const brokenJson: Make = (call) => {
  const events = piecesOf(call, planOf(call));
  if (!call.request.stream) return outcome(documentSteps(call, events[0]!.bytes));
  const at = events.findIndex(({ kind }) => kind === 'text') + 1;
  const before = events.slice(0, at).map(({ bytes }) => bytes);
  return streamed(call, [
    ...before,
    brokenEvent(call.dialect.name),
    ...events.slice(at).map(({ bytes }) => bytes),
  ]);
};

/** Texts so far and then a reset; a little later, since a reset may overtake what was sent. */
const cutByReset =
  (events: number): Make =>
  (call) => {
    const plan = planOf(call, { reasoning: [] });
    const begun = call.request.stream ? begunStream(call, plan) : [piecesOf(call, plan)[0]!.bytes];
    const send = Buffer.concat(begun.slice(0, events));
    return outcome([headOf(call), { send }, { waitSeconds: 0.05 }, 'reset']);
  };

/** Every character of the reply as a text of its own. */
const drippedPlan = (call: OutcomeCall): ReplyPlan => {
  const plan = planOf(call, { reasoning: [] });
  const letters = Array.from(plan.pieces.map(({ text }) => text).join(''));
  return {
    ...plan,
    pieces: letters.map((text, index) => pieceOf(text, letters.slice(0, index).join(''), 0)),
  };
};

const slices = (bytes: Buffer, count: number): StreamEvent[] => {
  const size = Math.ceil(bytes.length / count);
  return Array.from({ length: count }, (_, index) => ({
    kind: 'text',
    bytes: bytes.subarray(index * size, (index + 1) * size),
  }));
};

/** One character every half second; `forever` begins again until the caller is gone. */
const drip =
  (forever: boolean): Make =>
  (call) => {
    const events = call.request.stream
      ? call.dialect.events(drippedPlan(call), call.profile)
      : slices(Buffer.from(call.dialect.document(planOf(call))), 24);
    const slow = (some: readonly StreamEvent[]): Step[] =>
      some.flatMap(({ bytes }): Step[] => [{ send: bytes }, { waitSeconds: 0.5 }]);
    if (!forever) return outcome([headOf(call), ...slow(events), 'end'], { usable: true });
    const texts = events.filter(({ kind }) => kind === 'text');
    const rounds = Array.from({ length: Math.ceil(7200 / Math.max(1, texts.length)) }, () => slow(texts));
    const opening = events.filter(({ kind }) => kind === 'open');
    return outcome([headOf(call), ...slow(opening), ...rounds.flat(), 'hang']);
  };

/** A begun reply and then silence; of a document the first half. */
const stall: Make = (call) => {
  const begun = piecesOf(call, planOf(call)).slice(0, call.request.stream ? 2 : 1);
  return outcome([headOf(call), { send: joined(begun) }, 'hang']);
};

/** Noise before each event of a stream; white space before the pieces of a document. */
const withNoise =
  (noise: string): Make =>
  (call) => {
    const before = Buffer.from(call.request.stream ? noise : '\n');
    const send = Buffer.concat(piecesOf(call, planOf(call)).flatMap(({ bytes }) => [before, bytes]));
    return outcome([headOf(call), { send }, 'end'], { usable: true });
  };

/** CRLF line ends, and the first text as two data lines that join to one JSON. */
const withCrlf = (call: OutcomeCall): Buffer => {
  const events = piecesOf(call, planOf(call));
  if (!call.request.stream) return joined(events);
  const at = events.findIndex(({ kind }) => kind === 'text');
  const lines = events.map(({ bytes }, index) => {
    const text = bytes.toString();
    return index === at ? text.replace('data: {', 'data: {\ndata: ') : text;
  });
  return Buffer.from(lines.join('').replaceAll('\n', '\r\n'));
};

/** Applies a change to the JSON of a document, an SSE event or a binary frame; others stay as they are. */
const mapJson = (bytes: Buffer, change: (value: Json) => Json): Buffer => {
  const text = bytes.toString();
  if (text.startsWith('data: {'))
    return Buffer.from(`data: ${JSON.stringify(change(JSON.parse(text.slice(6))))}\n\n`);
  if (text.startsWith('{')) return Buffer.from(JSON.stringify(change(JSON.parse(text))));
  if (bytes.length > 16 && bytes.readUInt32BE(0) === bytes.length) {
    return mapFramePayload(bytes, (payload) => JSON.stringify(change(JSON.parse(payload))));
  }
  return bytes;
};

const changed =
  (change: (value: Json) => Json, usable = true): Make =>
  (call) => {
    const plan = planOf(call);
    if (!call.request.stream) {
      return outcome(documentSteps(call, mapJson(Buffer.from(call.dialect.document(plan)), change)), {
        usable,
      });
    }
    const events = call.dialect.events(plan, call.profile);
    return streamed(
      call,
      events.map(({ bytes }) => mapJson(bytes, change)),
      usable,
    );
  };

/** `content` of messages and deltas as a list of text parts. */
const asParts = (value: Json): Json => ({
  ...value,
  choices: (value.choices as Json[]).map((choice) => {
    const key = choice.message === undefined ? 'delta' : 'message';
    const holder = choice[key] as Json;
    return typeof holder.content === 'string'
      ? { ...choice, [key]: { ...holder, content: [{ type: 'text', text: holder.content }] } }
      : choice;
  }),
});

const badUsage = (number: (value: number) => unknown) => {
  const walk = (value: unknown): unknown => {
    if (typeof value === 'number') return number(value);
    if (Array.isArray(value)) return value.map(walk);
    return isObject(value)
      ? Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, walk(inner)]))
      : value;
  };
  return changed((value) => {
    const key = ['usage', 'usageMetadata'].find((name) => isObject(value[name]));
    return key === undefined ? value : { ...value, [key]: walk(value[key]) };
  });
};

const noChoices: Make = (call) => {
  const empty = (value: Json): Json => {
    if ('choices' in value) return { ...value, choices: [] };
    if ('candidates' in value) return { ...value, candidates: [] };
    return 'output' in value ? { ...value, output: Array.isArray(value.output) ? [] : {} } : value;
  };
  if (!call.request.stream) return changed(empty, false)(call);
  const events = call.dialect.events(planOf(call), call.profile);
  const kept = events.filter(({ kind }) => kind === 'usage' || kind === 'end');
  return streamed(
    call,
    (kept.length > 0 ? kept : events).map(({ bytes }) => mapJson(bytes, empty)),
  );
};

const judged = (call: OutcomeCall): string => {
  try {
    return isObject(JSON.parse(call.text ?? '')) ? call.text! : '{"verdict":"pass","why":"fake"}';
  } catch {
    return '{"verdict":"pass","why":"fake"}';
  }
};
const judge =
  (change: (verdict: string) => string, finish = 'stop'): Make =>
  (call) => {
    const found = { ...call, text: change(judged(call)) };
    return reply(found, planOf(found, { finish }));
  };

/** A flood of one text event; the caller has to stop it. */
const flood: Make = (call) => {
  const plan = planOf(call, { reasoning: [], pieces: [pieceOf('A'.repeat(64 * 1024), '', 0)], finish: null });
  const events = call.request.stream ? call.dialect.events(plan, call.profile) : [];
  const opening = bytesOf(events, 'open');
  const [text = Buffer.alloc(64 * 1024, 0x20)] = bytesOf(events, 'text');
  return outcome([
    headOf(call),
    ...opening.map((send): Step => ({ send })),
    { flood: text, bytes: 50 * 1024 * 1024 },
    'hang',
  ]);
};

/** The usage of audio is lacking as if the medium had not been heard. */
const deaf =
  (audio: number | null): Make =>
  (call) => {
    const plan = planOf({ ...call, text: call.text ?? 'I hear nothing.' });
    return reply(call, {
      ...plan,
      usage: plan.usage && { ...plan.usage, prompt: { ...plan.usage.prompt, audio } },
    });
  };

const twoUsages: Make = (call) => {
  const plan = planOf(call);
  if (!call.request.stream || plan.usage === null) return reply(call, plan);
  const usage = { ...plan.usage, output: Math.max(1, plan.usage.output - 4), reasoning: 0 };
  const early = call.dialect.events({ ...plan, usage }, call.profile);
  const last = bytesOf(call.dialect.events(plan, call.profile), 'usage');
  const at = early.findLastIndex(({ kind }) => kind === 'usage') + 1;
  const bytes = early.map((event) => event.bytes);
  return streamed(call, [...bytes.slice(0, at), ...last, ...bytes.slice(at)], true);
};

const streamEnd = { message: 'fake: engine died', type: 'InternalServerError', code: 500, status: 500 };
const engineDied: Make = (call) =>
  serverErrorInStream(call, call.dialect.name === 'bedrock' ? call.dialect.errors.server(500) : streamEnd);

const afterBytes =
  (make: (call: OutcomeCall) => Step[], usable = true): Make =>
  (call) =>
    outcome(make(call), { usable });

const redirect =
  (status: number): Make =>
  (call) =>
    outcome(whole(status, { location: call.elsewhere }, ''));

const one = (make: Make, only?: readonly Dialect['name'][]): Row => ({ variants: { '': make }, only });
const several = (variants: Record<string, Make>, only?: readonly Dialect['name'][]): Row => ({
  variants,
  only,
});

const sseOnly: readonly ProviderName[] = [
  'dashscope',
  'ark',
  'stepfun',
  'openai',
  'vllm',
  'sglang',
  'llamacpp',
  'gemini',
];
const choicesOnly = sseOnly.filter((name) => name !== 'gemini');
const usageChunk: readonly ProviderName[] = [
  'dashscope',
  'ark',
  'openai',
  'vllm',
  'sglang',
  'llamacpp',
  'bedrock',
];

const quota = one(
  (call) => errorOutcome(call, call.dialect.errors.quota ?? call.dialect.errors.limit),
  ['ark', 'dashscope', 'stepfun', 'openai', 'gemini', 'bedrock'],
);

const rows: Readonly<Record<string, Row>> = {
  'F-01': one(waitHeader('retry-after', '2')),
  'F-02': one(limit(() => ({ 'retry-after': new Date(Date.now() + 3000).toUTCString() }))),
  'F-03': one(limit(() => ({ 'retry-after-ms': '1500', 'retry-after': '9' }))),
  'F-04': one(limit(() => ({}))),
  'F-05': one(waitHeader('retry-after', '86400')),
  'F-06': several({ '': waitHeader('retry-after', 'banana'), negative: waitHeader('retry-after', '-1') }),
  'F-07': one((call) => errorOutcome(call, call.dialect.errors.quota!), ['openai']),
  'F-08': one(
    (call) =>
      errorOutcome(call, {
        status: 429,
        message: 'fake: allocated quota exceeded',
        type: 'insufficient_quota',
        code: 'insufficient_quota',
      }),
    ['dashscope'],
  ),
  'F-09': several(
    {
      '': (call) => errorOutcome(call, call.dialect.errors.burst[0]!),
      overloaded: (call) => errorOutcome(call, call.dialect.errors.burst.at(-1)!),
    },
    ['dashscope', 'ark', 'bedrock'],
  ),
  'F-10': quota,
  'F-11': several(
    {
      '': (call) => errorOutcome(call, call.dialect.errors.limit),
      day: (call) => errorOutcome(call, call.dialect.errors.quota!),
    },
    ['gemini'],
  ),
  'F-12': one(waitHeader('x-ratelimit-reset-tokens', '1m2.5s'), ['openai']),
  'F-13': several({
    '': server(500),
    '502': server(502),
    '503': server(503),
    '504': server(504),
    '529': server(529),
  }),
  'F-14': one(html(503)),
  'F-15': one(inputSafety, ['dashscope', 'ark', 'stepfun', 'openai', 'gemini', 'bedrock']),
  'F-16': one(outputSafety, ['dashscope', 'ark', 'stepfun', 'openai', 'gemini', 'bedrock']),
  'F-17': one(filtered),
  'F-18': one((call) => reply(call, cutPlan(call, { finish: 'length' }))),
  'F-19': one((call) => {
    const usage = {
      ...(call.text === null ? call.dialect.sample.usage : usageFor(call, '', 0)),
      split: false,
    };
    return reply(
      call,
      planOf(call, {
        reasoning: [{ text: 'thinking goes on', outputSoFar: 256 }],
        pieces: [],
        finish: 'length',
        usage: { ...usage, output: 256, reasoning: 256 },
      }),
    );
  }),
  'F-20': one((call) => ({
    ...reply(call, planOf(call, { reasoning: [], pieces: [{ text: '', outputSoFar: 0 }] })),
    usable: false,
  })),
  'F-21': several({
    '': (call) => reply(call, cutPlan(call, { finish: 'repetition_truncation' })),
    abort: (call) => reply(call, cutPlan(call, { finish: 'abort' })),
  }),
  'F-22': one(endsEarly),
  'F-23': one((call) => reply(call, planOf(call, { usage: null }))),
  'F-24': one(twoUsages, usageChunk),
  'F-25': one(brokenJson),
  'F-26': one((call) => {
    const document = Buffer.from(call.dialect.document(planOf(call)));
    return outcome(documentSteps(call, document.subarray(0, Math.ceil(document.length / 2))));
  }),
  'F-27': one((call) => {
    const bytes = joined(piecesOf(call, planOf(call)));
    const head = headOf(call, { 'content-length': String(bytes.length) });
    return outcome([
      head,
      { send: bytes.subarray(0, Math.ceil(bytes.length / 2)) },
      { waitSeconds: 0.05 },
      'close',
    ]);
  }),
  'F-28': one(html(200)),
  'F-29': several({
    '': (call) =>
      outcome(
        [{ head: { status: 200, headers: {} } }, { send: joined(piecesOf(call, planOf(call))) }, 'end'],
        {
          usable: true,
        },
      ),
    json: (call) =>
      outcome(
        [
          { head: { status: 200, headers: {} } },
          { send: Buffer.from(call.dialect.document(planOf(call))) },
          'end',
        ],
        {
          usable: true,
        },
      ),
  }),
  'F-30': several({
    '': (call) => outcome(documentSteps(call, call.dialect.error(byStatus(call, 500), call.profile).body)),
    limit: (call) => outcome(documentSteps(call, call.dialect.error(byStatus(call, 429), call.profile).body)),
  }),
  'F-31': one(engineDied),
  'F-32': one(
    (call) =>
      call.request.stream
        ? streamed(call, [
            ...begunStream(call, cutPlan(call)),
            Buffer.from('error: {"code":500,"message":"fake"}\n\n'),
          ])
        : errorOutcome(call, byStatus(call, 500)),
    ['llamacpp'],
  ),
  'F-33': one(() => outcome(['reset'])),
  'F-34': one(cutByReset(3)),
  'F-35': one(() => outcome(['hang'])),
  'F-36': one(stall),
  'F-37': one(drip(true)),
  'F-38': one(drip(false)),
  'F-39': one(drip(true)),
  'F-40': several(
    {
      '': withNoise(': keep-alive\n\nevent: ping\ndata:\n\ndata:\n\n'),
      comments: withNoise(': keep-alive\n\n'),
    },
    sseOnly,
  ),
  'F-41': one(
    afterBytes((call) => [headOf(call), { send: withCrlf(call) }, 'end']),
    sseOnly,
  ),
  'F-42': one(
    afterBytes((call) => [headOf(call), { sendEach: joined(piecesOf(call, planOf(call))) }, 'end']),
  ),
  'F-43': one(
    afterBytes((call) => [
      headOf(call, { 'content-encoding': 'gzip' }),
      { send: gzipSync(joined(piecesOf(call, planOf(call)))) },
      'end',
    ]),
  ),
  'F-44': one(flood),
  'F-45': one((call) => reply(call, planOf(call), { 'x-dashscope-partialresponse': 'true' }), ['dashscope']),
  'F-46': several({ '': redirect(307), '308': redirect(308) }),
  'F-47': one(changed(asParts), choicesOnly),
  'F-48': several({
    '': badUsage((value) => -1 - value),
    string: badUsage(String),
    missing: badUsage(() => undefined),
  }),
  'F-49': one(noChoices),
  'F-50': several({
    '': judge((verdict) => `\`\`\`json\n${verdict}\n\`\`\``),
    comma: judge((verdict) => verdict.replace(/\}$/, ',}')),
    extra: judge((verdict) => verdict.replace(/\}$/, ',"mood":"good"}')),
    cut: judge((verdict) => verdict.slice(0, Math.ceil(verdict.length / 2)), 'length'),
    two: judge((verdict) => `${verdict}\n${verdict}`),
    null: judge(() => 'null'),
  }),
  'F-51': several({ '': html(413), '431': html(431) }),
  'F-52': several(
    {
      '': (call) => errorOutcome(call, call.dialect.errors.server(408)),
      stream: (call) =>
        call.request.stream
          ? serverErrorInStream(call, {
              status: 424,
              message: 'fake: stream error',
              code: 'ModelStreamErrorException',
            })
          : errorOutcome(call, call.dialect.errors.server(424)),
      throttled: (call) =>
        call.request.stream
          ? serverErrorInStream(call, call.dialect.errors.limit)
          : errorOutcome(call, call.dialect.errors.limit),
    },
    ['bedrock'],
  ),
  'F-53': one((call) => reply(call, planOf(call, { id: call.id }))),
  'F-54': several({ '': deaf(0), absent: deaf(null) }),
};

const scripted = (call: OutcomeCall, facts: ErrorFacts, kind: string): ErrorFacts => ({
  ...facts,
  message: `scripted fault ${kind}`,
  // The plain address says no code that the scenario does not.
  code: call.code ?? (call.dialect.name === 'plain' ? undefined : facts.code),
});

/** Kinds of a scenario's faults. */
const kinds: Readonly<Record<string, Make>> = {
  ok: (call) => reply(call, planOf(call)),
  hang: () => outcome(['hang']),
  reset: () => outcome(['reset']),
  html_200: html(200),
  cut_stream: cutByReset(2),
  bad_json: (call) => {
    const events = piecesOf(call, planOf(call));
    if (!call.request.stream) return outcome(documentSteps(call, events[0]!.bytes));
    return streamed(
      call,
      events.map(({ bytes }, index) => (index === 1 ? brokenEvent(call.dialect.name) : bytes)),
    );
  },
  error_200: (call) => {
    const facts = scripted(call, { ...call.dialect.errors.server(500), code: '500' }, 'error_200');
    return serverErrorInStream(call, { ...facts, code: call.code ?? '500' });
  },
  no_finish_reason: (call) => {
    const plan = cutPlan(call, { finish: null });
    if (!call.request.stream) return reply(call, plan);
    const events = call.dialect.events(plan, call.profile);
    return streamed(call, bytesOf(events, 'open', 'text', 'usage'));
  },
  empty: (call) => {
    const found = { ...call, text: '' };
    return { ...reply(found, planOf(found)), usable: false };
  },
  length: (call) => reply(call, cutPlan(call, { finish: 'length' })),
  content_filter: filtered,
  refusal: (call) =>
    call.dialect.errors.inputSafety === 'blocked'
      ? inputSafety(call)
      : reply(call, planOf(call, { refusal: 'I will not answer that.', pieces: [] })),
};

/** Names of all outcomes that a dialect serves: `ok`, kinds of scenarios, fault and vector ids with variants. */
export const outcomeNames = (dialect: Dialect['name']): string[] => [
  ...Object.keys(kinds),
  ...Object.entries(rows).flatMap(([id, { only, variants }]) =>
    only && !only.includes(dialect)
      ? []
      : Object.keys(variants).map((name) => (name === '' ? id : `${id}:${name}`)),
  ),
  ...Object.keys(vectorSteps).filter((id) => vectorSteps[id]!.provider === dialect),
];

const maker = (name: string, dialect: Dialect['name']): Make | null => {
  const kind = kinds[name];
  if (kind) return kind;
  if (/^http_[345]\d\d$/.test(name)) {
    return (call) => errorOutcome(call, scripted(call, byStatus(call, Number(name.slice(5))), name));
  }
  // Faults of a judge's text, which the text already has.
  if (['rubbish', 'missing_id', 'fenced'].includes(name)) return kinds.ok!;
  const vector = vectorSteps[name];
  if (vector)
    return vector.provider === dialect ? () => outcome(vector.steps(), { usable: vector.usable }) : null;
  const [id = '', variant = ''] = name.split(':');
  const row = rows[id];
  if (!row || (row.only && !row.only.includes(dialect))) return null;
  return row.variants[variant] ?? null;
};

/** Whether a dialect serves an outcome of this name. */
export const servesOutcome = (name: string, dialect: Dialect['name']): boolean =>
  maker(name, dialect) !== null;

/** Whether any dialect serves an outcome of this name. */
export const isOutcomeId = (name: string): boolean => {
  const [id = '', variant = ''] = name.split(':');
  return name in vectorSteps || rows[id]?.variants[variant] !== undefined;
};

/** Steps of an outcome. Throws `RangeError` for one that the dialect does not serve. */
export const makeOutcome = (name: string, call: OutcomeCall): Outcome => {
  const make = maker(name, call.dialect.name);
  if (make === null) throw new RangeError(`${call.dialect.name} does not serve the outcome ${name}`);
  return make(call);
};
