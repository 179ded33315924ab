import { stripVTControlCharacters, styleText } from 'node:util';
import CliTable from 'cli-table3';
import { ProblemsFound, TurnsweepError } from '../shared/errors.ts';

const colours = process.env.NO_COLOR === undefined || process.env.NO_COLOR === '';

type Style = Parameters<typeof styleText>[0];

export const paint = (style: Style, text: string, stream: NodeJS.WriteStream = process.stdout): string =>
  colours && stream.isTTY ? styleText(style, text, { stream }) : text;

/** Control and invisible characters: they could steer a terminal or make one line look like two. */
const unprintable = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** Text from files and providers as one line that cannot steer a terminal. */
export const printable = (text: string): string =>
  stripVTControlCharacters(text).replace(unprintable, (character) => (/\s/.test(character) ? ' ' : '\ufffd'));

/** JSON of one line, pure of control characters: those beyond ASCII are escaped as those of ASCII are. */
export const jsonLine = (value: unknown, indent?: number): string =>
  JSON.stringify(value, null, indent).replace(
    /[\u007f-\u009f]/g,
    (character) => `\\u00${character.charCodeAt(0).toString(16)}`,
  );

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
  const say = (text: string) => warn(`${paint('red', 'error', process.stderr)}: ${printable(text)}`);
  if (error instanceof ProblemsFound) {
    for (const { file, line, message } of error.problems.slice(0, problemsShown)) {
      say(`${file}${line === null ? '' : `:${line}`}: ${message}`);
    }
    const more = error.problems.length - problemsShown;
    if (more > 0) say(`and ${more} more`);
  } else if (error instanceof TurnsweepError) say(error.message);
  else {
    const message = error instanceof Error ? error.message : String(error);
    say(`${message} (a fault of turnsweep itself; --debug shows where)`);
  }
  if (debug && error instanceof Error)
    for (const line of (error.stack ?? '').split('\n')) warn(printable(line));
};
