import { csv } from '../csv.ts';
import type { CellRow, LadderRow, ModelRow } from './across-models.ts';
import type { GroupRow } from './aggregate.ts';

/** groups.csv, line by line; no rows give the header alone. */
export const groupsCsv = (rows: Iterable<GroupRow>): Generator<string> =>
  csv<GroupRow>(
    [
      ['group', 'text'],
      ['value', 'text'],
      ['interface', 'text'],
      ['n', 'count'],
      ['single_accuracy', 'float'],
      ['multi_accuracy', 'float'],
      ['delta_conv_pp', 'float'],
      ['harm', 'count'],
      ['rescue', 'count'],
      ['single_strict', 'float'],
      ['multi_strict', 'float'],
    ],
    rows,
  );

/** models.csv, line by line. */
export const modelsCsv = (rows: Iterable<ModelRow>): Generator<string> =>
  csv<ModelRow>(
    [
      ['model', 'text'],
      ['family', 'text'],
      ['interface', 'text'],
      ['horizon', 'text'],
      ['single_accuracy_pct', 'float'],
      ['multi_accuracy_pct', 'float'],
      ['degradation_pp', 'float'],
      ['valid_pairs', 'count'],
    ],
    rows,
  );

/** cells.csv, line by line. */
export const cellsCsv = (rows: Iterable<CellRow>): Generator<string> =>
  csv<CellRow>(
    [
      ['model', 'text'],
      ['family', 'text'],
      ['interface', 'text'],
      ['horizon', 'text'],
      ['operation', 'text'],
      ['n', 'count'],
      ['single_correct', 'count'],
      ['multi_correct', 'count'],
      ['single_pct', 'float'],
      ['multi_pct', 'float'],
      ['delta_pp', 'float'],
    ],
    rows,
  );

/** ladders.csv, line by line. */
export const laddersCsv = (rows: Iterable<LadderRow>): Generator<string> =>
  csv<LadderRow>(
    [
      ['role', 'text'],
      ['model', 'text'],
      ['interface', 'text'],
      ['n', 'count'],
      ['single', 'float'],
      ['reference', 'float'],
      ['conflict', 'float'],
    ],
    rows,
  );
