import { percent } from '../../domain/statistics.ts';
import { byCodePoint } from './code-point-order.ts';
import { type Operation, operationRoles } from './release-format.ts';
import type { ScoredRecord } from './scored-record.ts';

/** What aggregation reads of a row of the release's tasks.jsonl. */
export interface ReturnTask {
  task_id: string;
  pair_id: string;
  source_root_id: string;
  operation: string;
  history_side: string;
  history_horizon: string;
  required_modality: string;
  family: string;
  adapt_split?: string | null;
  views: Readonly<Record<string, { control_request_id: string; history_request_id: string } | undefined>>;
}

/** What tells one view from another, members in the release's order. */
export interface ViewFacts {
  task_id: string;
  pair_id: string;
  operation: string;
  history_side: string;
  required_modality: string;
  history_horizon: string;
  adapt_split: string | null;
  family: string;
  interface: string;
}

/** A view whose single-turn and multi-turn replies are both scored: a row of paired_items.jsonl. */
export interface PairedItem extends ViewFacts {
  single: boolean;
  multi: boolean;
  single_strict: boolean;
  multi_strict: boolean;
}

/** A view that is left out of every denominator, with what is wrong with each of its two requests. */
export interface ExcludedItem extends ViewFacts {
  /** `C: <kind>`, `H0: <kind>` or both; the kind is that of the error, or `review_pending`. */
  reason: string;
  control_request_id: string;
  /** Null where this request is not the cause. */
  control_reason: string | null;
  history_request_id: string;
  history_reason: string | null;
}

interface PairFacts {
  pair_id: string;
  interface: string;
  reference_task_id: string;
  conflict_task_id: string;
  history_side: string;
  required_modality: string;
  history_horizon: string;
}

/** Reference and conflict of one pair, all four replies scored: a row of operation_pairs.jsonl. */
export interface OperationPair extends PairFacts {
  reference_single: boolean;
  conflict_single: boolean;
  reference_multi: boolean;
  conflict_multi: boolean;
}

export interface ExcludedPair extends PairFacts {
  reason: string;
}

/** A row of groups.csv. Accuracies are percentages, `delta_conv_pp` is positive for a drop. */
export interface GroupRow {
  group: string;
  value: string;
  interface: string;
  n: number;
  single_accuracy: number;
  multi_accuracy: number;
  delta_conv_pp: number;
  /** Views right in single turn and wrong in multi turn. */
  harm: number;
  /** The reverse. */
  rescue: number;
  single_strict: number;
  multi_strict: number;
}

export interface FourCells {
  interface: string;
  history_side: string;
  condition: 'single' | 'multi';
  pairs: number;
  both_correct: number;
  reference_only: number;
  conflict_only: number;
  both_wrong: number;
  reference_minus_conflict_pp: number;
}

export interface LaneReport {
  pairedItems: PairedItem[];
  excludedItems: ExcludedItem[];
  operationPairs: OperationPair[];
  excludedPairs: ExcludedPair[];
  groups: GroupRow[];
  fourCells: FourCells[];
}

/** The release's report/summary.json, members in its order. */
export interface ReleaseSummary {
  label: 'preview subset results';
  model: string;
  logical_views_expected: number;
  valid_single_multi_views: number;
  excluded_views: number;
  expected_operation_pair_views: number;
  excluded_operation_pair_views: number;
  unique_base_tasks: number;
  exclusion_reasons: Record<string, number>;
  groups: GroupRow[];
  paired_operation_four_cells: FourCells[];
}

const isReference = (operation: string): boolean =>
  operationRoles[operation as Operation]?.role === 'reference';

export const groupedBy = <Row, Key>(rows: Iterable<Row>, keyOf: (row: Row) => Key): Map<Key, Row[]> => {
  const groups = new Map<Key, Row[]>();
  for (const row of rows) {
    const key = keyOf(row);
    const group = groups.get(key);
    if (group) group.push(row);
    else groups.set(key, [row]);
  }
  return groups;
};

const viewFacts = (task: ReturnTask, interfaceName: string): ViewFacts => ({
  task_id: task.task_id,
  pair_id: task.pair_id,
  operation: task.operation,
  history_side: task.history_side,
  required_modality: task.required_modality,
  history_horizon: task.history_horizon,
  adapt_split: task.adapt_split ?? null,
  family: task.family,
  interface: interfaceName,
});

type ScoreLookup = (requestId: string) => ScoredRecord | undefined;

const exclusionReason = (score: ScoredRecord | undefined): string | null => {
  if (score === undefined || score.status === 'missing') return 'missing';
  if (score.score_status === 'scored') return null;
  if (score.score_status === 'review_pending') return 'review_pending';
  return score.error ?? score.status;
};

const viewOf = (
  task: ReturnTask,
  interfaceName: string,
  scoreOf: ScoreLookup,
): { valid: PairedItem } | { excluded: ExcludedItem } | null => {
  const view = task.views[interfaceName];
  if (!view) return null;
  const facts = viewFacts(task, interfaceName);
  const control = scoreOf(view.control_request_id);
  const history = scoreOf(view.history_request_id);
  const controlReason = exclusionReason(control);
  const historyReason = exclusionReason(history);
  if (controlReason === null && historyReason === null) {
    return {
      valid: {
        ...facts,
        single: control!.content_correct === true,
        multi: history!.content_correct === true,
        single_strict: control!.strict_correct === true,
        multi_strict: history!.strict_correct === true,
      },
    };
  }
  const causes = [controlReason && `C: ${controlReason}`, historyReason && `H0: ${historyReason}`];
  return {
    excluded: {
      ...facts,
      reason: causes.filter((cause) => cause !== null).join('; '),
      control_request_id: view.control_request_id,
      control_reason: controlReason,
      history_request_id: view.history_request_id,
      history_reason: historyReason,
    },
  };
};

/** Items of the same pair and interface side by side; pairs without both members are left out. */
export const completePairs = <Row extends ViewFacts>(
  rows: Iterable<Row>,
): { reference: Row; conflict: Row }[] => {
  const complete: { reference: Row; conflict: Row }[] = [];
  for (const members of groupedBy(rows, (row) => `${row.interface}\n${row.pair_id}`).values()) {
    const reference = members.find((row) => isReference(row.operation));
    const conflict = members.find((row) => !isReference(row.operation));
    if (reference && conflict) complete.push({ reference, conflict });
  }
  return complete;
};

const isValid = (row: PairedItem | ExcludedItem): row is PairedItem => 'single' in row;

const pairFacts = (reference: ViewFacts, conflict: ViewFacts): PairFacts => ({
  pair_id: reference.pair_id,
  interface: reference.interface,
  reference_task_id: reference.task_id,
  conflict_task_id: conflict.task_id,
  history_side: reference.history_side,
  required_modality: reference.required_modality,
  history_horizon: reference.history_horizon,
});

const groupings: readonly [group: string, groupValue: (item: PairedItem) => string | null][] = [
  ['adapt_split', (item) => item.adapt_split],
  ['history_horizon', (item) => item.history_horizon],
  ['history_side', (item) => item.history_side],
  ['interface', (item) => item.interface],
  ['operation', (item) => item.operation],
  [
    'operation×modality×horizon',
    (item) => `${item.operation}/${item.required_modality}/${item.history_horizon}`,
  ],
  ['required_modality', (item) => item.required_modality],
];

const groupRow = (
  group: string,
  value: string,
  interfaceName: string,
  items: readonly PairedItem[],
): GroupRow => {
  const share = (test: (item: PairedItem) => boolean): number =>
    percent(items.filter(test).length, items.length);
  const harm = items.filter((item) => item.single && !item.multi).length;
  const rescue = items.filter((item) => !item.single && item.multi).length;
  return {
    group,
    value,
    interface: interfaceName,
    n: items.length,
    single_accuracy: share((item) => item.single),
    multi_accuracy: share((item) => item.multi),
    delta_conv_pp: percent(harm - rescue, items.length),
    harm,
    rescue,
    single_strict: share((item) => item.single_strict),
    multi_strict: share((item) => item.multi_strict),
  };
};

/** Every group of return-protocol §6, sorted by group, value and interface; empty groups are absent. */
export const groupRows = (items: readonly PairedItem[]): GroupRow[] =>
  groupings.flatMap(([group, groupValue]) => {
    const withValue = items.filter((item) => groupValue(item) !== null);
    const byValue = groupedBy(withValue, (item) => `${groupValue(item)}\n${item.interface}`);
    return [...byValue.values()]
      .map((members) => groupRow(group, groupValue(members[0]!)!, members[0]!.interface, members))
      .sort((a, b) => byCodePoint(a.value, b.value) || byCodePoint(a.interface, b.interface));
  });

const fourCellsOf = (pairs: readonly OperationPair[], condition: 'single' | 'multi'): FourCells => {
  const { interface: interfaceName, history_side } = pairs[0]!;
  const count = (reference: boolean, conflict: boolean): number =>
    pairs.filter(
      (pair) => pair[`reference_${condition}`] === reference && pair[`conflict_${condition}`] === conflict,
    ).length;
  const referenceOnly = count(true, false);
  const conflictOnly = count(false, true);
  return {
    interface: interfaceName,
    history_side,
    condition,
    pairs: pairs.length,
    both_correct: count(true, true),
    reference_only: referenceOnly,
    conflict_only: conflictOnly,
    both_wrong: count(false, false),
    reference_minus_conflict_pp: percent(referenceOnly - conflictOnly, pairs.length),
  };
};

/** Outcomes of operation pairs per interface, history side and condition. */
export const fourCells = (pairs: readonly OperationPair[]): FourCells[] =>
  [...groupedBy(pairs, (pair) => `${pair.interface}\n${pair.history_side}`).entries()]
    .sort(([a], [b]) => byCodePoint(a, b))
    .flatMap(([, members]) => [fourCellsOf(members, 'single'), fourCellsOf(members, 'multi')]);

/**
 * Everything the release reports about one lane (return-protocol §6).
 *
 * @param tasks the lane's tasks (those of its modalities) in the order of the selection
 * @param interfaces in the order of the sweep
 * @param scoreOf scored record of a request; undefined where there is none
 */
export const aggregateLane = (
  tasks: readonly ReturnTask[],
  interfaces: readonly string[],
  scoreOf: ScoreLookup,
): LaneReport => {
  const pairedItems: PairedItem[] = [];
  const excludedItems: ExcludedItem[] = [];
  const views: (PairedItem | ExcludedItem)[] = [];
  for (const task of tasks) {
    for (const interfaceName of interfaces) {
      const view = viewOf(task, interfaceName, scoreOf);
      if (view === null) continue;
      if ('valid' in view) pairedItems.push(view.valid);
      else excludedItems.push(view.excluded);
      views.push('valid' in view ? view.valid : view.excluded);
    }
  }

  const operationPairs: OperationPair[] = [];
  const excludedPairs: ExcludedPair[] = [];
  for (const { reference, conflict } of completePairs(views)) {
    const facts = pairFacts(reference, conflict);
    if (isValid(reference) && isValid(conflict)) {
      operationPairs.push({
        ...facts,
        reference_single: reference.single,
        conflict_single: conflict.single,
        reference_multi: reference.multi,
        conflict_multi: conflict.multi,
      });
    } else {
      const causes = [reference, conflict].filter((member) => !isValid(member)) as ExcludedItem[];
      const reason = causes.map((member) => `${member.operation} (${member.reason})`).join('; ');
      excludedPairs.push({ ...facts, reason });
    }
  }

  return {
    pairedItems,
    excludedItems,
    operationPairs,
    excludedPairs,
    groups: groupRows(pairedItems),
    fourCells: fourCells(operationPairs),
  };
};

/** The release's report/summary.json of a lane. `model` is the name on the wire. */
export const releaseSummary = (model: string, report: LaneReport): ReleaseSummary => {
  const reasons = groupedBy(report.excludedItems, (item) => item.reason);
  return {
    label: 'preview subset results',
    model,
    logical_views_expected: report.pairedItems.length + report.excludedItems.length,
    valid_single_multi_views: report.pairedItems.length,
    excluded_views: report.excludedItems.length,
    expected_operation_pair_views: report.operationPairs.length + report.excludedPairs.length,
    excluded_operation_pair_views: report.excludedPairs.length,
    unique_base_tasks: new Set(report.pairedItems.map((item) => item.task_id)).size,
    exclusion_reasons: Object.fromEntries(
      [...reasons.entries()]
        .sort(([a], [b]) => byCodePoint(a, b))
        .map(([reason, items]) => [reason, items.length]),
    ),
    groups: report.groups,
    paired_operation_four_cells: report.fourCells,
  };
};
