import { describe, expect, it } from 'vitest';
import { predictionLines } from '../../../../shared/benchmarks/voxmem/export-predictions.ts';
import type { AnswerRow, ItemStatus, ScoredItem } from '../../../../shared/benchmarks/voxmem/format.ts';
import { scoreItem } from '../../../../shared/benchmarks/voxmem/score.ts';
import { aFailure, anAnswer, anItem, aReply, aSession } from './release-builders.ts';

const questions = ['q2', 'q1', 'q3'];
const inputs = {
  items: new Map(
    questions.map((id) => [`${id}_8k`, anItem(id, '8k', { session_keys: ['s1', 's2'] })] as const),
  ),
  sessions: new Map([
    ['s1', aSession('s1', 't', 'u:one', 'a:Yes.', 'u:two')],
    ['s2', aSession('s2', 't', 'u:three')],
  ]),
};

const answersOf = (changes: Partial<AnswerRow> = {}) =>
  new Map(questions.map((id) => [`${id}_8k`, anAnswer(id, '8k', changes)] as const));

const scored = (questionId: string, status: ItemStatus, changes: Partial<ScoredItem> = {}): ScoredItem => ({
  ...scoreItem(anAnswer(questionId, '8k'), aReply(`${questionId}_8k`, 'The sister'), {
    grader: 'judge',
  }).item,
  systemPromptDelivery: 'folded',
  status,
  ...changes,
});

const exported = (
  items: ScoredItem[],
  changes: Partial<Parameters<typeof predictionLines>[2]> = {},
  answers = answersOf(),
): Record<string, unknown>[] =>
  [
    ...predictionLines(inputs, answers, {
      model: 'omni-1',
      abstention: true,
      judge: 'judge-1',
      items,
      record: () => null,
      ...changes,
    }),
  ].map((line) => JSON.parse(line));

describe('predictions', () => {
  it('have the members of the public evaluation, names and order', () => {
    const [row] = exported([scored('q1', 'correct')]);

    expect(row).toEqual({
      item_id: 'q1_8k',
      question_id: 'q1',
      context_length: '8K',
      family_id: 'f1',
      evidence_type: 'speaker_information',
      memory_operation: 'information_extraction',
      subtype: 'who',
      question_text: 'Who spoke about the boat?',
      expected_response: 'answer',
      gold_json: '"the sister"',
      answer_type: 'categorical',
      answer_normalization: 'case-insensitive',
      session_count: 1,
      evidence_session_count: 1,
      samekey_haystack_session_count: 0,
      model: 'omni-1',
      allow_abstention: true,
      system_prompt_delivery: 'folded',
      n_audio_clips: 4,
      response: 'The sister',
      status: 'correct',
      verdict: true,
      judge: 'judge-1',
    });
    expect(Object.keys(row!).slice(0, 3)).toEqual(['item_id', 'question_id', 'context_length']);
  });

  it('come in the order of the release, items that were not asked left out', () => {
    const rows = exported([scored('q3', 'correct'), scored('q1', 'open'), scored('q2', 'incorrect')]);

    expect(rows.map((row) => row.item_id)).toEqual(['q2_8k', 'q3_8k']);
  });

  it.each<[ItemStatus, unknown, unknown, unknown]>([
    ['incorrect', 'The sister', false, 'judge-1'],
    ['ungraded', 'The sister', false, 'judge-1'],
    ['pending', 'The sister', undefined, undefined],
    ['failed', '', false, undefined],
    ['empty', '', false, undefined],
    ['rejected', null, null, undefined],
  ])(
    'tell %s items so that the public scorer counts them as the paper does',
    (status, response, verdict, judge) => {
      const hasReply = !['failed', 'empty', 'rejected'].includes(status);

      const [row] = exported([scored('q1', status, hasReply ? {} : { response: '', failure: 'x' })]);

      expect([row!.status, row!.response, row!.verdict, row!.judge]).toEqual([
        status,
        response,
        verdict,
        judge,
      ]);
    },
  );

  it('say what failed', () => {
    const [row] = exported([scored('q1', 'failed', { response: '', failure: 'timeout' })], {
      record: (requestId) => aFailure(requestId, 'timeout'),
    });

    expect(row!.error).toBe('timeout: timeout it was');
  });

  it('have gold as JSON text, null where there is none, and no judge where none is named', () => {
    const list = exported([scored('q1', 'correct')], { judge: null }, answersOf({ gold: ['a', 2] }));
    const none = exported([scored('q1', 'correct')], {}, answersOf({ gold: null }));

    expect([list[0]!.gold_json, none[0]!.gold_json]).toEqual(['["a",2]', null]);
    expect(list[0]).not.toHaveProperty('judge');
  });
});
