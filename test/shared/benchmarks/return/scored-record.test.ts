import { expect, test } from 'vitest';
import type { AnswerRow } from '../../../../shared/benchmarks/return/release-format.ts';
import {
  byRequestId,
  scoringSummary,
  toScoredRecord,
} from '../../../../shared/benchmarks/return/scored-record.ts';

const buildAnswer = (changes: Partial<AnswerRow> = {}): AnswerRow => ({
  request_id: 'r1::C::openqa',
  interface: 'openqa',
  condition: 'C',
  gold: 'knit cap',
  aliases: ['beanie', 'knit cap', 'beanie'],
  choices: [],
  scoring_question: 'What is on the head?',
  ...changes,
});

const unscored = {
  content_correct: null,
  uncertain: null,
  format_compliant: null,
  review_reason: null,
};

test('a reply that is correct by rule needs no verdict and uses none', () => {
  const verdict = { verdict: 'incorrect', format_compliant: false, reason: 'no' } as const;

  const record = toScoredRecord(buildAnswer(), { status: 'ok', rawText: 'Beanie.' }, verdict);

  expect(record).toEqual({
    request_id: 'r1::C::openqa',
    interface: 'openqa',
    condition: 'C',
    gold: 'knit cap',
    aliases: ['knit cap', 'beanie'],
    choices: [],
    scoring_question: 'What is on the head?',
    raw_text: 'Beanie.',
    status: 'ok',
    error: null,
    strict_correct: true,
    rule_correct: true,
    score_status: 'scored',
    content_correct: true,
    uncertain: false,
    format_compliant: true,
    review_reason: null,
  });
});

test.each([
  ['equivalent', true, false],
  ['incorrect', false, false],
  ['uncertain', false, true],
] as const)('a verdict %s decides where the rule does not', (verdict, correct, uncertain) => {
  const judgment = { verdict, format_compliant: false, reason: 'because' };

  const record = toScoredRecord(buildAnswer(), { status: 'ok', rawText: 'a woollen hat' }, judgment);

  expect(record).toMatchObject({
    strict_correct: false,
    rule_correct: false,
    score_status: 'scored',
    content_correct: correct,
    uncertain,
    format_compliant: false,
    review_reason: 'because',
  });
});

test('a reply without a verdict waits for its review', () => {
  const record = toScoredRecord(buildAnswer(), { status: 'ok', rawText: 'a hat' }, null);

  expect(record).toMatchObject({ rule_correct: false, score_status: 'review_pending', ...unscored });
});

test.each([
  [{ status: 'error', error: 'http_500' } as const, { status: 'error', error: 'http_500', raw_text: null }],
  [{ status: 'blocked', error: 'blocked' } as const, { status: 'blocked', error: 'blocked', raw_text: null }],
  [
    { status: 'error', error: 'length_truncated', rawText: 'knit cap' } as const,
    { status: 'error', error: 'length_truncated', raw_text: 'knit cap' },
  ],
  [
    { status: 'ok', rawText: ' \n\u3000' } as const,
    { status: 'error', error: 'empty_response', raw_text: ' \n\u3000' },
  ],
  [null, { status: 'missing', error: null, raw_text: null }],
])('an outcome %j has no score, not even a wrong one', (outcome, expected) => {
  const verdict = { verdict: 'equivalent', format_compliant: true, reason: 'r' } as const;

  const record = toScoredRecord(buildAnswer(), outcome, verdict);

  expect(record).toMatchObject({
    ...expected,
    strict_correct: null,
    rule_correct: null,
    score_status: 'inference_failed',
    ...unscored,
  });
});

test('counts records by state', () => {
  const answer = buildAnswer();
  const records = [
    toScoredRecord(answer, { status: 'ok', rawText: 'beanie' }, null),
    toScoredRecord(answer, { status: 'ok', rawText: 'hat' }, null),
    toScoredRecord(answer, { status: 'ok', rawText: 'cap' }, null),
    toScoredRecord(answer, null, null),
  ];

  expect(scoringSummary(records)).toEqual({
    requests: 4,
    scored: 1,
    review_pending: 2,
    inference_failed: 1,
  });
});

test('sorts by code points', () => {
  const ids = ['b', '\u{1f600}', 'B', '\uff21', 'a:'].map((request_id) => ({ request_id }));

  expect(ids.sort(byRequestId).map((row) => row.request_id)).toEqual(['B', 'a:', 'b', '\uff21', '\u{1f600}']);
});
