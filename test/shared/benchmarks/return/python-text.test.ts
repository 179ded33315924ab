import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import {
  casefold,
  ignoringCase,
  space,
  strip,
  upper,
  word,
} from '../../../../shared/benchmarks/return/python-text.ts';
import { unicodeVersion } from '../../../../shared/benchmarks/return/python-text-tables.ts';

interface Fixture {
  unicode: string;
  sha256: Record<'casefold' | 'upper' | 'word' | 'space' | 'strip', string>;
  ignoringCase: Record<string, string>;
  samples: [text: string, folded: string, uppered: string][];
}

const python = JSON.parse(
  readFileSync(new URL('../../../fixtures/return/python-text.json', import.meta.url), 'utf8'),
) as Fixture;

const everyCharacter = function* () {
  for (let codePoint = 0; codePoint <= 0x10ffff; codePoint += 1) {
    if (codePoint < 0xd800 || codePoint > 0xdfff) yield codePoint;
  }
};

const digest = (outcomeFor: (character: string) => string | number): string => {
  const sha = createHash('sha256');
  let lines = '';
  for (const codePoint of everyCharacter()) {
    lines += `${codePoint.toString(16)}:${outcomeFor(String.fromCodePoint(codePoint))}\n`;
    if (lines.length > 100_000) {
      sha.update(lines);
      lines = '';
    }
  }
  return sha.update(lines).digest('hex');
};

const matches = (source: string) => {
  const pattern = new RegExp(`^${source}$`, 'u');
  return (character: string) => (pattern.test(character) ? 1 : 0);
};

test('every character folds, uppers, and is word, space or strippable as in Python', () => {
  expect(unicodeVersion).toBe(python.unicode);

  expect({
    casefold: digest(casefold),
    upper: digest(upper),
    word: digest(matches(word)),
    space: digest(matches(space)),
    strip: digest((character) => (strip(character) === '' ? 1 : 0)),
  }).toEqual(python.sha256);
}, 60_000);

test('a letter under IGNORECASE takes the same characters as in Python', () => {
  for (const [letter, characters] of Object.entries(python.ignoringCase)) {
    const pattern = new RegExp(`^${ignoringCase(letter)}$`, 'u');

    const taken = [...everyCharacter()].filter((codePoint) => pattern.test(String.fromCodePoint(codePoint)));

    expect(String.fromCodePoint(...taken)).toBe(characters);
  }
}, 60_000);

test.each(python.samples)('folds and uppers %j', (text, folded, uppered) => {
  expect(casefold(text)).toBe(folded);
  expect(upper(text)).toBe(uppered);
});

test('strips white space of both ends only, and of Python only', () => {
  expect(strip('\u3000\x1c\t a \u2003 b \x85\n')).toBe('a \u2003 b');
  expect(strip('\ufeffa\u200b')).toBe('\ufeffa\u200b');
  expect(strip(' \n\u2029')).toBe('');
});

test('leaves lone surrogates as they are', () => {
  expect(casefold('A\ud800')).toBe('a\ud800');
  expect(upper('a\udfff')).toBe('A\udfff');
});
