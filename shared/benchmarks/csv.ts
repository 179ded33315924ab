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

/** A column and how its values are printed: null is an empty field, a float always has a point. */
export type Column<Row> = readonly [name: keyof Row & string, kind: Kind];

const cell = (value: unknown, kind: Kind): string => {
  if (value === null || value === undefined) return '';
  return kind === 'float' ? pythonFloat(value as number) : field(String(value));
};

/** A table line by line, header first; texts that a spreadsheet would run are made texts. */
export const csv = function* <Row>(columns: readonly Column<Row>[], rows: Iterable<Row>): Generator<string> {
  yield `${columns.map(([name]) => name).join(',')}\n`;
  for (const row of rows) yield `${columns.map(([name, kind]) => cell(row[name], kind)).join(',')}\n`;
};

/** Rows as JSON, one a line. */
export const jsonl = function* (rows: Iterable<unknown>): Generator<string> {
  for (const row of rows) yield `${JSON.stringify(row)}\n`;
};
