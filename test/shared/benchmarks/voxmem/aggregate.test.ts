import { describe, expect, it, test } from 'vitest';
import {
  type AccuracyRow,
  aggregateLanes,
  type MatchedRow,
  type Scope,
  tallyOf,
  type VoxmemLane,
} from '../../../../shared/benchmarks/voxmem/aggregate.ts';
import {
  type ContextLength,
  contextLengths,
  evidenceTypes,
  memoryOperations,
  operationCodes,
  type ScoredItem,
} from '../../../../shared/benchmarks/voxmem/format.ts';
import { seededIntegers } from '../../../../shared/domain/statistics.ts';
import { buildFullRun, buildLane, buildQuestion, buildScored, statusOf } from './scored-builders.ts';

const quick = { seed: 53_126, resamples: 60 };

const pick = <Row extends { scope: Scope; length: ContextLength | 'all' }>(
  rows: readonly Row[],
  length: Row['length'],
  scope: Scope,
): Row => rows.find((row) => row.length === length && row.scope === scope)!;

const overall = (rows: readonly AccuracyRow[]): AccuracyRow[] => rows.filter((row) => row.group === 'all');

describe('a baseline that always abstains', () => {
  const lane = buildLane(
    buildFullRun(({ memoryOperation }) => (memoryOperation === 'answer_refusal' ? 'correct' : 'incorrect')),
  );
  const report = aggregateLanes([lane], quick);

  it.each(contextLengths)('scores 1.0 on AR, 0.0 on answerable and 130/799 overall at %s', (length) => {
    for (const rows of [report.matched, report.curves.rows, overall(report.accuracies)]) {
      expect(pick<MatchedRow | AccuracyRow>(rows, length, 'answer_refusal')).toMatchObject({
        n: 130,
        correct: 130,
        accuracyPct: 100,
        intervalPct: [100, 100],
      });
      expect(pick<MatchedRow | AccuracyRow>(rows, length, 'answerable')).toMatchObject({
        n: 669,
        correct: 0,
        accuracyPct: 0,
        intervalPct: [0, 0],
      });
      const pooled = pick<MatchedRow | AccuracyRow>(rows, length, 'overall');
      expect(pooled).toMatchObject({ n: 799, correct: 130, complete: true });
      expect(pooled.accuracyPct!.toFixed(2)).toBe('16.27');
    }
  });

  it('has 2,676 answerable items and 520 to be refused over all lengths, in 15 cells', () => {
    expect(pick(overall(report.accuracies), 'all', 'answerable').n).toBe(2_676);
    expect(pick(overall(report.accuracies), 'all', 'answer_refusal').n).toBe(520);
    const cells = report.accuracies.filter((row) => row.group === 'cell' && row.length === '64k');
    expect(cells).toHaveLength(15);
    expect(cells.map((row) => row.accuracyPct)).toEqual(
      cells.map((row) => (row.value.endsWith('/AR') ? 100 : 0)),
    );
    expect(cells.some((row) => row.value === 'speech_semantics/IE')).toBe(false);
  });

  it('retains all of what it has, which on answerable items is nothing', () => {
    const rows = report.retention.filter((row) => row.group === 'all');
    expect(
      rows.map(({ scope, questions, retention, interval }) => [scope, questions, retention, interval]),
    ).toEqual([
      ['overall', 799, 1, [1, 1]],
      ['answerable', 669, null, null],
      ['answer_refusal', 130, 1, [1, 1]],
    ]);
  });
});

test('every status has its count and its place in or out of the denominator', () => {
  const letters = [...'cciufeerrrppo'];

  const tally = tallyOf(letters.map((letter) => ({ status: statusOf[letter]! })));

  expect(tally).toEqual({
    correct: 2,
    incorrect: 1,
    ungraded: 1,
    failed: 1,
    empty: 2,
    rejected: 3,
    pending: 2,
    open: 1,
    n: 7,
    accuracyPct: 200 / 7,
    complete: false,
  });
  expect(tallyOf([{ status: 'rejected' }])).toMatchObject({ n: 0, accuracyPct: null, complete: true });
});

describe('hand-made rows', () => {
  const ar = { memoryOperation: 'answer_refusal', subtype: 'gone' } as const;
  const sound = { evidenceType: 'environmental_sound', memoryOperation: 'multi_session_reasoning' } as const;
  const lane = buildLane([
    ...buildQuestion('q1', { '8k': 'c', '16k': 'c', '64k': 'c' }),
    ...buildQuestion('q2', { '8k': 'c', '16k': 'i', '64k': 'i' }),
    ...buildQuestion('q3', { '8k': 'c', '16k': 'u', '64k': 'f' }, sound),
    ...buildQuestion('q4', { '8k': 'i', '16k': 'c', '64k': 'e' }, sound),
    ...buildQuestion('q5', { '8k': 'c', '16k': 'c', '64k': 'r' }, sound),
    ...buildQuestion('q6', { '8k': 'c', '16k': 'c', '64k': 'c' }, ar),
    ...buildQuestion('q7', { '8k': 'i', '16k': 'r', '64k': 'c' }, ar),
    ...buildQuestion('q8', { '8k': 'c', '16k': 'c', '64k': 'i' }, ar),
  ]);
  const report = aggregateLanes([lane], quick);
  const counted = (rows: readonly (AccuracyRow | MatchedRow)[]) =>
    rows.map((row) => `${row.length} ${row.scope} ${row.correct}/${row.n}`);

  it('count per length all that was not rejected', () => {
    expect(counted(overall(report.accuracies))).toEqual([
      '8k overall 6/8',
      '8k answerable 4/5',
      '8k answer_refusal 2/3',
      '16k overall 5/7',
      '16k answerable 3/5',
      '16k answer_refusal 2/2',
      '64k overall 3/7',
      '64k answerable 1/4',
      '64k answer_refusal 2/3',
      'all overall 14/22',
      'all answerable 8/14',
      'all answer_refusal 6/8',
    ]);
  });

  it('count evidence types, operations, cells and subtypes', () => {
    const of = (group: string) =>
      report.accuracies
        .filter((row) => row.group === group && row.length === 'all')
        .map((row) => `${row.value} ${row.scope} ${row.correct}/${row.n}`);

    expect(of('evidence_type')).toEqual([
      'speaker_information overall 10/14',
      'speaker_information answerable 4/6',
      'speaker_information answer_refusal 6/8',
      'environmental_sound overall 4/8',
      'environmental_sound answerable 4/8',
    ]);
    expect(of('operation')).toEqual(['IE answerable 4/6', 'MSR answerable 4/8', 'AR answer_refusal 6/8']);
    expect(of('cell')).toEqual([
      'speaker_information/IE answerable 4/6',
      'speaker_information/AR answer_refusal 6/8',
      'environmental_sound/MSR answerable 4/8',
    ]);
    expect(of('subtype')).toEqual(['gone answer_refusal 6/8', 'who answerable 8/14']);
  });

  it('match questions judged at every length that the model ran', () => {
    // q5 and q7 were rejected once.
    expect(counted(report.matched)).toEqual([
      '8k overall 5/6',
      '8k answerable 3/4',
      '8k answer_refusal 2/2',
      '16k overall 4/6',
      '16k answerable 2/4',
      '16k answer_refusal 2/2',
      '64k overall 2/6',
      '64k answerable 1/4',
      '64k answer_refusal 1/2',
    ]);
    expect(report.lanes[0]).toMatchObject({ lengths: ['8k', '16k', '64k'], matchedQuestions: 6 });
  });

  it('give retention on the matched questions', () => {
    const found = report.retention.map((row) => `${row.value} ${row.scope} ${row.retention?.toFixed(4)}`);

    expect(found).toEqual([
      'all overall 0.4000',
      'all answerable 0.3333',
      'all answer_refusal 0.5000',
      'speaker_information overall 0.5000',
      'speaker_information answerable 0.5000',
      'speaker_information answer_refusal 0.5000',
      'environmental_sound overall 0.0000',
      'environmental_sound answerable 0.0000',
    ]);
  });

  it('leave the model out of length curves: an item was rejected at 64K', () => {
    expect(report.curves).toEqual({ models: [], lengths: [], questions: 0, rows: [], acrossModels: [] });
  });
});

describe('length curves', () => {
  const steady = buildLane(
    [
      ...buildQuestion('q1', { '8k': 'c', '16k': 'c', '64k': 'c' }),
      ...buildQuestion('q2', { '8k': 'c', '16k': 'r', '64k': 'i' }),
      ...buildQuestion('q3', { '8k': 'i', '16k': 'i', '64k': 'c' }),
    ],
    { id: 'steady' },
  );
  const falling = buildLane(
    [
      ...buildQuestion('q1', { '8k': 'c', '16k': 'c', '64k': 'i' }),
      ...buildQuestion('q2', { '8k': 'c', '16k': 'c', '64k': 'i' }),
      ...buildQuestion('q3', { '8k': 'c', '16k': 'i', '64k': 'f' }),
    ],
    { id: 'falling' },
  );
  const unfinished = (letter: string): VoxmemLane =>
    buildLane(
      [
        ...buildQuestion('q1', { '8k': 'c', '16k': 'c', '64k': 'c' }),
        ...buildQuestion('q2', { '8k': 'c', '16k': 'c', '64k': 'c' }),
        ...buildQuestion('q3', { '8k': 'c', '16k': 'c', ...(letter === '' ? {} : { '64k': letter }) }),
      ],
      { id: 'unfinished' },
    );

  it.each([
    ['rejected', 'r'],
    ['pending', 'p'],
    ['open', 'o'],
    ['missing', ''],
  ])('leave out a model of which a 64K item is %s', (_, letter) => {
    const { curves } = aggregateLanes([steady, unfinished(letter), falling], quick);

    expect(curves.models).toEqual(['steady', 'falling']);
  });

  it('show questions that count for all models at every length', () => {
    const { curves } = aggregateLanes([steady, falling], quick);

    // q2 was rejected once, at 16K for one model.
    expect([curves.questions, curves.lengths]).toEqual([2, ['8k', '16k', '64k']]);
    const overallRows = curves.rows.filter((row) => row.scope === 'overall');
    expect(overallRows.map((row) => `${row.lane} ${row.length} ${row.correct}/${row.n}`)).toEqual([
      'steady 8k 1/2',
      'steady 16k 1/2',
      'steady 64k 2/2',
      'falling 8k 2/2',
      'falling 16k 1/2',
      'falling 64k 0/2',
    ]);
    expect(curves.acrossModels.filter((row) => row.scope === 'overall')).toEqual([
      { length: '8k', scope: 'overall', models: 2, meanPct: 75, medianPct: 75 },
      { length: '16k', scope: 'overall', models: 2, meanPct: 50, medianPct: 50 },
      { length: '64k', scope: 'overall', models: 2, meanPct: 50, medianPct: 50 },
    ]);
  });

  it('need no model without a 64K run: a shorter sweep has none', () => {
    const lane = buildLane(buildQuestion('q1', { '8k': 'c', '32k': 'c' }));

    const report = aggregateLanes([lane], quick);

    expect(report.curves.models).toEqual([]);
    expect(report.retention).toEqual([]);
    expect(report.matched).toHaveLength(4);
  });
});

describe('completeness', () => {
  it('is lacking in each row that has a pending or open item', () => {
    const lane = buildLane([
      ...buildQuestion('q1', { '8k': 'c', '16k': 'p' }),
      ...buildQuestion('q2', { '8k': 'c', '16k': 'c' }),
      ...buildQuestion('q3', { '8k': 'i', '16k': 'o' }, { memoryOperation: 'answer_refusal' }),
    ]);

    const { accuracies, matched, lanes } = aggregateLanes([lane], quick);

    const state = overall(accuracies).map(
      (row) => `${row.length} ${row.scope} ${row.complete} ${row.pending}${row.open}`,
    );
    expect(state).toEqual([
      '8k overall true 00',
      '8k answerable true 00',
      '8k answer_refusal true 00',
      '16k overall false 11',
      '16k answerable false 10',
      '16k answer_refusal false 01',
      'all overall false 11',
      'all answerable false 10',
      'all answer_refusal false 01',
    ]);
    // Which questions match is not settled at any length.
    expect(matched.map((row) => `${row.length} ${row.scope} ${row.n} ${row.complete}`)).toEqual([
      '8k overall 1 false',
      '8k answerable 1 false',
      '16k overall 1 false',
      '16k answerable 1 false',
    ]);
    expect(lanes[0]!.counts).toMatchObject({ n: 4, pending: 1, open: 1, complete: false });
  });

  it('of a length that was not begun is told without a figure', () => {
    const lane = buildLane(buildQuestion('q1', { '8k': 'c', '64k': 'o' }));

    const { accuracies, lanes } = aggregateLanes([lane], quick);

    expect(lanes[0]!.lengths).toEqual(['8k']);
    expect(pick(overall(accuracies), '64k', 'overall')).toMatchObject({
      n: 0,
      open: 1,
      accuracyPct: null,
      intervalPct: null,
      complete: false,
    });
  });
});

describe('delivery of the system prompt', () => {
  it.each([
    ['native', ['native', 'native'], 'native'],
    ['folded', ['folded', null], 'folded'],
    ['mixed', ['native', 'folded'], 'mixed'],
    ['unknown', [null, null], null],
  ] as const)('%s is told of a lane', (_, [first, second], expected) => {
    const lane = buildLane([
      buildScored({ questionId: 'q1', systemPromptDelivery: first }),
      buildScored({ questionId: 'q2', systemPromptDelivery: second }),
    ]);

    const report = aggregateLanes([lane], quick);

    expect(report.systemPromptDelivery).toBe(expected);
    expect(report.matched[0]!.systemPromptDelivery).toBe(expected);
  });

  it('is mixed for a run whose lanes differ', () => {
    const lanes = (['native', 'folded'] as const).map((systemPromptDelivery) =>
      buildLane([buildScored({ systemPromptDelivery })], { id: systemPromptDelivery }),
    );

    const report = aggregateLanes(lanes, quick);

    expect(report.systemPromptDelivery).toBe('mixed');
    expect(report.lanes.map((lane) => lane.systemPromptDelivery)).toEqual(['native', 'folded']);
  });
});

test('failures are counted by kind', () => {
  const kinds = ['timeout', 'length_truncated', 'timeout', null];
  const items = kinds.map((failure, index) =>
    buildScored({ questionId: `q${index}`, failure, status: failure === null ? 'correct' : 'failed' }),
  );

  const [lane] = aggregateLanes([buildLane(items)], quick).lanes;

  expect(lane!.failuresByKind).toEqual({ length_truncated: 1, timeout: 2 });
});

describe('correlations', () => {
  /** A model with so many of ten answerable and ten other questions right at 8K and at 64K. */
  const buildModel = (id: string, answerable: [number, number], refusal: [number, number]): VoxmemLane => {
    const questions = (name: string, right: [number, number], changes: Partial<ScoredItem>) =>
      Array.from({ length: 10 }, (_, index) =>
        buildQuestion(
          `${name}${index}`,
          { '8k': index < right[0] ? 'c' : 'i', '64k': index < right[1] ? 'c' : 'i' },
          changes,
        ),
      ).flat();
    return buildLane(
      [...questions('a', answerable, {}), ...questions('r', refusal, { memoryOperation: 'answer_refusal' })],
      { id },
    );
  };

  it('set answerable against AR and retention against 8K, across models', () => {
    const { correlations } = aggregateLanes(
      [
        buildModel('one', [8, 4], [2, 2]),
        buildModel('two', [6, 5], [4, 1]),
        buildModel('three', [5, 1], [4, 4]),
        buildModel('four', [2, 2], [9, 3]),
      ],
      quick,
    );

    // Ranks at 8K: answerable 4 3 2 1, AR 1 2.5 2.5 4: −4.5/√(5 · 4.5).
    expect(correlations.answerableWithRefusal.map(({ length, models }) => [length, models])).toEqual([
      ['8k', 4],
      ['64k', 4],
    ]);
    expect(correlations.answerableWithRefusal[0]!.rho).toBeCloseTo(-4.5 / Math.sqrt(22.5), 12);
    // Ranks at 64K: 3 4 1 2 and 2 1 4 3, each the mirror of the other.
    expect(correlations.answerableWithRefusal[1]!.rho).toBeCloseTo(-1, 12);
    // Answerable: retention .5 .833 .2 1 → ranks 2 3 1 4; at 8K 4 3 2 1: sum of squared differences 4+0+1+9 = 14.
    const answerable = correlations.retentionWithShort.find((row) => row.scope === 'answerable')!;
    expect(answerable.models).toBe(4);
    expect(answerable.rho).toBeCloseTo(1 - (6 * 14) / (4 * 15), 12);
  });

  it('are not defined for one model', () => {
    const { correlations } = aggregateLanes([buildModel('one', [8, 4], [2, 2])], quick);

    expect(correlations.answerableWithRefusal.map((row) => row.rho)).toEqual([null, null]);
    expect(correlations.retentionWithShort.map((row) => row.rho)).toEqual([null, null, null]);
  });
});

describe('intervals', () => {
  it('are those of NumPy, but for the draws', () => {
    // numpy.random.default_rng(7), three times 10,000 resamples of these two columns drawn together: 8K accuracy
    // 56.45–56.57 to 63.33; retention 0.7160–0.7166 to 0.8612–0.8630.
    const items = buildFullRun(({ index }, length) => {
      const isRight =
        length === '64k' ? (index * 37 + Math.floor(index / 11)) % 100 < 47 : (index * 7) % 10 < 6;
      return isRight ? 'correct' : 'incorrect';
    });

    const report = aggregateLanes([buildLane(items)], { seed: 53_126 });

    expect([report.seed, report.resamples]).toEqual([53_126, 10_000]);
    const short = pick(report.matched, '8k', 'overall');
    expect([short.correct, short.n]).toEqual([479, 799]);
    expect(Math.abs(short.intervalPct![0] - 56.5)).toBeLessThan(0.2);
    expect(Math.abs(short.intervalPct![1] - 63.3)).toBeLessThan(0.2);
    const retention = report.retention[0]!;
    expect(retention.retention).toBeCloseTo(377 / 479, 12);
    expect(Math.abs(retention.interval![0] - 0.7163)).toBeLessThan(0.004);
    expect(Math.abs(retention.interval![1] - 0.862)).toBeLessThan(0.004);
  });

  it('depend on the seed alone', () => {
    const lane = buildLane(
      buildFullRun(({ index }, length) => ((index * length.length) % 3 ? 'correct' : 'empty')),
    );

    expect(aggregateLanes([lane], quick)).toEqual(aggregateLanes([lane], quick));
    expect(aggregateLanes([lane], quick).matched).not.toEqual(
      aggregateLanes([lane], { ...quick, seed: 1 }).matched,
    );
  });
});

/**
 * The same figures found another way: every row by going through the items anew, every interval by drawing questions
 * one by one and scoring the drawn items. Slow and plain on purpose.
 */
describe('rows made at random agree with a plain second calculation', () => {
  const next = seededIntegers(99);
  const chance = () => next() / 2 ** 32;
  const letters = 'ccccccciiiiufer';
  const buildRandomLane = (id: string, extra: string): VoxmemLane =>
    buildLane(
      Array.from({ length: 60 }, (_, index) => {
        const memoryOperation = memoryOperations[index % 4]!;
        const evidenceType = evidenceTypes[Math.floor(index / 4) % 4]!;
        return contextLengths.map((contextLength) => {
          const pool = letters + extra;
          return buildScored({
            questionId: `q${index}`,
            contextLength,
            memoryOperation,
            evidenceType,
            subtype: `kind-${index % 7}`,
            status: statusOf[pool[Math.floor(chance() * pool.length)]!]!,
          });
        });
      }).flat(),
      { id },
    );
  const lanes = [buildRandomLane('one', ''), buildRandomLane('two', 'cccc'), buildRandomLane('three', 'po')];
  const report = aggregateLanes(lanes, quick);

  const isCounted = (item: ScoredItem) =>
    ['correct', 'incorrect', 'ungraded', 'failed', 'empty'].includes(item.status);
  const inScope = (item: ScoredItem, scope: Scope) =>
    scope === 'overall' || (item.memoryOperation === 'answer_refusal') === (scope === 'answer_refusal');
  const accuracy = (items: readonly ScoredItem[]): number =>
    (100 * items.filter((item) => item.status === 'correct').length) / items.filter(isCounted).length;
  const unique = (items: readonly ScoredItem[]) => [...new Set(items.map((item) => item.questionId))];

  /** Value of a statistic in each resample of these questions; drawn as `resampleUnits` documents. */
  const redrawn = (
    items: readonly ScoredItem[],
    questions: readonly string[],
    statistic: (drawn: readonly ScoredItem[]) => number,
  ): number[] => {
    const integers = seededIntegers(quick.seed);
    const byQuestion = questions.map((id) =>
      items.filter((item) => item.questionId === id && isCounted(item)),
    );
    return Array.from({ length: quick.resamples }, () =>
      statistic(
        Array.from(
          { length: questions.length },
          () => byQuestion[Math.floor((integers() / 2 ** 32) * questions.length)]!,
        ).flat(),
      ),
    );
  };
  const expectInterval = (found: readonly number[] | null, values: readonly number[]) => {
    const sorted = values.filter(Number.isFinite).toSorted((a, b) => a - b);
    if (sorted.length === 0) {
      expect(found).toBeNull();
      return;
    }
    for (const [index, share] of [0.025, 0.975].entries()) {
      const position = share * (sorted.length - 1);
      const [low, high] = [sorted[Math.floor(position)]!, sorted[Math.ceil(position)]!];
      expect(found![index]).toBeCloseTo(low * (1 - (position % 1)) + high * (position % 1), 9);
    }
  };
  const valueIn = (group: AccuracyRow['group'], item: ScoredItem): string =>
    ({
      all: 'all',
      evidence_type: item.evidenceType,
      operation: operationCodes[item.memoryOperation],
      cell: `${item.evidenceType}/${operationCodes[item.memoryOperation]}`,
      subtype: item.subtype,
    })[group];

  it.each(lanes.map((lane) => [lane.title.id, lane] as const))('of lane %s', (id, { items }) => {
    const rows = report.accuracies.filter((row) => row.lane === id);
    const questions = unique(items.filter(isCounted));
    expect(rows.length).toBeGreaterThan(200);
    for (const row of rows) {
      const holds = (item: ScoredItem) =>
        (row.length === 'all' || item.contextLength === row.length) &&
        inScope(item, row.scope) &&
        valueIn(row.group, item) === row.value;
      const members = items.filter(holds);
      expect(row.n).toBe(members.filter(isCounted).length);
      expect(row.n + row.rejected + row.pending + row.open).toBe(members.length);
      expect(row.correct).toBe(members.filter((item) => item.status === 'correct').length);
      if (row.n > 0) expect(row.accuracyPct).toBeCloseTo(accuracy(members), 10);
      expect(row.complete).toBe(!members.some((item) => item.status === 'pending' || item.status === 'open'));
      expectInterval(
        row.intervalPct,
        redrawn(items, questions, (drawn) => accuracy(drawn.filter(holds))),
      );
    }
  });

  const matchedOf = (items: readonly ScoredItem[]) =>
    unique(items).filter(
      (id) => items.filter((item) => item.questionId === id && isCounted(item)).length === 4,
    );

  it('matched rows and retention', () => {
    for (const { title, items } of lanes) {
      const questions = matchedOf(items);
      expect(questions.length).toBeGreaterThan(20);
      for (const row of report.matched.filter(({ lane }) => lane === title.id)) {
        const holds = (item: ScoredItem) => item.contextLength === row.length && inScope(item, row.scope);
        const members = items.filter((item) => questions.includes(item.questionId) && holds(item));
        expect(row.n).toBe(members.length);
        expect(row.accuracyPct).toBeCloseTo(accuracy(members), 10);
        expectInterval(
          row.intervalPct,
          redrawn(items, questions, (drawn) => accuracy(drawn.filter(holds))),
        );
      }
      const rows = report.retention.filter(({ lane }) => lane === title.id);
      const members = items.filter((item) => questions.includes(item.questionId));
      const present = ['all', ...evidenceTypes].flatMap((value) =>
        (['overall', 'answerable', 'answer_refusal'] as const).filter((scope) =>
          members.some((item) => (value === 'all' || item.evidenceType === value) && inScope(item, scope)),
        ),
      );
      expect(rows.map((row) => row.scope)).toEqual(present);
      for (const row of rows) {
        const ratio = (given: readonly ScoredItem[]): number => {
          const part = given.filter(
            (item) => inScope(item, row.scope) && (row.group === 'all' || item.evidenceType === row.value),
          );
          const [short, long] = ['8k', '64k'].map((length) =>
            accuracy(part.filter((item) => item.contextLength === length)),
          );
          return long! / short!;
        };
        if (row.retention !== null) expect(row.retention).toBeCloseTo(ratio(members), 10);
        expectInterval(row.interval, redrawn(items, questions, ratio));
      }
    }
  });

  it('means and medians across models', () => {
    expect(report.acrossModels).toHaveLength(12);
    for (const row of report.acrossModels) {
      const values = lanes
        .map(({ items }) => {
          const questions = matchedOf(items);
          return accuracy(
            items.filter(
              (item) =>
                questions.includes(item.questionId) &&
                item.contextLength === row.length &&
                inScope(item, row.scope),
            ),
          );
        })
        .toSorted((a, b) => a - b);
      expect(row.models).toBe(3);
      expect(row.medianPct).toBeCloseTo(values[1]!, 10);
      expect(row.meanPct).toBeCloseTo((values[0]! + values[1]! + values[2]!) / 3, 10);
    }
  });
});
