import { describe, expect, it, test } from 'vitest';
import { compareJudges, type JudgeVerdicts } from '../../../../shared/benchmarks/voxmem/agreement.ts';
import { buildScored, statusOf } from './scored-builders.ts';

/** Verdicts of a judge by lane, one letter an item; `family` of a lane is its id's first word. */
const buildJudge = (
  judge: string,
  family: string | null,
  letters: Record<string, string>,
): JudgeVerdicts => ({
  judge,
  family,
  lanes: Object.entries(letters).map(([lane, given]) => ({
    lane,
    displayName: lane.toUpperCase(),
    family: lane.startsWith('?') ? null : lane.split('-')[0]!,
    items: [...given].map((letter, index) =>
      buildScored({
        questionId: `q${index}`,
        status: statusOf[letter]!,
        // Every fifth item is one to be refused.
        memoryOperation: index % 5 === 4 ? 'answer_refusal' : 'information_extraction',
      }),
    ),
  })),
});

const pooled = (judges: readonly JudgeVerdicts[]) => {
  const { agreement, pairs } = compareJudges(judges);
  const row = agreement.find(({ lane, scope }) => lane === null && scope === 'overall')!;
  return { row, pair: pairs.find(({ scope }) => scope === 'overall')! };
};

test("the paper's anchors belong together: 97.95 % and κ 0.953 on 11,978 predictions", () => {
  // 245 disagreements are 2.05 %. With a share p judged correct by both alike, κ = 1 − .0205/(2p(1 − p)), which is .953 for
  // p near .322: 3,740 both correct, 7,993 both incorrect.
  const both = 'c'.repeat(3_740) + 'i'.repeat(7_993);
  const first = buildJudge('a', null, { 'm-1': `${both}${'c'.repeat(122)}${'i'.repeat(123)}` });
  const second = buildJudge('b', null, { 'm-1': `${both}${'i'.repeat(122)}${'c'.repeat(123)}` });

  const { row } = pooled([first, second]);

  expect(row.compared).toBe(11_978);
  expect(row.agreementPct.toFixed(2)).toBe('97.95');
  expect(row.kappa!.toFixed(3)).toBe('0.953');
  const p = (3_740 + 122.5) / 11_978;
  expect(row.kappa).toBeCloseTo(1 - 245 / 11_978 / (2 * p * (1 - p)), 6);
});

test('counts four outcomes, agreement and κ, per lane, scope and all together', () => {
  const first = buildJudge('a', null, { 'm-1': 'ccciicciic', 'm-2': 'cicii' });
  const second = buildJudge('b', null, { 'm-1': 'ccicicciii', 'm-2': 'ciccc' });

  const { agreement } = compareJudges([first, second]);

  const shown = agreement.map((row) =>
    [
      row.lane,
      row.scope,
      row.compared,
      [row.bothCorrect, row.firstOnlyCorrect, row.secondOnlyCorrect, row.bothIncorrect].join('/'),
      row.agreementPct.toFixed(1),
    ].join(' '),
  );
  expect(shown).toEqual([
    ' overall 15 6/2/3/4 66.7',
    'm-1 overall 10 4/2/1/3 70.0',
    'm-2 overall 5 2/0/2/1 60.0',
    ' answerable 12 6/1/2/3 75.0',
    'm-1 answerable 8 4/1/1/2 75.0',
    'm-2 answerable 4 2/0/1/1 75.0',
    ' answer_refusal 3 0/1/1/1 33.3',
    'm-1 answer_refusal 2 0/1/0/1 50.0',
    'm-2 answer_refusal 1 0/0/1/0 0.0',
  ]);
  // 15 items: agreed 10; expected (8 · 9 + 7 · 6)/15 = 7.6: κ = 2.4/7.4.
  expect(agreement[0]!.kappa).toBeCloseTo(2.4 / 7.4, 12);
  expect(agreement[0]!.firstAccuracyPct).toBeCloseTo(800 / 15, 12);
  expect(agreement[0]!.secondAccuracyPct).toBeCloseTo(900 / 15, 12);
});

describe('items that count', () => {
  it('are those that both judges were asked about; an unreadable verdict is incorrect', () => {
    const first = buildJudge('a', null, { 'm-1': 'cicufeporc' });
    const second = buildJudge('b', null, { 'm-1': 'ciucfeporp' });

    const { row } = pooled([first, second]);

    expect(row).toMatchObject({
      compared: 4,
      bothCorrect: 1,
      firstOnlyCorrect: 1,
      secondOnlyCorrect: 1,
      bothIncorrect: 1,
      ungradedByFirst: 1,
      ungradedBySecond: 1,
    });
  });

  it('are matched by lane and item, whatever their order', () => {
    const first = buildJudge('a', null, { 'm-1': 'cii', 'm-2': 'iii', 'm-3': 'c' });
    const second = buildJudge('b', null, { 'm-2': 'iii', 'm-1': 'cii' });
    const turned = second.lanes.map((lane) => ({ ...lane, items: [...lane.items].reverse() }));

    const { row, pair } = pooled([first, { ...second, lanes: turned }]);

    expect([row.compared, row.agreementPct, pair.models]).toEqual([6, 100, 2]);
  });

  it('may be none', () => {
    const first = buildJudge('a', null, { 'm-1': 'ppp' });

    expect(compareJudges([first, buildJudge('b', null, { 'm-1': 'ccc' })])).toEqual({
      agreement: [],
      pairs: [],
    });
    expect(compareJudges([first])).toEqual({ agreement: [], pairs: [] });
  });
});

test('ranking and mean absolute difference go over models', () => {
  // Accuracies 80 60 40 20 under one judge, 60 80 40 20 under the other.
  const first = buildJudge('a', null, { 'm-1': 'cccci', 'm-2': 'cccii', 'm-3': 'cciii', 'm-4': 'ciiii' });
  const second = buildJudge('b', null, { 'm-1': 'cccii', 'm-2': 'cccci', 'm-3': 'cciii', 'm-4': 'ciiii' });

  const { pair } = pooled([first, second]);

  expect(pair.models).toBe(4);
  expect(pair.rankingRho).toBeCloseTo(0.8, 12);
  expect(pair.meanAbsoluteDifferencePp).toBeCloseTo(10, 12);
});

describe('family favouritism', () => {
  const first = {
    'gpt-1': 'ccccc',
    'gpt-2': 'cccci',
    'gem-1': 'ciiii',
    'qwen-1': 'cciii',
    '?-1': 'ccccc',
  };
  const second = {
    'gpt-1': 'cccii',
    'gpt-2': 'cccci',
    'gem-1': 'cccii',
    'qwen-1': 'ciiii',
    '?-1': 'iiiii',
  };

  it('is the difference of differences of mean accuracies', () => {
    const { pair } = pooled([buildJudge('a', 'gpt', first), buildJudge('b', 'gem', second)]);

    // First minus second: GPT (40 + 0)/2 = 20, Gemini −40, others 20; a model of unknown family is in none of them.
    expect(pair.favouritism.ofFirstPp).toBeCloseTo(0, 12);
    expect(pair.favouritism.ofSecondPp).toBeCloseTo(60, 12);
    expect(pair.favouritism.betweenPp).toBeCloseTo(60, 12);
  });

  it('turns round with the judges', () => {
    const { pair } = pooled([buildJudge('b', 'gem', second), buildJudge('a', 'gpt', first)]);

    expect(pair.favouritism.ofFirstPp).toBeCloseTo(60, 12);
    expect(pair.favouritism.ofSecondPp).toBeCloseTo(0, 12);
    expect(pair.favouritism.betweenPp).toBeCloseTo(60, 12);
  });

  it.each([
    ['one family', 'gpt', 'gpt'],
    ['an unknown family', null, 'gem'],
  ])('says nothing of judges of %s', (_, familyOfFirst, familyOfSecond) => {
    const { pair } = pooled([buildJudge('a', familyOfFirst, first), buildJudge('b', familyOfSecond, second)]);

    expect(pair.favouritism).toEqual({ ofFirstPp: null, ofSecondPp: null, betweenPp: null });
  });

  it('says what it can where a family has no model', () => {
    const { pair } = pooled([buildJudge('a', 'gpt', first), buildJudge('b', 'claude', second)]);

    // Elsewhere: Gemini −40 and Qwen 20.
    expect(pair.favouritism.ofFirstPp).toBeCloseTo(30, 12);
    expect([pair.favouritism.ofSecondPp, pair.favouritism.betweenPp]).toEqual([null, null]);
  });
});

test('three judges are three pairs', () => {
  const judges = ['a', 'b', 'c'].map((judge) => buildJudge(judge, null, { 'm-1': 'cici' }));

  const { pairs } = compareJudges(judges);

  const names = pairs
    .filter((pair) => pair.scope === 'overall')
    .map((pair) => `${pair.firstJudge}${pair.secondJudge}`);
  expect(names).toEqual(['ab', 'ac', 'bc']);
});
