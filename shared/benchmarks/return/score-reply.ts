import { casefold, ignoringCase, space, strip, upper, word, wordStart } from './python-text.ts';

export interface ReplyToScore {
  /** The reply as the model gave it. */
  raw: string;
  gold: string;
  aliases: readonly string[];
  choices: readonly string[];
  interface: string;
}

export interface RuleScore {
  strictCorrect: boolean;
  /** Strictly correct, or (mcq) correct by the letter and option rules. False means: to be reviewed. */
  ruleCorrect: boolean;
}

/** Case-folded, every run of characters outside a–z and 0–9 one space, trimmed (return-protocol §5). */
export const normalise = (text: string): string =>
  casefold(text)
    .replace(/[^a-z0-9]+/g, ' ')
    .trim();

/** Accepted answers: the gold first, duplicates dropped. */
export const acceptedAnswers = (gold: string, aliases: readonly string[]): string[] => [
  ...new Set([gold, ...aliases]),
];

const letters = 'ABCD';
const leadingLetter = /^([A-Da-d])(?:[.:)]|$)/;
const announcedLetter = new RegExp(
  `${wordStart}(?:${['answer', 'option', 'choice'].map(ignoringCase).join('|')})` +
    `${space}*(?:(?:${ignoringCase('is')}|:|=)${space}*)?${wordStart}[A-Da-d](?!${word})`,
  'gu',
);

const choiceRule = ({ raw, gold, choices }: ReplyToScore): boolean => {
  const reply = strip(raw);
  const leading = leadingLetter.exec(reply)?.[1] ?? [];
  const announced = (reply.match(announcedLetter) ?? []).map((match) => match.at(-1)!);
  const distinct = new Set([...leading, ...announced].map((letter) => letter.toUpperCase()));
  if (distinct.size === 1) return distinct.has(upper(gold));

  const text = normalise(raw);
  const mentioned = choices.flatMap((choice, index) => {
    const option = normalise(choice);
    return option !== '' && text.includes(option) ? [letters[index]] : [];
  });
  return mentioned.length === 1 && mentioned[0] === upper(gold);
};

/**
 * Scores one reply by rule alone, as the release does, on the text's Python semantics
 * (return-protocol §5). The rules are literal: an option counts as mentioned wherever its letters occur,
 * and a bare letter in brackets or bold is left to the review.
 */
export const scoreByRule = (reply: ReplyToScore): RuleScore => {
  const { raw, gold, aliases } = reply;
  if (reply.interface === 'mcq') {
    const strictCorrect = upper(strip(raw)) === upper(gold);
    return { strictCorrect, ruleCorrect: strictCorrect || choiceRule(reply) };
  }
  const text = normalise(raw);
  const strictCorrect = acceptedAnswers(gold, aliases).some((answer) => normalise(answer) === text);
  return { strictCorrect, ruleCorrect: strictCorrect };
};
