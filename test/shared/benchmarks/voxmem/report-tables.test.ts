import { describe, expect, it, test } from 'vitest';
import { aggregateLanes, type VoxmemLane } from '../../../../shared/benchmarks/voxmem/aggregate.ts';
import { compareJudges } from '../../../../shared/benchmarks/voxmem/agreement.ts';
import { type AttributedError, attributionTable } from '../../../../shared/benchmarks/voxmem/attribution.ts';
import {
  type ReportSources,
  reportFiles,
  reportSummary,
  reportTables,
} from '../../../../shared/benchmarks/voxmem/report-tables.ts';
import { buildLane, buildQuestion, buildScored } from './scored-builders.ts';

const quick = { seed: 1, resamples: 30 };
const refusal = { memoryOperation: 'answer_refusal' } as const;

const buildSources = (lanes: readonly VoxmemLane[], extras: Partial<ReportSources> = {}): ReportSources => ({
  report: aggregateLanes(lanes, quick),
  judges: null,
  attribution: null,
  ...extras,
});

const fileLines = (sources: ReportSources, path: string): string[] =>
  reportFiles(sources)
    .find((file) => file.path === path)!
    .content.trimEnd()
    .split('\n');

/** A file as objects by column; no field of these tests has a comma. */
const fileRows = (sources: ReportSources, path: string): Record<string, string>[] => {
  const [header, ...lines] = fileLines(sources, path).map((line) => line.split(','));
  return lines.map((line) => Object.fromEntries(header!.map((name, index) => [name, line[index]!])));
};

const tableOf = (sources: ReportSources, start: string) =>
  reportTables(sources).tables.find((table) => table.title.startsWith(start));

/** All right at 8K; at 64K all wrong but the question to be refused. No resample can differ. */
const constantLane = buildLane(
  [
    ...buildQuestion('q1', { '8k': 'c', '64k': 'i' }),
    ...buildQuestion('q2', { '8k': 'c', '64k': 'f' }),
    ...buildQuestion('q3', { '8k': 'r', '64k': 'e' }),
  ],
  { id: 'one', displayName: '=Model, one' },
);

describe('files', () => {
  it('have their names and headers, those of judges and audits only where there are any', () => {
    const plain = reportFiles(buildSources([constantLane]));
    const full = reportFiles(
      buildSources([constantLane], {
        judges: compareJudges([]),
        attribution: attributionTable([]),
      }),
    );

    const names = ['models.csv', 'cells.csv', 'subtypes.csv', 'lengths.csv', 'retention.csv'];
    expect(plain.map((file) => file.path)).toEqual(names);
    expect(full.map((file) => file.path)).toEqual([...names, 'judges.csv', 'attribution.csv']);
    const headers = Object.fromEntries(full.map((file) => [file.path, file.content.split('\n')[0]]));
    const rates =
      'n,correct,pct,pct_low,pct_high,incorrect,ungraded,failed,empty,rejected,pending,open,complete';
    const scoped = (scope: string) =>
      ['n', 'correct', 'pct', 'pct_low', 'pct_high'].map((name) => `${scope}_${name}`).join(',');
    expect(headers).toEqual({
      'models.csv': `lane,model,family,system_prompt,length,${scoped('overall')},${scoped('answerable')},${scoped('answer_refusal')},items,rejected,pending,open,complete`,
      'cells.csv': `lane,model,family,system_prompt,length,group,value,scope,${rates}`,
      'subtypes.csv': `lane,model,family,system_prompt,length,group,value,scope,${rates}`,
      'lengths.csv': `lane,model,family,system_prompt,length,scope,${rates}`,
      'retention.csv':
        'lane,model,family,system_prompt,group,value,scope,questions,pct_8k,pct_64k,retention,retention_low,retention_high,complete',
      'judges.csv':
        'first_judge,second_judge,lane,scope,compared,both_correct,first_only_correct,second_only_correct,both_incorrect,ungraded_by_first,ungraded_by_second,agreement_pct,kappa,first_pct,second_pct,models,ranking_rho,mean_absolute_difference_pp,favouritism_first_pp,favouritism_second_pp,favouritism_between_pp',
      'attribution.csv':
        'level,lane,model,evidence_type,errors,averaged,cells,recognition_localization,binding,operation,unsupported,recognition_localization_pct,binding_pct,operation_pct,unsupported_pct',
    });
  });

  it('models.csv has a row a model and length, on matched questions, with what is left out', () => {
    // q3 does not match: it was rejected at 8K.
    expect(fileLines(buildSources([constantLane]), 'models.csv').slice(1)).toEqual([
      `one,"'=Model, one",Omni,native,8k,2,2,100.0,100.0,100.0,2,2,100.0,100.0,100.0,0,0,,,,3,1,0,0,true`,
      `one,"'=Model, one",Omni,native,64k,2,0,0.0,0.0,0.0,2,0,0.0,0.0,0.0,0,0,,,,3,0,0,0,true`,
    ]);
  });

  it('cells.csv and subtypes.csv have every item that counts', () => {
    const sources = buildSources([buildLane(constantLane.items)]);
    const shown = (path: string) =>
      fileRows(sources, path)
        .filter((row) => row.length === '64k' && row.scope === 'answerable')
        .map(
          (row) =>
            `${row.group} ${row.value} ${row.correct}/${row.n} ${row.incorrect}${row.failed}${row.empty}`,
        );

    expect(shown('cells.csv')).toEqual([
      'all all 0/3 111',
      'evidence_type speaker_information 0/3 111',
      'operation IE 0/3 111',
      'cell speaker_information/IE 0/3 111',
    ]);
    expect(shown('subtypes.csv')).toEqual(['subtype who 0/3 111']);
  });

  it('lengths.csv and retention.csv follow curves and retention', () => {
    const sources = buildSources([buildLane(constantLane.items)]);

    expect(
      fileRows(sources, 'lengths.csv').map((row) => `${row.length} ${row.scope} ${row.correct}/${row.n}`),
    ).toEqual(['8k overall 2/2', '8k answerable 2/2', '64k overall 0/2', '64k answerable 0/2']);
    expect(fileRows(sources, 'retention.csv')[0]).toEqual({
      lane: 'lane-a',
      model: 'Model A',
      family: 'Omni',
      system_prompt: 'native',
      group: 'all',
      value: 'all',
      scope: 'overall',
      questions: '2',
      pct_8k: '100.0',
      pct_64k: '0.0',
      retention: '0.0',
      retention_low: '0.0',
      retention_high: '0.0',
      complete: 'true',
    });
  });

  it('an open item makes rows incomplete', () => {
    const sources = buildSources([
      buildLane([
        ...buildQuestion('q1', { '8k': 'c', '16k': 'c' }),
        ...buildQuestion('q2', { '8k': 'c', '16k': 'o' }),
      ]),
    ]);

    const rows = fileRows(sources, 'models.csv');
    expect(
      rows.map((row) => `${row.length} ${row.overall_n} ${row.items} ${row.open} ${row.complete}`),
    ).toEqual(['8k 1 2 0 false', '16k 1 2 1 false']);
    expect(reportTables(sources).table.rows[0]![0]).toBe('Model A (incomplete)');
  });
});

describe('judges', () => {
  const judged = (judge: string, letters: string) => ({
    judge,
    family: judge,
    lanes: [{ lane: 'one', displayName: 'One', family: judge, items: lettersToItems(letters) }],
  });
  const lettersToItems = (letters: string) =>
    [...letters].flatMap((letter, index) => buildQuestion(`q${index}`, { '8k': letter }));
  const sources = buildSources([constantLane], {
    judges: compareJudges([judged('a', 'ccci'), judged('b', 'ciii')]),
  });

  it('have rows for all lanes together, with what goes over models, and for each lane', () => {
    const rows = fileRows(sources, 'judges.csv').filter((row) => row.scope === 'overall');

    expect(rows.map((row) => [row.lane, row.compared, row.agreement_pct, row.first_pct, row.models])).toEqual(
      [
        ['all', '4', '50.0', '75.0', '1'],
        ['one', '4', '50.0', '75.0', ''],
      ],
    );
    expect(rows[0]).toMatchObject({
      mean_absolute_difference_pp: '50.0',
      ranking_rho: '',
      favouritism_first_pp: '',
    });
  });

  it('have a table', () => {
    // κ: agreed 2 of 4, expected (3 · 1 + 1 · 3)/4 = 1.5, so .5/2.5.
    expect(tableOf(sources, 'Judges')!.rows[0]).toEqual([
      'a / b',
      'Overall',
      '4',
      '50.00',
      '0.200',
      '–',
      '50.00',
      '–',
      '–',
      '–',
    ]);
    expect(tableOf(buildSources([constantLane]), 'Judges')).toBeUndefined();
  });
});

test('attribution has cells and averages in its file, averages in its table', () => {
  const errors = (
    evidenceType: 'speech_semantics' | 'environmental_sound',
    stages: AttributedError['stage'][],
  ) => stages.map((stage): AttributedError => ({ lane: 'one', displayName: 'One', evidenceType, stage }));
  const attribution = attributionTable([
    ...errors('speech_semantics', ['binding', 'binding', 'operation', 'operation', 'unsupported']),
    ...errors('environmental_sound', ['binding']),
  ]);
  const sources = buildSources([constantLane], { attribution });

  expect(fileLines(sources, 'attribution.csv').slice(1)).toEqual([
    'cell,one,One,speech_semantics,5,true,,0,2,2,1,0.0,40.0,40.0,20.0',
    'cell,one,One,environmental_sound,1,false,,0,1,0,0,0.0,100.0,0.0,0.0',
    'model,one,One,,,,1,,,,,0.0,40.0,40.0,20.0',
    'evidence_type,,,speech_semantics,,,1,,,,,0.0,40.0,40.0,20.0',
    'all,,,,,,1,,,,,0.0,40.0,40.0,20.0',
  ]);
  expect(tableOf(sources, 'Where wrong answers')!.rows).toEqual([
    ['One', '1', '0.0', '40.0', '40.0', '20.0'],
    ['speech semantics', '1', '0.0', '40.0', '40.0', '20.0'],
    ['All', '1', '0.0', '40.0', '40.0', '20.0'],
  ]);
});

describe('tables for people', () => {
  const twoLanes = (first: 'native' | 'folded', second: 'native' | 'folded') =>
    [first, second].map((systemPromptDelivery, index) =>
      buildLane(
        [
          ...buildQuestion('q1', { '8k': 'c', '64k': 'c' }, { systemPromptDelivery }),
          ...buildQuestion('q2', { '8k': 'c', '64k': 'c' }, { systemPromptDelivery, ...refusal }),
        ],
        { id: `lane-${index}`, displayName: `Model ${index}` },
      ),
    );

  it('begin with model × length: overall, answerable and AR with intervals', () => {
    const { table } = reportTables(buildSources([constantLane, ...twoLanes('native', 'native')]));

    expect(table).toEqual({
      header: ['Model', 'Length', 'Questions', 'Overall', 'Answerable', 'AR'],
      rows: [
        ['=Model, one', '8K', '2', '100.0 (100.0–100.0)', '100.0 (100.0–100.0)', '–'],
        ['=Model, one', '64K', '2', '0.0 (0.0–0.0)', '0.0 (0.0–0.0)', '–'],
        ...['Model 0', 'Model 1'].flatMap((model) =>
          ['8K', '64K'].map((length) => [
            model,
            length,
            '2',
            '100.0 (100.0–100.0)',
            '100.0 (100.0–100.0)',
            '100.0 (100.0–100.0)',
          ]),
        ),
      ],
    });
  });

  it('go on with curves, cells, retention, correlations and what became of the items', () => {
    const sources = buildSources(twoLanes('native', 'native'));

    expect(reportTables(sources).tables.map((table) => table.title.split(/[:;,]/)[0])).toEqual([
      'Length curves',
      'Accuracy by evidence type and operation',
      'Retention',
      'Rank correlation (Spearman) across models',
      'What became of the items',
    ]);
    expect(tableOf(sources, 'Accuracy')!.rows[0]).toEqual([
      'Model 0',
      'speaker information',
      '100.0',
      '–',
      '–',
      '100.0',
      '100.0',
      '100.0',
    ]);
    expect(tableOf(sources, 'Length curves')!.rows.at(-1)).toEqual(['Median', 'AR', '100.0', '100.0']);
    expect(tableOf(sources, 'Retention')!.rows[0]).toEqual([
      'Model 0',
      'Overall',
      '2',
      '100.0',
      '100.0',
      '1.000 (1.000–1.000)',
    ]);
    // All columns are of equal values: no rank correlation is defined.
    expect(tableOf(sources, 'Rank')!.rows[0]).toEqual(['Answerable', 'AR', '8K', '2', '–']);
    expect(tableOf(sources, 'What became')!.rows[0]).toEqual([
      'Model 0',
      '4',
      '4',
      '0',
      '0',
      '0',
      '0',
      '0',
      '0',
      '0',
    ]);
  });

  it('say where prompts reached models in different ways', () => {
    const mixed = reportTables(buildSources(twoLanes('native', 'folded')));
    const folded = reportTables(buildSources(twoLanes('folded', 'folded')));

    expect(mixed.table.rows.map((row) => row[0])).toEqual([
      'Model 0 (native prompt)',
      'Model 0 (native prompt)',
      'Model 1 (folded prompt)',
      'Model 1 (folded prompt)',
    ]);
    expect(mixed.tables.every((table) => table.title.includes('system prompts native to some'))).toBe(true);
    expect(folded.table.rows[0]![0]).toBe('Model 0');
    expect(folded.tables.some((table) => table.title.includes('native'))).toBe(false);
  });

  it('have nothing to say of nothing', () => {
    const { table, tables } = reportTables(buildSources([]));

    expect(table.rows).toEqual([]);
    expect(tables.flatMap(({ rows }) => rows)).toEqual([]);
  });
});

test('the summary holds the figures of the files as JSON', () => {
  const sources = buildSources([constantLane, buildLane([buildScored()], { id: 'two' })]);

  const summary = JSON.parse(JSON.stringify(reportSummary(sources)));

  expect(Object.keys(summary)).toEqual([
    'seed',
    'resamples',
    'systemPromptDelivery',
    'lanes',
    'accuracies',
    'matched',
    'acrossModels',
    'curves',
    'retention',
    'correlations',
    'judges',
    'attribution',
  ]);
  expect(summary.matched[0]).toMatchObject({ lane: 'one', length: '8k', n: 2, correct: 2, accuracyPct: 100 });
});
