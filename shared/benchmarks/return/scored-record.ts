import { byCodePoint } from './code-point-order.ts';
import { strip } from './python-text.ts';
import type { AnswerRow, ReviewCacheRow } from './release-format.ts';
import { acceptedAnswers, scoreByRule } from './score-reply.ts';

/** What became of a request: a reply, or the kind of the error that it ended with. */
export type RequestOutcome =
  | { status: 'ok'; rawText: string }
  | { status: 'error' | 'blocked'; error: string; rawText?: string | null };

export type ReviewVerdict = Omit<ReviewCacheRow['judgment'], 'id'>;

export type ScoreStatus = 'scored' | 'review_pending' | 'inference_failed';

/**
 * A row of the release's scored_records.jsonl, members in its order. Null stands for "not known": a
 * failed request has no score at all, a pending one has its rule score only.
 */
export interface ScoredRecord {
  request_id: string;
  interface: string;
  condition: string;
  gold: string;
  aliases: string[];
  choices: string[];
  scoring_question: string;
  raw_text: string | null;
  /** `missing`: neither replied nor failed, for example when the budget ended first. */
  status: 'ok' | 'error' | 'blocked' | 'missing';
  error: string | null;
  strict_correct: boolean | null;
  rule_correct: boolean | null;
  score_status: ScoreStatus;
  content_correct: boolean | null;
  uncertain: boolean | null;
  format_compliant: boolean | null;
  review_reason: string | null;
}

type Outcome = Pick<ScoredRecord, 'raw_text' | 'status' | 'error'>;
type Score = Pick<
  ScoredRecord,
  | 'strict_correct'
  | 'rule_correct'
  | 'score_status'
  | 'content_correct'
  | 'uncertain'
  | 'format_compliant'
  | 'review_reason'
>;

const outcomeOf = (outcome: RequestOutcome | null): Outcome => {
  if (outcome === null) return { raw_text: null, status: 'missing', error: null };
  if (outcome.status !== 'ok')
    return { raw_text: outcome.rawText ?? null, status: outcome.status, error: outcome.error };
  if (strip(outcome.rawText) === '')
    return { raw_text: outcome.rawText, status: 'error', error: 'empty_response' };
  return { raw_text: outcome.rawText, status: 'ok', error: null };
};

const unscored = {
  content_correct: null,
  uncertain: null,
  format_compliant: null,
  review_reason: null,
} as const;

const scoreOf = (answer: AnswerRow, outcome: Outcome, verdict: ReviewVerdict | null): Score => {
  if (outcome.status !== 'ok' || outcome.raw_text === null)
    return { strict_correct: null, rule_correct: null, score_status: 'inference_failed', ...unscored };
  const { strictCorrect, ruleCorrect } = scoreByRule({ ...answer, raw: outcome.raw_text });
  const rule = { strict_correct: strictCorrect, rule_correct: ruleCorrect };
  if (ruleCorrect) {
    return {
      ...rule,
      score_status: 'scored',
      content_correct: true,
      uncertain: false,
      format_compliant: true,
      review_reason: null,
    };
  }
  if (verdict === null) return { ...rule, score_status: 'review_pending', ...unscored };
  return {
    ...rule,
    score_status: 'scored',
    content_correct: verdict.verdict === 'equivalent',
    uncertain: verdict.verdict === 'uncertain',
    format_compliant: verdict.format_compliant,
    review_reason: verdict.reason,
  };
};

/**
 * Scores a request from its outcome and the verdict of its review, if there is one. A failed, blocked,
 * empty or missing request is never scored as wrong (return-protocol §4.5); a verdict on a reply that is
 * correct by rule is not used.
 */
export const toScoredRecord = (
  answer: AnswerRow,
  outcome: RequestOutcome | null,
  verdict: ReviewVerdict | null,
): ScoredRecord => {
  const known = outcomeOf(outcome);
  return {
    request_id: answer.request_id,
    interface: answer.interface,
    condition: answer.condition,
    gold: answer.gold,
    aliases: acceptedAnswers(answer.gold, answer.aliases),
    choices: [...answer.choices],
    scoring_question: answer.scoring_question,
    ...known,
    ...scoreOf(answer, known, verdict),
  };
};

/** The release's scoring/summary.json. */
export const scoringSummary = (records: readonly ScoredRecord[]): Record<string, number> => {
  const count = (status: ScoreStatus): number =>
    records.filter((record) => record.score_status === status).length;
  return {
    requests: records.length,
    scored: count('scored'),
    review_pending: count('review_pending'),
    inference_failed: count('inference_failed'),
  };
};

/** Order of the release's files: by code points of the request id. */
export const byRequestId = (a: { request_id: string }, b: { request_id: string }): number =>
  byCodePoint(a.request_id, b.request_id);
