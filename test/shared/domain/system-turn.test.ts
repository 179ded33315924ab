import { describe, expect, it } from 'vitest';
import type { ResolvedMessage } from '../../../shared/domain/request.ts';
import { foldSystemTurn, splitSystemTurn, systemPromptDelivery } from '../../../shared/domain/system-turn.ts';
import { answering, asking } from '../providers/lane-under-test.ts';

const system = (text: string): ResolvedMessage => ({ role: 'system', text });
const first = asking({ text: 'Session timestamp: 2026-01-05 09:00' }, { audio: 'a.wav' });
const last = asking({ text: 'Session timestamp: 2026-02-01 10:00' }, { audio: 'q.wav' });

describe('a folded system turn', () => {
  it('is the first part of the first user message, before its time stamp', () => {
    const messages = [system('Be brief.'), first, answering('Noted.'), last];

    expect(foldSystemTurn(messages)).toEqual([
      asking({ text: 'Be brief.' }, { text: 'Session timestamp: 2026-01-05 09:00' }, { audio: 'a.wav' }),
      answering('Noted.'),
      last,
    ]);
    // The messages that were given stay as they were.
    expect(messages).toEqual([system('Be brief.'), first, answering('Noted.'), last]);
  });

  it('passes an assistant turn that comes before the first user message', () => {
    expect(foldSystemTurn([system('Be brief.'), answering('Hello.'), last])).toEqual([
      answering('Hello.'),
      asking({ text: 'Be brief.' }, { text: 'Session timestamp: 2026-02-01 10:00' }, { audio: 'q.wav' }),
    ]);
  });

  it('changes nothing where there is none', () => {
    expect(foldSystemTurn([first, answering('Noted.'), last])).toEqual([first, answering('Noted.'), last]);
  });

  it('needs a user message', () => {
    expect(() => foldSystemTurn([system('Be brief.'), answering('Hello.')])).toThrow(
      expect.objectContaining({ name: 'ContractViolated' }),
    );
  });
});

describe('a system turn apart', () => {
  it('is its text, and the messages after it', () => {
    expect(splitSystemTurn([system('Be brief.'), first])).toEqual({ system: 'Be brief.', others: [first] });
    expect(splitSystemTurn([first, answering('Noted.')])).toEqual({
      system: null,
      others: [first, answering('Noted.')],
    });
  });

  it('cannot come later', () => {
    expect(() => splitSystemTurn([first, system('Be brief.'), last])).toThrow(
      expect.objectContaining({ name: 'ContractViolated' }),
    );
  });
});

describe('the delivery of a system prompt', () => {
  it.each([
    [true, undefined, 'native'],
    [false, undefined, 'folded'],
    [true, 'folded', 'folded'],
    [true, 'native', 'native'],
    [false, 'folded', 'folded'],
  ] as const)('takes system turns: %s, the lane says %s: %s', (takesSystemTurn, systemPrompt, expected) => {
    expect(systemPromptDelivery({ takesSystemTurn }, { systemPrompt })).toBe(expected);
  });
});
