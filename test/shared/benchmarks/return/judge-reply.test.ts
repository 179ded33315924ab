import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseJudgeReply } from '../../../../shared/benchmarks/return/judge-reply.ts';

const ids = ['item-000000', 'item-000001'];

const judgment = (id: string, changes: Record<string, unknown> = {}) => ({
  id,
  verdict: 'equivalent',
  format_compliant: true,
  reason: 'Same thing.',
  ...changes,
});

const sound = [judgment(ids[0]!), judgment(ids[1]!, { verdict: 'incorrect', format_compliant: false })];

const soundVerdicts = {
  'item-000000': { verdict: 'equivalent', formatCompliant: true, reason: 'Same thing.' },
  'item-000001': { verdict: 'incorrect', formatCompliant: false, reason: 'Same thing.' },
};

const parsed = (text: string | null, expectedIds: string[] = ids) => {
  const reply = parseJudgeReply(text, expectedIds);
  return reply.ok ? Object.fromEntries(reply.verdicts) : reply.kind;
};

describe('a clear reply', () => {
  const text = JSON.stringify(sound);
  it.each([
    ['an array', text],
    ['an object with one array', `{"judgments":${text}}`],
    ['an object with one array under another name', `{"results":${text}}`],
    ['indented JSON', JSON.stringify({ judgments: sound }, null, 2)],
    ['a code fence', `\`\`\`json\n${text}\n\`\`\``],
    ['prose around it', `Here are my judgments [as asked]:\n\n${text}\n\nI hope {this} helps.`],
    ['a byte order mark and zero-width characters around it', `\uFEFF\u200b${text}\u200b`],
    ['the same value twice', `${text}\n\nTo repeat:\n${JSON.stringify(sound, null, 1)}`],
    ['comments', `{"judgments": [ // two of them\n${text.slice(1, -1)} // done\n]} // end`],
    [
      'another order of items and keys',
      `[${JSON.stringify({ reason: 'Same thing.', format_compliant: false, verdict: 'incorrect', id: ids[1] })},${JSON.stringify(sound[0])}]`,
    ],
  ])('may be %s', (_, reply) => {
    expect(parsed(reply)).toEqual(soundVerdicts);
  });

  it('may have raw line ends and tabs, brackets, slashes and escapes in a reason', () => {
    const reason = 'Line one\n\tsays {"verdict": "incorrect"} // [no]';
    const raw = JSON.stringify(judgment(ids[0]!, { reason: '@' })).replace(
      '"@"',
      '"Line one\n\tsays {\\"verdict\\": \\"incorrect\\"} // [\\u006eo]"',
    );

    const reply = parsed(`[${raw}]`, [ids[0]!]);

    expect(reply).toEqual({ 'item-000000': { verdict: 'equivalent', formatCompliant: true, reason } });
  });

  it('keeps any reason as it was', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (reason) => {
        const reply = parsed(`Note. ${JSON.stringify([judgment(ids[0]!, { reason })])}`, [ids[0]!]);

        expect(reply).toEqual({ 'item-000000': { verdict: 'equivalent', formatCompliant: true, reason } });
      }),
    );
  });

  it('takes "__proto__" for an id like any other', () => {
    const reply = parseJudgeReply(
      '[{"id":"__proto__","verdict":"uncertain","format_compliant":true,"reason":""}]',
      ['__proto__'],
    );

    expect(reply.ok && reply.verdicts.get('__proto__')).toEqual({
      verdict: 'uncertain',
      formatCompliant: true,
      reason: '',
    });
  });

  it('to no items is an empty array', () => {
    expect(parsed('[]', [])).toEqual({});
  });
});

describe('a reply that other evaluators misread', () => {
  // Each is a failure known from other evaluation tools: words read out of prose, or a default verdict.
  it.each([
    'INCORRECT',
    'Not correct.',
    'correct',
    'equivalent',
    '{"match":"false"}',
    '```json\n{"verdict":"CORRECT"}\n```',
    'Yes, the reference contains that word, although the answer is about something else.',
    'downgrade: the answer is C',
    'GRADE: CI',
    'GRADE: C or I',
    'GRADE: **C**',
    'GRADE: (C)',
    'GRADE: $C$',
    '',
    ' \n',
    null,
    'null',
    '{}',
    '{"judgments":{}}',
    '"[]"',
  ])('gives no verdict: %j', (reply) => {
    const outcome = parseJudgeReply(reply, ids);

    expect(outcome.ok).toBe(false);
  });
});

describe('a void chunk', () => {
  const withItem = (changes: Record<string, unknown>) =>
    JSON.stringify([judgment(ids[0]!, changes), sound[1]]);

  it.each([
    ['an upper-case verdict', withItem({ verdict: 'Equivalent' })],
    ['an unknown verdict', withItem({ verdict: 'correct' })],
    ['a verdict with a space', withItem({ verdict: 'equivalent ' })],
    ['a verdict with a zero-width character', withItem({ verdict: 'equi\u200bvalent' })],
    ['two verdicts in one', withItem({ verdict: 'equivalent or incorrect' })],
    ['a list as verdict', withItem({ verdict: ['equivalent'] })],
    ['no verdict', withItem({ verdict: undefined })],
    ['a placeholder copied from the prompt', withItem({ verdict: '<verdict>' })],
    ['a format_compliant in words', withItem({ format_compliant: 'true' })],
    ['a format_compliant as a number', withItem({ format_compliant: 1 })],
    ['no format_compliant', withItem({ format_compliant: undefined })],
    ['no reason', withItem({ reason: undefined })],
    ['a reason that is no text', withItem({ reason: null })],
    ['an id as a number', withItem({ id: 0 })],
    ['a key that was not asked for', withItem({ verdict_revised: 'incorrect' })],
    ['an item that is a list', JSON.stringify([[], sound[1]])],
    ['items that are words', '["equivalent","incorrect"]'],
    ['a single judgment', JSON.stringify(sound[0])],
    ['an object with two lists', JSON.stringify({ draft: sound, judgments: sound })],
    ['verdicts by id', JSON.stringify({ [ids[0]!]: sound[0], [ids[1]!]: sound[1] })],
  ])('has %s', (_, reply) => {
    expect(parsed(reply)).toBe('judge_item_invalid');
  });

  it.each([
    ['an item missing', JSON.stringify([sound[0]])],
    ['an item added', JSON.stringify([...sound, judgment('item-000002')])],
    ['an item twice', JSON.stringify([sound[0], sound[0]])],
    ['an item twice and none missing', JSON.stringify([...sound, sound[0]])],
    ['another id', JSON.stringify([sound[0], judgment('item-1')])],
    ['an id in another case', JSON.stringify([sound[0], judgment('ITEM-000001')])],
    ['no items', '[]'],
  ])('has %s', (_, reply) => {
    expect(parsed(reply)).toBe('judge_ids_differ');
  });

  const text = JSON.stringify(sound);
  const twoVerdicts = text.replace('"verdict":"equivalent"', '"verdict":"equivalent","verdict":"incorrect"');
  it.each([
    ['two values that differ', `${text}\n${withItem({ verdict: 'incorrect' })}`],
    ['a draft before the final value', `<think>${withItem({ verdict: 'uncertain' })}</think>${text}`],
    ['a footnote that is a value too', `${text} [1]`],
    ['a key given twice', twoVerdicts],
    ['a cut end', text.slice(0, -1)],
    ['a cut end after the first item', text.slice(0, text.indexOf('},{') + 2)],
    ['a cut end inside a string', `{"judgments":${text.slice(0, -12)}`],
    ['single quotes', text.replaceAll('"', "'").replace("[{'", '[{"')],
    ['a trailing comma', text.replace('}]', '},]')],
    ['an unknown escape', text.replace('Same', '\\x53ame')],
    ['a control character in a string', text.replace('Same', '\u0000Same')],
    ['unquoted words', text.replace('"equivalent"', 'equivalent')],
    ['Python words', text.replace('true', 'True')],
    ['endless nesting', '['.repeat(100_000)],
  ])('has %s', (_, reply) => {
    expect(parsed(reply)).toBe('judge_unparsed');
  });

  it('says why in one short line, whatever the judge sent', () => {
    const reply = parseJudgeReply(withItem({ verdict: `x\n${'y'.repeat(10_000)}` }), ids);

    const message = reply.ok ? '' : reply.message;
    expect(message).toMatch(/^judgment 1: verdict "x\\ny+… is not one of equivalent, incorrect, uncertain$/);
    expect(message.length).toBeLessThan(250);
  });
});

describe('any reply', () => {
  const piece = fc.oneof(
    fc.constantFrom('{', '}', '[', ']', '"', ':', ',', '//', '\\', '\n', 'true', 'null', '1', '{"', '[{'),
    fc.constantFrom('"id"', '"verdict"', '"equivalent"', '"format_compliant"', '"reason"', '"item-000000"'),
    fc.string({ unit: 'binary', maxLength: 5 }),
    fc.constantFrom(JSON.stringify(sound), JSON.stringify(sound[0])),
  );
  const text = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.array(piece, { maxLength: 40 }).map((all) => all.join('')),
  );

  it('never throws and never gives verdicts but for exactly the ids asked', () => {
    fc.assert(
      fc.property(text, fc.subarray([...ids, 'item-000002']), (reply, expected) => {
        const outcome = parseJudgeReply(reply, expected);

        if (outcome.ok) {
          expect([...outcome.verdicts.keys()].sort()).toEqual(expected.toSorted());
          for (const id of expected) expect(reply).toContain(id);
        } else expect(outcome.message).not.toBe('');
      }),
      { numRuns: 3_000 },
    );
  });

  it('never survives being cut short', () => {
    const whole = JSON.stringify({ judgments: sound });

    fc.assert(
      fc.property(fc.integer({ min: 0, max: whole.length - 1 }), (length) => {
        expect(parseJudgeReply(whole.slice(0, length), ids).ok).toBe(false);
      }),
    );
  });
});
