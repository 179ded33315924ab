import type { PairedItem, ReturnTask } from '../../../../shared/benchmarks/return/aggregate.ts';
import type { ScoredRecord } from '../../../../shared/benchmarks/return/scored-record.ts';

const sides: Record<string, string> = {
  preserve: 'task',
  revise: 'task',
  retrieve: 'evidence',
  rebind: 'evidence',
};

export const buildItem = (changes: Partial<PairedItem> = {}): PairedItem => ({
  task_id: 't1',
  pair_id: 'p1',
  operation: 'preserve',
  history_side: sides[changes.operation ?? 'preserve']!,
  required_modality: 'V',
  history_horizon: 'short',
  adapt_split: 'ADAPT_TRAIN',
  family: 'colour',
  interface: 'openqa',
  single: true,
  multi: true,
  single_strict: false,
  multi_strict: false,
  ...changes,
});

/** `right` of `n` items answered in single and multi turn as counted; who is harmed is arbitrary. */
export const buildItems = (
  n: number,
  singleCorrect: number,
  multiCorrect: number,
  changes: Partial<PairedItem> = {},
): PairedItem[] =>
  Array.from({ length: n }, (_, index) =>
    buildItem({ ...changes, single: index < singleCorrect, multi: index < multiCorrect }),
  );

export const buildTask = (changes: Partial<ReturnTask> & { task_id: string }): ReturnTask => {
  const { task_id, operation = 'preserve', pair_id = 'p1' } = changes;
  const view = (name: string) => ({
    control_request_id: `${pair_id}::C::${name}`,
    history_request_id: `${task_id}::H0::${name}`,
  });
  return {
    pair_id,
    source_root_id: 'r1',
    operation,
    history_side: sides[operation]!,
    history_horizon: 'short',
    required_modality: 'V',
    family: 'colour',
    adapt_split: 'ADAPT_TRAIN',
    views: { openqa: view('openqa'), mcq: view('mcq') },
    ...changes,
  };
};

export const buildScore = (requestId: string, changes: Partial<ScoredRecord> = {}): ScoredRecord => ({
  request_id: requestId,
  interface: 'openqa',
  condition: 'C',
  gold: 'g',
  aliases: ['g'],
  choices: [],
  scoring_question: 'q',
  raw_text: 'r',
  status: 'ok',
  error: null,
  strict_correct: true,
  rule_correct: true,
  score_status: 'scored',
  content_correct: true,
  uncertain: false,
  format_compliant: true,
  review_reason: null,
  ...changes,
});
