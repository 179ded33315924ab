import type { FailureRecord, RequestRecord } from '../../contracts/records.ts';
import type { ItemStatus, ScoredItem } from './format.ts';
import { clipCount } from './messages.ts';
import type { Answers, Inputs } from './read.ts';

/** As the public scorer has verdicts: null leaves its denominators, a row without one is still to be graded. */
const verdictOf: Record<ItemStatus, boolean | null | undefined> = {
  correct: true,
  incorrect: false,
  ungraded: false,
  failed: false,
  empty: false,
  rejected: null,
  pending: undefined,
  open: undefined,
};

/**
 * Predictions as JSON lines in the release's order, one for each item that was asked. Names and meaning of the members
 * are those of the public evaluation (`swagshaw/voxmem`, predictions.jsonl), so that its scorer reads the file; `status`
 * is ours. As in the paper, failed, empty and unreadable items have an empty response or a false verdict there, where
 * that scorer would leave out its own failures; only items rejected before inference have null for both.
 */
export function* predictionLines(
  inputs: Inputs,
  answers: Answers,
  lane: {
    model: string;
    abstention: boolean;
    /** Name of the judge, or `exact-match`. */
    judge: string | null;
    items: readonly ScoredItem[];
    record: (requestId: string) => RequestRecord | FailureRecord | null;
  },
): Generator<string> {
  const byId = new Map(lane.items.map((item) => [item.itemId, item]));
  for (const itemId of inputs.items.keys()) {
    const item = byId.get(itemId);
    const answer = answers.get(itemId);
    if (item === undefined || answer === undefined || item.status === 'open') continue;
    const record = lane.record(itemId);
    const verdict = verdictOf[item.status];
    const row = {
      item_id: itemId,
      question_id: answer.question_id,
      context_length: answer.context_length.toUpperCase(),
      family_id: answer.family_id,
      evidence_type: answer.evidence_type,
      memory_operation: answer.memory_operation,
      subtype: answer.subtype,
      question_text: answer.question_text,
      expected_response: answer.expected_response,
      gold_json: (answer.gold ?? null) === null ? null : JSON.stringify(answer.gold),
      answer_type: answer.answer_type,
      answer_normalization: answer.answer_normalization,
      session_count: answer.session_count,
      evidence_session_count: answer.evidence_session_count,
      samekey_haystack_session_count: answer.samekey_haystack_session_count,
      model: lane.model,
      allow_abstention: lane.abstention,
      system_prompt_delivery: item.systemPromptDelivery,
      n_audio_clips: clipCount(inputs, itemId),
      response: item.status === 'rejected' ? null : item.response,
      error: record !== null && 'kind' in record ? `${record.kind}: ${record.message}` : undefined,
      status: item.status,
      verdict,
      judge: ['correct', 'incorrect', 'ungraded'].includes(item.status)
        ? (lane.judge ?? undefined)
        : undefined,
    };
    yield `${JSON.stringify(row)}\n`;
  }
}
