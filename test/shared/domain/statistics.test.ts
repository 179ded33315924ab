import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import {
  averageRanks,
  cohenKappa,
  mean,
  meanAbsoluteDifference,
  median,
  observedAgreement,
  percent,
  percentile,
  percentileInterval,
  resampleUnits,
  seededIntegers,
  spearman,
} from '../../../shared/domain/statistics.ts';

// Fixed vectors and what NumPy 2.4 (percentile, median, mean), SciPy 1.17 (rankdata, spearmanr) and scikit-learn 1.9
// (cohen_kappa_score) make of them. Drawn once with numpy.random.default_rng(20261130).
const values = [-3.33, -10.53, -17.96, 0.66, -5.86, -2.33, 0.46, 6.74, -5.84, 5.31, -4.23];
const scores = [61.2, 55, 55, 48.3, 70.1, 33.3, 55, 48.3, 90.5, 12];
const otherScores = [20, 35.5, 20, 20, 41, 60, 35.5, 10, 5, 41];
const manyTies = [
  4, 3, 4, 4, 3, 2, 0, 4, 5, 4, 5, 2, 1, 4, 3, 0, 2, 2, 5, 0, 5, 5, 5, 3, 1, 1, 4, 0, 5, 0, 3, 2, 0, 4, 2, 5,
  5, 3, 1, 4,
];
const manyTiesToo = [
  3, 4, 3, 3, 1, 4, 2, 5, 4, 3, 5, 1, 0, 4, 2, 0, 3, 4, 2, 1, 2, 4, 5, 1, 0, 1, 4, 3, 3, 1, 4, 3, 2, 4, 2, 4,
  4, 3, 0, 4,
];

describe('percentiles', () => {
  it.each([
    [0.025, -16.1025],
    [0.1, -10.53],
    [0.5, -3.33],
    [0.975, 6.3825],
    [1, 6.74],
  ])('at %d are those of NumPy', (share, expected) => {
    expect(percentile(Float64Array.from(values).sort(), share)).toBeCloseTo(expected, 12);
  });

  it('give an interval, interpolated between neighbours', () => {
    expect(percentileInterval(Float64Array.from([40, 0, 10, 20, 30]))).toEqual([1, 39]);
    expect(percentileInterval(new Float64Array(0))).toBeNull();
  });

  it('leave out resamples without a value', () => {
    expect(percentileInterval(Float64Array.from([40, Number.NaN, 0, 10, 20, Number.NaN, 30]))).toEqual([
      1, 39,
    ]);
    expect(percentileInterval(Float64Array.of(Number.NaN))).toBeNull();
  });
});

test('mean, median and percentage', () => {
  expect(mean(values)).toBeCloseTo(-3.355454545454545, 12);
  expect(median(values)).toBe(-3.33);
  expect(median([4, 1, 3, 10])).toBe(3.5);
  expect(percent(130, 799)).toBeCloseTo(16.27, 2);
});

describe('rank correlation', () => {
  /** Rank of a value: one more than are smaller, and half of the others that are equal. */
  const countedRanks = (given: readonly number[]): number[] =>
    given.map(
      (value) =>
        1 +
        given.filter((other) => other < value).length +
        (given.filter((other) => other === value).length - 1) / 2,
    );

  const pearson = (a: readonly number[], b: readonly number[]): number => {
    const n = a.length;
    const sum = (list: readonly number[]) => list.reduce((total, value) => total + value, 0);
    const products = sum(a.map((value, index) => value * b[index]!));
    const squares = (list: readonly number[]) => sum(list.map((value) => value * value));
    return (
      (n * products - sum(a) * sum(b)) /
      Math.sqrt((n * squares(a) - sum(a) ** 2) * (n * squares(b) - sum(b) ** 2))
    );
  };

  it('ranks ties by the mean, as SciPy does', () => {
    expect(averageRanks(scores)).toEqual([8, 6, 6, 3.5, 9, 2, 6, 3.5, 10, 1]);
    expect(averageRanks(otherScores)).toEqual([4, 6.5, 4, 4, 8.5, 10, 6.5, 2, 1, 8.5]);
  });

  it('is that of SciPy', () => {
    expect(spearman(scores, otherScores)).toBeCloseTo(-0.4075255133426093, 12);
    expect(spearman(manyTies, manyTiesToo)).toBeCloseTo(0.6322970163600656, 12);
  });

  it('is 1 for every rising and −1 for every falling relation', () => {
    expect(spearman([1, 2, 3, 9], [0, 10, 11, 1000])).toBe(1);
    expect(spearman([1, 2, 3, 9], [4, 3, 2, 1])).toBe(-1);
  });

  it('is not defined without two values that differ', () => {
    expect(spearman([], [])).toBeNull();
    expect(spearman([1], [2])).toBeNull();
    expect(spearman([1, 2, 3], [5, 5, 5])).toBeNull();
  });

  it("agrees with Pearson's of ranks found by counting", () => {
    const pairs = fc.array(fc.tuple(fc.integer({ min: 0, max: 7 }), fc.integer({ min: 0, max: 7 })), {
      minLength: 2,
      maxLength: 30,
    });
    fc.assert(
      fc.property(pairs, (drawn) => {
        const [a, b] = [drawn.map(([x]) => x), drawn.map(([, y]) => y)];
        const expected = pearson(countedRanks(a), countedRanks(b));
        const found = spearman(a, b);
        if (Number.isNaN(expected)) expect(found).toBeNull();
        else expect(found).toBeCloseTo(expected, 9);
      }),
    );
  });
});

describe('agreement', () => {
  const table = [
    [17, 4, 1],
    [3, 16, 1],
    [3, 3, 12],
  ];

  it('and κ are those of scikit-learn', () => {
    expect(observedAgreement(table)).toBe(0.75);
    expect(cohenKappa(table)).toBeCloseTo(0.6221662468513854, 12);
  });

  it('is 0 where raters agree as often as by chance, negative below', () => {
    expect(
      cohenKappa([
        [25, 25],
        [25, 25],
      ]),
    ).toBe(0);
    expect(
      cohenKappa([
        [0, 10],
        [10, 0],
      ]),
    ).toBe(-1);
  });

  it('is not defined without items, κ nor where both raters say one thing only', () => {
    const nothing = [
      [0, 0],
      [0, 0],
    ];
    const oneThing = [
      [9, 0],
      [0, 0],
    ];

    expect([observedAgreement(nothing), cohenKappa(nothing)]).toEqual([null, null]);
    expect([observedAgreement(oneThing), cohenKappa(oneThing)]).toEqual([1, null]);
  });

  it('κ agrees with its definition by shares, counted item by item', () => {
    const answers = fc.array(fc.tuple(fc.constantFrom(0, 1, 2), fc.constantFrom(0, 1, 2)), {
      minLength: 1,
      maxLength: 60,
    });
    fc.assert(
      fc.property(answers, (pairs) => {
        const count = (test: (pair: readonly [number, number]) => boolean) => pairs.filter(test).length;
        const observed = count(([a, b]) => a === b) / pairs.length;
        const expected = [0, 1, 2].reduce(
          (sum, k) =>
            sum + (count(([a]) => a === k) / pairs.length) * (count(([, b]) => b === k) / pairs.length),
          0,
        );
        const counted = [0, 1, 2].map((a) => [0, 1, 2].map((b) => count(([x, y]) => x === a && y === b)));

        const found = cohenKappa(counted);

        if (expected > 1 - 1e-12) expect(found).toBeNull();
        else expect(found).toBeCloseTo((observed - expected) / (1 - expected), 9);
      }),
    );
  });

  it('differs by the mean of absolute differences', () => {
    expect(meanAbsoluteDifference([50, 60, 70], [52, 57, 70])).toBeCloseTo(5 / 3, 12);
    expect(meanAbsoluteDifference([], [])).toBeNull();
  });
});

describe('resampling', () => {
  it('draws the sequence of xoshiro128** that a seed stands for', () => {
    const next = seededIntegers(53_126);

    // From an implementation of both generators in Python.
    expect([next(), next(), next(), next(), next()]).toEqual([
      2_157_053_934, 1_537_661_026, 3_755_152_957, 1_599_469_046, 3_870_120_098,
    ]);
  });

  it('draws as many units as there are', () => {
    const sizes = new Set<number>();

    resampleUnits({ counts: Int32Array.of(1, 5, 1, 7, 1, 9), width: 2 }, { seed: 1, resamples: 40 }, (sums) =>
      sizes.add(sums[0]!),
    );

    expect([...sizes]).toEqual([3]);
  });

  it('sums the rows of the units that the generator names, each at its place', () => {
    const rows = [
      [1, 10],
      [2, 20],
      [3, 30],
      [4, 40],
    ];
    const places = [0, 2, 2, 0];
    const next = seededIntegers(9);
    const expected = Array.from({ length: 25 }, () => {
      const sums = [0, 0, 0, 0];
      for (let draw = 0; draw < 4; draw += 1) {
        const unit = Math.floor((next() / 2 ** 32) * 4);
        rows[unit]!.forEach((count, column) => {
          sums[places[unit]! + column]! += count;
        });
      }
      return sums;
    });

    const found: number[][] = [];
    resampleUnits(
      { counts: Int32Array.from(rows.flat()), width: 2, places: Int32Array.from(places), sumsLength: 4 },
      { seed: 9, resamples: 25 },
      (sums) => found.push([...sums]),
    );

    expect(found).toEqual(expected);
  });

  it('says of a share what the theory of the binomial says', () => {
    // 300 of 799 right: normal approximation 37.55 % ± 1.96 · √(p·(1 − p)/799).
    const counts = Int32Array.from({ length: 799 }, (_, unit) => (unit < 300 ? 1 : 0));
    const shares = new Float64Array(10_000);

    resampleUnits({ counts, width: 1 }, { seed: 3, resamples: 10_000 }, (sums, resample) => {
      shares[resample] = percent(sums[0]!, 799);
    });

    const [low, high] = percentileInterval(shares)!;
    expect(low).toBeCloseTo(37.547 - 3.358, 0);
    expect(high).toBeCloseTo(37.547 + 3.358, 0);
  });
});
