import { createHash } from 'node:crypto';
import { ignoringCase, word, wordStart } from './python-text.ts';
import { acceptedAnswers } from './score-reply.ts';

export interface AnswerToReview {
  scoringQuestion: string;
  gold: string;
  aliases: readonly string[];
  choices: readonly string[];
  interface: string;
  raw: string;
}

const colour = new RegExp(`${wordStart}${ignoringCase('colo')}[uU]?[rR](?!${word})`, 'u');
const colourRule = 'question_requested_color_granularity_v1';

const shortEscapes: Record<string, string> = {
  '"': '\\"',
  '\\': '\\\\',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
};

/** A string as Python's `json.dumps(…, ensure_ascii=False)` writes it: lone surrogates stay as they are. */
const quoted = (text: string): string => {
  const inside = text.replace(
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what JSON must escape
    /["\\\u0000-\u001f]/g,
    (character) => shortEscapes[character] ?? `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  return `"${inside}"`;
};

const list = (texts: readonly string[]): string => `[${texts.map(quoted).join(',')}]`;

/**
 * What makes two answers the same for a judge (return-protocol §5): question, gold, aliases, options,
 * interface and reply, as compact JSON. Equal identities are judged once, in any run.
 */
export const reviewIdentity = (answer: AnswerToReview): string => {
  const { scoringQuestion, gold, aliases, choices, raw } = answer;
  const asksColour = answer.interface === 'openqa' && colour.test(scoringQuestion);
  const members = [
    quoted(scoringQuestion),
    quoted(gold),
    list(acceptedAnswers(gold, aliases)),
    list(choices),
    quoted(answer.interface),
    quoted(raw),
    ...(asksColour ? [quoted(colourRule)] : []),
  ];
  return `[${members.join(',')}]`;
};

/** SHA-256 of an identity in hex. Lone surrogates, which UTF-8 cannot hold, are hashed as their escapes. */
export const reviewKey = (identity: string): string => {
  const encodable = identity.replace(/\p{Surrogate}/gu, (lone) => `\\u${lone.charCodeAt(0).toString(16)}`);
  return createHash('sha256').update(encodable).digest('hex');
};
