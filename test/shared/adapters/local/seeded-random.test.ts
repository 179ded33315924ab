import { describe, expect, it } from 'vitest';
import { createSeededRandom, createSystemRandom } from '../../../../shared/adapters/local/seeded-random.ts';

describe('seeded random numbers', () => {
  // Computed with an independent implementation of mulberry32 in Python.
  it.each([
    [0, [1144304738, 1416247, 958946056, 627933444]],
    [1, [2693262067, 11749833, 2265367787, 4213581821]],
    [53126, [876949503, 1084867264, 3789703256, 2437428828]],
  ])('are those of mulberry32 for seed %d', (seed, expected) => {
    const random = createSeededRandom(seed);

    const numbers = expected.map(() => random.next() * 2 ** 32);

    expect(numbers).toEqual(expected);
  });

  it('fill [0, 1) evenly', () => {
    const random = createSeededRandom(7);
    const tenths = Array.from({ length: 10 }, () => 0);

    for (let draw = 0; draw < 100_000; draw += 1) tenths[Math.floor(random.next() * 10)]! += 1;

    // 10,000 each is expected; the standard deviation is 95.
    for (const count of tenths) expect(Math.abs(count - 10_000)).toBeLessThan(500);
    expect(tenths).toHaveLength(10);
  });
});

describe('the system’s random numbers', () => {
  it('lie in [0, 1) and differ', () => {
    const random = createSystemRandom();

    const numbers = Array.from({ length: 100 }, () => random.next());

    expect(numbers.every((number) => number >= 0 && number < 1)).toBe(true);
    expect(new Set(numbers).size).toBe(100);
  });
});
