import type { FailureRecord, RequestRecord } from '../../contracts/records.ts';
import { exactMatch } from './exact-match.ts';
import type { AnswerRow, ItemStatus, ScoredItem } from './format.ts';
import { type ItemVerdict, toVerdictItem, type VerdictItem } from './judge.ts';
import type { VoxmemOptions } from './options.ts';

type FailureStatus = Extract<ItemStatus, 'failed' | 'empty' | 'rejected'>;

/**
 * What failures come to (voxmem-protocol §4): only what was turned away before inference leaves the denominators. The
 * first rule that fits decides.
 */
export const failureRules: readonly { kinds: RegExp; status: FailureStatus; reason: string }[] = [
  {
    kinds: /^empty_response$/,
    status: 'empty',
    reason: 'the model was asked and said nothing',
  },
  {
    kinds: /^request_too_large$/,
    status: 'rejected',
    reason: 'never sent: the provider takes no request of this size',
  },
  {
    kinds: /^media_unusable$/,
    status: 'rejected',
    reason: 'never sent: a clip cannot be had in a form that the provider takes',
  },
  {
    kinds: /^http_(400|404|413|414|415|422|431)$/,
    status: 'rejected',
    reason:
      'the provider checks requests before it runs them, and this one (its size, length or form) did not pass',
  },
  {
    kinds:
      /^(http_(408|409|425|429|5\d\d)|timeout|connect_failed|connection_reset|protocol_error|worker_lost)$/,
    status: 'failed',
    reason:
      'a fault on the way or of the moment: it says nothing about the request, which can be asked again',
  },
  {
    kinds: /^http_/,
    status: 'failed',
    reason: 'key, money, rights or policy: the answer does not tell that the request as such cannot be run',
  },
  {
    kinds: /^(length_truncated|incomplete_stream|finish_.*|media_dropped|invalid_response)$/,
    status: 'failed',
    reason: 'the model ran, and what came of it is no answer',
  },
  {
    kinds: /^provider_refusal$/,
    status: 'failed',
    reason:
      'a refusal by policy is no correct answer; whether it came before inference, the kind does not tell',
  },
  { kinds: /^/, status: 'failed', reason: 'nothing tells that it was turned away before inference' },
];

/** A refusal by policy fails its item, whatever the status that it came with. */
export const failureStatus = ({ kind, refusal }: Pick<FailureRecord, 'kind' | 'refusal'>): FailureStatus =>
  refusal ? 'failed' : failureRules.find(({ kinds }) => kinds.test(kind))!.status;

export interface Scored {
  item: ScoredItem;
  /** Set where the item is `pending`: what a judge has to be asked. */
  review: VerdictItem | null;
}

/**
 * Scores one item of a lane as far as that goes without a judge; `record` is null where the item was not asked yet.
 * A reply of white space alone is empty and is not judged.
 */
export const scoreItem = (
  answer: AnswerRow,
  record: RequestRecord | FailureRecord | null,
  { grader }: Pick<VoxmemOptions, 'grader'>,
): Scored => {
  const scored = (status: ItemStatus, response = '', failure: string | null = null): ScoredItem => ({
    itemId: answer.item_id,
    questionId: answer.question_id,
    contextLength: answer.context_length,
    familyId: answer.family_id,
    evidenceType: answer.evidence_type,
    memoryOperation: answer.memory_operation,
    subtype: answer.subtype,
    expectedResponse: answer.expected_response,
    answerType: answer.answer_type,
    status,
    response,
    failure,
    systemPromptDelivery: (record !== null && 'rawText' in record && record.systemPromptDelivery) || null,
  });
  if (record === null) return { item: scored('open'), review: null };
  if (!('rawText' in record)) return { item: scored(failureStatus(record), '', record.kind), review: null };
  const response = record.rawText;
  if (response.trim() === '') return { item: scored('empty'), review: null };
  if (grader === 'exact-match') return { item: scored(exactMatch(answer, response), response), review: null };
  return { item: scored('pending', response), review: toVerdictItem(answer, response) };
};

/** An item with what its judge said; null where it has not been asked. Items that await no judge stay as they are. */
export const withVerdict = (item: ScoredItem, verdict: ItemVerdict | null): ScoredItem =>
  item.status !== 'pending' || verdict === null
    ? item
    : { ...item, status: verdict.verdict === 'unreadable' ? 'ungraded' : verdict.verdict };
