import { mkdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { evidenceTypes, memoryOperations } from '../../shared/benchmarks/voxmem/format.ts';
import { sweepFile, temporaryFolder, turnsweep } from '../support/command-line.ts';
import { refusalOf, rowOf, writeParquet } from '../support/voxmem-data-set.ts';

const lengths = ['8k', '16k', '32k', '64k'] as const;

/** The 11 occupied cells with an answer (voxmem-protocol §1). */
const answerableCells = evidenceTypes.flatMap((evidence_type) =>
  memoryOperations
    .filter((operation) => operation !== 'answer_refusal')
    .filter((operation) => evidence_type !== 'speech_semantics' || operation !== 'information_extraction')
    .map((memory_operation) => ({ evidence_type, memory_operation })),
);

it('a baseline that always abstains comes to the figures of the paper on a data set of its size', async () => {
  const folder = temporaryFolder();
  const data = path.join(folder, 'data');
  for (const length of lengths) {
    const answerable = Array.from({ length: 669 }, (_, at) =>
      rowOf(at + 1, length, answerableCells[at % answerableCells.length]),
    );
    const refused = Array.from({ length: 130 }, (_, at) =>
      refusalOf(700 + at, length, { evidence_type: evidenceTypes[at % evidenceTypes.length] }),
    );
    mkdirSync(path.join(data, length), { recursive: true });
    writeParquet(path.join(data, length, 'rows.parquet'), [...answerable, ...refused], { rowGroupSize: 100 });
  }
  const sweep = sweepFile(folder, {
    name: 'abstaining',
    benchmark: { kind: 'voxmem', release: data, options: { grader: 'exact-match' } },
    models: [
      {
        id: 'always-abstains',
        modalities: ['A'],
        provider: 'fixed-reply',
        model: 'baseline',
        reply: 'There is insufficient evidence to answer.',
      },
    ],
  });
  const out = path.join(folder, 'out');

  const { code, stderr } = await turnsweep(['run', sweep, '--out', out], {
    env: { TURNSWEEP_CACHE: path.join(folder, 'cache') },
  });

  expect(code, stderr).toBe(0);
  const { counts, matched, accuracies } = JSON.parse(
    readFileSync(path.join(out, 'report', 'summary.json'), 'utf8'),
  );
  expect(counts).toMatchObject({ views: 3196, valid: 3196, excluded: 0, pending: 0, open: 0 });
  type Row = { length: string; scope: string; group: string; value: string; correct: number; n: number };
  const countsOf = (rows: Row[]) => rows.map(({ length, scope, correct, n }) => [length, scope, correct, n]);
  expect(countsOf(matched)).toEqual(
    lengths.flatMap((length) => [
      [length, 'overall', 130, 799],
      [length, 'answerable', 0, 669],
      [length, 'answer_refusal', 130, 130],
    ]),
  );
  expect(matched[0].accuracyPct).toBeCloseTo(16.27, 2);
  const cells = (accuracies as Row[]).filter(({ group, length }) => group === 'cell' && length === '64k');
  expect(new Set(cells.map(({ value }) => value)).size).toBe(15);
}, 300_000);
