import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { scoreByRule } from '../../../../shared/benchmarks/return/score-reply.ts';

type Item = [interfaceName: string, gold: string, aliases: string[], choices: string[]];

const python = JSON.parse(
  readFileSync(new URL('../../../fixtures/return/scoring.json', import.meta.url), 'utf8'),
) as { items: Item[]; rows: [item: number, raw: string, strict: 0 | 1, rule: 0 | 1][] };

const mcq = (raw: string, { gold = 'B', choices = ['salt', 'flour', 'garlic', 'butter'] } = {}) =>
  scoreByRule({ raw, gold, aliases: [gold], choices, interface: 'mcq' });

const openqa = (raw: string, gold: string, aliases: string[] = []) =>
  scoreByRule({ raw, gold, aliases, choices: [], interface: 'openqa' });

const strict = { strictCorrect: true, ruleCorrect: true };
const byRule = { strictCorrect: false, ruleCorrect: true };
const toReview = { strictCorrect: false, ruleCorrect: false };

test('scores every reply of the fixture as Python does', () => {
  const differing = python.rows.filter(([item, raw, isStrict, isRule]) => {
    const [interfaceName, gold, aliases, choices] = python.items[item]!;

    const score = scoreByRule({ raw, gold, aliases, choices, interface: interfaceName });

    return score.strictCorrect !== (isStrict === 1) || score.ruleCorrect !== (isRule === 1);
  });

  expect(python.rows.length).toBeGreaterThan(3_000);
  expect(differing).toEqual([]);
});

describe('multiple choice', () => {
  test.each([
    ['B', strict],
    [' b\n', strict],
    ['B.', byRule],
    ['B) flour', byRule],
    ['The answer is B because a car moves.', byRule],
    ['The answer is B. Note that A is a common distractor.', byRule],
    ['ANSWER = b', byRule],
    ['anſwer: B', byRule],
    ['It is flour.', byRule],
  ])('%j earns its credit by rule', (raw, expected) => {
    expect(mcq(raw)).toEqual(expected);
  });

  test.each([
    ['A', 'another letter'],
    ['ANSWER: AB', 'two letters are no word of one letter'],
    ['option B, choice C', 'two distinct letters, and no option text'],
    ['ANSWER: None of the above', 'no letter'],
    ['Antwort: B', 'no English word before the letter'],
    ["Answer: Let's think", 'no letter'],
    ['(B)', 'brackets are left to the review'],
    ['**B**', 'bold is left to the review'],
    ['Bé.', 'the letter is not followed by a stop'],
    ['answer Bé', 'an accented letter continues the word'],
    ['salt or flour', 'two options'],
    ['The answer is A: flour', 'the letter decides before the option text'],
  ])('%j does not: %s', (raw) => {
    expect(mcq(raw)).toEqual(toReview);
  });

  test('a combining accent ends a word in Python', () => {
    expect(mcq('answer B\u0301')).toEqual(byRule);
  });

  test('an option counts wherever its letters stand', () => {
    expect(mcq('notice', { gold: 'A', choices: ['no', 'yes', 'never', 'maybe'] })).toEqual(byRule);
    expect(mcq('dark red', { gold: 'B', choices: ['red', 'dark red', 'blue', 'green'] })).toEqual(toReview);
  });

  test('an option without a letter or digit of ASCII is never mentioned', () => {
    expect(mcq('日本', { gold: 'A', choices: ['日本', 'korea', 'china', 'laos'] })).toEqual(toReview);
  });
});

describe('open answers', () => {
  test.each([
    ['STRASSE', 'Straße', []],
    ['  four-cloves! ', '4 cloves', ['four cloves']],
    ['ﬁre ﬂy', 'Fire-Fly', []],
    ['\u212aelvin', 'kelvin', []],
  ])('%j is %j', (raw, gold, aliases) => {
    expect(openqa(raw, gold, aliases)).toEqual(strict);
  });

  test.each([
    ['25', '5'],
    ['İzmir', 'izmir'],
    ['cafe', 'café'],
    ['a red car', 'red car'],
  ])('%j is not %j without a review', (raw, gold) => {
    expect(openqa(raw, gold)).toEqual(toReview);
  });
});
