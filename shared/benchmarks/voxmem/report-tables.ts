import type { Interval } from '../../domain/statistics.ts';
import type { Aggregate, ReportFile } from '../benchmark.ts';
import { type Column, csv } from '../csv.ts';
import {
  type AccuracyRow,
  type LaneFacts,
  type MatchedRow,
  type Scope,
  scopes,
  type Tally,
  type VoxmemReport,
} from './aggregate.ts';
import type { compareJudges, JudgePair } from './agreement.ts';
import { type AttributionTable, type Stage, stages } from './attribution.ts';
import { evidenceTypes, itemStatuses, memoryOperations, operationCodes } from './format.ts';

/** All that a report is made from; files, tables and summary show the same figures. */
export interface ReportSources {
  report: VoxmemReport;
  /** Null with fewer than two judges. */
  judges: ReturnType<typeof compareJudges> | null;
  /** Null where no answers were audited. */
  attribution: AttributionTable | null;
}

type Value = string | number | boolean | null;
type CsvRow = Record<string, Value>;

const text = (...names: string[]): Column<CsvRow>[] => names.map((name) => [name, 'text']);
const count = (...names: string[]): Column<CsvRow>[] => names.map((name) => [name, 'count']);
const float = (...names: string[]): Column<CsvRow>[] => names.map((name) => [name, 'float']);

const file = (path: string, columns: readonly Column<CsvRow>[], rows: readonly CsvRow[]): ReportFile => ({
  path,
  content: [...csv(columns, rows)].join(''),
});

const laneColumns = text('lane', 'model', 'family', 'system_prompt');

const laneCells = (row: LaneFacts): CsvRow => ({
  lane: row.lane,
  model: row.displayName,
  family: row.family,
  system_prompt: row.systemPromptDelivery,
});

const ends = (prefix: string, interval: Interval | null): CsvRow => ({
  [`${prefix}low`]: interval?.[0] ?? null,
  [`${prefix}high`]: interval?.[1] ?? null,
});

const statusesBut = itemStatuses.filter((status) => status !== 'correct');

const tallyColumns = [
  ...count('n', 'correct'),
  ...float('pct', 'pct_low', 'pct_high'),
  ...count(...statusesBut),
  ...text('complete'),
];

const tallyCells = (row: Tally & { intervalPct: Interval | null }): CsvRow => ({
  n: row.n,
  correct: row.correct,
  pct: row.accuracyPct,
  ...ends('pct_', row.intervalPct),
  ...Object.fromEntries(statusesBut.map((status) => [status, row[status]])),
  complete: row.complete,
});

/** Rows of one lane and length, by scope. */
const byLaneAndLength = (rows: readonly MatchedRow[]): Map<Scope, MatchedRow>[] =>
  [...Map.groupBy(rows, (row) => `${row.lane}\n${row.length}`).values()].map(
    (members) => new Map(members.map((row) => [row.scope, row])),
  );

const modelsCsv = ({ matched, accuracies }: VoxmemReport): ReportFile => {
  const unsettled = new Map(
    accuracies
      .filter((row) => row.group === 'all' && row.scope === 'overall')
      .map((row) => [`${row.lane}\n${row.length}`, row]),
  );
  return file(
    'models.csv',
    [
      ...laneColumns,
      ...text('length'),
      ...scopes.flatMap((scope) => [
        ...count(`${scope}_n`, `${scope}_correct`),
        ...float(`${scope}_pct`, `${scope}_pct_low`, `${scope}_pct_high`),
      ]),
      ...count('items', 'rejected', 'pending', 'open'),
      ...text('complete'),
    ],
    byLaneAndLength(matched).map((byScope) => {
      const row = byScope.get('overall')!;
      const all = unsettled.get(`${row.lane}\n${row.length}`)!;
      return {
        ...laneCells(row),
        length: row.length,
        ...Object.fromEntries(
          scopes.flatMap((scope) => {
            const of = byScope.get(scope);
            return Object.entries({
              [`${scope}_n`]: of?.n ?? 0,
              [`${scope}_correct`]: of?.correct ?? 0,
              [`${scope}_pct`]: of?.accuracyPct ?? null,
              ...ends(`${scope}_pct_`, of?.intervalPct ?? null),
            });
          }),
        ),
        items: all.n + all.rejected + all.pending + all.open,
        rejected: all.rejected,
        pending: all.pending,
        open: all.open,
        complete: row.complete,
      };
    }),
  );
};

const accuraciesCsv = (path: string, rows: readonly AccuracyRow[]): ReportFile =>
  file(
    path,
    [...laneColumns, ...text('length', 'group', 'value', 'scope'), ...tallyColumns],
    rows.map((row) => ({
      ...laneCells(row),
      length: row.length,
      group: row.group,
      value: row.value,
      scope: row.scope,
      ...tallyCells(row),
    })),
  );

const lengthsCsv = ({ curves }: VoxmemReport): ReportFile =>
  file(
    'lengths.csv',
    [...laneColumns, ...text('length', 'scope'), ...tallyColumns],
    curves.rows.map((row) => ({
      ...laneCells(row),
      length: row.length,
      scope: row.scope,
      ...tallyCells(row),
    })),
  );

const retentionCsv = ({ retention }: VoxmemReport): ReportFile =>
  file(
    'retention.csv',
    [
      ...laneColumns,
      ...text('group', 'value', 'scope'),
      ...count('questions'),
      ...float('pct_8k', 'pct_64k', 'retention', 'retention_low', 'retention_high'),
      ...text('complete'),
    ],
    retention.map((row) => ({
      ...laneCells(row),
      group: row.group,
      value: row.value,
      scope: row.scope,
      questions: row.questions,
      pct_8k: row.shortPct,
      pct_64k: row.longPct,
      retention: row.retention,
      ...ends('retention_', row.interval),
      complete: row.complete,
    })),
  );

const pairCells = (pair: JudgePair | undefined): CsvRow => ({
  models: pair?.models ?? null,
  ranking_rho: pair?.rankingRho ?? null,
  mean_absolute_difference_pp: pair?.meanAbsoluteDifferencePp ?? null,
  favouritism_first_pp: pair?.favouritism.ofFirstPp ?? null,
  favouritism_second_pp: pair?.favouritism.ofSecondPp ?? null,
  favouritism_between_pp: pair?.favouritism.betweenPp ?? null,
});

const judgesCsv = ({ agreement, pairs }: NonNullable<ReportSources['judges']>): ReportFile =>
  file(
    'judges.csv',
    [
      ...text('first_judge', 'second_judge', 'lane', 'scope'),
      ...count('compared', 'both_correct', 'first_only_correct', 'second_only_correct', 'both_incorrect'),
      ...count('ungraded_by_first', 'ungraded_by_second'),
      ...float('agreement_pct', 'kappa', 'first_pct', 'second_pct'),
      ...count('models'),
      ...float('ranking_rho', 'mean_absolute_difference_pp'),
      ...float('favouritism_first_pp', 'favouritism_second_pp', 'favouritism_between_pp'),
    ],
    agreement.map((row) => ({
      first_judge: row.firstJudge,
      second_judge: row.secondJudge,
      lane: row.lane ?? 'all',
      scope: row.scope,
      compared: row.compared,
      both_correct: row.bothCorrect,
      first_only_correct: row.firstOnlyCorrect,
      second_only_correct: row.secondOnlyCorrect,
      both_incorrect: row.bothIncorrect,
      ungraded_by_first: row.ungradedByFirst,
      ungraded_by_second: row.ungradedBySecond,
      agreement_pct: row.agreementPct,
      kappa: row.kappa,
      first_pct: row.firstAccuracyPct,
      second_pct: row.secondAccuracyPct,
      ...pairCells(
        row.lane === null
          ? pairs.find(
              (pair) =>
                pair.firstJudge === row.firstJudge &&
                pair.secondJudge === row.secondJudge &&
                pair.scope === row.scope,
            )
          : undefined,
      ),
    })),
  );

const shares = (sharesPct: Record<Stage, number>): CsvRow =>
  Object.fromEntries(stages.map((stage) => [`${stage}_pct`, sharesPct[stage]]));

/** Cells first, then averages over cells: `cells` tells how many. */
const attributionCsv = ({ cells, byLane, byEvidenceType, overall }: AttributionTable): ReportFile =>
  file(
    'attribution.csv',
    [
      ...text('level', 'lane', 'model', 'evidence_type'),
      ...count('errors'),
      ...text('averaged'),
      ...count('cells', ...stages),
      ...float(...stages.map((stage) => `${stage}_pct`)),
    ],
    [
      ...cells.map((cell) => ({
        level: 'cell',
        lane: cell.lane,
        model: cell.displayName,
        evidence_type: cell.evidenceType,
        errors: cell.errors,
        averaged: cell.averaged,
        ...cell.counts,
        ...shares(cell.sharesPct),
      })),
      ...byLane.map((row) => ({
        level: 'model',
        lane: row.lane,
        model: row.displayName,
        cells: row.cells,
        ...shares(row.sharesPct),
      })),
      ...byEvidenceType.map((row) => ({
        level: 'evidence_type',
        evidence_type: row.evidenceType,
        cells: row.cells,
        ...shares(row.sharesPct),
      })),
      ...(overall === null ? [] : [{ level: 'all', cells: overall.cells, ...shares(overall.sharesPct) }]),
    ] as CsvRow[],
  );

/**
 * Files of the report folder. `models.csv` has the questions that count at every length which a model ran, `lengths.csv`
 * the shared models and questions of the length curves; all others have all items that count.
 */
export const reportFiles = ({ report, judges, attribution }: ReportSources): ReportFile[] => [
  modelsCsv(report),
  accuraciesCsv(
    'cells.csv',
    report.accuracies.filter((row) => row.group !== 'subtype'),
  ),
  accuraciesCsv(
    'subtypes.csv',
    report.accuracies.filter((row) => row.group === 'subtype'),
  ),
  lengthsCsv(report),
  retentionCsv(report),
  ...(judges === null ? [] : [judgesCsv(judges)]),
  ...(attribution === null ? [] : [attributionCsv(attribution)]),
];

/** What goes into `summary.json`. */
export const reportSummary = ({ report, judges, attribution }: ReportSources): Record<string, unknown> => ({
  ...report,
  judges,
  attribution,
});

type Table = Aggregate['tables'][number];

const scopeNames: Record<Scope, string> = {
  overall: 'Overall',
  answerable: 'Answerable',
  answer_refusal: 'AR',
};

const stageNames: Record<Stage, string> = {
  recognition_localization: 'Recognition/localization',
  binding: 'Binding',
  operation: 'Operation',
  unsupported: 'Unsupported',
};

const spaced = (name: string): string => name.replaceAll('_', ' ');
const fixed = (value: number | null | undefined, digits = 1): string => value?.toFixed(digits) ?? '–';

const withEnds = (
  value: number | null | undefined,
  interval: Interval | null | undefined,
  digits = 1,
): string =>
  interval
    ? `${fixed(value, digits)} (${interval.map((end) => end.toFixed(digits)).join('–')})`
    : fixed(value, digits);

const lengthName = (length: string): string => length.toUpperCase();

/** A model's name in a table, with what keeps its row from being compared with others. */
const named = (
  row: LaneFacts & { complete: boolean },
  delivery: VoxmemReport['systemPromptDelivery'],
): string => {
  const remarks = [
    delivery === 'mixed' && row.systemPromptDelivery !== null ? `${row.systemPromptDelivery} prompt` : '',
    row.complete ? '' : 'incomplete',
  ].filter((remark) => remark !== '');
  return remarks.length === 0 ? row.displayName : `${row.displayName} (${remarks.join(', ')})`;
};

/** Model × length, the table that comes first. */
const mainTable = ({ matched, systemPromptDelivery }: VoxmemReport): Aggregate['table'] => ({
  header: ['Model', 'Length', 'Questions', ...scopes.map((scope) => scopeNames[scope])],
  rows: byLaneAndLength(matched).map((byScope) => {
    const row = byScope.get('overall')!;
    return [
      named(row, systemPromptDelivery),
      lengthName(row.length),
      String(row.n),
      ...scopes.map((scope) => withEnds(byScope.get(scope)?.accuracyPct, byScope.get(scope)?.intervalPct)),
    ];
  }),
});

const curvesTable = ({ curves, systemPromptDelivery }: VoxmemReport): Table[] => {
  if (curves.rows.length === 0) return [];
  const { lengths, models, questions, rows, acrossModels } = curves;
  const perModel = models.flatMap((lane) =>
    scopes.flatMap((scope) => {
      const ofScope = rows.filter((row) => row.lane === lane && row.scope === scope);
      if (ofScope.length === 0) return [];
      const pcts = lengths.map((length) => fixed(ofScope.find((row) => row.length === length)?.accuracyPct));
      return [[named(ofScope[0]!, systemPromptDelivery), scopeNames[scope], ...pcts]];
    }),
  );
  const summed = (name: string, key: 'meanPct' | 'medianPct') =>
    scopes
      .filter((scope) => acrossModels.some((row) => row.scope === scope))
      .map((scope) => [
        name,
        scopeNames[scope],
        ...lengths.map((length) =>
          fixed(acrossModels.find((row) => row.length === length && row.scope === scope)?.[key]),
        ),
      ]);
  return [
    {
      title: `Length curves: models with a complete 64K run (${models.length}) on the questions that count for all of them at every length (${questions})`,
      header: ['Model', 'Items', ...lengths.map(lengthName)],
      rows: [...perModel, ...summed('Mean', 'meanPct'), ...summed('Median', 'medianPct')],
    },
  ];
};

const cellsTable = ({ accuracies, lanes, systemPromptDelivery }: VoxmemReport): Table => {
  const codes = memoryOperations.map((operation) => operationCodes[operation]);
  return {
    title: 'Accuracy by evidence type and operation, all lengths together',
    header: ['Model', 'Evidence', ...codes, 'Answerable', 'Overall'],
    rows: lanes.flatMap((lane) => {
      const rows = accuracies.filter((row) => row.lane === lane.lane && row.length === 'all');
      const pct = (group: string, value: string, scope?: Scope) =>
        fixed(
          rows.find(
            (row) =>
              row.group === group && row.value === value && (scope === undefined || row.scope === scope),
          )?.accuracyPct,
        );
      const name = named({ ...lane, complete: lane.counts.complete }, systemPromptDelivery);
      const perType = evidenceTypes
        .filter((type) => rows.some((row) => row.group === 'evidence_type' && row.value === type))
        .map((type) => [
          name,
          spaced(type),
          ...codes.map((code) => pct('cell', `${type}/${code}`)),
          pct('evidence_type', type, 'answerable'),
          pct('evidence_type', type, 'overall'),
        ]);
      const all = codes.map((code) => pct('operation', code));
      return [
        ...perType,
        [name, 'all', ...all, pct('all', 'all', 'answerable'), pct('all', 'all', 'overall')],
      ];
    }),
  };
};

const retentionTable = ({ retention, systemPromptDelivery }: VoxmemReport): Table[] => {
  const rows = retention.filter((row) => row.group === 'all');
  if (rows.length === 0) return [];
  return [
    {
      title: 'Retention: accuracy at 64K over accuracy at 8K',
      header: ['Model', 'Items', 'Questions', '8K', '64K', 'Retention'],
      rows: rows.map((row) => [
        named(row, systemPromptDelivery),
        scopeNames[row.scope],
        String(row.questions),
        fixed(row.shortPct),
        fixed(row.longPct),
        withEnds(row.retention, row.interval, 3),
      ]),
    },
  ];
};

const correlationTable = ({ correlations, lanes }: VoxmemReport): Table[] =>
  lanes.length < 2
    ? []
    : [
        {
          title: 'Rank correlation (Spearman) across models',
          header: ['Of', 'With', 'At', 'Models', 'ρ'],
          rows: [
            ...correlations.answerableWithRefusal.map(({ length, models, rho }) => [
              'Answerable',
              'AR',
              lengthName(length),
              String(models),
              fixed(rho, 3),
            ]),
            ...correlations.retentionWithShort.map(({ scope, models, rho }) => [
              `Retention, ${scopeNames[scope]}`,
              `${scopeNames[scope]} at 8K`,
              '64K/8K',
              String(models),
              fixed(rho, 3),
            ]),
          ],
        },
      ];

const statusTable = ({ lanes, systemPromptDelivery }: VoxmemReport): Table => ({
  title: 'What became of the items; rejected ones leave the denominators',
  header: ['Model', 'Counted', ...itemStatuses],
  rows: lanes.map((lane) => [
    named({ ...lane, complete: lane.counts.complete }, systemPromptDelivery),
    String(lane.counts.n),
    ...itemStatuses.map((status) => String(lane.counts[status])),
  ]),
});

const judgesTable = ({ agreement, pairs }: NonNullable<ReportSources['judges']>): Table => ({
  title: 'Judges compared; favouritism as difference of differences in percentage points',
  header: [
    'Judges',
    'Items',
    'Compared',
    'Agreement %',
    'κ',
    'Ranking ρ',
    'Mean difference pp',
    'Favours: first',
    'second',
    'both',
  ],
  rows: pairs.map((pair) => {
    const pooled = agreement.find(
      (row) =>
        row.lane === null &&
        row.scope === pair.scope &&
        row.firstJudge === pair.firstJudge &&
        row.secondJudge === pair.secondJudge,
    )!;
    return [
      `${pair.firstJudge} / ${pair.secondJudge}`,
      scopeNames[pair.scope],
      String(pair.compared),
      fixed(pooled.agreementPct, 2),
      fixed(pooled.kappa, 3),
      fixed(pair.rankingRho, 3),
      fixed(pair.meanAbsoluteDifferencePp, 2),
      fixed(pair.favouritism.ofFirstPp, 2),
      fixed(pair.favouritism.ofSecondPp, 2),
      fixed(pair.favouritism.betweenPp, 2),
    ];
  }),
});

const attributionPeopleTable = ({ byLane, byEvidenceType, overall }: AttributionTable): Table => {
  const average = (name: string, row: { cells: number; sharesPct: Record<Stage, number> }) => [
    name,
    String(row.cells),
    ...stages.map((stage) => fixed(row.sharesPct[stage])),
  ];
  return {
    title:
      'Where wrong answers came from: % of errors, averaged over model × evidence-type cells with at least five',
    header: ['', 'Cells', ...stages.map((stage) => stageNames[stage])],
    rows: [
      ...byLane.map((row) => average(row.displayName, row)),
      ...byEvidenceType.map((row) => average(spaced(row.evidenceType), row)),
      ...(overall === null ? [] : [average('All', overall)]),
    ],
  };
};

/** Said under every table's title where prompts reached models in different ways (voxmem-protocol §3). */
const mixedNote = 'system prompts native to some, folded into the first message for others';

/** Tables for people: model × length first, then the rest with titles. */
export const reportTables = ({
  report,
  judges,
  attribution,
}: ReportSources): Pick<Aggregate, 'table' | 'tables'> => {
  const tables = [
    ...curvesTable(report),
    cellsTable(report),
    ...retentionTable(report),
    ...correlationTable(report),
    statusTable(report),
  ].map((table) =>
    report.systemPromptDelivery === 'mixed' ? { ...table, title: `${table.title} (${mixedNote})` } : table,
  );
  return {
    table: mainTable(report),
    tables: [
      ...tables,
      ...(judges === null ? [] : [judgesTable(judges)]),
      ...(attribution === null ? [] : [attributionPeopleTable(attribution)]),
    ],
  };
};
