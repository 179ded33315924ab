import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import type { ScenarioInput } from '../../mock/scenario.ts';
import { turnsweep } from '../support/command-line.ts';
import { type SweepUnderTest, sweepUnderTest } from '../support/sweep-under-test.ts';

type Model = ScenarioInput['models'][string];

const price = { inputPerMTok: 1, outputPerMTok: 2 };
const judge: Model = { reply: { judge: 'aliases' }, tokens: { input: 100, output: 10 } };
/** 100 · 1 + 10 · 2 millionths of a dollar. */
const judgeCallMicroUsd = 120;
const answering = (input: number, latencyMs = 20): Model => ({
  reply: { text: 'It might be a trombone.' },
  tokens: { input, output: 10 },
  latencyMs,
});
/** Of a lane whose calls have so many prompt tokens. */
const callMicroUsd = (input: number) => input + 20;
const requests = 47;

/** Rows of a reply table that answer every single-turn request rightly. */
const goldOfSingleTurns = ({ rows }: SweepUnderTest['release']) =>
  rows.answers
    .filter(({ condition }) => condition === 'C')
    .map(({ request_id, gold }) => {
      const { messages } = rows.inputs.find((row) => row.request_id === request_id)!;
      const parts = messages.flatMap((message) => (message.role === 'user' ? message.content : []));
      const texts = parts.flatMap((part) => (part.type === 'text' ? [part.text] : []));
      return { lastText: texts.join('\n'), reply: gold };
    });

const spentMicroUsd = async (sweep: SweepUnderTest): Promise<number> => {
  const { stdout } = await turnsweep(['status', sweep.out, '--json']);
  return Math.round(JSON.parse(stdout).spend.spentUsd * 1e6);
};
const microUsd = (usd: string | undefined): number => Math.round(Number(usd) * 1e6);
const costsOf = (sweep: SweepUnderTest, lane: string) => sweep.costs().find((row) => row.lane === lane)!;

describe('a budget of one dollar', () => {
  it('is passed by no more than the calls in flight, even if each costs far more than it could be expected to', async () => {
    const dear = callMicroUsd(60_000);
    const sweep = await sweepUnderTest({
      models: { judge, lane: answering(60_000) },
      lanes: [{ id: 'lane', price, maxInFlight: 4 }],
      judge: { price },
      budgetUsd: 1,
    });

    const first = await sweep.run();

    expect(first.code).toBe(3);
    const { lane, judge: judging } = sweep.mock.stats().byModel;
    const { peakInFlight, requests: asked, replies } = lane!;
    // What was over before the money was may be judged, while there is room for the most that costs.
    const judged = (judging?.requests ?? 0) * judgeCallMicroUsd;
    expect(peakInFlight).toBeGreaterThan(1);
    expect(replies).toBe(asked);
    expect(sweep.records('lane')).toHaveLength(asked);
    // A call more than the budget has room for begins only while others are in flight.
    expect((asked - peakInFlight) * dear).toBeLessThanOrEqual(1_000_000);
    expect(asked * dear).toBeGreaterThan(1_000_000 - 4 * dear);
    expect(await spentMicroUsd(sweep)).toBe(asked * dear + judged);
    expect(microUsd(costsOf(sweep, 'lane').usd)).toBe(asked * dear);

    sweep.change({ budgetUsd: 5 });
    const second = await sweep.run();

    expect(second.code).toBe(0);
    expect(second.stdout).toContain(`${asked} replies were there already`);
    const { byModel } = sweep.mock.stats();
    expect(byModel.lane).toMatchObject({ requests, replies: requests });
    const total = requests * dear + byModel.judge!.requests * judgeCallMicroUsd;
    expect(sweep.summary().counts).toMatchObject({ costMicroUsd: total, unpricedCalls: 0 });
    expect(await spentMicroUsd(sweep)).toBe(total);
  });

  it('is not passed at all, and shared by the lanes, where calls cost what could be expected', async () => {
    const sweep = await sweepUnderTest({
      models: { judge, one: answering(4000), two: answering(3000) },
      lanes: [
        { id: 'one', price: { inputPerMTok: 10, outputPerMTok: 20 }, maxInFlight: 3 },
        { id: 'two', price: { inputPerMTok: 10, outputPerMTok: 20 }, maxInFlight: 3 },
      ],
      judge: { price },
      budgetUsd: 1,
    });

    const first = await sweep.run();

    expect(first.code).toBe(3);
    const { one, two, judge: judging } = sweep.mock.stats().byModel;
    const judged = (judging?.requests ?? 0) * judgeCallMicroUsd;
    const spent = one!.requests * 40_200 + two!.requests * 30_200 + judged;
    expect(one!.requests).toBeGreaterThan(0);
    expect(two!.requests).toBeGreaterThan(0);
    expect(spent).toBeLessThanOrEqual(1_000_000);
    expect(await spentMicroUsd(sweep)).toBe(spent);
    expect([microUsd(costsOf(sweep, 'one').usd), microUsd(costsOf(sweep, 'two').usd)]).toEqual([
      one!.requests * 40_200,
      two!.requests * 30_200,
    ]);

    sweep.change({ budgetUsd: 10 });
    const second = await sweep.run();

    expect(second.code).toBe(0);
    const { byModel } = sweep.mock.stats();
    expect(byModel).toMatchObject({ one: { requests }, two: { requests } });
    expect(await spentMicroUsd(sweep)).toBe(
      requests * (40_200 + 30_200) + byModel.judge!.requests * judgeCallMicroUsd,
    );
  });

  it('of one lane stops that lane alone', async () => {
    const sweep = await sweepUnderTest({
      models: { judge, small: answering(4000), free: answering(4000) },
      lanes: [
        { id: 'small', price: { inputPerMTok: 20, outputPerMTok: 20 }, budget: { usd: 1 } },
        { id: 'free' },
      ],
      judge: {},
    });

    const { code } = await sweep.run();

    expect(code).toBe(3);
    const { small, free } = sweep.mock.stats().byModel;
    expect(free).toMatchObject({ requests, replies: requests });
    // 4000 · 20 + 10 · 20 each
    expect(small!.requests).toBeGreaterThan(0);
    expect(small!.requests * 80_200).toBeLessThanOrEqual(1_000_000);
    expect(sweep.views('small').some(({ outcome }) => outcome === 'open')).toBe(true);
    expect(sweep.views('small').some(({ outcome }) => outcome === 'excluded')).toBe(false);
    expect(costsOf(sweep, 'free')).toMatchObject({
      usd: '',
      known_usd: '0',
      unpriced_calls: String(requests),
    });
  });
});

describe('what a run has cost', () => {
  it('is told for each view and each point of difference, beside what was planned and what was avoided', async () => {
    const sweep = await sweepUnderTest({
      models: {
        judge,
        lane: {
          ...answering(4000, 0),
          reply: { table: 'replies.jsonl', fallback: 'It might be a trombone.' },
        },
      },
      lanes: [{ id: 'lane', price }],
      judge: { price },
      replies: goldOfSingleTurns,
    });
    const sweepPath = path.join(sweep.folder, 'sweep.yaml');
    const planned = JSON.parse((await turnsweep(['plan', sweepPath, '--json'])).stdout).lanes[0];

    const { code } = await sweep.run();

    expect(code).toBe(0);
    const call = callMicroUsd(4000);
    const views = sweep.release.rows.tasks.flatMap((task) => Object.values(task.views));
    const needs = views.reduce((sum, view) => sum + 2 + view.native_dependency_request_ids.length, 0);
    const row = costsOf(sweep, 'lane');
    expect(row).toMatchObject({ calls: String(requests), reused: String(needs - requests) });
    expect(microUsd(row.usd)).toBe(requests * call);
    expect(microUsd(row.avoided_usd)).toBe((needs - requests) * call);
    expect(Number(row.usd_per_valid_view)).toBeCloseTo((requests * call) / 1e6 / 16, 12);
    expect(Number(row.projected_usd)).toBe(planned.costUsdAtMost);
    expect(planned.costUsdAtMost).toBeGreaterThan(Number(row.usd));
    expect(Number(row.projection_error_pct)).toBeCloseTo(
      (100 * (planned.costUsdAtMost - Number(row.usd))) / Number(row.usd),
      9,
    );

    const summary = sweep.summary();
    const ofLane = summary.costs.find(({ lane }: { lane: string }) => lane === 'lane');
    // Right in single turn and wrong in multi turn, always: a difference of 100 points in both interfaces.
    const perPoint = (requests * call) / 1e6 / 100;
    expect(Object.values(ofLane.usdPerPointOfDelta)).toEqual([
      expect.closeTo(perPoint, 12),
      expect.closeTo(perPoint, 12),
    ]);
    const judged = costsOf(sweep, 'judge');
    expect(Number(judged.usd) * 1e6).toBeCloseTo(Number(judged.calls) * judgeCallMicroUsd, 6);
    const page = readFileSync(path.join(sweep.out, 'report', 'index.html'), 'utf8');
    expect(page).toContain('<h2>Cost</h2>');
    expect(summary.prices.lane).toEqual({ source: 'sweep file', seen: null, note: null });
    expect(summary.priceDate).toBeNull();
  });
});
