import { expect, test } from 'vitest';
import {
  aggregateLane,
  fourCells,
  groupRows,
  releaseSummary,
} from '../../../../shared/benchmarks/return/aggregate.ts';
import type { ScoredRecord } from '../../../../shared/benchmarks/return/scored-record.ts';
import { buildItem, buildItems, buildScore, buildTask } from './view-builders.ts';

const reference = buildTask({ task_id: 'ref', operation: 'preserve' });
const conflict = buildTask({ task_id: 'con', operation: 'revise' });

const failed = (error: string) =>
  ({ status: 'error', error, score_status: 'inference_failed', content_correct: null }) as const;

/** Scores of everything, right and strict unless changed. */
const scores =
  (changes: Record<string, Partial<ScoredRecord> | null> = {}) =>
  (requestId: string): ScoredRecord | undefined =>
    changes[requestId] === null ? undefined : buildScore(requestId, changes[requestId]);

test('a view takes content and strictness of both its requests', () => {
  const lane = aggregateLane(
    [reference],
    ['openqa'],
    scores({
      'p1::C::openqa': { strict_correct: false },
      'ref::H0::openqa': { content_correct: false, strict_correct: false },
    }),
  );

  expect(lane.excludedItems).toEqual([]);
  expect(lane.pairedItems).toEqual([
    {
      task_id: 'ref',
      pair_id: 'p1',
      operation: 'preserve',
      history_side: 'task',
      required_modality: 'V',
      history_horizon: 'short',
      adapt_split: 'ADAPT_TRAIN',
      family: 'colour',
      interface: 'openqa',
      single: true,
      multi: false,
      single_strict: false,
      multi_strict: false,
    },
  ]);
});

test('views come in the order of tasks, then of interfaces', () => {
  const lane = aggregateLane([conflict, reference], ['mcq', 'openqa'], scores());

  expect(lane.pairedItems.map((item) => [item.task_id, item.interface])).toEqual([
    ['con', 'mcq'],
    ['con', 'openqa'],
    ['ref', 'mcq'],
    ['ref', 'openqa'],
  ]);
  expect(lane.operationPairs.map((pair) => [pair.reference_task_id, pair.conflict_task_id])).toEqual([
    ['ref', 'con'],
    ['ref', 'con'],
  ]);
});

test('a failed, pending, blocked or missing request excludes its views and their pair, with the reason', () => {
  const tasks = [
    reference,
    conflict,
    buildTask({ task_id: 'ref2', pair_id: 'p2', operation: 'retrieve' }),
    buildTask({ task_id: 'con2', pair_id: 'p2', operation: 'rebind' }),
  ];
  const lane = aggregateLane(
    tasks,
    ['openqa'],
    scores({
      'con::H0::openqa': failed('length_truncated'),
      'p2::C::openqa': { score_status: 'review_pending', content_correct: null },
      'con2::H0::openqa': null,
    }),
  );

  expect(lane.pairedItems.map((item) => item.task_id)).toEqual(['ref']);
  expect(lane.excludedItems.map((item) => [item.task_id, item.reason])).toEqual([
    ['con', 'H0: length_truncated'],
    ['ref2', 'C: review_pending'],
    ['con2', 'C: review_pending; H0: missing'],
  ]);
  expect(lane.excludedItems[2]).toMatchObject({
    control_request_id: 'p2::C::openqa',
    control_reason: 'review_pending',
    history_request_id: 'con2::H0::openqa',
    history_reason: 'missing',
  });
  expect(lane.operationPairs).toEqual([]);
  expect(lane.excludedPairs.map((pair) => [pair.pair_id, pair.reason])).toEqual([
    ['p1', 'revise (H0: length_truncated)'],
    ['p2', 'retrieve (C: review_pending); rebind (C: review_pending; H0: missing)'],
  ]);
});

test('a blocked request is excluded under its own name', () => {
  const blocked = { ...failed('blocked'), status: 'blocked' } as const;

  const lane = aggregateLane([reference], ['openqa'], scores({ 'ref::H0::openqa': blocked }));

  expect(lane.excludedItems.map((item) => item.reason)).toEqual(['H0: blocked']);
});

test('a pair of which one member was not selected is no pair', () => {
  const lane = aggregateLane([reference], ['openqa'], scores());

  expect(lane.operationPairs).toEqual([]);
  expect(lane.excludedPairs).toEqual([]);
});

test('a group has counts, percentages, harm and rescue', () => {
  const items = [
    buildItem({ single: true, multi: true, single_strict: true }),
    buildItem({ single: true, multi: false }),
    buildItem({ single: true, multi: false }),
    buildItem({ single: false, multi: true, multi_strict: true }),
    buildItem({ single: false, multi: false }),
    buildItem({ single: false, multi: false }),
  ];

  const row = groupRows(items).find((group) => group.group === 'interface');

  expect(row).toEqual({
    group: 'interface',
    value: 'openqa',
    interface: 'openqa',
    n: 6,
    single_accuracy: 50,
    multi_accuracy: 33.333333333333336,
    delta_conv_pp: 16.666666666666668,
    harm: 2,
    rescue: 1,
    single_strict: 16.666666666666668,
    multi_strict: 16.666666666666668,
  });
});

test('groups are sorted by group, value and interface, and empty ones are absent', () => {
  const items = [
    buildItem({ operation: 'revise', required_modality: 'V' }),
    buildItem({ operation: 'preserve', required_modality: 'A', interface: 'mcq', history_horizon: 'long' }),
    buildItem({ operation: 'preserve', required_modality: 'A', adapt_split: null }),
  ];

  const rows = groupRows(items).map((row) => `${row.group} ${row.value} ${row.interface} ${row.n}`);

  expect(rows).toEqual([
    'adapt_split ADAPT_TRAIN mcq 1',
    'adapt_split ADAPT_TRAIN openqa 1',
    'history_horizon long mcq 1',
    'history_horizon short openqa 2',
    'history_side task mcq 1',
    'history_side task openqa 2',
    'interface mcq mcq 1',
    'interface openqa openqa 2',
    'operation preserve mcq 1',
    'operation preserve openqa 1',
    'operation revise openqa 1',
    'operation×modality×horizon preserve/A/long mcq 1',
    'operation×modality×horizon preserve/A/short openqa 1',
    'operation×modality×horizon revise/V/short openqa 1',
    'required_modality A mcq 1',
    'required_modality A openqa 1',
    'required_modality V openqa 1',
  ]);
});

test.each([
  [7, 5, 2],
  [2499, 2363, 2277],
  [3, 1, 2],
])('the drop of %i views is the balance of harm and rescue', (n, single, multi) => {
  const [row] = groupRows(buildItems(n, single, multi));

  expect(row!.harm - row!.rescue).toBe(single - multi);
  expect(row!.delta_conv_pp).toBe((100 * (row!.harm - row!.rescue)) / n);
  expect(row!.delta_conv_pp).toBeCloseTo(row!.single_accuracy - row!.multi_accuracy, 10);
});

test('four cells count both members of a pair, single and multi apart', () => {
  const pair = aggregateLane([reference, conflict], ['openqa'], scores()).operationPairs[0]!;
  const pairs = [
    pair,
    { ...pair, conflict_multi: false },
    { ...pair, conflict_multi: false, reference_single: false },
    { ...pair, reference_multi: false },
    { ...pair, reference_multi: false, conflict_multi: false },
    { ...pair, history_side: 'evidence', interface: 'mcq', conflict_multi: false },
  ];

  const cells = fourCells(pairs);

  expect(cells.map((cell) => [cell.interface, cell.history_side, cell.condition])).toEqual([
    ['mcq', 'evidence', 'single'],
    ['mcq', 'evidence', 'multi'],
    ['openqa', 'task', 'single'],
    ['openqa', 'task', 'multi'],
  ]);
  expect(cells[2]).toMatchObject({ pairs: 5, both_correct: 4, conflict_only: 1, reference_only: 0 });
  expect(cells[3]).toMatchObject({
    both_correct: 1,
    reference_only: 2,
    conflict_only: 1,
    both_wrong: 1,
    reference_minus_conflict_pp: 20,
  });
});

test('the summary counts what is expected, valid and excluded', () => {
  const lane = aggregateLane(
    [reference, conflict],
    ['openqa', 'mcq'],
    scores({ 'con::H0::mcq': failed('http_500'), 'ref::H0::mcq': failed('http_500') }),
  );

  const summary = releaseSummary('m', lane);

  expect(summary).toMatchObject({
    label: 'preview subset results',
    model: 'm',
    logical_views_expected: 4,
    valid_single_multi_views: 2,
    excluded_views: 2,
    expected_operation_pair_views: 2,
    excluded_operation_pair_views: 1,
    unique_base_tasks: 2,
    exclusion_reasons: { 'H0: http_500': 2 },
  });
});
