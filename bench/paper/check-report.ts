import { readFileSync } from 'node:fs';
import path from 'node:path';
import { parse } from 'csv-parse/sync';
import { cellKey, type Expected, ladderKey } from './expected.ts';
import type { Reference } from './targets.ts';

/** What was compared, how much of it, and the first differences. */
export interface Comparison {
  what: string;
  compared: number;
  differences: string[];
}

type Row = Record<string, string>;

const rowsOf = (report: string, file: string): Row[] =>
  parse(readFileSync(path.join(report, file), 'utf8'), { columns: true }) as Row[];

const compare = <Value>(
  what: string,
  found: ReadonlyMap<string, Value>,
  wanted: ReadonlyMap<string, Value>,
): Comparison => {
  const differences: string[] = [];
  for (const key of new Set([...found.keys(), ...wanted.keys()])) {
    const [is, should] = [JSON.stringify(found.get(key)), JSON.stringify(wanted.get(key))];
    if (is !== should) differences.push(`${key}: ${is} instead of ${should}`);
  }
  return { what, compared: wanted.size, differences };
};

const mapOf = <Value>(rows: readonly Row[], entry: (row: Row) => [string, Value]): Map<string, Value> =>
  new Map(rows.map(entry));

const percent = (count: number, of: number): number => (100 * count) / of;

/** The report against what the scripts of the lanes come to. */
export const compareWithScript = (report: string, expected: Expected): Comparison[] => {
  const summary = JSON.parse(readFileSync(path.join(report, 'summary.json'), 'utf8')) as {
    counts: Record<string, number>;
  };
  const { views, valid, pending, open } = summary.counts;
  const ladders = new Map(
    [...expected.ladders].map(([key, [n, single, reference, conflict]]) => [
      key,
      [n, percent(single, 2 * n), percent(reference, n), percent(conflict, n)],
    ]),
  );
  return [
    compare(
      'views and valid views, none pending or open',
      new Map(Object.entries({ views, valid, pending, open })),
      new Map(Object.entries({ views: expected.views, valid: expected.valid, pending: 0, open: 0 })),
    ),
    compare('cells against the script', foundCells(report), expected.cells as Map<string, number[]>),
    compare('ladders against the script', foundLadders(report), ladders),
  ];
};

const foundCells = (report: string): Map<string, number[]> =>
  mapOf(rowsOf(report, 'cells.csv'), (row) => [
    cellKey(row.model!, row.interface as 'openqa', row.horizon as 'short', row.operation!),
    [Number(row.n), Number(row.single_correct), Number(row.multi_correct)],
  ]);

const foundLadders = (report: string): Map<string, number[]> => mapOf(rowsOf(report, 'ladders.csv'), ladder);

const ladder = (row: Row): [string, number[]] => [
  ladderKey(row.role as 'task', row.model!, row.interface as 'openqa'),
  [Number(row.n), Number(row.single), Number(row.reference), Number(row.conflict)],
];

const oneDecimal = (value: number): string => value.toFixed(1);

/** Medians that the paper states, rounded as it prints them. */
const publishedMedians = new Map(
  Object.entries({
    'models and valid views': '13 94984',
    'openqa single': '93.7',
    'openqa multi': '72.3',
    'openqa drop': '20.1',
    'openqa drop short': '6.8',
    'openqa drop long': '34.5',
    'mcq drop short': '19.0',
    'mcq drop long': '36.9',
    'openqa long Reconfirm': '79.5',
    'openqa long Reground': '48.5',
    'openqa long Retrieve': '78.9',
    'openqa long Rebind': '19.9',
    'absolute difference of the interfaces': '2.5',
    'the same on Reground': '24.4',
    'models lower on Reground mcq': '11',
  }),
);

interface Medians {
  models: number;
  valid_views: number;
  by_interface: Record<
    string,
    Record<
      string,
      Record<
        string,
        { single_accuracy_pct: number; multi_accuracy_pct: number; degradation_pp: number } | undefined
      >
    >
  >;
  mcq_minus_openqa: Record<string, { median_absolute_difference_pp: number; models_lower_on_mcq: number }>;
}

const foundMedians = (report: string): Map<string, string> => {
  const found = JSON.parse(readFileSync(path.join(report, 'medians.json'), 'utf8')) as Medians;
  const of = (name: string, horizon: string, operation = 'Overall') =>
    found.by_interface[name]![horizon]![operation]!;
  const long = (operation: string): [string, string] => [
    `openqa long ${operation}`,
    oneDecimal(of('openqa', 'long', operation).multi_accuracy_pct),
  ];
  const { Overall: overall, Reground: reground } = found.mcq_minus_openqa;
  return new Map([
    ['models and valid views', `${found.models} ${found.valid_views}`],
    ['openqa single', oneDecimal(of('openqa', 'all').single_accuracy_pct)],
    ['openqa multi', oneDecimal(of('openqa', 'all').multi_accuracy_pct)],
    ['openqa drop', oneDecimal(of('openqa', 'all').degradation_pp)],
    ['openqa drop short', oneDecimal(of('openqa', 'short').degradation_pp)],
    ['openqa drop long', oneDecimal(of('openqa', 'long').degradation_pp)],
    ['mcq drop short', oneDecimal(of('mcq', 'short').degradation_pp)],
    ['mcq drop long', oneDecimal(of('mcq', 'long').degradation_pp)],
    ...['Reconfirm', 'Reground', 'Retrieve', 'Rebind'].map(long),
    ['absolute difference of the interfaces', oneDecimal(overall!.median_absolute_difference_pp)],
    ['the same on Reground', oneDecimal(reground!.median_absolute_difference_pp)],
    ['models lower on Reground mcq', String(reground!.models_lower_on_mcq)],
  ]);
};

/** The report of a whole sweep against the paper's own figures. */
export const compareWithPaper = (report: string, reference: Reference): Comparison[] => {
  const leaderboard = (row: Row): [string, number[]] => [
    [row.model, row.family, row.interface, row.horizon].join('|'),
    [
      Number(row.single_accuracy_pct),
      Number(row.multi_accuracy_pct),
      Number(row.degradation_pp),
      Number(row.valid_pairs),
    ],
  ];
  return [
    compare(
      'cells of tables 7 to 10',
      foundCells(report),
      mapOf(reference.cells, (row) => [
        cellKey(row.model!, row.interface as 'openqa', row.horizon as 'short', row.operation!),
        [Number(row.n), Number(row.single_correct), Number(row.multi_correct)],
      ]),
    ),
    compare(
      'rows of the leaderboard',
      mapOf(rowsOf(report, 'models.csv'), leaderboard),
      mapOf(reference.leaderboard, leaderboard),
    ),
    compare('ladders', foundLadders(report), mapOf(reference.ladders, ladder)),
    compare('medians', foundMedians(report), publishedMedians),
  ];
};
