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

const jsonIn = (lastText: string, what: string): unknown => {
  try {
    return JSON.parse(lastText.slice(lastText.indexOf('{'), lastText.lastIndexOf('}') + 1));
  } catch {
    throw new BadRequest(`the judge needs a user message that is a JSON object with ${what}`);
  }
};

const rubbish = 'All of these look fine to me!';
const inFence = (json: string): string => `\`\`\`json\n${json}\n\`\`\``;

/** A simulated judge's verdicts; `rubbish`, `missing_id` and `fenced` are its faults. */
export const judgeReply = (lastText: string, fault: string | null): string => {
  const value = jsonIn(lastText, 'items');
  const parsed = z.looseObject({ items: z.array(item).min(1) }).safeParse(value);
  if (!parsed.success) throw new BadRequest('the judge needs items with id, gold and candidate');
  const judgments = parsed.data.items.map((judged) => ({
    id: judged.id,
    verdict: isEquivalent(judged) ? 'equivalent' : 'incorrect',
    format_compliant: !judged.candidate.trim().includes('\n'),
    reason: 'simulated: compared with gold and aliases word by word',
  }));
  if (fault === 'rubbish') return rubbish;
  if (fault === 'missing_id') judgments.pop();
  const answer = JSON.stringify({ judgments });
  return fault === 'fenced' ? inFence(answer) : answer;
};

const single = z.looseObject({
  response: z.string(),
  /** Left out where declining is right. */
  gold: z.string().optional(),
  options: z.array(z.string()).default([]),
});

const numberWords = 'zero one two three four five six seven eight nine ten eleven twelve'.split(' ');
const withDigits = (words: string): string =>
  words
    .split(' ')
    .map((word) => (numberWords.includes(word) ? String(numberWords.indexOf(word)) : word))
    .join(' ');

/** Elements of a gold answer that is a JSON list; null for all others. */
const elementsOf = (gold: string): string[] | null => {
  if (!gold.startsWith('[')) return null;
  try {
    const value: unknown = JSON.parse(gold);
    return Array.isArray(value) ? value.map(String) : null;
  } catch {
    return null;
  }
};

const namesInOrder = (said: string, elements: readonly string[]): boolean => {
  let from = 0;
  return elements.every((element) => {
    const at = ` ${said} `.indexOf(` ${plain(element)} `, from);
    from = at + 1;
    return at >= 0;
  });
};

const isCorrect = ({ response, gold, options }: z.infer<typeof single>): boolean => {
  const said = withDigits(plain(response));
  const declines = /\b(insufficient|not enough|enough|no|missing) evidence\b/.test(said);
  if (gold === undefined) return declines && !/\b(but|guess|perhaps|probably|maybe)\b/.test(said);
  if (declines) return false;
  const named = options.filter((option) => holdsWords(said, plain(option)));
  if (options.length > 0) return named.length === 1 && named[0] === gold;
  const elements = elementsOf(gold);
  if (elements !== null) return namesInOrder(said, elements);
  return !/\bor\b/.test(said) && holdsWords(said, withDigits(plain(gold)));
};

const audited = z.looseObject({
  reply: z.string(),
  right_answer: z.string().nullable(),
  sessions: z.array(z.looseObject({ turns: z.array(z.looseObject({ text: z.string() })) })),
});

/** A simulated auditor's record: sessions that hold the words of an answer, and which answer's they are. */
const auditRecord = ({ reply, right_answer, sessions }: z.infer<typeof audited>) => {
  const holding = (answer: string): number[] =>
    sessions.flatMap(({ turns }, index) =>
      turns.some(({ text }) => holdsWords(plain(text), plain(answer))) ? [index + 1] : [],
    );
  const needed = right_answer === null ? [] : holding(right_answer);
  const matched = holding(reply);
  const isAsked = matched.some((session) => needed.includes(session));
  return {
    answer: reply,
    needed_sessions: needed,
    matched_sessions: matched,
    matched_content: matched.length === 0 ? 'none' : isAsked ? 'asked' : 'other_value',
    rendering: matched.length === 0 ? 'absent' : 'faithful',
    result: isAsked ? 'does_not_follow' : 'unclear',
    note: 'simulated: looked for the words of both answers',
  };
};

/**
 * A simulated judge of one response, and auditor of one where sessions are given: `{"verdict": "correct" | "incorrect"}` by words, from a JSON object with `response`,
 * `gold` (left out where the response has to decline) and `options`. `rubbish` and `fenced` are its faults.
 */
export const verdictReply = (lastText: string, fault: string | null): string => {
  const value = jsonIn(lastText, 'a response');
  const asAuditor = audited.safeParse(value);
  if (asAuditor.success) return fault === 'rubbish' ? rubbish : JSON.stringify(auditRecord(asAuditor.data));
  const parsed = single.safeParse(value);
  if (!parsed.success) throw new BadRequest('the judge needs a response and, where there is one, gold');
  if (fault === 'rubbish') return rubbish;
  const answer = JSON.stringify({ verdict: isCorrect(parsed.data) ? 'correct' : 'incorrect' });
  return fault === 'fenced' ? inFence(answer) : answer;
};
