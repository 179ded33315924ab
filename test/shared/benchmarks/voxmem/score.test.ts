import { describe, expect, it } from 'vitest';
import { toVerdictItem } from '../../../../shared/benchmarks/voxmem/judge.ts';
import { failureRules, scoreItem, withVerdict } from '../../../../shared/benchmarks/voxmem/score.ts';
import { aFailure, anAnswer, aRefusal, aReply } from './release-builders.ts';

const judged = { grader: 'judge' } as const;
const matched = { grader: 'exact-match' } as const;
const answer = anAnswer('q1', '32k', { answer_type: 'categorical', subtype: 'who', family_id: 'f7' });

describe('an item', () => {
  it('with a reply awaits the judge', () => {
    const { item, review } = scoreItem(
      answer,
      { ...aReply('q1_32k', ' Sister\n'), systemPromptDelivery: 'folded' },
      judged,
    );

    expect(item).toEqual({
      itemId: 'q1_32k',
      questionId: 'q1',
      contextLength: '32k',
      familyId: 'f7',
      evidenceType: 'speaker_information',
      memoryOperation: 'information_extraction',
      subtype: 'who',
      expectedResponse: 'answer',
      answerType: 'categorical',
      status: 'pending',
      response: ' Sister\n',
      failure: null,
      systemPromptDelivery: 'folded',
    });
    expect(review).toEqual(toVerdictItem(answer, ' Sister\n'));
  });

  it('that was not asked is open and has no delivery', () => {
    const { item, review } = scoreItem(answer, null, judged);

    expect([item.status, item.response, item.systemPromptDelivery, review]).toEqual(['open', '', null, null]);
  });

  it('with a reply of white space is empty and not judged', () => {
    const { item, review } = scoreItem(answer, aReply('q1_32k', ' \n\u00a0'), judged);

    expect([item.status, item.response, item.failure, review]).toEqual(['empty', '', null, null]);
  });

  it.each([
    [answer, 'The sister', 'correct'],
    [answer, 'insufficient evidence', 'incorrect'],
    [aRefusal('q2', '8k'), 'Insufficient evidence.', 'correct'],
    [aRefusal('q2', '8k'), 'The sister', 'incorrect'],
  ])('is graded at once without a judge', (row, response, status) => {
    const { item, review } = scoreItem(row, aReply(row.item_id, response), matched);

    expect([item.status, item.response, item.systemPromptDelivery, review]).toEqual([
      status,
      response,
      null,
      null,
    ]);
  });
});

describe('a failure', () => {
  const statusOf = (kind: string, refusal = false) =>
    scoreItem(answer, aFailure('q1_32k', kind, { refusal }), judged).item;

  it('keeps an empty response and its kind', () => {
    expect(statusOf('timeout')).toMatchObject({ status: 'failed', response: '', failure: 'timeout' });
  });

  it.each([
    ['empty_response', 'empty'],
    ['request_too_large', 'rejected'],
    ['media_unusable', 'rejected'],
    ['http_400', 'rejected'],
    ['http_404', 'rejected'],
    ['http_413', 'rejected'],
    ['http_415', 'rejected'],
    ['http_422', 'rejected'],
    ['http_401', 'failed'],
    ['http_402', 'failed'],
    ['http_403', 'failed'],
    ['http_408', 'failed'],
    ['http_409', 'failed'],
    ['http_429', 'failed'],
    ['http_451', 'failed'],
    ['http_500', 'failed'],
    ['http_503', 'failed'],
    ['timeout', 'failed'],
    ['connect_failed', 'failed'],
    ['connection_reset', 'failed'],
    ['protocol_error', 'failed'],
    ['length_truncated', 'failed'],
    ['incomplete_stream', 'failed'],
    ['invalid_response', 'failed'],
    ['finish_content_filter', 'failed'],
    ['provider_refusal', 'failed'],
    ['media_dropped', 'failed'],
    ['worker_lost', 'failed'],
    ['blocked', 'failed'],
    ['recording_missing', 'failed'],
    ['recorded_empty', 'failed'],
    ['batch_expired', 'failed'],
    ['something_new', 'failed'],
    ['http_4000', 'failed'],
    ['not_request_too_large', 'failed'],
  ])('of kind %s is %s', (kind, expected) => {
    expect(statusOf(kind).status).toBe(expected);
  });

  it('by policy fails its item, whatever status it came with', () => {
    expect([statusOf('http_400', true).status, statusOf('provider_refusal', true).status]).toEqual([
      'failed',
      'failed',
    ]);
  });

  it('has a reason under each rule', () => {
    expect(failureRules.filter(({ reason }) => reason === '')).toEqual([]);
  });
});

describe('a verdict', () => {
  const pending = scoreItem(answer, aReply('q1_32k', 'Sister'), judged).item;

  it.each([
    ['correct', 'correct'],
    ['incorrect', 'incorrect'],
    ['unreadable', 'ungraded'],
  ] as const)('%s makes the item %s', (verdict, status) => {
    expect(withVerdict(pending, { verdict })).toEqual({ ...pending, status });
  });

  it('that is not there yet leaves the item pending', () => {
    expect(withVerdict(pending, null)).toEqual(pending);
  });

  it('changes no item that awaits none', () => {
    const failed = scoreItem(answer, aFailure('q1_32k', 'timeout'), judged).item;

    expect(withVerdict(failed, { verdict: 'correct' })).toEqual(failed);
  });
});
