import { mean, median, percent } from '../../domain/statistics.ts';
import { completePairs, groupedBy, type PairedItem, type ViewFacts } from './aggregate.ts';
import { type HistorySide, horizons, interfaces, type Operation, operations } from './release-format.ts';

/** The valid views of one lane, as `aggregateLane` gives them. */
export interface LaneItems {
  lane: string;
  displayName: string;
  family: string | null;
  items: readonly PairedItem[];
  /** Views that were expected and are not valid; only `cellExceptions` reads them. */
  excluded?: readonly ViewFacts[];
}

/** The paper's names of the release's operations. */
export const operationNames: Readonly<Record<Operation, string>> = {
  preserve: 'Reconfirm',
  revise: 'Reground',
  retrieve: 'Retrieve',
  rebind: 'Rebind',
};

const roles: readonly HistorySide[] = ['task', 'evidence'];

/** Columns of the paper's tables: all operations together, then each; null stands for all. */
const columns: readonly [name: string, operation: Operation | null][] = [
  ['Overall', null],
  ...operations.map((operation): [string, Operation] => [operationNames[operation], operation]),
];

/** Counts of a set of views and the rates that come out of them; `degradation_pp` is positive for a drop. */
export interface Rates {
  n: number;
  single_correct: number;
  multi_correct: number;
  single_accuracy_pct: number;
  multi_accuracy_pct: number;
  degradation_pp: number;
}

/** A row of models.csv: one model, interface and horizon, operations and modalities pooled. */
export interface ModelRow {
  model: string;
  family: string | null;
  interface: string;
  horizon: string;
  single_accuracy_pct: number;
  multi_accuracy_pct: number;
  degradation_pp: number;
  valid_pairs: number;
}

/** A row of cells.csv. */
export interface CellRow {
  model: string;
  family: string | null;
  interface: string;
  horizon: string;
  operation: string;
  n: number;
  single_correct: number;
  multi_correct: number;
  single_pct: number;
  multi_pct: number;
  delta_pp: number;
}

/** A cell with fewer valid views than expected. */
export interface CellException {
  model: string;
  interface: string;
  horizon: string;
  operation: string;
  n: number;
  expected: number;
}

/** A row of ladders.csv, on complete pairs with the horizons pooled. */
export interface LadderRow {
  role: string;
  model: string;
  interface: string;
  n: number;
  /** Mean of the two counterparts' single-turn accuracies, percent. */
  single: number;
  reference: number;
  conflict: number;
}

export interface MeanLadder {
  role: string;
  interface: string;
  models: number;
  single: number;
  reference: number;
  conflict: number;
}

export interface PaperTableRow {
  interface: string;
  horizon: string;
  model: string;
  family: string | null;
  /** `Overall` and the operations; `change_pp` is multi − single, negative for a drop. */
  cells: Record<string, { n: number; multi_pct: number; change_pp: number }>;
}

export interface AudioVisualDelta {
  model: string;
  horizon: string;
  /** Drops in single − multi, each the mean of the interfaces' own drops. */
  audio_delta_pp: number;
  visual_delta_pp: number;
  audio_minus_visual_pp: number;
}

/** Multi-turn accuracy of both interfaces of one model, horizons pooled. */
export interface InterfaceDifference {
  model: string;
  family: string | null;
  /** `Overall` or an operation. */
  operation: string;
  openqa_multi_pct: number;
  mcq_multi_pct: number;
  mcq_minus_openqa_pp: number;
}

export interface MedianRates {
  models: number;
  single_accuracy_pct: number;
  multi_accuracy_pct: number;
  degradation_pp: number;
}

export interface Medians {
  models: number;
  valid_views: number;
  /** interface → `all`, `short`, `long` → `Overall` or operation → medians over models. */
  by_interface: Record<string, Record<string, Record<string, MedianRates>>>;
  /** `Overall` or operation → multi-turn accuracy of mcq minus that of openqa, horizons pooled. */
  mcq_minus_openqa: Record<
    string,
    {
      models: number;
      median_difference_pp: number;
      median_absolute_difference_pp: number;
      models_lower_on_mcq: number;
    }
  >;
}

const ratesOf = (items: readonly PairedItem[]): Rates => {
  const single = items.filter((item) => item.single).length;
  const multi = items.filter((item) => item.multi).length;
  return {
    n: items.length,
    single_correct: single,
    multi_correct: multi,
    single_accuracy_pct: percent(single, items.length),
    multi_accuracy_pct: percent(multi, items.length),
    degradation_pp: percent(single - multi, items.length),
  };
};

/** A part of a lane's views; a member that is null or absent does not narrow. */
interface Part {
  interface: string;
  horizon?: string | null;
  operation?: string | null;
  modality?: string | null;
}

const matching = <View extends ViewFacts>(views: readonly View[], part: Part): View[] => {
  const { horizon = null, operation = null, modality = null } = part;
  return views.filter(
    (view) =>
      view.interface === part.interface &&
      (horizon === null || view.history_horizon === horizon) &&
      (operation === null || view.operation === operation) &&
      (modality === null || view.required_modality === modality),
  );
};

/** Rates of a part, null where it has no valid view. */
const ratesOfPart = (lane: LaneItems, part: Part): Rates | null => {
  const items = matching(lane.items, part);
  return items.length === 0 ? null : ratesOf(items);
};

const combinations = <A, B>(first: readonly A[], second: readonly B[]): [A, B][] =>
  first.flatMap((a) => second.map((b): [A, B] => [a, b]));

const conditions = combinations(interfaces, horizons);

/** The overall rows of every model, lanes in the order given. */
export const modelRows = (lanes: readonly LaneItems[]): ModelRow[] =>
  combinations(lanes, conditions).flatMap(([lane, [interfaceName, horizon]]) => {
    const rates = ratesOfPart(lane, { interface: interfaceName, horizon });
    if (rates === null) return [];
    return {
      model: lane.displayName,
      family: lane.family,
      interface: interfaceName,
      horizon,
      single_accuracy_pct: rates.single_accuracy_pct,
      multi_accuracy_pct: rates.multi_accuracy_pct,
      degradation_pp: rates.degradation_pp,
      valid_pairs: rates.n,
    };
  });

const cells = combinations(conditions, operations).map(([[interfaceName, horizon], operation]) => ({
  interface: interfaceName,
  horizon,
  operation,
}));

/** Every cell of the paper's tables, operations under the paper's names. */
export const cellRows = (lanes: readonly LaneItems[]): CellRow[] =>
  combinations(lanes, cells).flatMap(([lane, cell]) => {
    const rates = ratesOfPart(lane, cell);
    if (rates === null) return [];
    return {
      model: lane.displayName,
      family: lane.family,
      ...cell,
      operation: operationNames[cell.operation],
      n: rates.n,
      single_correct: rates.single_correct,
      multi_correct: rates.multi_correct,
      single_pct: rates.single_accuracy_pct,
      multi_pct: rates.multi_accuracy_pct,
      delta_pp: rates.degradation_pp,
    };
  });

/** Cells that lack views, with the number they should have. */
export const cellExceptions = (lanes: readonly LaneItems[]): CellException[] =>
  combinations(lanes, cells).flatMap(([lane, cell]) => {
    const excluded = matching(lane.excluded ?? [], cell).length;
    if (excluded === 0) return [];
    const n = matching(lane.items, cell).length;
    const operation = operationNames[cell.operation];
    return { model: lane.displayName, ...cell, operation, n, expected: n + excluded };
  });

/** The paper's table: per interface and horizon, the multi-turn accuracies of every model. */
export const paperTable = (lanes: readonly LaneItems[]): PaperTableRow[] =>
  combinations(conditions, lanes).flatMap(([[interfaceName, horizon], lane]) => {
    const rows = columns.flatMap(([column, operation]) => {
      const rates = ratesOfPart(lane, { interface: interfaceName, horizon, operation });
      if (rates === null) return [];
      const change = percent(rates.multi_correct - rates.single_correct, rates.n);
      return [[column, { n: rates.n, multi_pct: rates.multi_accuracy_pct, change_pp: change }] as const];
    });
    if (rows.length === 0) return [];
    const { displayName: model, family } = lane;
    return { interface: interfaceName, horizon, model, family, cells: Object.fromEntries(rows) };
  });

/** Single → reference → conflict of every model and history side, on complete pairs. */
export const ladderRows = (lanes: readonly LaneItems[]): LadderRow[] => {
  const ladders = lanes.map((lane) => ({
    lane,
    pairs: groupedBy(
      completePairs(lane.items),
      ({ reference }) => `${reference.history_side}\n${reference.interface}`,
    ),
  }));
  return combinations(roles, ladders).flatMap(([role, { lane, pairs }]) =>
    interfaces.flatMap((interfaceName) => {
      const members = pairs.get(`${role}\n${interfaceName}`);
      if (!members) return [];
      const count = (test: (pair: { reference: PairedItem; conflict: PairedItem }) => boolean): number =>
        members.filter(test).length;
      const single = count(({ reference }) => reference.single) + count(({ conflict }) => conflict.single);
      return {
        role,
        model: lane.displayName,
        interface: interfaceName,
        n: members.length,
        single: percent(single, 2 * members.length),
        reference: percent(
          count(({ reference }) => reference.multi),
          members.length,
        ),
        conflict: percent(
          count(({ conflict }) => conflict.multi),
          members.length,
        ),
      };
    }),
  );
};

/** Means of ladders over models, each model weighing the same. */
export const modelMeanLadders = (ladders: readonly LadderRow[]): MeanLadder[] =>
  combinations(roles, interfaces).flatMap(([role, interfaceName]) => {
    const rows = ladders.filter((row) => row.role === role && row.interface === interfaceName);
    if (rows.length === 0) return [];
    return {
      role,
      interface: interfaceName,
      models: rows.length,
      single: mean(rows.map((row) => row.single)),
      reference: mean(rows.map((row) => row.reference)),
      conflict: mean(rows.map((row) => row.conflict)),
    };
  });

/** How much more a model that sees and hears loses on audio than on visual evidence. */
export const audioVisualDeltas = (lanes: readonly LaneItems[]): AudioVisualDelta[] =>
  combinations(lanes, [null, ...horizons]).flatMap(([lane, horizon]) => {
    const drops = interfaces.flatMap((interfaceName) => {
      const audio = ratesOfPart(lane, { interface: interfaceName, horizon, modality: 'A' });
      const visual = ratesOfPart(lane, { interface: interfaceName, horizon, modality: 'V' });
      return audio && visual ? [{ audio: audio.degradation_pp, visual: visual.degradation_pp }] : [];
    });
    if (drops.length === 0) return [];
    const audio = mean(drops.map((drop) => drop.audio));
    const visual = mean(drops.map((drop) => drop.visual));
    return {
      model: lane.displayName,
      horizon: horizon ?? 'all',
      audio_delta_pp: audio,
      visual_delta_pp: visual,
      audio_minus_visual_pp: audio - visual,
    };
  });

/** What a model's multi-turn accuracy gains from options, overall and per operation. */
export const interfaceDifferences = (lanes: readonly LaneItems[]): InterfaceDifference[] =>
  combinations(columns, lanes).flatMap(([[column, operation], lane]) => {
    const open = ratesOfPart(lane, { interface: 'openqa', operation });
    const choice = ratesOfPart(lane, { interface: 'mcq', operation });
    if (!open || !choice) return [];
    return {
      model: lane.displayName,
      family: lane.family,
      operation: column,
      openqa_multi_pct: open.multi_accuracy_pct,
      mcq_multi_pct: choice.multi_accuracy_pct,
      mcq_minus_openqa_pp: choice.multi_accuracy_pct - open.multi_accuracy_pct,
    };
  });

const medianRates = (lanes: readonly LaneItems[], part: Part): MedianRates | null => {
  const rates = lanes.map((lane) => ratesOfPart(lane, part)).filter((rate) => rate !== null);
  if (rates.length === 0) return null;
  return {
    models: rates.length,
    single_accuracy_pct: median(rates.map((rate) => rate.single_accuracy_pct)),
    multi_accuracy_pct: median(rates.map((rate) => rate.multi_accuracy_pct)),
    degradation_pp: median(rates.map((rate) => rate.degradation_pp)),
  };
};

/** An object of the entries that have a value: empty groups are absent, not zero. */
const present = <Value>(entries: [string, Value | null][]): Record<string, Value> =>
  Object.fromEntries(entries.filter((entry): entry is [string, Value] => entry[1] !== null));

const orNull = <Value>(record: Record<string, Value>): Record<string, Value> | null =>
  Object.keys(record).length === 0 ? null : record;

/** Medians over models (return-protocol §6). Each model is pooled over its own views first. */
export const medians = (lanes: readonly LaneItems[]): Medians => {
  const byColumn = (interfaceName: string, horizon: string | null) =>
    present(
      columns.map(([column, operation]) => [
        column,
        medianRates(lanes, { interface: interfaceName, horizon, operation }),
      ]),
    );
  const byHorizon = (interfaceName: string) =>
    present(
      [null, ...horizons].map((horizon) => [horizon ?? 'all', orNull(byColumn(interfaceName, horizon))]),
    );
  const differences = groupedBy(interfaceDifferences(lanes), (row) => row.operation);
  return {
    models: lanes.filter((lane) => lane.items.length > 0).length,
    valid_views: lanes.reduce((sum, lane) => sum + lane.items.length, 0),
    by_interface: present(interfaces.map((name) => [name, orNull(byHorizon(name))])),
    mcq_minus_openqa: Object.fromEntries(
      [...differences].map(([operation, rows]) => [
        operation,
        {
          models: rows.length,
          median_difference_pp: median(rows.map((row) => row.mcq_minus_openqa_pp)),
          median_absolute_difference_pp: median(rows.map((row) => Math.abs(row.mcq_minus_openqa_pp))),
          models_lower_on_mcq: rows.filter((row) => row.mcq_minus_openqa_pp < 0).length,
        },
      ]),
    ),
  };
};
