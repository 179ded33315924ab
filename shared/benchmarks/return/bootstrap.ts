import {
  type Interval,
  percentileInterval,
  type ResamplingSettings,
  resampleUnits,
} from '../../domain/statistics.ts';
import { operationNames } from './across-models.ts';
import type { PairedItem } from './aggregate.ts';
import { horizons, interfaces, type Operation, operations } from './release-format.ts';

/** `resamples`: 2,000 in the protocol. */
export type IntervalSettings = Pick<ResamplingSettings, 'seed'> & Partial<ResamplingSettings>;

/** Intervals of one group of a lane's views, in percent and percentage points. */
export interface IntervalRow {
  interface: string;
  /** `all`, `short` or `long`. */
  horizon: string;
  /** `Overall` or an operation under the paper's name. */
  operation: string;
  n: number;
  single_accuracy_pct: Interval;
  multi_accuracy_pct: Interval;
  degradation_pp: Interval;
}

export const defaultResamples = 2_000;

const leaves = interfaces.flatMap((interfaceName) =>
  horizons.flatMap((horizon) =>
    operations.map((operation) => ({ interface: interfaceName, horizon, operation })),
  ),
);

const leafKey = (interfaceName: string, horizon: string, operation: string): string =>
  `${interfaceName}/${horizon}/${operation}`;

const leafIndexes = new Map(
  leaves.map((leaf, index) => [leafKey(leaf.interface, leaf.horizon, leaf.operation), index]),
);

/** Groups of leaves: null stands for all horizons or all operations. */
const groups = interfaces.flatMap((interfaceName) =>
  [null, ...horizons].flatMap((horizon) =>
    [null, ...operations].map((operation) => ({
      interface: interfaceName,
      horizon: horizon ?? 'all',
      operation: operation === null ? 'Overall' : operationNames[operation as Operation],
      leaves: leaves.flatMap((leaf, index) =>
        leaf.interface === interfaceName &&
        (horizon === null || leaf.horizon === horizon) &&
        (operation === null || leaf.operation === operation)
          ? [index]
          : [],
      ),
    })),
  ),
);

/**
 * Percentile 95 % intervals of single, multi and drop of one lane, per interface and per interface and
 * operation, for each horizon and both together, from resampling source roots (return-protocol §6). All
 * groups see the same draws. A resample without any view of a group says nothing about that group.
 *
 * @param rootOf source root of a task id
 */
export const laneIntervals = (
  items: readonly PairedItem[],
  rootOf: (taskId: string) => string,
  { seed, resamples = defaultResamples }: IntervalSettings,
): IntervalRow[] => {
  const width = leaves.length * 3;
  const rootIndexes = new Map<string, number>();
  const rows: number[] = [];
  for (const item of items) {
    const root = rootOf(item.task_id);
    if (!rootIndexes.has(root)) rootIndexes.set(root, rootIndexes.size);
    rows.push(rootIndexes.get(root)! * width);
  }
  const counts = new Int32Array(rootIndexes.size * width);
  items.forEach((item, index) => {
    const leaf = leafIndexes.get(leafKey(item.interface, item.history_horizon, item.operation));
    if (leaf === undefined) return;
    const column = rows[index]! + leaf * 3;
    counts[column]! += 1;
    if (item.single) counts[column + 1]! += 1;
    if (item.multi) counts[column + 2]! += 1;
  });

  const drawn = groups.map((group) => ({
    group,
    used: 0,
    single: new Float64Array(resamples),
    multi: new Float64Array(resamples),
    drop: new Float64Array(resamples),
  }));
  resampleUnits({ counts, width }, { seed, resamples }, (sums) => {
    for (const into of drawn) {
      let [n, single, multi] = [0, 0, 0];
      for (const leaf of into.group.leaves) {
        n += sums[leaf * 3]!;
        single += sums[leaf * 3 + 1]!;
        multi += sums[leaf * 3 + 2]!;
      }
      if (n === 0) continue;
      into.single[into.used] = (100 * single) / n;
      into.multi[into.used] = (100 * multi) / n;
      into.drop[into.used] = (100 * (single - multi)) / n;
      into.used += 1;
    }
  });

  return drawn.flatMap(({ group, used, single, multi, drop }) => {
    const [ofSingle, ofMulti, ofDrop] = [single, multi, drop].map((values) =>
      percentileInterval(values.subarray(0, used)),
    );
    if (!ofSingle || !ofMulti || !ofDrop) return [];
    let n = 0;
    for (let root = 0; root < rootIndexes.size; root += 1)
      for (const leaf of group.leaves) n += counts[root * width + leaf * 3]!;
    return {
      interface: group.interface,
      horizon: group.horizon,
      operation: group.operation,
      n,
      single_accuracy_pct: ofSingle,
      multi_accuracy_pct: ofMulti,
      degradation_pp: ofDrop,
    };
  });
};
