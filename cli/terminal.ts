import { stripVTControlCharacters, styleText } from 'node:util';
import CliTable from 'cli-table3';
import { ProblemsFound, TurnsweepError } from '../shared/errors.ts';

const colours = process.env.NO_COLOR === undefined || process.env.NO_COLOR === '';

type Style = Parameters<typeof styleText>[0];

export const paint = (style: Style, text: string): string =>
  colours && process.stdout.isTTY ? styleText(style, text) : text;

/** Text from files and providers, without anything that could steer a terminal. */
export const printable = (text: string): string =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must go
  stripVTControlCharacters(text).replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, '\ufffd');

export const print = (text = ''): void => {
  process.stdout.write(`${text}\n`);
};

export const warn = (text: string): void => {
  process.stderr.write(`${text}\n`);
};

export const renderTable = (header: readonly string[], rows: readonly (readonly string[])[]): string => {
  const table = new CliTable({
    head: header.map((cell) => paint('bold', printable(cell))),
    style: { head: [], border: [], compact: true },
    chars: { mid: '', 'left-mid': '', 'mid-mid': '', 'right-mid': '' },
    colAligns: header.map((_, index) => (index === 0 ? 'left' : 'right')),
  });
  for (const row of rows) table.push(row.map(printable));
  return table.toString();
};

const problemsShown = 50;

/** An error as the user sees it: one line each, no stack unless asked for. */
export const reportError = (error: unknown, debug: boolean): void => {
  if (error instanceof ProblemsFound) {
    warn(`${paint('red', 'error')}: ${printable(error.message)}`);
    for (const { file, line, message } of error.problems.slice(0, problemsShown)) {
      warn(`  ${printable(file)}${line === null ? '' : `:${line}`}: ${printable(message)}`);
    }
    const more = error.problems.length - problemsShown;
    if (more > 0) warn(`  … and ${more} more`);
  } else {
    const message = error instanceof Error ? error.message : String(error);
    warn(`${paint('red', 'error')}: ${printable(message.split('\n')[0]!)}`);
    if (!(error instanceof TurnsweepError) && !debug) warn('  this is a fault of turnsweep itself; add --debug for the stack');
  }
  if (debug && error instanceof Error) warn(printable(error.stack ?? ''));
};
