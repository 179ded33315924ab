import { describe, expect, it } from 'vitest';
import { judgeReply, verdictReply } from '../../mock/judge.ts';

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

const verdict = (response: string, more: object = {}) =>
  JSON.parse(verdictReply(JSON.stringify({ question: 'Which?', response, ...more }), null)).verdict;
const options = ['red', 'dark red', 'blue'];

describe('the simulated judge of one response', () => {
  it.each([
    ['words of gold', 'It was **the Station**.', { gold: 'the station' }, 'correct'],
    ['other words', 'The library.', { gold: 'the station' }, 'incorrect'],
    ['a number in words', 'Seven plants.', { gold: '7' }, 'correct'],
    ['another number', '17', { gold: '7' }, 'incorrect'],
    ['two answers', 'Yes or no.', { gold: 'no' }, 'incorrect'],
    ['an option', 'I think blue.', { gold: 'blue', options }, 'correct'],
    ['two options', 'Blue, red.', { gold: 'blue', options }, 'incorrect'],
    ['no option', 'Green.', { gold: 'blue', options }, 'incorrect'],
    ['a list in order', 'First red, then blue.', { gold: '["red","blue"]' }, 'correct'],
    ['a list in another order', 'Blue, red.', { gold: '["red","blue"]' }, 'incorrect'],
    ['a list that is not whole', 'Red.', { gold: '["red","blue"]' }, 'incorrect'],
    ['gold that only begins like a list', 'The [red one', { gold: '[red' }, 'correct'],
    ['no answer', 'Insufficient evidence.', { gold: 'no' }, 'incorrect'],
    ['rightly no answer', 'There is not enough evidence.', {}, 'correct'],
    ['no answer and a guess', 'Insufficient evidence, but I guess blue.', {}, 'incorrect'],
    ['an answer where none is right', 'Blue.', {}, 'incorrect'],
    ['ignorance without a reason', 'I do not know.', {}, 'incorrect'],
  ])('judges %s', (_name, response, more, expected) => {
    expect(verdict(response, more)).toBe(expected);
  });

  it('has faults', () => {
    const text = JSON.stringify({ question: 'Which?', response: 'blue', gold: 'blue' });

    expect(() => JSON.parse(verdictReply(text, 'rubbish'))).toThrow(SyntaxError);
    expect(verdictReply(text, 'fenced')).toBe('```json\n{"verdict":"correct"}\n```');
  });

  it.each(['no JSON', '{"gold":"a"}', '{"response":1}'])('refuses %s', (text) => {
    expect(() => verdictReply(text, null)).toThrow(/the judge needs/);
  });
});
