import { meaningOf } from './grammar.ts';

/** An item of a judge's prompt: all that a judge sees. */
export interface SeenItem {
  id: string;
  answer_type: string;
  gold: string;
  aliases: readonly string[];
  options: readonly string[];
  candidate: string;
}

export interface Judgment {
  id: string;
  verdict: 'equivalent' | 'incorrect' | 'uncertain';
  format_compliant: boolean;
  reason: string;
}

/** Whether a text holds a phrase as whole words. */
const holds = (text: string, phrase: string): boolean => {
  const at = text.indexOf(phrase.toLowerCase());
  if (at < 0) return false;
  const isLetter = (character: string | undefined) =>
    character !== undefined && /[\p{L}\p{N}]/u.test(character);
  return !isLetter(text[at - 1]) && !isLetter(text[at + phrase.length]);
};

const chosenLetters = (candidate: string): string[] => [
  ...new Set(candidate.match(/(?<![\p{L}\p{N}])[A-D](?![\p{L}\p{N}])/gu) ?? []),
];

/**
 * The simulated judge. It knows nothing but the item: words, and what they mean. Like a real one it is a function of what it
 * sees, so equal items get equal verdicts whoever answered.
 */
export const judgeItem = (item: SeenItem): Judgment => {
  const { id, candidate, gold } = item;
  const text = candidate.toLowerCase();
  const judgment = (verdict: Judgment['verdict'], reason: string): Judgment => ({
    id,
    verdict,
    format_compliant: candidate.length < 24,
    reason,
  });
  if (text.includes('hard to tell')) return judgment('uncertain', 'The candidate does not settle on one.');
  if (item.answer_type === 'mcq') {
    const named = chosenLetters(candidate);
    if (named.length === 1)
      return named[0] === gold
        ? judgment('equivalent', 'It names the right letter.')
        : judgment('incorrect', 'It names another letter.');
    const right = item.options['ABCD'.indexOf(gold)]!;
    return holds(text, right) && item.options.filter((one) => holds(text, one)).length === 1
      ? judgment('equivalent', 'It gives the right option.')
      : judgment('incorrect', 'It settles on no single right option.');
  }
  const paraphrased = [...meaningOf].some(([phrase, name]) => name === gold && holds(text, phrase));
  return paraphrased || [gold, ...item.aliases].some((accepted) => holds(text, accepted))
    ? judgment('equivalent', 'It means the same as the gold answer.')
    : judgment('incorrect', 'It is another answer.');
};
