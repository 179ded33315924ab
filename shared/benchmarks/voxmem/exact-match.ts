import type { AnswerRow } from './format.ts';
import { goldText, type VerdictWord } from './judge.ts';

const units = [
  ...['zero', 'one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine', 'ten', 'eleven'],
  ...['twelve', 'thirteen', 'fourteen', 'fifteen', 'sixteen', 'seventeen', 'eighteen', 'nineteen'],
];
const tens = ['twenty', 'thirty', 'forty', 'fifty', 'sixty', 'seventy', 'eighty', 'ninety'];
const small = new Map([
  ...units.map((word, value): [string, number] => [word, value]),
  ...tens.map((word, index): [string, number] => [word, 10 * (index + 2)]),
]);
const large = new Map([
  ['thousand', 1e3],
  ['million', 1e6],
]);

/** The number that the words from `start` on spell, and where it ends; null where there is none. */
const spelledNumber = (words: readonly string[], start: number): { value: number; end: number } | null => {
  let total = 0;
  let group: number | null = null;
  /** What the next word of this group has to be less than: "five six" are two numbers. */
  let below = 100;
  let at = start;
  for (; at < words.length; at += 1) {
    const word = words[at]!;
    const value = small.get(word);
    const factor = large.get(word);
    const goesOn = words[at + 1] !== undefined && small.has(words[at + 1]!);
    if (value !== undefined && value < below && (value > 0 || group === null)) {
      group = (group ?? 0) + value;
      below = value >= 20 ? 10 : 0;
    } else if (word === 'hundred' && (group ?? 1) > 0 && (group ?? 1) < 100) {
      group = (group ?? 1) * 100;
      below = 100;
    } else if (factor !== undefined && (group ?? 1) > 0 && (total === 0 || total >= factor * 1e3)) {
      total += (group ?? 1) * factor;
      group = 0;
      below = 100;
    } else if (!(word === 'and' && goesOn && /^(hundred|thousand|million)$/.test(words[at - 1] ?? ''))) break;
  }
  return group === null ? null : { value: total + group, end: at };
};

const plainNumber = /^-?\d{1,15}(\.\d+)?$/;

const withDigits = (words: readonly string[]): string[] => {
  const result: string[] = [];
  for (let at = 0; at < words.length; ) {
    const word = words[at]!;
    const spelled = spelledNumber(words, at);
    if (spelled !== null) result.push(String(spelled.value));
    else result.push(plainNumber.test(word) ? String(Number(word)) : word);
    at = spelled?.end ?? at + 1;
  }
  return result;
};

const wordsOf = (text: string): string[] =>
  text
    .normalize('NFKC')
    .toLowerCase()
    .replaceAll(/(?<=\d),(?=\d{3}(?!\d))/g, '')
    .replaceAll(/['’]/g, '')
    .replaceAll('\u2212', '-')
    .replaceAll('%', ' percent ')
    .replaceAll(/(?<!\d)\.(?=\d)/g, '0.')
    // A point inside a number and a sign before one belong to it.
    .replaceAll(/\.(?!\d)|(?<=[^\s(])-|-(?!\d)|[^\p{L}\p{M}\p{N}.\s-]/gu, ' ')
    .split(/\s+/)
    .filter((word) => word !== '');

const articles: readonly string[] = ['a', 'an', 'the'];

/**
 * A text with what voxmem-protocol §4 ignores taken out: case, punctuation, articles, the form of numbers ("Twenty-one",
 * "21.0" and "21" are one). What ends a text is no article: "vitamin A".
 */
export const normalized = (text: string, keepsArticles = false): string => {
  const words = wordsOf(text);
  const kept = words.filter(
    (word, index) => keepsArticles || index === words.length - 1 || !articles.includes(word),
  );
  return withDigits(kept).join(' ');
};

/** What the system prompt asks a model to reply where it abstains, and that phrase as a sentence. */
const abstainingPhrases = new Set([
  'insufficient evidence',
  'there is insufficient evidence',
  'insufficient evidence to answer',
  'there is insufficient evidence to answer',
  'there is insufficient evidence to answer question',
  'there is not enough evidence',
  'not enough evidence',
  'evidence is insufficient',
]);

/** Options that a response names. A name inside a longer one that is there ("red" in "dark red") does not count. */
const namedOptions = (response: string, options: readonly string[]): string[] => {
  let rest = ` ${response} `;
  const longestFirst = [...new Set(options)]
    .filter((option) => option !== '')
    .sort((a, b) => b.length - a.length);
  return longestFirst.filter((option) => {
    if (!rest.includes(` ${option} `)) return false;
    // Neighbours share the space between them.
    rest = rest.split(` ${option} `).join(' | ');
    return true;
  });
};

/**
 * Grades without a model, for smoke tests: stricter than the judge, since a right answer in other words is incorrect.
 *
 * - Item to be refused: the response is the abstaining phrase and nothing else.
 * - With options: exactly one is named, and it is gold.
 * - `categorical`, `yes_no`, `number`: gold's words, normalised.
 * - Any other type: the same comparison, with a list as its elements in their order. It is of little worth there, since
 *   free answers have many wordings and a set has many orders.
 */
export const exactMatch = (answer: AnswerRow, response: string): VerdictWord => {
  const said = normalized(response);
  const verdict = (isCorrect: boolean): VerdictWord => (isCorrect ? 'correct' : 'incorrect');
  if (answer.expected_response === 'insufficient_evidence') return verdict(abstainingPhrases.has(said));
  const gold = Array.isArray(answer.gold)
    ? normalized(answer.gold.map(goldText).join(', '))
    : normalized(goldText(answer.gold));
  if (answer.options.length > 0) {
    // Options that are letters: "A or B" names two.
    const keepsArticles = answer.options.some((option) => articles.includes(wordsOf(option).join(' ')));
    const form = (text: string) => normalized(text, keepsArticles);
    const named = namedOptions(form(response), answer.options.map(form));
    return verdict(named.length === 1 && named[0] === form(goldText(answer.gold)));
  }
  return verdict(said !== '' && said === gold);
};
