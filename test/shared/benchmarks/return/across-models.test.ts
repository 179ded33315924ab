import { existsSync, readFileSync } from 'node:fs';
import { parse } from 'csv-parse/sync';
import { describe, expect, test } from 'vitest';
import {
  audioVisualDeltas,
  cellExceptions,
  cellRows,
  interfaceDifferences,
  type LaneItems,
  ladderRows,
  medians,
  modelMeanLadders,
  modelRows,
  operationNames,
  paperTable,
} from '../../../../shared/benchmarks/return/across-models.ts';
import type { PairedItem } from '../../../../shared/benchmarks/return/aggregate.ts';
import { buildItem, buildItems } from './view-builders.ts';

const buildLane = (items: PairedItem[], changes: Partial<LaneItems> = {}): LaneItems => ({
  lane: 'm',
  displayName: 'M',
  family: 'Omni',
  items,
  ...changes,
});

test('a row per interface and horizon that has views', () => {
  const lane = buildLane([
    ...buildItems(3, 2, 1, { interface: 'mcq', history_horizon: 'long' }),
    ...buildItems(4, 4, 3),
  ]);

  expect(modelRows([lane])).toEqual([
    {
      model: 'M',
      family: 'Omni',
      interface: 'openqa',
      horizon: 'short',
      single_accuracy_pct: 100,
      multi_accuracy_pct: 75,
      degradation_pp: 25,
      valid_pairs: 4,
    },
    {
      model: 'M',
      family: 'Omni',
      interface: 'mcq',
      horizon: 'long',
      single_accuracy_pct: 66.66666666666667,
      multi_accuracy_pct: 33.333333333333336,
      degradation_pp: 33.333333333333336,
      valid_pairs: 3,
    },
  ]);
});

test('cells carry the names of the paper', () => {
  const lane = buildLane([
    ...buildItems(2, 1, 2, { operation: 'rebind' }),
    ...buildItems(4, 3, 1, { operation: 'revise' }),
  ]);

  expect(cellRows([lane])).toMatchObject([
    { operation: 'Reground', n: 4, single_correct: 3, multi_correct: 1, single_pct: 75, delta_pp: 50 },
    { operation: 'Rebind', n: 2, single_correct: 1, multi_correct: 2, multi_pct: 100, delta_pp: -50 },
  ]);
});

test('cells that lack views are listed with the number they should have', () => {
  const lane = buildLane(buildItems(2, 1, 1), {
    excluded: [buildItem(), buildItem({ operation: 'rebind' })],
  });

  expect(cellExceptions([lane])).toEqual([
    { model: 'M', interface: 'openqa', horizon: 'short', operation: 'Reconfirm', n: 2, expected: 3 },
    { model: 'M', interface: 'openqa', horizon: 'short', operation: 'Rebind', n: 0, expected: 1 },
  ]);
});

test('the table of the paper has a change that is negative for a drop', () => {
  const lane = buildLane([...buildItems(2, 2, 1), ...buildItems(2, 1, 2, { operation: 'retrieve' })]);

  expect(paperTable([lane])).toEqual([
    {
      interface: 'openqa',
      horizon: 'short',
      model: 'M',
      family: 'Omni',
      cells: {
        Overall: { n: 4, multi_pct: 75, change_pp: 0 },
        Reconfirm: { n: 2, multi_pct: 50, change_pp: -50 },
        Retrieve: { n: 2, multi_pct: 100, change_pp: 50 },
      },
    },
  ]);
});

test('a ladder counts complete pairs only, horizons pooled', () => {
  const lane = buildLane([
    buildItem({ pair_id: 'p1', operation: 'preserve' }),
    buildItem({ pair_id: 'p1', operation: 'revise', single: false, multi: false }),
    buildItem({ pair_id: 'p2', operation: 'revise', history_horizon: 'long', multi: false }),
    buildItem({ pair_id: 'p2', operation: 'preserve', history_horizon: 'long', multi: false }),
    buildItem({ pair_id: 'p3', operation: 'preserve' }),
    buildItem({ pair_id: 'p1', operation: 'revise', interface: 'mcq' }),
  ]);

  expect(ladderRows([lane])).toEqual([
    { role: 'task', model: 'M', interface: 'openqa', n: 2, single: 75, reference: 50, conflict: 0 },
  ]);
});

test('a mean ladder weighs every model the same', () => {
  const row = {
    role: 'task',
    interface: 'mcq',
    model: 'a',
    n: 1_000,
    single: 90,
    reference: 80,
    conflict: 10,
  };
  const other = { ...row, model: 'b', n: 1, single: 70, reference: 40, conflict: 30 };

  expect(modelMeanLadders([row, other])).toEqual([
    { role: 'task', interface: 'mcq', models: 2, single: 80, reference: 60, conflict: 20 },
  ]);
});

test('audio minus visual averages the interfaces as two rates, however many views each has', () => {
  const lane = buildLane([
    ...buildItems(10, 10, 5, { required_modality: 'A' }),
    ...buildItems(2, 2, 2, { required_modality: 'A', interface: 'mcq' }),
    ...buildItems(4, 4, 3, { required_modality: 'V' }),
    ...buildItems(4, 4, 1, { required_modality: 'V', interface: 'mcq' }),
  ]);
  const deaf = buildLane(buildItems(4, 4, 1), { displayName: 'Deaf', family: 'LVLM' });

  const expected = { model: 'M', audio_delta_pp: 25, visual_delta_pp: 50, audio_minus_visual_pp: -25 };
  expect(audioVisualDeltas([lane, deaf])).toEqual([
    { ...expected, horizon: 'all' },
    { ...expected, horizon: 'short' },
  ]);
});

test('interfaces differ in multi-turn accuracy, with horizons pooled', () => {
  const lane = buildLane([
    ...buildItems(4, 4, 3, { operation: 'revise' }),
    ...buildItems(4, 4, 1, { operation: 'revise', history_horizon: 'long' }),
    ...buildItems(4, 4, 1, { operation: 'revise', interface: 'mcq' }),
  ]);

  const expected = { openqa_multi_pct: 50, mcq_multi_pct: 25, mcq_minus_openqa_pp: -25 };
  expect(interfaceDifferences([lane])).toMatchObject([
    { operation: 'Overall', ...expected },
    { operation: 'Reground', ...expected },
  ]);
});

test('a median of an even number of models is the middle of the two in the middle', () => {
  const lanes = [0, 1, 2, 4].map((multi) => buildLane(buildItems(4, 4, multi)));

  const { by_interface } = medians(lanes);

  expect(by_interface).toEqual({
    openqa: {
      all: {
        Overall: { models: 4, single_accuracy_pct: 100, multi_accuracy_pct: 37.5, degradation_pp: 62.5 },
        Reconfirm: { models: 4, single_accuracy_pct: 100, multi_accuracy_pct: 37.5, degradation_pp: 62.5 },
      },
      short: {
        Overall: { models: 4, single_accuracy_pct: 100, multi_accuracy_pct: 37.5, degradation_pp: 62.5 },
        Reconfirm: { models: 4, single_accuracy_pct: 100, multi_accuracy_pct: 37.5, degradation_pp: 62.5 },
      },
    },
  });
});

test('nothing valid gives nothing', () => {
  const lane = buildLane([]);

  expect([modelRows([lane]), cellRows([lane]), ladderRows([lane]), paperTable([lane])]).toEqual([
    [],
    [],
    [],
    [],
  ]);
  expect(medians([lane])).toEqual({ models: 0, valid_views: 0, by_interface: {}, mcq_minus_openqa: {} });
});

const reference = '../shared/reference';

type Row = Record<string, string>;
const table = (file: string): Row[] =>
  parse(readFileSync(`${reference}/${file}`, 'utf8'), { columns: true }) as Row[];

const releaseNames = Object.fromEntries(Object.entries(operationNames).map(([name, paper]) => [paper, name]));

const lanesOf = (itemsOf: (row: Row) => PairedItem[], rows: Row[]): LaneItems[] => {
  const lanes = new Map<string, { family: string; items: PairedItem[] }>();
  for (const row of rows) {
    const lane = lanes.get(row.model!) ?? { family: row.family ?? 'Omni', items: [] };
    lane.items.push(...itemsOf(row));
    lanes.set(row.model!, lane);
  }
  return [...lanes].map(([model, lane]) =>
    buildLane(lane.items, { displayName: model, family: lane.family }),
  );
};

const oneDecimal = (value: number | undefined): string => value!.toFixed(1);

describe.runIf(existsSync(reference))('the published numbers', () => {
  const paper = existsSync(reference) ? table('paper-tables.csv') : [];
  const lanes = lanesOf(
    (row) =>
      buildItems(Number(row.n), Number(row.single_correct), Number(row.multi_correct), {
        interface: row.interface!,
        history_horizon: row.horizon!,
        operation: releaseNames[row.operation!]!,
      }),
    paper,
  );

  test('the leaderboard, exactly', () => {
    const expected = table('leaderboard.csv').map((row) => ({
      ...row,
      single_accuracy_pct: Number(row.single_accuracy_pct),
      multi_accuracy_pct: Number(row.multi_accuracy_pct),
      degradation_pp: Number(row.degradation_pp),
      valid_pairs: Number(row.valid_pairs),
    }));

    const rows = modelRows(lanes);

    expect(rows).toHaveLength(52);
    expect(new Set(rows.map((row) => JSON.stringify(row)))).toEqual(
      new Set(expected.map((row) => JSON.stringify(row))),
    );
  });

  test('the cells of tables 7 to 10', () => {
    const key = (row: object) =>
      ['model', 'family', 'interface', 'horizon', 'operation', 'n', 'single_correct', 'multi_correct']
        .map((name) => (row as Row)[name])
        .join('|');

    const rows = cellRows(lanes);

    expect(rows.map(key).sort()).toEqual(paper.map(key).sort());
    for (const row of rows) {
      const printed = paper.find((candidate) => key(candidate) === key(row))!;
      expect(Math.abs(row.multi_pct - Number(printed.multi_pct))).toBeLessThan(0.0501);
      expect(Math.abs(row.delta_pp - Number(printed.delta_pp))).toBeLessThan(0.0501);
    }
  });

  test('every median', () => {
    const found = medians(lanes);
    const openqa = found.by_interface.openqa!;
    const mcq = found.by_interface.mcq!;

    expect([found.models, found.valid_views]).toEqual([13, 94_984]);
    expect(oneDecimal(openqa.all!.Overall!.single_accuracy_pct)).toBe('93.7');
    expect(oneDecimal(openqa.all!.Overall!.multi_accuracy_pct)).toBe('72.3');
    expect(oneDecimal(openqa.all!.Overall!.degradation_pp)).toBe('20.1');
    expect(oneDecimal(openqa.short!.Overall!.degradation_pp)).toBe('6.8');
    expect(oneDecimal(openqa.long!.Overall!.degradation_pp)).toBe('34.5');
    expect(oneDecimal(mcq.short!.Overall!.degradation_pp)).toBe('19.0');
    expect(oneDecimal(mcq.long!.Overall!.degradation_pp)).toBe('36.9');
    expect(
      ['Reconfirm', 'Reground', 'Retrieve', 'Rebind'].map((name) =>
        oneDecimal(openqa.long![name]!.multi_accuracy_pct),
      ),
    ).toEqual(['79.5', '48.5', '78.9', '19.9']);
    expect(oneDecimal(found.mcq_minus_openqa.Overall!.median_absolute_difference_pp)).toBe('2.5');
    expect(oneDecimal(found.mcq_minus_openqa.Reground!.median_absolute_difference_pp)).toBe('24.4');
    expect(found.mcq_minus_openqa.Reground).toMatchObject({ models: 13, models_lower_on_mcq: 11 });
  });

  test('the ladders, exactly', () => {
    const rows = table('ladders.csv').map((row) => ({
      role: row.role!,
      model: row.model!,
      interface: row.interface!,
      n: Number(row.n),
      single: Number(row.single),
      reference: Number(row.reference),
      conflict: Number(row.conflict),
    }));
    const ladderLanes = lanesOf((row) => {
      const n = Number(row.n);
      const count = (name: string, of: number) => Math.round((Number(row[name]) * of) / 100);
      const single = count('single', 2 * n);
      const operations = row.role === 'task' ? ['preserve', 'revise'] : ['retrieve', 'rebind'];
      return Array.from({ length: n }, (_, pair) => pair).flatMap((pair) => {
        const shared = { pair_id: `${row.role}${pair}`, interface: row.interface! };
        return [
          buildItem({
            ...shared,
            operation: operations[0]!,
            single: pair < single,
            multi: pair < count('reference', n),
          }),
          buildItem({
            ...shared,
            operation: operations[1]!,
            single: pair + n < single,
            multi: pair < count('conflict', n),
          }),
        ];
      });
    }, table('ladders.csv'));

    const found = ladderRows(ladderLanes);

    expect(found).toHaveLength(rows.length);
    for (const row of rows) expect(found).toContainEqual(row);
  });
});
