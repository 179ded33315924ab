import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { reviewIdentity, reviewKey } from '../../../../shared/benchmarks/return/review-identity.ts';

type Members = [
  question: string,
  gold: string,
  aliases: string[],
  choices: string[],
  interfaceName: string,
  raw: string,
];

const python = JSON.parse(
  readFileSync(new URL('../../../fixtures/return/scoring.json', import.meta.url), 'utf8'),
) as { identities: [members: Members, identity: string, key: string | null][] };

const identityOf = ([scoringQuestion, gold, aliases, choices, interfaceName, raw]: Members): string =>
  reviewIdentity({ scoringQuestion, gold, aliases, choices, interface: interfaceName, raw });

test.each(python.identities)('writes %j as Python does', (members, identity, key) => {
  expect(identityOf(members)).toBe(identity);
  if (key !== null) expect(reviewKey(identity)).toBe(key);
});

test('a colour question of openqa names its rule, one of mcq does not', () => {
  const question = 'Which Colour?';

  const open = identityOf([question, 'red', [], [], 'openqa', 'rot']);
  const choice = identityOf([question, 'A', [], ['red'], 'mcq', 'rot']);

  expect(open).toBe(
    '["Which Colour?","red",["red"],[],"openqa","rot","question_requested_color_granularity_v1"]',
  );
  expect(choice).toBe('["Which Colour?","A",["A"],["red"],"mcq","rot"]');
});

test('replies that differ in a lone surrogate have keys of their own', () => {
  const keys = ['\ud800', '\ud801', '\ufffd'].map((raw) =>
    reviewKey(identityOf(['q', 'g', [], [], 'openqa', raw])),
  );

  expect(new Set(keys).size).toBe(3);
});
