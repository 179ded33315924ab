import { operationNames } from './across-models.ts';
import type { PairedItem } from './aggregate.ts';
import { horizons, interfaces, type Operation, operations } from './release-format.ts';

export interface ResamplingSettings {
  /** Recorded with every result; equal seeds give equal intervals. */
  seed: number;
  /** 2,000 in the protocol. */
  resamples?: number;
}

/** Percentile 95 % interval, lower and upper end. */
export type Interval = [low: number, high: number];

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

/**
 * Uniform 32-bit integers of the xoshiro128** generator of Blackman and Vigna, its state filled from the
 * seed with SplitMix32. The sequence is part of a recorded result: never change it.
 */
export const seededIntegers = (seed: number): (() => number) => {
  let mixed = seed | 0;
  const split = (): number => {
    mixed = (mixed + 0x9e3779b9) | 0;
    let z = mixed ^ (mixed >>> 16);
    z = Math.imul(z, 0x21f0aaad);
    z ^= z >>> 15;
    z = Math.imul(z, 0x735a2d97);
    return z ^ (z >>> 15);
  };
  const rotate = (x: number, bits: number): number => (x << bits) | (x >>> (32 - bits));
  let [a, b, c, d] = [split(), split(), split(), split()];
  return () => {
    const result = Math.imul(rotate(Math.imul(b, 5), 7), 9) >>> 0;
    const shifted = b << 9;
    c ^= a;
    d ^= b;
    b ^= c;
    a ^= d;
    c ^= shifted;
    d = rotate(d, 11);
    return result;
  };
};

/**
 * Draws as many roots as there are, with replacement, again and again, and hands over the sums of their
 * counts. `sums` is reused: read it before returning.
 *
 * @param counts one row of `width` counts per root
 */
export const resampleRoots = (
  counts: Int32Array,
  width: number,
  { seed, resamples = defaultResamples }: ResamplingSettings,
  visit: (sums: Float64Array, resample: number) => void,
): void => {
  const roots = counts.length / width;
  const next = seededIntegers(seed);
  const sums = new Float64Array(width);
  for (let resample = 0; resample < resamples; resample += 1) {
    sums.fill(0);
    for (let draw = 0; draw < roots; draw += 1) {
      const row = Math.floor((next() / 0x1_0000_0000) * roots) * width;
      for (let column = 0; column < width; column += 1) sums[column]! += counts[row + column]!;
    }
    visit(sums, resample);
  }
};

/** Percentile with linear interpolation between the neighbours. `values` must be sorted and not empty. */
const percentile = (values: Float64Array, share: number): number => {
  const position = (values.length - 1) * share;
  const below = Math.floor(position);
  const low = values[below]!;
  const high = values[Math.min(below + 1, values.length - 1)]!;
  return low + (high - low) * (position - below);
};

/** Percentile 95 % interval of resampled values, null where there are none. Sorts `values` in place. */
export const percentileInterval = (values: Float64Array): Interval | null => {
  if (values.length === 0) return null;
  values.sort();
  return [percentile(values, 0.025), percentile(values, 0.975)];
};

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
  settings: ResamplingSettings,
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

  const resamples = settings.resamples ?? defaultResamples;
  const drawn = groups.map((group) => ({
    group,
    used: 0,
    single: new Float64Array(resamples),
    multi: new Float64Array(resamples),
    drop: new Float64Array(resamples),
  }));
  resampleRoots(counts, width, settings, (sums) => {
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
