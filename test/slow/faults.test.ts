import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import type { ScenarioInput } from '../../mock/scenario.ts';
import { packLine } from '../../shared/adapters/local/pack-line.ts';
import { packLines, reviewsIn } from '../support/packed-records.ts';
import { filesBelow, resultFiles } from '../support/result-files.ts';
import {
  historiesSent,
  type SentBody,
  type SweepUnderTest,
  sweepUnderTest,
  timesAsked,
} from '../support/sweep-under-test.ts';

type Models = ScenarioInput['models'];
type Fault = NonNullable<Models[string]['faults']>[number];

const price = { inputPerMTok: 1, outputPerMTok: 2 };
const tokens = { input: 100, output: 10 };
/** 100 · 1 + 10 · 2 millionths of a dollar. */
const callCostMicroUsd = 120;
const usd = (microUsd: number) => String(microUsd / 1e6);

/** The single turn is answered rightly, everything else with words that only a judge can refuse. */
const nativeReply = 'Somebody walks past a red door.';
const finalReply = 'It might be a trombone.';
const scripted = (release: SweepUnderTest['release']) => [
  ...release.rows.answers
    .filter((answer) => answer.condition === 'C')
    .map((answer) => {
      const input = release.rows.inputs.find((row) => row.request_id === answer.request_id)!;
      const text = input.messages.flatMap((message) =>
        message.role === 'user'
          ? message.content.flatMap((part) => (part.type === 'text' ? [part.text] : []))
          : [],
      );
      return { lastText: text.join('\n'), reply: answer.gold };
    }),
  ...['Answer briefly.', 'Answer with only the option letter.'].map((closing) => ({
    lastText: `Answer the first question again for this clip. ${closing}`,
    reply: finalReply,
  })),
];
const scriptedReply = { table: 'replies.jsonl', fallback: nativeReply };
const judge: Models[string] = { reply: { judge: 'aliases' }, tokens };

/** Kinds as return-protocol §4 names them, and whether the failed call came with token counts. */
const passing: { fault: Omit<Fault, 'firstAttempts'>; kind: string; hasUsage: boolean; rejected: boolean }[] =
  [
    { fault: { kind: 'http_500' }, kind: 'http_500', hasUsage: false, rejected: true },
    { fault: { kind: 'http_503' }, kind: 'http_503', hasUsage: false, rejected: true },
    { fault: { kind: 'http_429' }, kind: 'http_429', hasUsage: false, rejected: true },
    { fault: { kind: 'http_429', retryAfterSeconds: 1 }, kind: 'http_429', hasUsage: false, rejected: true },
    { fault: { kind: 'reset' }, kind: 'connection_reset', hasUsage: false, rejected: false },
    { fault: { kind: 'cut_stream' }, kind: 'connection_reset', hasUsage: false, rejected: false },
    { fault: { kind: 'no_finish_reason' }, kind: 'incomplete_stream', hasUsage: true, rejected: false },
    { fault: { kind: 'bad_json' }, kind: 'invalid_response', hasUsage: false, rejected: false },
    { fault: { kind: 'html_200' }, kind: 'invalid_response', hasUsage: false, rejected: false },
    { fault: { kind: 'error_200' }, kind: 'http_500', hasUsage: false, rejected: false },
    { fault: { kind: 'empty' }, kind: 'empty_response', hasUsage: true, rejected: false },
    { fault: { kind: 'hang' }, kind: 'timeout', hasUsage: false, rejected: false },
  ];
const ways = [true, false].flatMap((stream) =>
  passing.map((row) => ({
    ...row,
    stream,
    lane: [row.fault.kind, row.fault.retryAfterSeconds ?? 'plain', stream ? 'stream' : 'whole'].join('-'),
  })),
);
const faultyModels = (fault: Omit<Fault, 'kind'>): Models => ({
  judge,
  calm: { reply: scriptedReply, tokens },
  ...Object.fromEntries(
    ways.map(({ lane, fault: found }) => [
      lane,
      { reply: scriptedReply, tokens, faults: [{ ...found, ...fault }] },
    ]),
  ),
});
const faultyLanes = [
  { id: 'calm', price },
  ...ways.map(({ lane, stream, fault }) => ({
    id: lane,
    price,
    settings: { stream },
    attempts: 3,
    deadlineSeconds: fault.kind === 'hang' ? 1 : 60,
  })),
];

/** Waits until something can be seen from outside the process under test. */
const until = (isReached: () => boolean) => vi.waitUntil(isReached, { interval: 2, timeout: 60_000 });

/** The exit code, and not a word where all is well, nor an error where something is merely incomplete. */
const expectEnd = ({ code, stderr }: { code: number | null; stderr: string }, expected: number) => {
  expect({ code, stderr }).toEqual({
    code: expected,
    stderr: expected === 0 ? '' : expect.not.stringMatching(/error:|fault of turnsweep/),
  });
};

/** No text of a failed call may stand where a model's words belong, in a record or in a history that was sent. */
const expectOnlyReplies = (sweep: SweepUnderTest, lanes: readonly string[], replies: readonly string[]) => {
  const evaluated = sweep.bodies.filter(({ model }) => !model.startsWith('judge'));
  expect(evaluated.length).toBeGreaterThan(0);
  for (const text of historiesSent(evaluated)) expect(replies).toContain(text);
  for (const lane of lanes) {
    for (const { rawText } of sweep.records(lane)) expect(replies).toContain(rawText);
  }
};
const repliesOf = ({ release }: SweepUnderTest) => [
  nativeReply,
  finalReply,
  ...release.rows.answers.map((answer) => answer.gold),
];

describe('passing faults', () => {
  it('are asked again until the reply comes, and change nothing but the attempts', async () => {
    const sweep = await sweepUnderTest({
      tasks: ['short-preserve'],
      interfaces: ['openqa'],
      models: faultyModels({ firstAttempts: 2 }),
      lanes: faultyLanes,
      judge: { price },
      replies: scripted,
    });

    const ended = await sweep.run();

    expectEnd(ended, 0);
    const calm = sweep.scores('calm');
    expect(calm.map((row) => row.content_correct).sort()).toEqual([false, true]);
    const costs = sweep.costs();
    for (const { lane, kind, hasUsage, rejected } of ways) {
      expect(sweep.scores(lane), lane).toEqual(calm);
      expect(sweep.views(lane)).toMatchObject([{ outcome: 'done', reason: null }]);
      expect(timesAsked(sweep, lane), lane).toEqual([3, 3, 3]);
      expect(sweep.failures(lane)).toEqual([]);
      for (const { attempts, finishReason } of sweep.records(lane)) {
        expect(attempts.map((attempt) => attempt.kind)).toEqual([kind, kind, null]);
        expect(attempts.map((attempt) => attempt.attempt)).toEqual([1, 2, 3]);
        expect(finishReason).toBe('stop');
      }
      expect(costs.find((row) => row.lane === lane)).toMatchObject({
        calls: '9',
        retries: `${kind}:6`,
        input_tokens: hasUsage ? '900' : '300',
        usd: usd((hasUsage ? 9 : 3) * callCostMicroUsd),
        unmetered_calls: hasUsage || rejected ? '0' : '6',
      });
    }
    expect(costs.find((row) => row.lane === 'judge')).toMatchObject({
      calls: '1',
      usd: usd(callCostMicroUsd),
    });
    expectOnlyReplies(
      sweep,
      faultyLanes.map(({ id }) => id),
      repliesOf(sweep),
    );
  });

  it('exclude the view once the attempts are used up; what needs the reply is blocked, the rest is made', async () => {
    const sweep = await sweepUnderTest({
      tasks: ['long-retrieve'],
      interfaces: ['openqa'],
      models: faultyModels({ firstAttempts: 99, match: { lastText: 'What happens in clip 2?' } }),
      lanes: faultyLanes,
      judge: { price },
      replies: scripted,
    });

    const ended = await sweep.run();

    expectEnd(ended, 2);
    const [control, first, second, third, fourth, final] = [
      'C::openqa',
      'long::N0',
      'long::N1',
      'long::N2',
      'long::N3',
      'long::retrieve::openqa',
    ].map((end) => `root-001::evidence::${end}`);
    for (const { lane, kind } of ways) {
      expect(
        sweep
          .records(lane)
          .map((record) => record.requestId)
          .sort(),
        lane,
      ).toEqual([control, first]);
      const failures = new Map(sweep.failures(lane).map((failure) => [failure.requestId, failure]));
      expect([...failures.keys()].sort()).toEqual([second, third, fourth, final]);
      expect(failures.get(second!)).toMatchObject({ status: 'error', kind, refusal: false, blockedBy: null });
      expect(failures.get(second!)!.attempts.map((attempt) => attempt.kind)).toEqual([kind, kind, kind]);
      for (const blocked of [third, fourth, final]) {
        expect(failures.get(blocked!)).toMatchObject({ status: 'blocked', blockedBy: second, attempts: [] });
      }
      // Control, first native turn, three attempts at the second: nothing else was sent.
      expect(timesAsked(sweep, lane), lane).toEqual([1, 1, 3]);
      expect(sweep.views(lane)).toMatchObject([{ outcome: 'excluded', reason: 'blocked', requestId: final }]);
      expect(sweep.excluded(lane)).toMatchObject([
        { reason: 'H0: blocked', control_reason: null, history_request_id: final, history_reason: 'blocked' },
      ]);
      expect(sweep.scores(lane).map((row) => [row.score_status, row.content_correct])).toEqual([
        ['scored', true],
        ['inference_failed', null],
      ]);
    }
    expect(sweep.views('calm')).toMatchObject([{ outcome: 'done' }]);
    expectOnlyReplies(
      sweep,
      faultyLanes.map(({ id }) => id),
      repliesOf(sweep),
    );
  });
});

describe('a reply that is cut at its token cap', () => {
  it('is asked once more at the raised cap, and never a third time', async () => {
    const cut: Fault = { kind: 'length', firstAttempts: 99, match: { lastText: 'the first question again' } };
    const sweep = await sweepUnderTest({
      tasks: ['short-preserve'],
      interfaces: ['openqa'],
      models: {
        judge,
        enough: { reply: scriptedReply, faults: [{ ...cut, succeedAtMaxTokens: 256 }] },
        'never-enough': { reply: scriptedReply, faults: [cut] },
        'no-raise': { reply: scriptedReply, faults: [cut] },
      },
      lanes: [
        { id: 'enough', retryMaxTokens: 256 },
        // The raised cap is no attempt more that the user would have to allow.
        { id: 'never-enough', retryMaxTokens: 256, attempts: 1 },
        { id: 'no-raise' },
      ],
      judge: {},
      replies: scripted,
    });

    const ended = await sweep.run();
    const again = await sweep.run();

    expectEnd(ended, 2);
    expect(again.code).toBe(2);
    const final = 'root-001::task::short::preserve::openqa::H0';
    const record = sweep.records('enough').find(({ requestId }) => requestId === final)!;
    expect(record).toMatchObject({ rawText: finalReply, decodeMaxTokens: 256 });
    expect(record.attempts.map(({ kind, maxTokens }) => [kind, maxTokens])).toEqual([
      ['length_truncated', 64],
      [null, 256],
    ]);
    expect(
      sweep
        .records('enough')
        .map(({ decodeMaxTokens }) => decodeMaxTokens)
        .sort(),
    ).toEqual([256, 64, 64]);
    expect(timesAsked(sweep, 'enough')).toEqual([1, 1, 2]);
    for (const [lane, caps] of [['never-enough', [64, 256]] as const, ['no-raise', [64]] as const]) {
      const [failure] = sweep.failures(lane);
      expect(failure).toMatchObject({ requestId: final, kind: 'length_truncated' });
      expect(failure!.attempts.map(({ maxTokens }) => maxTokens)).toEqual(caps);
      expect(timesAsked(sweep, lane)).toEqual([1, 1, caps.length]);
      expect(sweep.views(lane)).toMatchObject([{ outcome: 'excluded', reason: 'length_truncated' }]);
      expect(sweep.excluded(lane)).toMatchObject([{ reason: 'H0: length_truncated' }]);
    }
    expectOnlyReplies(sweep, ['enough', 'never-enough', 'no-raise'], repliesOf(sweep));
  });
});

describe('final failures', () => {
  const match = { lastText: 'the first question again' };
  const rows: { lane: string; fault: Fault; kind: string; refusal: boolean }[] = [
    {
      lane: 'bad-request',
      fault: { kind: 'http_400', firstAttempts: 1, match },
      kind: 'http_400',
      refusal: false,
    },
    {
      lane: 'policy',
      fault: { kind: 'http_403', code: 'content_policy_violation', firstAttempts: 1, match },
      kind: 'provider_refusal',
      refusal: true,
    },
    {
      lane: 'filtered',
      fault: { kind: 'content_filter', firstAttempts: 1, match },
      kind: 'finish_content_filter',
      refusal: true,
    },
    {
      lane: 'refused',
      fault: { kind: 'refusal', firstAttempts: 1, match },
      kind: 'provider_refusal',
      refusal: true,
    },
    { lane: 'legal', fault: { kind: 'http_451', firstAttempts: 1, match }, kind: 'http_451', refusal: true },
  ];

  it('are asked once; only --retry-errors asks errors again, nothing asks refusals again', async () => {
    const sweep = await sweepUnderTest({
      tasks: ['short-preserve'],
      interfaces: ['openqa'],
      models: {
        judge,
        ...Object.fromEntries(
          rows.map(({ lane, fault }) => [lane, { reply: scriptedReply, tokens, faults: [fault] }]),
        ),
      },
      lanes: rows.map(({ lane }) => ({ id: lane, price })),
      judge: {},
      replies: scripted,
    });

    const first = await sweep.run();
    expectEnd(first, 2);
    for (const { lane, kind, refusal } of rows) {
      expect(timesAsked(sweep, lane), lane).toEqual([1, 1, 1]);
      expect(sweep.failures(lane)).toMatchObject([{ kind, refusal, status: 'error' }]);
      expect(sweep.views(lane)).toMatchObject([{ outcome: 'excluded', reason: kind }]);
    }

    const again = await sweep.run();
    expect(again.code).toBe(2);
    for (const { lane } of rows) expect(timesAsked(sweep, lane), lane).toEqual([1, 1, 1]);

    const retried = await sweep.run('--retry-errors');
    expect(retried.code).toBe(2);
    const costs = sweep.costs();
    for (const { lane, kind, refusal } of rows) {
      expect(timesAsked(sweep, lane), lane).toEqual(refusal ? [1, 1, 1] : [1, 1, 2]);
      expect(sweep.views(lane)).toMatchObject([{ outcome: refusal ? 'excluded' : 'done' }]);
      // What the failed call was, and what it cost, stays known.
      expect(costs.find((row) => row.lane === lane)).toMatchObject({
        calls: refusal ? '3' : '4',
        retries: `${kind}:1`,
      });
    }
    expectOnlyReplies(
      sweep,
      rows.map(({ lane }) => lane),
      repliesOf(sweep),
    );
  });
});

describe('a lane that cannot go on', () => {
  const causes = [
    { lane: 'bad-key', fault: { kind: 'http_401' }, kind: 'http_401' },
    { lane: 'no-money', fault: { kind: 'http_402' }, kind: 'http_402' },
    { lane: 'no-model', fault: { kind: 'http_404' }, kind: 'http_404' },
    { lane: 'daily-quota', fault: { kind: 'http_429', retryAfterSeconds: 86_400 }, kind: 'http_429' },
  ];
  const models = (broken: boolean): Models => ({
    judge,
    good: { reply: scriptedReply, tokens },
    ...Object.fromEntries(
      causes.map(({ lane, fault }) => [
        lane,
        {
          reply: scriptedReply,
          tokens,
          faults: broken
            ? [{ ...fault, firstAttempts: 99, match: { lastText: 'What happens in clip 2?' } }]
            : [],
        },
      ]),
    ),
  });

  it('stops without a failure on record; the other lanes complete, and it does once it is mended', async () => {
    const sweep = await sweepUnderTest({
      models: models(true),
      lanes: ['good', ...causes.map(({ lane }) => lane)].map((id) => ({ id, price })),
      judge: { price },
      replies: scripted,
    });
    const requests = sweep.requestIds.length;
    expect(requests).toBe(47);

    const first = await sweep.run();

    expect(first.code).toBe(2);
    expect(sweep.views('good').map(({ outcome }) => outcome)).toEqual(Array(16).fill('done'));
    const refused = new Map<string, number>();
    for (const { lane, kind } of causes) {
      const { requests: asked, replies } = sweep.mock.stats().byModel[lane]!;
      refused.set(lane, asked - replies);
      expect(asked - replies, lane).toBeGreaterThan(0);
      expect(asked - replies, lane).toBeLessThanOrEqual(3);
      expect(first.stderr).toMatch(new RegExp(`^lane ${lane} .*stopped: ${kind}`, 'm'));
      expect(sweep.failures(lane)).toEqual([]);
      expect(sweep.records(lane).length).toBe(replies);
      const outcomes = new Set(sweep.views(lane).map(({ outcome }) => outcome));
      expect(outcomes.has('open') && !outcomes.has('excluded')).toBe(true);
      expect(sweep.costs().find((row) => row.lane === lane)).toMatchObject({
        calls: String(asked),
        retries: `${kind}:${asked - replies}`,
        usd: usd(replies * callCostMicroUsd),
      });
    }

    sweep.setModels(models(false));
    const second = await sweep.run();

    expectEnd(second, 0);
    const { byModel } = sweep.mock.stats();
    expect(byModel.good).toMatchObject({ requests, replies: requests });
    for (const { lane } of causes) {
      expect(byModel[lane]).toMatchObject({ requests: requests + refused.get(lane)!, replies: requests });
      expect(sweep.scores(lane)).toEqual(sweep.scores('good'));
      expect(sweep.costs().find((row) => row.lane === lane)).toMatchObject({
        calls: String(requests + refused.get(lane)!),
        usd: usd(requests * callCostMicroUsd),
      });
    }
    expectOnlyReplies(sweep, ['good', ...causes.map(({ lane }) => lane)], repliesOf(sweep));
  });
});

describe('a budget', () => {
  const dear = { input: 4000, output: 10 };
  const dearCallMicroUsd = 4020;

  it('ends the run before it is overspent; with a larger one the rest is made, and the cost is exact', async () => {
    const sweep = await sweepUnderTest({
      models: { judge, lane: { reply: scriptedReply, tokens: dear, latencyMs: 20 } },
      lanes: [{ id: 'lane', price }],
      judge: { price },
      budgetUsd: 0.1,
      replies: scripted,
    });

    const first = await sweep.run();

    expectEnd(first, 3);
    const made = sweep.records('lane').length;
    expect(made).toBeGreaterThan(0);
    expect(made * dearCallMicroUsd).toBeLessThanOrEqual(100_000);
    expect(sweep.failures('lane')).toEqual([]);
    expect(sweep.summary().counts.calls).toBe(sweep.mock.stats().requests);

    sweep.change({ budgetUsd: 1 });
    const second = await sweep.run();

    expectEnd(second, 0);
    const { byModel } = sweep.mock.stats();
    expect(byModel.lane).toMatchObject({ requests: 47, replies: 47 });
    const total = 47 * dearCallMicroUsd + byModel.judge!.requests * callCostMicroUsd;
    expect(sweep.summary().counts.costMicroUsd).toBe(total);
    expectOnlyReplies(sweep, ['lane'], repliesOf(sweep));
  });

  it('that is enough for the calls is not spent by what calls in flight have reserved', async () => {
    const sweep = await sweepUnderTest({
      models: { judge, lane: { reply: scriptedReply, tokens, latencyMs: 20 } },
      lanes: [{ id: 'lane', price, maxInFlight: 8 }],
      judge: { price },
      // A long request reserves up to 41,000 millionths, and eight are in flight; all calls cost 5,640.
      budgetUsd: 0.06,
      replies: scripted,
    });

    const ended = await sweep.run();

    expectEnd(ended, 0);
    expect(sweep.mock.stats().byModel.lane).toMatchObject({ requests: 47, replies: 47 });
  });

  it('holds for the judge too: reviews stay pending until there is money', async () => {
    const sweep = await sweepUnderTest({
      models: {
        judge: { ...judge, tokens: { input: 900_000, output: 10 } },
        lane: { reply: scriptedReply, tokens },
      },
      lanes: [{ id: 'lane', price }],
      judge: { price, itemsPerRequest: 1, maxInFlight: 1 },
      budgetUsd: 0.06,
      replies: scripted,
    });

    const first = await sweep.run();

    expectEnd(first, 3);
    const { judge: asked, lane } = sweep.mock.stats().byModel;
    // The first call of the judge passes the budget, which could not be known; no second one is made.
    expect([lane!.requests, asked!.requests]).toEqual([47, 1]);
    expect(sweep.summary().judging.pending).toBeGreaterThan(0);

    sweep.change({ budgetUsd: 100 });
    const second = await sweep.run();

    expectEnd(second, 0);
    expect(sweep.mock.stats().byModel.lane!.requests).toBe(47);
  });
});

describe('a judge that fails', () => {
  const rows: { fault: Fault; kind: string; calls: number }[] = [
    { fault: { kind: 'rubbish', firstAttempts: 99 }, kind: 'judge_unparsed', calls: 3 },
    { fault: { kind: 'missing_id', firstAttempts: 99 }, kind: 'judge_ids_differ', calls: 3 },
    { fault: { kind: 'http_500', firstAttempts: 99 }, kind: 'http_500', calls: 3 },
    // A second reply under the same cap would be cut as well.
    { fault: { kind: 'length', firstAttempts: 99 }, kind: 'length_truncated', calls: 1 },
    { fault: { kind: 'http_401', firstAttempts: 99 }, kind: 'http_401', calls: 1 },
  ];

  it.each(rows)(
    'with $kind leaves reviews pending; judged later, no evaluated model is asked again',
    async (row) => {
      const sweep = await sweepUnderTest({
        tasks: ['short-preserve'],
        models: { lane: { reply: scriptedReply }, judge: { ...judge, faults: [row.fault] } },
        lanes: [{ id: 'lane' }],
        judge: { attempts: 3, maxInFlight: 1 },
        replies: scripted,
      });

      const first = await sweep.run();

      expectEnd(first, 2);
      expect(first.stderr.includes('the judge stopped: http_401')).toBe(row.kind === 'http_401');
      // One view for each interface: the replies to both H0 requests are for the judge, in one chunk.
      expect(sweep.summary().judging).toMatchObject({ items: 2, judged: 0, pending: 2 });
      expect(sweep.excluded('lane').map(({ reason }) => reason)).toEqual([
        'H0: review_pending',
        'H0: review_pending',
      ]);
      expect(sweep.scores('lane').filter((score) => score.score_status === 'review_pending')).toHaveLength(2);
      expect(sweep.mock.stats().byModel.judge!.requests).toBe(row.calls);
      expect(sweep.costs().find(({ phase }) => phase === 'judge')).toMatchObject({
        calls: String(row.calls),
        retries: `${row.kind}:${row.calls}`,
      });

      const evaluated = sweep.mock.stats().byModel.lane;
      sweep.setModels({ judge });
      const second = await sweep.judge();

      expectEnd(second, 0);
      expect(sweep.mock.stats().byModel.lane).toEqual(evaluated);
      expect(sweep.mock.stats().byModel.judge!.requests).toBe(row.calls + 1);
      expect(sweep.summary().judging).toMatchObject({ items: 2, judged: 2, pending: 0 });
    },
  );

  it('only once, or with a fenced reply, is a judge all the same', async () => {
    const sweep = await sweepUnderTest({
      tasks: ['short-preserve'],
      models: {
        lane: { reply: scriptedReply },
        judge: {
          ...judge,
          faults: [
            { kind: 'missing_id', firstAttempts: 1 },
            { kind: 'fenced', firstAttempts: 2 },
          ],
        },
      },
      lanes: [{ id: 'lane' }],
      judge: {},
      replies: scripted,
    });

    const ended = await sweep.run();

    expectEnd(ended, 0);
    expect(sweep.mock.stats().byModel.judge!.requests).toBe(2);
    expect(sweep.summary().judging).toMatchObject({ judged: 2, pending: 0 });
  });
});

describe('judging', () => {
  const shown = (body: SentBody): { id: string }[] =>
    JSON.parse(body.messages.at(-1)!.content as string).items;
  const content = ({ id: _, ...item }: { id: string }) => JSON.stringify(item);

  it('shows distinct items, once for all lanes, at most 20 at a time, and nothing that tells whose they are', async () => {
    const sweep = await sweepUnderTest({
      roots: 6,
      models: {
        'wire-osprey': { reply: { echo: true } },
        'wire-heron': { reply: { text: finalReply } },
        judge,
      },
      lanes: [
        { id: 'lane-kestrel', model: 'wire-osprey' },
        { id: 'lane-merlin', model: 'wire-osprey' },
        { id: 'lane-hobby', model: 'wire-heron' },
      ],
      judge: {},
    });

    const ended = await sweep.run();

    expectEnd(ended, 0);
    const chunks = sweep.bodies.filter(({ model }) => model === 'judge');
    const items = chunks.flatMap(shown);
    const open = ['lane-kestrel', 'lane-merlin', 'lane-hobby']
      .flatMap((lane) => sweep.scores(lane))
      .filter((row) => row.rule_correct === false);
    const identities = new Set(
      open.map((row) =>
        JSON.stringify([
          row.scoring_question,
          row.gold,
          row.aliases,
          row.choices,
          row.interface,
          row.raw_text,
        ]),
      ),
    );
    expect(open.length).toBeGreaterThan(2 * identities.size);
    expect(identities.size).toBeGreaterThan(20);
    expect(items).toHaveLength(identities.size);
    expect(new Set(items.map(content)).size).toBe(items.length);
    expect(chunks.map((body) => shown(body).length).sort((a, b) => b - a)).toEqual([
      ...Array(Math.floor(items.length / 20)).fill(20),
      ...(items.length % 20 === 0 ? [] : [items.length % 20]),
    ]);
    const { rows, mediaPaths } = sweep.release;
    const telling = new Set([
      ...['lane-kestrel', 'lane-merlin', 'lane-hobby', 'wire-osprey', 'wire-heron', 'faulty'],
      ...rows.inputs.flatMap((row) => [row.request_id, `"${row.condition}"`, `"${row.operation}"`]),
      ...rows.tasks.flatMap((row) => [
        row.task_id,
        row.pair_id,
        row.source_root_id,
        `"${row.history_horizon}"`,
      ]),
      ...rows.tasks.flatMap((row) => Object.values(row.views).map((view) => view.view_id)),
      ...mediaPaths,
      sweep.release.directory,
    ]);
    for (const body of chunks) {
      const text = JSON.stringify(body.messages);
      for (const word of telling) expect(text).not.toContain(word);
    }
  });

  it('by another model gives verdicts of its own, keeps the old ones and asks no evaluated model', async () => {
    const sweep = await sweepUnderTest({
      tasks: ['short-preserve'],
      models: { lane: { reply: scriptedReply }, judge, 'judge-two': judge },
      lanes: [{ id: 'lane' }],
      judge: {},
      replies: scripted,
    });
    expect((await sweep.run()).code).toBe(0);
    const before = reviewsIn(sweep.out);
    expect(Object.keys(before)).toHaveLength(2);
    const evaluated = sweep.mock.stats().byModel.lane;

    sweep.change({ judge: { model: 'judge-two' } });
    const ended = await sweep.run();

    expectEnd(ended, 0);
    const after = reviewsIn(sweep.out);
    expect(after).toMatchObject(before);
    expect(Object.keys(after)).toHaveLength(4);
    expect(sweep.mock.stats().byModel).toMatchObject({ lane: evaluated, judge: { requests: 1 } });
    expect(sweep.mock.stats().byModel['judge-two']).toMatchObject({ requests: 1 });
    expect(sweep.summary().judging.judge).toMatch(/^judge-two-/);
  });

  it('asks again for reviews that are gone, and for those alone', async () => {
    const sweep = await sweepUnderTest({
      tasks: ['short-preserve'],
      models: { lane: { reply: scriptedReply }, judge },
      lanes: [{ id: 'lane' }],
      judge: {},
      replies: scripted,
    });
    expect((await sweep.run()).code).toBe(0);
    const before = reviewsIn(sweep.out);
    expect(Object.keys(before)).toHaveLength(2);
    const pack = path.join(sweep.out, 'reviews', readdirSync(path.join(sweep.out, 'reviews'))[0]!);
    const [, ...kept] = readFileSync(pack, 'utf8').split('\n');
    writeFileSync(pack, kept.join('\n'));
    expect(Object.keys(reviewsIn(sweep.out))).toHaveLength(1);

    const { code } = await sweep.judge();
    const again = await sweep.judge();

    expect([code, again.code]).toEqual([0, 0]);
    expect(reviewsIn(sweep.out)).toEqual(before);
    const chunks = sweep.bodies.filter(({ model }) => model === 'judge').map((body) => shown(body).length);
    expect(chunks).toEqual([2, 1]);
  });
});

describe('a run that is interrupted', () => {
  const models = (latencyMs: number, judgeLatencyMs = 0): Models => ({
    lane: { reply: scriptedReply, tokens, latencyMs },
    judge: { ...judge, latencyMs: judgeLatencyMs },
  });
  const slowSweep = (latencyMs: number, judgeLatencyMs = 0) =>
    sweepUnderTest({
      roots: 2,
      models: models(latencyMs, judgeLatencyMs),
      lanes: [{ id: 'lane', price }],
      judge: { price, itemsPerRequest: 3 },
      replies: scripted,
    });

  it.each(['SIGTERM', 'SIGINT'] as const)(
    'by %s records the calls in flight and asks nothing twice afterwards',
    async (signal) => {
      const sweep = await slowSweep(250);
      const running = sweep.start();
      await until(() => sweep.mock.stats().requests >= 7);
      running.kill(signal);

      const ended = await running.ended;

      expect({ code: ended.code, signal: ended.signal }).toEqual({ code: 130, signal: null });
      const { requests, replies } = sweep.mock.stats();
      expect(replies).toBe(requests);
      expect(sweep.records('lane')).toHaveLength(requests);
      expect(requests).toBeLessThan(sweep.requestIds.length);

      sweep.setModels(models(0));
      const resumed = await sweep.run();
      expectEnd(resumed, 0);
      expect(sweep.mock.stats().byModel.lane).toMatchObject({
        requests: sweep.requestIds.length,
        replies: sweep.requestIds.length,
      });
    },
  );

  it('while it waits to try again ends at once and goes on with the attempts that are left', async () => {
    const waiting: Fault = { kind: 'http_503', retryAfterSeconds: 200, firstAttempts: 1 };
    const sweep = await sweepUnderTest({
      tasks: ['short-preserve'],
      interfaces: ['openqa'],
      models: { lane: { reply: scriptedReply, faults: [waiting] }, judge },
      lanes: [{ id: 'lane', attempts: 2 }],
      judge: {},
      replies: scripted,
    });
    const running = sweep.start();
    await until(() => sweep.attempts('lane').length === 1);
    running.kill('SIGTERM');
    expect((await running.ended).code).toBe(130);
    expect(sweep.attempts('lane')).toMatchObject([{ attempts: [{ kind: 'http_503' }] }]);

    sweep.setModels({ lane: { reply: scriptedReply }, judge });
    expect((await sweep.run()).code).toBe(0);

    expect(timesAsked(sweep, 'lane')).toEqual([1, 1, 2]);
  });

  it('twice ends at once, whatever is in flight', async () => {
    const sweep = await slowSweep(120_000);
    const running = sweep.start();
    await until(() => sweep.mock.stats().requests > 0);
    running.kill('SIGINT');
    await until(() => running.output().stderr.includes('interrupted'));
    running.kill('SIGINT');

    const { code, signal } = await running.ended;

    expect({ code, signal }).toEqual({ code: 130, signal: null });
    expect(sweep.records('lane')).toEqual([]);
  });

  it('by SIGKILL while it judges or aggregates ends with the files of a calm run', async () => {
    const sweep = await slowSweep(0, 40);
    const calm = path.join(sweep.folder, 'calm');
    expect((await sweep.run('--out', calm)).code).toBe(0);
    const points: [string, (out: string) => boolean][] = [
      ['judging', () => (sweep.mock.stats().byModel.judge?.replies ?? 0) >= 2],
      ['scores', (out) => existsSync(path.join(out, 'scores'))],
      ['report', (out) => existsSync(path.join(out, 'report', 'lane'))],
    ];
    for (const [point, isReached] of points) {
      const killed = path.join(sweep.folder, point);
      sweep.mock.reset();
      const running = sweep.start('--out', killed);
      await until(() => isReached(killed));
      running.kill('SIGKILL');
      const { signal } = await running.ended;
      const resumed = await sweep.run('--out', killed);

      expect(signal, point).toBe('SIGKILL');
      expectEnd(resumed, 0);
      expect(resultFiles(killed), point).toEqual(resultFiles(calm));
      expect(sweep.mock.stats().byModel.lane!.requests, point).toBe(sweep.requestIds.length);
    }
  });
});

describe('a damaged file in the run folder', () => {
  const firstFile = (folder: string): string => path.join(folder, readdirSync(folder).sort()[0]!);
  const oneLine = /^error: [^\n]+\n$/;

  /** A finished run of which one reply is asked for again, so that there is work left. */
  const finishedSweep = async () => {
    const sweep = await sweepUnderTest({
      tasks: ['short-preserve', 'short-revise'],
      interfaces: ['openqa'],
      models: { lane: { reply: scriptedReply }, judge },
      lanes: [{ id: 'lane' }],
      judge: {},
      replies: scripted,
    });
    expect((await sweep.run()).code).toBe(0);
    const pack = path.join(sweep.out, 'lanes', 'lane', 'requests.pack');
    const linesOfPack = () => readFileSync(pack, 'utf8').split('\n').slice(0, -1);
    /** Alters the line of the reply whose id ends so, or deletes it. */
    const changeLine = (idEnd: string, change: (line: string) => string | null) => {
      const lines = linesOfPack().map((line) => (line.includes(`${idEnd}","rawText"`) ? change(line) : line));
      writeFileSync(pack, lines.map((line) => (line === null ? '' : `${line}\n`)).join(''));
    };
    const nameOf = (idEnd: string): string =>
      JSON.parse(linesOfPack().find((line) => line.includes(`${idEnd}","rawText"`))!).key;
    return { sweep, pack, changeLine, nameOf };
  };
  const control = 'C::openqa';
  const final = 'revise::openqa::H0';

  /** A line as the store writes it, of another record. */
  const wholeLine = (line: string, change: (record: object) => object): string => {
    const { key, value } = JSON.parse(line);
    return packLine(key, JSON.stringify(change(value)))
      .toString()
      .trimEnd();
  };

  it.each([
    ['cut short', (line: string) => line.slice(0, line.length / 2), 'checksum'],
    ['altered', (line: string) => line.replace('"rawText":"', '"rawText":"x'), 'checksum'],
    [
      'without its text',
      (line: string) => wholeLine(line, (record) => ({ ...record, rawText: '' })),
      'rawText',
    ],
    [
      'of another request',
      (line: string) => wholeLine(line, (record) => ({ ...record, requestId: 'other' })),
      'other',
    ],
  ])(
    'a reply %s ends the run with its name; it is neither scored, asked again nor written over',
    async (_, damage, says) => {
      const { sweep, pack, changeLine, nameOf } = await finishedSweep();
      const name = nameOf(control);
      let damaged = '';
      changeLine(control, (line) => {
        damaged = damage(line);
        return damaged;
      });
      const results = resultFiles(sweep.out);
      const asked = sweep.mock.stats().requests;

      const complete = await sweep.run();
      changeLine(final, () => null);
      const left = readFileSync(pack, 'utf8');
      const withWork = await sweep.run();

      for (const { code, stderr } of [complete, withWork]) {
        expect(code).toBe(1);
        expect(stderr).toMatch(oneLine);
        expect(stderr).toContain(pack);
        expect(stderr).toContain(name);
        expect(stderr).toContain(says);
      }
      expect(readFileSync(pack, 'utf8')).toBe(left);
      expect(resultFiles(sweep.out)).toEqual(results);
      expect(sweep.mock.stats().requests).toBe(asked);

      writeFileSync(pack, left.replace(`${damaged}\n`, ''));
      const mended = await sweep.run();
      expectEnd(mended, 0);
      expect(sweep.mock.stats().requests).toBe(asked + 2);
      expect(resultFiles(sweep.out)['scores/lane.jsonl']).toEqual(results['scores/lane.jsonl']);
    },
  );

  it('a verdict ends the run with file and key', async () => {
    const sweep = await sweepUnderTest({
      tasks: ['short-preserve'],
      models: { lane: { reply: scriptedReply }, judge },
      lanes: [{ id: 'lane' }],
      judge: {},
      replies: scripted,
    });
    expect((await sweep.run()).code).toBe(0);
    const name = readdirSync(path.join(sweep.out, 'reviews'))[0]!;
    const pack = path.join(sweep.out, 'reviews', name);
    const left = readFileSync(pack, 'utf8');
    const damaged = left.replace('"verdict":"', '"verdict":"in');
    writeFileSync(pack, damaged);
    const asked = sweep.mock.stats().requests;

    const { code, stderr } = await sweep.run();

    expect(damaged).not.toBe(left);
    expect(code).toBe(1);
    expect(stderr).toMatch(oneLine);
    expect(stderr).toContain(`reviews/${name}:1`);
    expect(readFileSync(pack, 'utf8')).toBe(damaged);
    expect(sweep.mock.stats().requests).toBe(asked);
  });

  it('the plan of a group ends the run with its name and the way to plan anew', async () => {
    const { sweep, changeLine } = await finishedSweep();
    const group = firstFile(path.join(sweep.out, 'plan', 'groups'));
    writeFileSync(group, '{"v":1,');
    changeLine(final, () => null);
    const asked = sweep.mock.stats().requests;

    const { code, stderr } = await sweep.run();

    expect(code).toBe(1);
    expect(stderr).toMatch(oneLine);
    expect(stderr).toContain(group);
    const summary = path.join(sweep.out, 'plan', 'summary.json');
    expect(stderr).toContain(`delete ${summary}`);
    expect(sweep.failures('lane')).toEqual([]);
    rmSync(summary);
    expect((await sweep.run()).code).toBe(0);
    expect(sweep.mock.stats().requests).toBe(asked + 1);
  });

  it.each([
    ['a failure', 'lanes/lane/failures/'],
    ['the attempts at an open request', 'lanes/lane/attempts/'],
    ['the views of a lane', 'plan/lane/views.jsonl'],
  ])('%s ends the run with its name', async (_, place) => {
    const sweep = await sweepUnderTest({
      tasks: ['short-preserve', 'short-revise'],
      interfaces: ['openqa'],
      models: {
        judge,
        lane: {
          reply: scriptedReply,
          faults: [{ kind: 'http_400', firstAttempts: 9, match: { lastText: 'Now another question' } }],
        },
      },
      lanes: [{ id: 'lane' }],
      judge: {},
      replies: scripted,
    });
    expect((await sweep.run()).code).toBe(2);
    const file = Object.keys(filesBelow(sweep.out)).find((name) => name.startsWith(place))!;
    if (place.includes('attempts')) rmSync(path.join(sweep.out, 'lanes/lane/failures'), { recursive: true });
    writeFileSync(path.join(sweep.out, file), '{"v":1}');
    const asked = sweep.mock.stats().byModel.lane;

    const { code, stderr } = await sweep.run();

    expect(code).toBe(1);
    expect(stderr).toMatch(oneLine);
    expect(stderr).toContain(file);
    expect(readFileSync(path.join(sweep.out, file), 'utf8')).toBe('{"v":1}');
    expect(sweep.mock.stats().byModel.lane).toEqual(asked);
  });
});

describe('a run folder of an earlier version', () => {
  it('with a file for each reply goes on where it was, and nothing of it is asked again', async () => {
    const sweep = await sweepUnderTest({
      tasks: ['short-preserve', 'short-revise'],
      interfaces: ['openqa'],
      models: { lane: { reply: scriptedReply }, judge },
      lanes: [{ id: 'lane' }],
      judge: {},
      replies: scripted,
    });
    expect((await sweep.run()).code).toBe(0);
    const results = resultFiles(sweep.out);
    const asked = sweep.mock.stats().requests;
    const requests = path.join(sweep.out, 'lanes', 'lane', 'requests');
    const [lost, ...kept] = packLines(`${requests}.pack`);
    rmSync(`${requests}.pack`);
    mkdirSync(requests);
    for (const [name, { value }] of kept) writeFileSync(path.join(requests, name), JSON.stringify(value));
    // Plans of then named the two scored requests of a view by role.
    const plan = path.join(sweep.out, 'plan');
    const groups = readdirSync(path.join(plan, 'groups')).map((name) => path.join(plan, 'groups', name));
    for (const file of [path.join(plan, 'lane', 'views.jsonl'), ...groups]) {
      const then = readFileSync(file, 'utf8')
        .replaceAll(
          /"targetRequestIds":\[("[^"]*"),("[^"]*")\]/g,
          '"controlRequestId":$1,"historyRequestId":$2',
        )
        .replace('{"v":2,', '{"v":1,');
      expect(then).toContain('controlRequestId');
      writeFileSync(file, then);
    }

    const resumed = await sweep.run();

    expectEnd(resumed, 0);
    expect(sweep.mock.stats().requests).toBe(asked + 1);
    expect([...packLines(`${requests}.pack`).keys()]).toEqual([lost![0]]);
    expect(readdirSync(requests)).toHaveLength(kept.length);
    expect(sweep.records('lane')).toHaveLength(asked - sweep.mock.stats().byModel.judge!.requests);
    expect(resultFiles(sweep.out)['scores/lane.jsonl']).toEqual(results['scores/lane.jsonl']);
    const again = await sweep.run();
    expectEnd(again, 0);
    expect(sweep.mock.stats().requests).toBe(asked + 1);
  });
});

describe('lanes', () => {
  it('keep as many calls in flight as they may, over no more connections', async () => {
    const sweep = await sweepUnderTest({
      roots: 70,
      // Long enough that now and then none of them is on its way.
      models: { lane: { reply: { text: 'A' }, latencyMs: 3000 }, judge },
      lanes: [{ id: 'lane', maxInFlight: 300 }],
      judge: {},
    });
    // Five groups for each root, in each of which one call is made at a time.
    expect(sweep.release.taskIds).toHaveLength(560);

    const ended = await sweep.run();

    expectEnd(ended, 0);
    const { byModel, connections } = sweep.mock.stats();
    expect(byModel.lane).toMatchObject({ peakInFlight: 300, requests: 70 * 47, replies: 70 * 47 });
    // Two more for the judge; one that idles for longer than its server waits is made anew.
    expect(connections).toBeLessThanOrEqual(310);
  });

  it('are shown their own channels only; a recorded lane beside them is asked nothing', async () => {
    const recording = 'recording.jsonl';
    const lanes: Record<string, { modalities: ('V' | 'A')[]; provider?: string; recording?: string }> = {
      sees: { modalities: ['V'] },
      hears: { modalities: ['A'] },
      both: { modalities: ['V', 'A'] },
      replayed: { modalities: ['V', 'A'], provider: 'recorded', recording },
    };
    const sweep = await sweepUnderTest({
      roots: 2,
      models: {
        judge,
        ...Object.fromEntries(Object.keys(lanes).map((lane) => [lane, { reply: scriptedReply }])),
      },
      lanes: Object.entries(lanes).map(([id, lane]) => ({ id, family: undefined, ...lane })),
      judge: {},
      replies: scripted,
    });
    const recorded = sweep.release.rows.inputs.map((row) => ({
      request_id: row.request_id,
      status: 'ok',
      raw_text: nativeReply,
      finish_reason: 'stop',
    }));
    writeFileSync(
      path.join(sweep.release.directory, recording),
      recorded.map((row) => JSON.stringify(row)).join('\n'),
    );

    const ended = await sweep.run();

    expectEnd(ended, 0);
    const inputs = new Map(sweep.release.rows.inputs.map((row) => [row.request_id, row]));
    const partTypes: Record<string, string[]> = {
      sees: ['text', 'video_url'],
      hears: ['input_audio', 'text'],
      both: ['input_audio', 'text', 'video_url'],
    };
    for (const [lane, { modalities }] of Object.entries(lanes)) {
      // A root's tasks all need one channel: V for the first, A for the second.
      const roots = modalities.map((channel) => (channel === 'V' ? 'root-001' : 'root-002'));
      const expected = [...inputs.keys()].filter((id) => roots.some((root) => id.startsWith(root))).sort();
      const records = sweep.records(lane);
      expect(records.map((record) => record.requestId).sort(), lane).toEqual(expected);
      for (const record of records) {
        const userTurns = inputs.get(record.requestId)!.messages.filter(({ role }) => role === 'user').length;
        const counts = {
          video: modalities.includes('V') ? userTurns : 0,
          audio: modalities.includes('A') ? userTurns : 0,
        };
        expect(record).toMatchObject({ offered: counts, consumed: counts, userTurns });
      }
      const sent = sweep.bodies.filter(({ model }) => model === lane);
      expect(sent).toHaveLength(lane === 'replayed' ? 0 : expected.length);
      const types = sent.flatMap(({ messages }) =>
        messages.flatMap((message) => (typeof message.content === 'string' ? [] : message.content)),
      );
      expect([...new Set(types.map(({ type }) => type))].sort(), lane).toEqual(partTypes[lane] ?? []);
      const clips = records.reduce((sum, { consumed }) => sum + consumed.video + consumed.audio, 0);
      if (lane !== 'replayed') expect(types.filter(({ type }) => type !== 'text')).toHaveLength(clips);
    }
  });

  it('that ask for more than the provider serves complete all the same', async () => {
    const sweep = await sweepUnderTest({
      roots: 4,
      models: {
        lane: { reply: { text: finalReply }, latencyMs: 50, capacity: 8, retryAfterSeconds: 1 },
        judge,
      },
      lanes: [{ id: 'lane', maxInFlight: 16, attempts: 20 }],
      judge: {},
    });

    const ended = await sweep.run();

    expectEnd(ended, 0);
    const { requests, replies, rateLimited } = sweep.mock.stats().byModel.lane!;
    expect(replies).toBe(sweep.requestIds.length);
    expect(requests).toBe(replies + rateLimited);
    const most = Math.max(...sweep.records('lane').map(({ attempts }) => attempts.length));
    console.info(
      `${((100 * rateLimited) / requests).toFixed(1)} % of ${requests} calls were 429; at most ${most} attempts`,
    );
  });
});
