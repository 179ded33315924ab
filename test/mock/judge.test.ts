import { describe, expect, it } from 'vitest';
import { judgeReply } from '../../mock/judge.ts';

const item = (candidate: string, more: object = {}) => ({
  id: 'i1',
  question: 'Which?',
  gold: 'hi guys',
  aliases: ['hi guys', 'hello guys'],
  options: [],
  candidate,
  answer_type: 'openqa',
  ...more,
});
const mcq = (candidate: string) =>
  item(candidate, {
    gold: 'D',
    aliases: ['D'],
    options: ['hey', 'hi', 'yo', 'hello guys'],
    answer_type: 'mcq',
  });
const judged = (items: object[], fault: string | null = null) => judgeReply(JSON.stringify({ items }), fault);
const verdictOf = (candidate: object) => JSON.parse(judged([candidate])).judgments[0].verdict;

describe('the simulated judge', () => {
  it.each([
    ['the gold answer', item('Hi, guys!'), 'equivalent'],
    ['an alias inside a sentence', item('They say "hello guys" first.'), 'equivalent'],
    ['part of a word', item('Chi guysmo'), 'incorrect'],
    ['something else', item('good evening'), 'incorrect'],
    ['nothing', item(''), 'incorrect'],
    ['an alias without words', item('...', { gold: '?', aliases: ['!'] }), 'incorrect'],
    ['another script', item('它是蓝色 的', { gold: '它是蓝色', aliases: [] }), 'equivalent'],
    ['the letter', mcq('d.'), 'equivalent'],
    ['the option', mcq('Hello guys'), 'equivalent'],
    ['letter and option', mcq('D. hello guys'), 'equivalent'],
    ['another letter', mcq('A'), 'incorrect'],
    ['two letters', mcq('A or D'), 'incorrect'],
  ])('finds %s', (_name, candidate, verdict) => {
    expect(verdictOf(candidate)).toBe(verdict);
  });

  it('answers every item in the agreed form, whatever stands around the JSON', () => {
    const text = `Judge these:\n${JSON.stringify({ items: [item('hi guys'), item('no\nidea', { id: 'i2' })] })}\nThanks.`;

    expect(JSON.parse(judgeReply(text, null))).toEqual({
      judgments: [
        { id: 'i1', verdict: 'equivalent', format_compliant: true, reason: expect.any(String) },
        { id: 'i2', verdict: 'incorrect', format_compliant: false, reason: expect.any(String) },
      ],
    });
  });

  it('has faults', () => {
    const items = [item('x'), item('y', { id: 'i2' })];

    expect(() => JSON.parse(judged(items, 'rubbish'))).toThrow(SyntaxError);
    expect(JSON.parse(judged(items, 'missing_id')).judgments).toMatchObject([{ id: 'i1' }]);
    expect(judged(items, 'fenced')).toMatch(/^```json\n\{.*\}\n```$/s);
  });

  it.each(['no JSON', '{"items":[]}', '{"items":[{"id":"a"}]}', '{"things":1}'])('refuses %s', (text) => {
    expect(() => judgeReply(text, null)).toThrow(/the judge needs/);
  });
});
