import type { CellRow, LadderRow, ModelRow } from './across-models.ts';
import type { GroupRow } from './aggregate.ts';

/** A float as Python's `repr` prints it: shortest digits, a point always, exponents of two digits. */
export const pythonFloat = (value: number): string => {
  if (Number.isNaN(value)) return 'nan';
  if (!Number.isFinite(value)) return value > 0 ? 'inf' : '-inf';
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e16))
    return value.toExponential().replace(/e([+-])(\d)$/, 'e$10$2');
  if (Object.is(value, -0)) return '-0.0';
  return Number.isInteger(value) ? `${value}.0` : String(value);
};

/**
 * Spreadsheets take a text that begins like this for a formula, also inside quotes; an apostrophe before it says that it
 * is text (owasp.org, CSV injection, 2025). Names and labels come from strangers.
 */
const formula = /^[=+\-@\t\r＝＋－＠]/;

const field = (given: string): string => {
  const text = formula.test(given) ? `'${given}` : given;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};

type Kind = 'text' | 'count' | 'float';
type Column<Row> = readonly [name: keyof Row & string, kind: Kind];

const cell = (value: unknown, kind: Kind): string => {
  if (value === null || value === undefined) return '';
  return kind === 'float' ? pythonFloat(value as number) : field(String(value));
};

const csv = function* <Row>(columns: readonly Column<Row>[], rows: Iterable<Row>): Generator<string> {
  yield `${columns.map(([name]) => name).join(',')}\n`;
  for (const row of rows) yield `${columns.map(([name, kind]) => cell(row[name], kind)).join(',')}\n`;
};

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

/** Rows as JSON, one a line. */
export const jsonl = function* (rows: Iterable<unknown>): Generator<string> {
  for (const row of rows) yield `${JSON.stringify(row)}\n`;
};
