import { mix } from './draw.ts';
import { sideAnswers } from './grammar.ts';
import type { RequestFacts } from './release.ts';

const letters = 'ABCD';

type Write = (facts: RequestFacts, chosen: number, chance: number) => string;

const option = ({ question }: RequestFacts, at: number): string => question.options[at]!;
const other = ({ question }: RequestFacts, chance: number): number => (question.gold + 1 + (chance % 3)) % 4;

/** Kinds of replies, each as often as the number says. `chosen` is the option that the reply settles on. */
const kinds: Record<
  'openqa' | 'mcq',
  Record<'correct' | 'wrong', readonly [weight: number, write: Write][]>
> = {
  openqa: {
    correct: [
      // Right by rule: a gold or accepted wording, however it is dressed.
      [50, (facts, chosen) => option(facts, chosen)],
      [18, (facts, chosen) => `${option(facts, chosen)}.`],
      [8, ({ question }) => question.aliases[1]!],
      [6, (facts, chosen) => option(facts, chosen).toUpperCase()],
      [2, (facts, chosen) => `  "${option(facts, chosen)}"\n`],
      // Right to a judge only.
      [8, (facts, chosen) => `It is ${option(facts, chosen)}.`],
      [4, (facts, chosen) => `From what the clip offers, the answer must be ${option(facts, chosen)}.`],
      [4, ({ question }) => `I would say ${question.paraphrase}.`],
    ],
    wrong: [
      [70, (facts, chosen) => option(facts, chosen)],
      [15, (facts, chosen) => `It is ${option(facts, chosen)}.`],
      [6, (facts, chosen) => `The clip makes it clear: ${option(facts, chosen)}, without any doubt.`],
      [3, () => 'I could not perceive that.'],
      [
        6,
        (facts, chosen) =>
          `Hard to tell; it may be ${option(facts, facts.question.gold)} or ${option(facts, chosen)}.`,
      ],
    ],
  },
  mcq: {
    correct: [
      [60, (_, chosen) => letters[chosen]!],
      [4, (_, chosen) => letters[chosen]!.toLowerCase()],
      [12, (facts, chosen) => `${letters[chosen]}. ${option(facts, chosen)}`],
      [6, (_, chosen) => `The answer is ${letters[chosen]}.`],
      [4, (_, chosen) => `${letters[chosen]})`],
      [4, (facts, chosen) => `It must be ${option(facts, chosen)}`],
      // The rules leave these to a judge.
      [6, (_, chosen) => `(${letters[chosen]})`],
      [4, (_, chosen) => `**${letters[chosen]}**`],
    ],
    wrong: [
      [78, (_, chosen) => letters[chosen]!],
      [8, (facts, chosen) => `${letters[chosen]}. ${option(facts, chosen)}`],
      [6, (_, chosen) => `The answer is ${letters[chosen]}.`],
      [3, (_, chosen) => `**${letters[chosen]}**`],
      [
        5,
        (facts, chosen) =>
          `Hard to tell: option ${letters[facts.question.gold]} or option ${letters[chosen]}.`,
      ],
    ],
  },
};

const weightOf = (rows: readonly [number, Write][]): number =>
  rows.reduce((sum, [weight]) => sum + weight, 0);

/**
 * The words of a reply that has to come out right or wrong, the same whenever it is asked for. A wrong one mostly names what
 * the history suggests where the history competes.
 */
export const wordReply = (
  facts: RequestFacts,
  outcome: 'correct' | 'wrong' | 'unscored',
  laneSalt: number,
): string => {
  const chance = mix(laneSalt, facts.index);
  if (outcome === 'unscored') {
    if (facts.isConflict && chance % 2 === 0) return option(facts, facts.question.rival);
    return sideAnswers[chance % sideAnswers.length]!;
  }
  const { question } = facts;
  const suggested =
    facts.isConflict && (chance >>> 8) % 4 !== 0 ? question.rival : other(facts, chance >>> 4);
  const chosen = outcome === 'correct' ? question.gold : suggested;
  const rows = kinds[facts.interface][outcome];
  let at = (chance >>> 12) % weightOf(rows);
  for (const [weight, write] of rows) {
    if (at < weight) return write(facts, chosen, chance);
    at -= weight;
  }
  throw new Error('weights do not add up');
};
