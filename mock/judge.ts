import { z } from 'zod';
import { BadRequest } from './wire.ts';

const item = z.looseObject({
  id: z.string(),
  gold: z.string(),
  aliases: z.array(z.string()).default([]),
  options: z.array(z.string()).nullish(),
  candidate: z.string(),
  answer_type: z.string().nullish(),
});
type JudgeItem = z.infer<typeof item>;

const plain = (text: string): string =>
  text
    .normalize('NFKC')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, ' ')
    .trim();

const holdsWords = (text: string, words: string): boolean =>
  words !== '' && ` ${text} `.includes(` ${words} `);

const isEquivalent = ({ gold, aliases, options, candidate, answer_type }: JudgeItem): boolean => {
  const said = plain(candidate);
  if (answer_type !== 'mcq') return [gold, ...aliases].some((answer) => holdsWords(said, plain(answer)));
  const letter = plain(gold);
  const correct = plain(options?.[letter.charCodeAt(0) - 97] ?? '');
  return said === letter || (correct !== '' && (said === correct || said === `${letter} ${correct}`));
};

/** A simulated judge's verdicts; `rubbish`, `missing_id` and `fenced` are its faults. */
export const judgeReply = (lastText: string, fault: string | null): string => {
  const text = lastText.slice(lastText.indexOf('{'), lastText.lastIndexOf('}') + 1);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new BadRequest('the judge needs a user message that is a JSON object with items');
  }
  const parsed = z.looseObject({ items: z.array(item).min(1) }).safeParse(value);
  if (!parsed.success) throw new BadRequest('the judge needs items with id, gold and candidate');
  const judgments = parsed.data.items.map((judged) => ({
    id: judged.id,
    verdict: isEquivalent(judged) ? 'equivalent' : 'incorrect',
    format_compliant: !judged.candidate.trim().includes('\n'),
    reason: 'simulated: compared with gold and aliases word by word',
  }));
  if (fault === 'rubbish') return 'All of these look fine to me!';
  if (fault === 'missing_id') judgments.pop();
  const answer = JSON.stringify({ judgments });
  return fault === 'fenced' ? `\`\`\`json\n${answer}\n\`\`\`` : answer;
};
