import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { exactMatch, normalized } from '../../../../shared/benchmarks/voxmem/exact-match.ts';
import { anAnswer, aRefusal } from './release-builders.ts';

const small =
  'zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen'.split(
    ' ',
  );
const tens = '- - twenty thirty forty fifty sixty seventy eighty ninety'.split(' ');

/** A number in English, as people write it. */
const inWords = (value: number): string => {
  if (value < 20) return small[value]!;
  if (value < 100) return `${tens[Math.floor(value / 10)]}${value % 10 === 0 ? '' : `-${small[value % 10]}`}`;
  const [unit, name] = value < 1e3 ? [100, 'hundred'] : value < 1e6 ? [1e3, 'thousand'] : [1e6, 'million'];
  const rest = value % unit;
  const link = rest === 0 ? '' : rest < 100 ? ' and ' : ' ';
  return `${inWords(Math.floor(value / unit))} ${name}${link}${rest === 0 ? '' : inWords(rest)}`;
};

describe('the normal form', () => {
  it('of a number in words is the number', () => {
    expect(inWords(2_040_121)).toBe('two million forty thousand one hundred and twenty-one');
    fc.assert(
      fc.property(fc.oneof(fc.nat(150), fc.nat(9_999), fc.nat(999_999_999)), (value) => {
        expect(normalized(`About ${inWords(value)} boats`)).toBe(`about ${value} boats`);
        expect(normalized(value.toLocaleString('en-GB'))).toBe(String(value));
      }),
      { numRuns: 2_000 },
    );
  });

  it.each([
    ['The Sister.', 'sister'],
    ['  an\u00a0OLD, old  boat!', 'old old boat'],
    ["It's Anna's", 'its annas'],
    ['3.0', '3'],
    ['3.50', '3.5'],
    ['.5', '0.5'],
    ['007', '7'],
    ['-2', '-2'],
    ['\u22122 °C', '-2 c'],
    ['5-7', '5 7'],
    ['50%', '50 percent'],
    ['1,000', '1000'],
    ['1,2,3', '1 2 3'],
    ['five six', '5 6'],
    ['twenty ten', '20 10'],
    ['a hundred', '100'],
    ['one hundred and five and six', '105 and 6'],
    ['two thousand twenty-four', '2024'],
    ['nineteen eighty-four', '19 84'],
    ['no one', 'no 1'],
    ['vitamin A', 'vitamin a'],
    ['A', 'a'],
    ['Ｆｕｌｌ ｗｉｄｔｈ', 'full width'],
    ['Café', 'café'],
    ['12345678901234567890', '12345678901234567890'],
    ['...', ''],
  ])('of %j is %j', (text, expected) => {
    expect(normalized(text)).toBe(expected);
  });
});

describe('the exact-match grader', () => {
  it.each([
    ['categorical', 'the sister', 'Sister!', 'correct'],
    ['categorical', 'the sister', 'The sister or the aunt', 'incorrect'],
    ['categorical', 'the sister', 'insufficient evidence', 'incorrect'],
    ['categorical', '...', '!', 'incorrect'],
    ['yes_no', true, 'Yes.', 'correct'],
    ['yes_no', false, 'Yes.', 'incorrect'],
    ['yes_no', 'no', 'NO', 'correct'],
    ['number', 21, 'Twenty-one', 'correct'],
    ['number', '1,000', '1000', 'correct'],
    ['number', 3, '3.0', 'correct'],
    ['number', 3, '33', 'incorrect'],
    ['number', 3, '-3', 'incorrect'],
    ['ordered_list', ['Boat', 'the car'], 'boat, car', 'correct'],
    ['ordered_list', ['boat', 'car'], 'car, boat', 'incorrect'],
  ])('finds for %s with gold %j that %j is %s', (answerType, gold, response, expected) => {
    expect(exactMatch(anAnswer('q1', '8k', { answer_type: answerType, gold }), response)).toBe(expected);
  });

  it.each([
    [['red', 'dark red', 'blue'], 'red', 'It was red.', 'correct'],
    [['red', 'dark red', 'blue'], 'red', 'It was dark red.', 'incorrect'],
    [['red', 'dark red', 'blue'], 'dark red', 'Dark red', 'correct'],
    [['red', 'dark red', 'blue'], 'red', 'Red or blue', 'incorrect'],
    [['red', 'dark red', 'blue'], 'red', 'red blue', 'incorrect'],
    [['red', 'dark red', 'blue'], 'red', 'dark red, red', 'incorrect'],
    [['red', 'dark red', 'blue'], 'red', 'It was green', 'incorrect'],
    [['red', 'dark red', 'blue'], 'red', 'reddish', 'incorrect'],
    [['the park', 'the station'], 'the park', 'In a park', 'correct'],
    [['A', 'B'], 'B', 'A or B', 'incorrect'],
    [['A', 'B'], 'A', 'a', 'correct'],
    [['2', '12'], '12', 'twelve', 'correct'],
  ])('wants exactly one option named: of %j gold %j, %j is %s', (options, gold, response, expected) => {
    expect(exactMatch(anAnswer('q1', '8k', { options, gold }), response)).toBe(expected);
  });

  it.each([
    ['insufficient evidence', 'correct'],
    ['Insufficient evidence.', 'correct'],
    ['There is insufficient evidence to answer the question.', 'correct'],
    ['The evidence is insufficient.', 'correct'],
    ['Insufficient evidence, but probably the sister.', 'incorrect'],
    ["I don't know.", 'incorrect'],
    ['I cannot help with that.', 'incorrect'],
    ['The sister.', 'incorrect'],
    ['', 'incorrect'],
  ])('knows a refusal by its phrase: %j is %s', (response, expected) => {
    expect(exactMatch(aRefusal('q2', '8k'), response)).toBe(expected);
  });

  it('gives a baseline that always abstains 1.0 on refusals and 0.0 elsewhere', () => {
    const answerable = ['the sister', true, 3, ['a', 'b'], { who: 'she' }].map((gold) =>
      anAnswer('q1', '8k', { gold }),
    );
    const withOptions = anAnswer('q1', '8k', { options: ['the sister', 'the aunt'] });

    const verdicts = [...answerable, withOptions].map((answer) =>
      exactMatch(answer, 'insufficient evidence'),
    );

    expect(new Set(verdicts)).toEqual(new Set(['incorrect']));
    expect(exactMatch(aRefusal('q2', '8k'), 'insufficient evidence')).toBe('correct');
  });
});
