import { describe, expect, it } from 'vitest';
import { requestFingerprint } from '../../mock/fingerprint.ts';
import type { ResolvedMessage } from '../../shared/domain/request.ts';

// SHA-256 of the bytes AAA and BB.
const audio = 'cb1ad2119d8fafb69566510ee712661f9f14b83385006ef92aec47f523a38358';
const video = 'fc686c314491e1f68bf1899fc54b2327353c44dd1ab4ed56538ef623edd1e866';

const twoTurns: ResolvedMessage[] = [
  {
    role: 'user',
    content: [
      { type: 'audio', path: 'a.wav', sha256: audio },
      { type: 'video', path: 'b.mp4', sha256: video },
      { type: 'text', text: 'Which 蓝 "colour"?\n' },
    ],
  },
  { role: 'assistant', text: 'Blue' },
  { role: 'user', content: [{ type: 'text', text: 'And now?' }] },
];

describe('requestFingerprint', () => {
  // Expected values: Python's hashlib over json.dumps(turns, ensure_ascii=False, separators=(',', ':')).
  it('is the hash of the user turns', () => {
    expect(requestFingerprint(twoTurns)).toBe(
      'd6113c809dd6a94354bd07d9ee9d996ae752cfd13f90b7d21394320cdeee12bc',
    );
    expect(
      requestFingerprint([
        { role: 'system', text: 'Be brief.' },
        { role: 'user', content: 'Hi' },
      ]),
    ).toBe('98ae1764e42509b514961631c61de1fe9924470562640d45cc1f1b42c2356851');
  });

  it('does not depend on the replies, but on the border between turns', () => {
    const otherReply = twoTurns.map((message) =>
      message.role === 'assistant' ? { ...message, text: 'Grey' } : message,
    );
    const oneTurn: ResolvedMessage[] = [
      {
        role: 'user',
        content: twoTurns.flatMap((message) => (message.role === 'user' ? message.content : [])),
      },
    ];

    expect(requestFingerprint(otherReply)).toBe(requestFingerprint(twoTurns));
    expect(requestFingerprint(oneTurn)).not.toBe(requestFingerprint(twoTurns));
  });

  it('holds a system text only where that is asked for', () => {
    const spoken = [
      { role: 'system' as const, text: 'Sei kurz. 蓝' },
      { role: 'user' as const, content: 'Hi' },
    ];

    expect(requestFingerprint(spoken)).toBe(
      '98ae1764e42509b514961631c61de1fe9924470562640d45cc1f1b42c2356851',
    );
    expect(requestFingerprint(spoken, { withSystem: true })).toBe(
      '8d33f77bc2f01b7949301996d2e0aebbc14992e19200bf6c2762ad287d5331fc',
    );
    expect(requestFingerprint(twoTurns, { withSystem: true })).toBe(requestFingerprint(twoTurns));
  });

  it('needs the hash of every clip', () => {
    expect(() => requestFingerprint([{ role: 'user', content: [{ type: 'audio', sha256: null }] }])).toThrow(
      expect.objectContaining({ name: 'UsageWrong' }),
    );
  });
});
