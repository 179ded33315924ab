import { expect, test } from 'vitest';
import type { PairedItem } from '../../../../shared/benchmarks/return/aggregate.ts';
import { laneIntervals } from '../../../../shared/benchmarks/return/bootstrap.ts';
import { buildItem, buildItems } from './view-builders.ts';

/** Views, single and multi correct of five source roots. */
const rootCounts = [
  [2, 2, 1],
  [1, 1, 0],
  [2, 1, 1],
  [1, 0, 0],
  [4, 4, 1],
] as const;

const buildRoots = (changes: Partial<PairedItem> = {}): PairedItem[] =>
  rootCounts.flatMap(([n, single, multi], root) =>
    buildItems(n, single, multi, { ...changes, task_id: `r${root}` }),
  );

const rootOf = (taskId: string): string => taskId;

test.each([
  [2_000, [42.857142857142854, 100], [12.5, 44.44444444444444], [12.5, 75]],
  [100, [42.857142857142854, 100], [16.666666666666668, 44.44444444444444], [13.348214285714286, 75]],
])('intervals of %i resamples of roots are those of Python', (resamples, single, multi, drop) => {
  const rows = laneIntervals(buildRoots(), rootOf, { seed: 53_126, resamples });

  const overall = rows.find((row) => row.horizon === 'all' && row.operation === 'Overall')!;
  expect(overall.n).toBe(10);
  expect(overall.single_accuracy_pct[0]).toBeCloseTo(single[0]!, 10);
  expect(overall.single_accuracy_pct[1]).toBeCloseTo(single[1]!, 10);
  expect(overall.multi_accuracy_pct[0]).toBeCloseTo(multi[0]!, 10);
  expect(overall.multi_accuracy_pct[1]).toBeCloseTo(multi[1]!, 10);
  expect(overall.degradation_pp[0]).toBeCloseTo(drop[0]!, 10);
  expect(overall.degradation_pp[1]).toBeCloseTo(drop[1]!, 10);
});

test('each interface, horizon and operation with views has its row', () => {
  const items = [
    ...buildRoots(),
    ...buildRoots({ interface: 'mcq', history_horizon: 'long', operation: 'rebind' }),
  ];

  const rows = laneIntervals(items, rootOf, { seed: 1, resamples: 50 });

  expect(rows.map((row) => `${row.interface} ${row.horizon} ${row.operation} ${row.n}`)).toEqual([
    'openqa all Overall 10',
    'openqa all Reconfirm 10',
    'openqa short Overall 10',
    'openqa short Reconfirm 10',
    'mcq all Overall 10',
    'mcq all Rebind 10',
    'mcq long Overall 10',
    'mcq long Rebind 10',
  ]);
});

test('a single root leaves nothing to resample', () => {
  const items = buildItems(4, 3, 1);

  const [row] = laneIntervals(items, () => 'one', { seed: 7, resamples: 100 });

  expect(row).toMatchObject({
    single_accuracy_pct: [75, 75],
    multi_accuracy_pct: [25, 25],
    degradation_pp: [50, 50],
  });
});

test('resamples without a view of a group do not count for it', () => {
  const items = [
    buildItem({ task_id: 'r0', single: true, multi: false }),
    buildItem({ task_id: 'r1', interface: 'mcq' }),
  ];

  const rows = laneIntervals(items, rootOf, { seed: 3, resamples: 200 });

  expect(rows.find((row) => row.interface === 'openqa')).toMatchObject({
    single_accuracy_pct: [100, 100],
    multi_accuracy_pct: [0, 0],
  });
});

test('equal seeds give equal intervals, other seeds others', () => {
  const interval = (seed: number) => laneIntervals(buildRoots(), rootOf, { seed, resamples: 37 });

  expect(interval(5)).toEqual(interval(5));
  expect(interval(5)).not.toEqual(interval(6));
});

test('no views, no intervals', () => {
  expect(laneIntervals([], rootOf, { seed: 1 })).toEqual([]);
});
