import { rmSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { ProviderName } from '../../mock/dialects/dialect.ts';
import { outcomeNames } from '../../mock/faults.ts';
import type { Attempt, RequestRecord } from '../../shared/contracts/records.ts';
import { type LaneEnd, releaseWithRealClips, requestIds, runLanes } from '../support/fault-run.ts';
import { sweepUnderTest } from '../support/sweep-under-test.ts';

// Every fault of every provider, met by the first turn of a history in the embedded home: real state machines, stages
// and clients against the strict fake providers. What is expected is written down here, from what the providers'
// documentation and return-protocol say, not from what the code does.

interface Target {
  model: string;
  modalities: readonly ('V' | 'A')[];
  key: string;
  /** The media of one turn as the provider received them. */
  media: string;
}
const targets: Readonly<Record<ProviderName, Target>> = {
  dashscope: {
    model: 'qwen3.8-omni-flash',
    modalities: ['V', 'A'],
    key: 'test-dashscope',
    media: 'audio,video',
  },
  ark: {
    model: 'doubao-seed-2-0-lite-260428',
    modalities: ['V', 'A'],
    key: 'test-ark',
    media: 'audio,video',
  },
  // Its models for sound take no video, and video goes by address alone.
  stepfun: { model: 'stepaudio-2.5-chat', modalities: ['A'], key: 'test-step', media: 'audio' },
  openai: { model: 'gpt-audio-mini', modalities: ['A'], key: 'test-openai', media: 'audio' },
  gemini: { model: 'gemini-3.8-flash', modalities: ['V', 'A'], key: 'test-gemini', media: 'audio,video' },
  bedrock: {
    model: 'us.amazon.nova-2-omni-v1:0',
    modalities: ['V', 'A'],
    key: 'test-bedrock',
    media: 'audio,video',
  },
  vllm: { model: 'local', modalities: ['V', 'A'], key: 'test-vllm', media: 'audio,video' },
  sglang: { model: 'local', modalities: ['V', 'A'], key: 'test-sglang', media: 'audio,video' },
  llamacpp: { model: 'local', modalities: ['A'], key: 'test-llamacpp', media: 'audio' },
};
const providers = Object.keys(targets) as ProviderName[];

/** The fixed reply of the fake providers. */
const sampleText = 'A red light, then 蓝 🔵.';

/** Whether failed calls were paid: surely not, as counted, or perhaps, without a count. */
type Billed = 'no' | 'counted' | 'uncounted';

interface Expected {
  /** Of the calls that the request took; null is the one that brought the reply. */
  kinds: readonly (string | null)[];
  end: 'reply' | 'failed' | 'refused' | 'stopped';
  billed: Billed;
  /** Seconds before each further attempt; by default none, as the lanes' back-off is 0. */
  waits?: readonly unknown[];
  /** What the request's reply is, where it is not what the provider saw. */
  text?: string;
  /** Of the reply; null: the provider told none. */
  usage?: Partial<Attempt['usage']>;
  /** Times that the lane came down to fewer calls at once. */
  episodes?: number;
}

/** The fault once, then a good reply. */
const passes = (kind: string, more: Partial<Expected> = {}): Expected => ({
  kinds: [kind, null],
  end: 'reply',
  billed: 'no',
  ...more,
});
/** The fault at each of three attempts. */
const usedUp = (kind: string, billed: Billed, more: Partial<Expected> = {}): Expected => ({
  kinds: [kind, kind, kind],
  end: 'failed',
  billed,
  ...more,
});
/** One attempt. */
const final = (kind: string, billed: Billed): Expected => ({ kinds: [kind], end: 'failed', billed });
const refused = (kind: string, billed: Billed): Expected => ({ kinds: [kind], end: 'refused', billed });
const stops = (kind: string): Expected => ({ kinds: [kind], end: 'stopped', billed: 'no' });
const replies = (more: Partial<Expected> = {}): Expected => ({
  kinds: [null],
  end: 'reply',
  billed: 'no',
  text: sampleText,
  ...more,
});

type Table = Partial<Record<ProviderName | 'all', Expected>>;
interface Row {
  fault: string;
  /** More than one row of a fault. */
  as?: string;
  /** A provider's own entry goes before `all`; without `all` the fault is of those named only. */
  on: Table;
  /** Of the lane in the sweep file. */
  lane?: Record<string, unknown>;
  /** Real seconds of one second at the fake provider. */
  timeScale?: number;
}

const row = (fault: string, on: Table | Expected, more: Partial<Row> = {}): Row => ({
  fault,
  on: 'kinds' in on ? { all: on } : on,
  ...more,
});
/** Their streams carry running totals of tokens: a broken one is counted as far as it came. */
const runningTotals = (expected: Expected): Table => ({
  all: expected,
  stepfun: { ...expected, billed: 'counted' },
  gemini: { ...expected, billed: 'counted' },
});
const noUsage = { inputTokens: null, outputTokens: null };
const briefly = { lane: { deadlineSeconds: 2.5 } };
/** Half a second between the last byte and the end: a reset may overtake what was sent. */
const unhurried = { timeScale: 10 };
const split: Readonly<Record<ProviderName, Partial<Attempt['usage']>>> = {
  dashscope: { inputTokens: 1305, outputTokens: 9, audioInputTokens: 13, videoInputTokens: 1280 },
  ark: { inputTokens: 1305, outputTokens: 9, audioInputTokens: 25, videoInputTokens: null },
  stepfun: { inputTokens: 40, outputTokens: 12, audioInputTokens: null, videoInputTokens: null },
  openai: { inputTokens: 37, outputTokens: 9, audioInputTokens: 25, videoInputTokens: null },
  // 9 tokens of text and 4 of thoughts, which are billed alike.
  gemini: { inputTokens: 1305, outputTokens: 13, audioInputTokens: 32, videoInputTokens: 1261 },
  bedrock: { inputTokens: 1305, outputTokens: 9, audioInputTokens: null, videoInputTokens: null },
  vllm: { inputTokens: 1305, outputTokens: 9, audioInputTokens: null, videoInputTokens: null },
  sglang: { inputTokens: 1305, outputTokens: 9, audioInputTokens: null, videoInputTokens: null },
  llamacpp: { inputTokens: 1305, outputTokens: 9, audioInputTokens: null, videoInputTokens: null },
};
const sampleCounts = (names: readonly ProviderName[] = providers): Table =>
  Object.fromEntries(names.map((name) => [name, replies({ usage: split[name] })]));
const allBut = (...names: ProviderName[]) => providers.filter((name) => !names.includes(name));
const between = (least: number, most: number) =>
  expect.toSatisfy((value: number) => value >= least && value <= most, `from ${least} to ${most}`);

/** Without a stream, for all that take such calls. */
const inDocument = (fault: string, on: Table | Expected, lane: Record<string, unknown> = {}): Row => {
  const { dashscope: _, all, ...others } = 'kinds' in on ? { all: on } : on;
  const named = all === undefined ? {} : Object.fromEntries(allBut('dashscope').map((name) => [name, all]));
  return row(
    fault,
    { ...named, ...others },
    { as: `${fault} in a document`, timeScale: 1, lane: { settings: { stream: false }, ...lane } },
  );
};

const rows: readonly Row[] = [
  row('F-01', passes('http_429', { waits: [2] })),
  // A date has whole seconds only.
  row('F-02', passes('http_429', { waits: [between(2, 3)] })),
  // Waits are whole seconds: 1.5 is 2, never the 9 of the other header.
  row('F-03', passes('http_429', { waits: [2] })),
  // Full jitter: anything up to the back-off's base.
  row('F-04', passes('http_429', { waits: [between(0, 4)] }), {
    lane: { backoff: { baseSeconds: 4, maxSeconds: 4 } },
  }),
  // Attempts are calls: one is one, two are two.
  row('F-04', final('http_429', 'no'), { as: 'F-04 with one attempt', lane: { attempts: 1 } }),
  // A day is no wait: the lane stops, its work stays open for a later start.
  row('F-05', stops('http_429')),
  ...['F-06', 'F-06:negative'].map((fault) =>
    // Gemini's body names 2 s all the same.
    row(fault, { all: passes('http_429'), gemini: passes('http_429', { waits: [2] }) }),
  ),
  row('F-07', { openai: stops('http_429') }),
  row('F-08', { dashscope: passes('http_429', { waits: [60] }) }),
  ...['F-09', 'F-09:overloaded'].map((fault) =>
    row(fault, {
      dashscope: passes('http_429', { episodes: 1 }),
      ark: passes('http_429', { episodes: 1 }),
      bedrock: passes('http_429', { episodes: 1 }),
    }),
  ),
  row('F-10', {
    dashscope: stops('http_429'),
    ark: stops('http_429'),
    openai: stops('http_429'),
    gemini: stops('http_429'),
    stepfun: stops('http_402'),
    bedrock: stops('http_400'),
  }),
  row('F-11', { gemini: passes('http_429', { waits: [2] }) }),
  row('F-11:day', { gemini: stops('http_429') }),
  row('F-12', { openai: passes('http_429', { waits: [63] }) }),
  row('F-13', usedUp('http_500', 'no')),
  row('F-13', final('http_500', 'no'), { as: 'F-13 with one attempt', lane: { attempts: 1 } }),
  row('F-13', passes('http_500'), { as: 'F-13 once, with two attempts', lane: { attempts: 2 } }),
  ...[502, 503, 504, 529].map((status) => row(`F-13:${status}`, usedUp(`http_${status}`, 'no'))),
  row('F-14', usedUp('http_503', 'no')),
  row('F-15', {
    dashscope: refused('provider_refusal', 'no'),
    ark: refused('provider_refusal', 'no'),
    openai: refused('provider_refusal', 'no'),
    stepfun: refused('http_451', 'no'),
    // A 200 with the tokens of the prompt.
    gemini: refused('provider_refusal', 'counted'),
    bedrock: refused('provider_refusal', 'counted'),
  }),
  row('F-16', {
    dashscope: refused('provider_refusal', 'uncounted'),
    ark: refused('provider_refusal', 'uncounted'),
    openai: refused('provider_refusal', 'uncounted'),
    stepfun: refused('http_451', 'counted'),
    gemini: refused('finish_content_filter', 'counted'),
    bedrock: refused('finish_content_filter', 'counted'),
  }),
  row('F-17', refused('finish_content_filter', 'counted')),
  row('F-18', final('length_truncated', 'counted')),
  // The next attempt has the raised cap (return-protocol §4 rule 1).
  row('F-18', passes('length_truncated', { billed: 'counted' }), {
    as: 'F-18 once',
    lane: { retryMaxTokens: 256 },
  }),
  row(
    'F-18',
    { all: { kinds: ['length_truncated', 'length_truncated'], end: 'failed', billed: 'counted' } },
    { as: 'F-18 at both caps', lane: { retryMaxTokens: 256 } },
  ),
  row('F-19', final('length_truncated', 'counted')),
  // Only text is a reply, and an empty one is asked again (return-protocol §4).
  row('F-20', usedUp('empty_response', 'counted')),
  // Finish reasons other than stop are final (return-protocol §4 rule 2).
  row('F-21', final('finish_repetition_truncation', 'counted')),
  // The word with which SGLang gives a reply up; the others do not have it.
  row('F-21:abort', {
    all: usedUp('incomplete_stream', 'counted'),
    gemini: final('finish_abort', 'counted'),
    bedrock: final('finish_abort', 'counted'),
  }),
  row('F-22', runningTotals(usedUp('incomplete_stream', 'uncounted'))),
  row('F-23', replies({ usage: noUsage })),
  row('F-24', sampleCounts(allBut('stepfun', 'gemini'))),
  row('F-25', runningTotals(usedUp('invalid_response', 'uncounted'))),
  row('F-26', usedUp('invalid_response', 'uncounted')),
  row('F-27', runningTotals(usedUp('connection_reset', 'uncounted')), unhurried),
  row('F-28', usedUp('invalid_response', 'uncounted')),
  row('F-29', sampleCounts()),
  row('F-29:json', {
    ...sampleCounts(),
    // A document is no event of the binary stream that was asked for.
    bedrock: usedUp('invalid_response', 'uncounted'),
  }),
  row('F-30', {
    all: usedUp('http_500', 'uncounted'),
    bedrock: usedUp('invalid_response', 'uncounted'),
  }),
  row('F-30:limit', {
    all: usedUp('http_429', 'uncounted'),
    gemini: usedUp('http_429', 'uncounted', { waits: [2, 2] }),
    bedrock: usedUp('invalid_response', 'uncounted'),
  }),
  row('F-31', runningTotals(usedUp('http_500', 'uncounted'))),
  row('F-32', { llamacpp: usedUp('http_500', 'uncounted') }),
  row('F-33', usedUp('connection_reset', 'uncounted')),
  row('F-34', runningTotals(usedUp('connection_reset', 'uncounted')), unhurried),
  row('F-35', usedUp('timeout', 'uncounted'), briefly),
  row('F-36', runningTotals(usedUp('timeout', 'uncounted')), briefly),
  row('F-37', runningTotals(usedUp('timeout', 'uncounted')), briefly),
  row('F-38', {
    ...sampleCounts(),
    // Running totals: a quarter of the 22 characters, and no thoughts in this stream.
    gemini: replies({ usage: { ...split.gemini, outputTokens: 6 } }),
  }),
  // The caller is our own deadline; what breaks a call off otherwise is tested at the stage.
  row('F-39', runningTotals(usedUp('timeout', 'uncounted')), briefly),
  row('F-40', sampleCounts(allBut('bedrock'))),
  row('F-40:comments', sampleCounts(allBut('bedrock'))),
  row('F-41', sampleCounts(allBut('bedrock'))),
  row('F-42', sampleCounts()),
  row('F-43', sampleCounts()),
  // Asked again it would only be paid for again: final.
  row('F-44', runningTotals(final('invalid_response', 'uncounted'))),
  row('F-45', { dashscope: final('length_truncated', 'counted') }),
  row('F-46', final('http_307', 'no')),
  row('F-46:308', final('http_308', 'no')),
  row('F-47', sampleCounts(allBut('gemini', 'bedrock'))),
  row('F-48', replies({ usage: noUsage })),
  row('F-48:string', replies({ usage: noUsage })),
  row('F-48:missing', replies({ usage: noUsage })),
  // A stream without a choice has no finish reason; StepFun's has not even a usage then.
  row('F-49', {
    all: usedUp('incomplete_stream', 'counted'),
    stepfun: usedUp('incomplete_stream', 'uncounted'),
  }),
  row('F-51', final('http_413', 'no')),
  row('F-51:431', final('http_431', 'no')),
  row('F-52', { bedrock: passes('http_408') }),
  row('F-52:stream', { bedrock: passes('http_424', { billed: 'uncounted' }) }),
  row('F-52:throttled', { bedrock: passes('http_429', { billed: 'uncounted', episodes: 1 }) }),
  row('F-53', sampleCounts()),
  ...['F-54', 'F-54:absent'].map((fault) =>
    row(fault, {
      // The others tell no split: nothing can be seen there.
      all: replies({ text: 'I hear nothing.' }),
      dashscope: final('media_dropped', 'counted'),
      ark: final('media_dropped', 'counted'),
      openai: final('media_dropped', 'counted'),
      gemini: final('media_dropped', 'counted'),
    }),
  ),
  inDocument('F-01', passes('http_429', { waits: [2] })),
  inDocument('F-05', stops('http_429')),
  inDocument('F-15', {
    ark: refused('provider_refusal', 'no'),
    openai: refused('provider_refusal', 'no'),
    stepfun: refused('http_451', 'no'),
    gemini: refused('provider_refusal', 'counted'),
    bedrock: refused('provider_refusal', 'counted'),
  }),
  inDocument('F-17', refused('finish_content_filter', 'counted')),
  inDocument('F-18', final('length_truncated', 'counted')),
  inDocument('F-20', usedUp('empty_response', 'counted')),
  inDocument('F-22', usedUp('incomplete_stream', 'counted')),
  inDocument('F-23', replies({ usage: noUsage })),
  inDocument('F-25', usedUp('invalid_response', 'uncounted')),
  inDocument('F-26', usedUp('invalid_response', 'uncounted')),
  inDocument('F-27', usedUp('connection_reset', 'uncounted')),
  inDocument('F-28', usedUp('invalid_response', 'uncounted')),
  inDocument('F-30', {
    all: usedUp('http_500', 'uncounted'),
    // Its errors are told by status and header alone.
    bedrock: usedUp('invalid_response', 'uncounted'),
  }),
  inDocument('F-34', usedUp('connection_reset', 'uncounted')),
  inDocument('F-36', usedUp('timeout', 'uncounted'), { deadlineSeconds: 2.5 }),
  inDocument('F-42', sampleCounts()),
  inDocument('F-43', sampleCounts()),
  inDocument('F-47', sampleCounts(allBut('gemini', 'bedrock'))),
  inDocument('F-48', replies({ usage: noUsage })),
  inDocument('F-49', usedUp('invalid_response', 'counted')),
  row('http_400', final('http_400', 'no')),
  row('http_403', stops('http_403')),
  row('refusal', { all: refused('provider_refusal', 'counted') }),
  row('S-DS-OK', { dashscope: replies({ usage: split.dashscope }) }),
  row('S-DS-THINK', {
    dashscope: replies({ usage: { ...split.dashscope, outputTokens: 25, reasoningTokens: 16 } }),
  }),
  row('S-ARK-OK', { ark: replies({ usage: split.ark }) }),
  row('S-STEP-OK', { stepfun: replies({ usage: split.stepfun }) }),
  row('S-OAI-OK', { openai: replies({ usage: split.openai }) }),
  row('S-VLLM-OK', { vllm: replies({ usage: split.vllm }) }),
  row('S-SGL-OK', { sglang: replies({ usage: split.sglang }) }),
  row('S-LCP-OK', { llamacpp: replies({ usage: split.llamacpp }) }),
  row('S-GEM-OK', { gemini: replies({ usage: { ...split.gemini, reasoningTokens: 4 } }) }),
  row('S-GEM-BLOCK', { gemini: refused('provider_refusal', 'counted') }),
  row('S-OAI-REFUSAL', { openai: refused('provider_refusal', 'counted') }),
  row('S-BED-STREAM', { bedrock: replies({ usage: split.bedrock }) }),
  row('S-BED-OK', { bedrock: replies({ usage: split.bedrock }) }, { lane: { settings: { stream: false } } }),
];

/** What a judge says wrongly, and what nothing of ours asks for. */
const ofJudges = /^(F-50|S-OAI-RESP)/;

const unknownModel: Readonly<Record<ProviderName, string>> = {
  dashscope: 'qwen3.8-omni-nobody',
  ark: 'doubao-nobody-seed-2-0-lite-260428',
  stepfun: 'step-audio-nobody',
  openai: 'gpt-audio-nobody',
  gemini: 'gemini-nobody',
  bedrock: 'us.amazon.nova-2-omni-nobody',
  vllm: 'nobody',
  sglang: 'nobody',
  llamacpp: 'nobody',
};
const wrongKeyKind: Readonly<Record<ProviderName, string>> = {
  dashscope: 'http_401',
  ark: 'http_401',
  stepfun: 'http_401',
  openai: 'http_401',
  gemini: 'http_400',
  bedrock: 'http_403',
  vllm: 'http_401',
  sglang: 'http_401',
  llamacpp: 'http_401',
};
const unknownModelKind: Readonly<Record<ProviderName, string>> = {
  dashscope: 'http_404',
  ark: 'http_404',
  stepfun: 'http_400',
  openai: 'http_404',
  gemini: 'http_404',
  bedrock: 'http_404',
  vllm: 'http_404',
  sglang: 'http_404',
  llamacpp: 'http_404',
};

interface Case {
  id: string;
  expected: Expected;
  row: Row;
}
const casesOf = (provider: ProviderName): Case[] =>
  rows.flatMap((found) => {
    const expected = found.on[provider] ?? found.on.all;
    return expected === undefined || !served(provider).includes(found.fault)
      ? []
      : [{ id: found.as ?? found.fault, expected, row: found }];
  });
const served = (provider: ProviderName): string[] => [...outcomeNames(provider), 'http_400', 'http_403'];

const laneId = (id: string): string => id.replaceAll(/[^A-Za-z0-9-]/g, '-');
const keyVariable = (provider: ProviderName): string => `FAULT_VECTORS_${provider.toUpperCase()}_KEY`;

/** Everything that stands as the model's own words in what a provider received. */
const historyOf = (body: unknown): string[] => {
  interface Turn {
    role: string;
    content?: string | { text?: string }[];
    parts?: { text?: string }[];
  }
  const { messages, contents } = body as { messages?: Turn[]; contents?: Turn[] };
  return (messages ?? contents ?? [])
    .filter(({ role }) => role === 'assistant' || role === 'model')
    .map(({ content, parts }) => {
      const said = content ?? parts ?? [];
      return typeof said === 'string' ? said : said.map(({ text }) => text ?? '').join('');
    });
};

const attemptsOf = (lane: LaneEnd): readonly Attempt[] =>
  (
    lane.records.get(requestIds.first) ??
    lane.failures.get(requestIds.first) ??
    lane.attempts.get(requestIds.first)
  )?.attempts ?? [];

const seen = (media: string, turns: number): RegExp =>
  new RegExp(`^turns=${turns};media=${Array(turns).fill(media).join(',')};sha=[0-9a-f]{8}$`);

const expectReply = (record: RequestRecord | undefined, text: string | RegExp) => {
  if (typeof text === 'string') expect(record?.rawText).toBe(text);
  else expect(record?.rawText).toMatch(text);
};

let folder = '';
beforeAll(() => {
  folder = releaseWithRealClips();
  for (const provider of providers) vi.stubEnv(keyVariable(provider), targets[provider].key);
  vi.stubEnv('FAULT_VECTORS_WRONG_KEY', 'wrong-key-of-nobody');
}, 60_000);
afterAll(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true, force: true });
});

describe.each(providers)('%s', (provider) => {
  const { model, modalities, media } = targets[provider];
  const usualLane = { model, modalities };
  const cases = casesOf(provider);
  let lanes: ReadonlyMap<string, LaneEnd>;

  beforeAll(async () => {
    const ran = await runLanes(folder, provider, provider, [
      { id: 'calm', queue: [], ...usualLane, more: { apiKeyEnv: keyVariable(provider) } },
      { id: 'R-32', queue: [], ...usualLane, more: { apiKeyEnv: 'FAULT_VECTORS_WRONG_KEY' } },
      {
        id: 'R-33',
        queue: [],
        ...usualLane,
        model: unknownModel[provider],
        more: { apiKeyEnv: keyVariable(provider) },
      },
      ...cases.map(({ id, expected, row: { fault, lane, timeScale } }) => ({
        id: laneId(id),
        // Where one attempt is expected, a second one would meet the fault again.
        queue: [
          'ok',
          ...Array(
            id === 'F-53' || expected.end === 'reply'
              ? expected.kinds.filter((kind) => kind !== null).length || 1
              : 3,
          ).fill(fault),
        ],
        ...usualLane,
        timeScale,
        more: { apiKeyEnv: keyVariable(provider), ...lane },
      })),
    ]);
    lanes = ran.lanes;
  }, 240_000);

  it('has a row for every fault that the fake provider can make', () => {
    const written = new Set(rows.map(({ fault }) => fault));
    const vectors = outcomeNames(provider).filter((name) => /^[FS]-/.test(name));

    expect(vectors.filter((name) => !written.has(name) && !ofJudges.test(name))).toEqual([]);
  });

  it('completes the lane that meets none, while others fail and stop', () => {
    const calm = lanes.get('calm')!;

    expect(calm.view).toMatchObject({ outcome: 'done' });
    expect(calm.calls).toHaveLength(3);
    expectReply(calm.records.get(requestIds.last), seen(media, 2));
  });

  it.each(cases)('$id', ({ id, expected, row: { fault } }) => {
    const lane = lanes.get(laneId(id))!;
    const { kinds, end, billed, text = seen(media, 1), usage } = expected;
    const failed = kinds.filter((kind) => kind !== null);

    const attempts = attemptsOf(lane);
    expect(attempts.map(({ kind }) => kind)).toEqual(kinds);
    // The single turn, the attempts, and with a reply the last turn.
    expect(lane.calls.map(({ outcome }) => outcome)).toEqual([
      'ok',
      ...kinds.map((kind) => (kind === null && text instanceof RegExp ? 'ok' : fault)),
      ...(end === 'reply' ? ['ok'] : []),
    ]);
    const again = kinds.slice(0, -1).filter((kind) => kind !== 'length_truncated');
    expect(lane.waits).toEqual(expected.waits ?? again.map(() => 0));
    expectReply(lane.records.get(requestIds.single), seen(media, 1));

    if (end === 'reply') {
      const { rawText } = lane.records.get(requestIds.first)!;
      expectReply(lane.records.get(requestIds.first), text);
      expectReply(lane.records.get(requestIds.last), seen(media, 2));
      expect(lane.calls.flatMap(({ body }) => historyOf(body))).toEqual([rawText]);
      expect(lane.failures.size).toBe(0);
      expect(lane.view).toMatchObject({ outcome: 'done', reason: null });
    } else {
      expect([...lane.records.keys()]).toEqual([requestIds.single]);
      expect(lane.calls.flatMap(({ body }) => historyOf(body))).toEqual([]);
    }
    if (end === 'failed' || end === 'refused') {
      expect(lane.failures.get(requestIds.first)).toMatchObject({
        status: 'error',
        kind: kinds.at(-1),
        refusal: end === 'refused',
        blockedBy: null,
      });
      expect(lane.failures.get(requestIds.last)).toMatchObject({
        status: 'blocked',
        blockedBy: requestIds.first,
        attempts: [],
      });
      expect(lane.view).toMatchObject({ outcome: 'excluded', reason: 'blocked' });
    }
    if (end === 'stopped') {
      expect(lane.stopped).toMatchObject({ kind: kinds[0], message: expect.stringMatching(/fake|scripted/) });
      expect(lane.failures.size).toBe(0);
      expect(lane.view).toMatchObject({ outcome: 'open' });
    } else expect(lane.stopped).toBeNull();

    if (usage !== undefined) expect(attempts.at(-1)!.usage).toMatchObject(usage);
    for (const attempt of attempts.slice(0, failed.length)) {
      expect(attempt.usage.inputTokens === null).toBe(billed !== 'counted');
      expect(attempt.message === null).toBe(attempt.kind === 'length_truncated');
    }
    expect(lane.cost).toMatchObject({
      calls: String(lane.calls.length),
      retries: failed.length === 0 ? '' : `${failed[0]}:${failed.length}`,
      unmetered_calls: String(billed === 'uncounted' ? failed.length : 0),
    });
    const knowsCost = usage?.inputTokens !== null;
    expect(lane.cost.usd === '').toBe(!knowsCost);
    if (expected.episodes !== undefined) expect(lane.rate?.episodes).toBe(expected.episodes);
  });

  it('leaves a call that takes too long, so that the provider can stop', () => {
    for (const id of ['F-35', 'F-36', 'F-37', 'F-39']) {
      const { calls } = lanes.get(id)!;
      expect(
        calls.slice(1).map(({ callerGone }) => callerGone),
        id,
      ).toEqual([true, true, true]);
    }
  });

  it('follows no redirect', () => {
    for (const id of ['F-46', 'F-46-308']) {
      expect(lanes.get(id)!.calls.map((call) => call.provider)).toEqual([provider, provider]);
    }
  });

  it('tells two replies of the same words apart by the id that the provider gave them', () => {
    const ids = [requestIds.single, requestIds.first, requestIds.last].map(
      (requestId) => lanes.get('F-53')!.records.get(requestId)!.attempts[0]!.responseId,
    );

    expect(ids).not.toContain(null);
    if (provider !== 'bedrock') expect(new Set(ids).size).toBe(3);
  });

  it.each([
    // The fake takes any key in Bedrock's form: there it is `http_403` that stops.
    ...(provider === 'bedrock' ? [] : [['R-32', wrongKeyKind[provider]] as const]),
    ['R-33', unknownModelKind[provider]] as const,
  ])('%s stops the lane at its first call', (id, kind) => {
    const lane = lanes.get(id)!;

    expect(lane.calls).toHaveLength(1);
    expect(lane.records.size).toBe(0);
    expect(lane.failures.size).toBe(0);
    expect(lane.stopped).toMatchObject({ kind, message: expect.stringMatching(/./) });
    expect(lane.stopped!.message).not.toContain('wrong-key-of-nobody');
    expect(lane.view).toMatchObject({ outcome: 'open' });
  });
});

describe('a judge whose reply is F-50', () => {
  const judge = { reply: { judge: 'aliases' as const } };
  const judged = async (fault: string | null) => {
    const sweep = await sweepUnderTest({
      tasks: ['short-preserve'],
      interfaces: ['openqa'],
      models: {
        lane: { reply: { text: 'It might be a trombone.' } },
        judge: { ...judge, faults: fault === null ? [] : [{ kind: fault, firstAttempts: 1 }] },
      },
      lanes: [{ id: 'lane' }],
      judge: {},
    });
    const { code } = await sweep.run();
    return {
      code,
      verdicts: sweep.scores('lane').map((score) => [score.score_status, score.content_correct]),
      judging: sweep.summary().judging,
      cost: sweep.costs().find(({ phase }) => phase === 'judge'),
      requests: sweep.mock.stats().byModel.judge!.requests,
    };
  };
  const scored = [
    ['scored', false],
    ['scored', false],
  ];

  it.each<[fault: string | null, requests: number, retries: string]>([
    [null, 1, ''],
    // The fence is taken off.
    ['F-50', 1, ''],
    // The same value twice says one thing.
    ['F-50:two', 1, ''],
    // Anything less clear is asked again, and no verdict is guessed.
    ['F-50:comma', 2, 'judge_unparsed:1'],
    ['F-50:extra', 2, 'judge_item_invalid:1'],
    ['F-50:null', 2, 'judge_unparsed:1'],
  ])('%s is asked %i times', async (fault, requests, retries) => {
    const ended = await judged(fault);

    expect(ended).toMatchObject({
      code: 0,
      requests,
      verdicts: scored,
      judging: { pending: 0 },
      cost: { calls: String(requests), retries },
    });
  });

  it('F-50:cut, by its cap, has no verdict: a second reply under the same cap would be cut as well', async () => {
    const ended = await judged('F-50:cut');

    expect(ended).toMatchObject({
      code: 2,
      requests: 1,
      verdicts: [
        ['review_pending', null],
        ['review_pending', null],
      ],
      cost: { calls: '1', retries: 'length_truncated:1' },
    });
  });
});
