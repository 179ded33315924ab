import {
  alphanumericRanges,
  casefoldExpansions,
  casefoldRuns,
  upperExpansions,
  upperRuns,
} from './python-text-tables.ts';

/**
 * Python 3 semantics on Unicode text. The release scores with Python, and JavaScript differs in case
 * folding, white space and word boundaries. Tables rather than `\p{…}`, so that the result does not
 * depend on the Unicode version of the engine.
 */

const parts = (table: string): string[] => table.split(';').filter((part) => part !== '');
const hex = (digits: string | undefined): number => Number.parseInt(digits!, 16);

type Mapping = ReadonlyMap<string, string>;

const mappingOf = (runs: string, expansions: string): Mapping => {
  const mapping = new Map<string, string>();
  for (const run of parts(runs)) {
    const [start, count, step, shift] = run.split(',').map(hex) as [number, number, number, number];
    for (let k = 0; k < count; k += 1) {
      const from = start + k * step;
      mapping.set(String.fromCodePoint(from), String.fromCodePoint(from + shift));
    }
  }
  for (const expansion of parts(expansions)) {
    const [from, to] = expansion.split('=');
    mapping.set(String.fromCodePoint(hex(from)), String.fromCodePoint(...to!.split('.').map(hex)));
  }
  return mapping;
};

const apply = (mapping: Mapping, text: string): string => {
  let out = '';
  for (const character of text) out += mapping.get(character) ?? character;
  return out;
};

const escaped = (codePoint: number): string => `\\u{${codePoint.toString(16)}}`;

const rangesOf = (table: string): string => {
  let end = 0;
  let ranges = '';
  for (const range of parts(table)) {
    const [gap, length] = range.split(',').map(hex) as [number, number];
    ranges += `${escaped(end + gap)}-${escaped(end + gap + length - 1)}`;
    end += gap + length;
  }
  return ranges;
};

const casefolds = mappingOf(casefoldRuns, casefoldExpansions);
const uppers = mappingOf(upperRuns, upperExpansions);

/** `str.casefold()`. */
export const casefold = (text: string): string => apply(casefolds, text);

/** `str.upper()`. */
export const upper = (text: string): string => apply(uppers, text);

/**
 * Sources of regular expressions for use with the `u` flag and without `i`: what Python's `re` matches
 * with `\w`, `\s` and, where a word begins, `\b` in Unicode patterns.
 */
export const word = `[${rangesOf(alphanumericRanges)}_]`;
export const space =
  '[\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]';
export const wordStart = `(?<!${word})(?=${word})`;

/** Letters that `re.IGNORECASE` takes for more than their two cases, in Unicode patterns. */
const moreCases: Record<string, string> = { i: '\\u0130\\u0131', k: '\\u212a', s: '\\u017f' };

/** Source of a regular expression for lower-case ASCII letters under Python's `re.IGNORECASE`. */
export const ignoringCase = (letters: string): string =>
  letters.replace(/[a-z]/g, (letter) => `[${letter}${letter.toUpperCase()}${moreCases[letter] ?? ''}]`);

const edges = new RegExp(`^${space}+|(?<!${space})${space}+$`, 'gu');

/** `str.strip()`. */
export const strip = (text: string): string => text.replace(edges, '');
