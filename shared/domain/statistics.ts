/**
 * Percentage, in the order of operations on which the last digit of recorded reports depends; `of` must not be 0. A
 * difference of two rates of the same views is the percentage of the difference of their counts.
 */
export const percent = (count: number, of: number): number => (100 * count) / of;

/** `values` must not be empty. */
export const mean = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / values.length;

/** Middle value, or half-way between the two in the middle. `values` must not be empty. */
export const median = (values: readonly number[]): number => {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
};

/**
 * Percentile by linear interpolation between neighbours, position `(n − 1) · share` counted from 0: type 7 of Hyndman
 * and Fan (1996), the usual one of NumPy. `sorted` must ascend and not be empty.
 */
export const percentile = (sorted: Float64Array, share: number): number => {
  const position = (sorted.length - 1) * share;
  const below = Math.floor(position);
  const low = sorted[below]!;
  const high = sorted[Math.min(below + 1, sorted.length - 1)]!;
  return low + (high - low) * (position - below);
};

/** Lower and upper end. */
export type Interval = [low: number, high: number];

/**
 * Percentile 95 % interval of resampled values, null where there are none. NaN says that a resample has no value, and
 * does not count. Sorts `values` in place.
 */
export const percentileInterval = (values: Float64Array): Interval | null => {
  // NaN is sorted behind every number.
  values.sort();
  let used = values.length;
  while (used > 0 && Number.isNaN(values[used - 1])) used -= 1;
  if (used === 0) return null;
  const known = values.subarray(0, used);
  return [percentile(known, 0.025), percentile(known, 0.975)];
};

export interface ResamplingSettings {
  /** Recorded with every result; equal seeds give equal intervals. */
  seed: number;
  resamples: number;
}

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

/** What is drawn with replacement: units that each bring a row of counts. */
export interface CountedUnits {
  /** Rows of `width` counts, one unit after the other. */
  counts: Int32Array;
  width: number;
  /**
   * Where in the sums each unit's row belongs: units of one stratum share a place, so that a row need not hold zeros
   * for all the others. Left out: every row is added at 0.
   */
  places?: Int32Array;
  /** Length of the sums; left out: `width`. */
  sumsLength?: number;
}

/**
 * Draws as many units as there are, with replacement, again and again, and hands over the sums of their counts. `sums`
 * is reused: read it before returning.
 */
export const resampleUnits = (
  { counts, width, places, sumsLength = width }: CountedUnits,
  { seed, resamples }: ResamplingSettings,
  visit: (sums: Float64Array, resample: number) => void,
): void => {
  const units = counts.length / width;
  // A unit counts in few columns: only these are added, times how often it was drawn. Sums of whole numbers are exact
  // in any order.
  const filled = counts.reduce((sum, count) => sum + (count === 0 ? 0 : 1), 0);
  const targets = new Uint32Array(filled);
  const values = new Int32Array(filled);
  const ends = new Uint32Array(units);
  for (let unit = 0, end = 0; unit < units; unit += 1) {
    for (let column = 0; column < width; column += 1) {
      const count = counts[unit * width + column]!;
      if (count === 0) continue;
      targets[end] = (places?.[unit] ?? 0) + column;
      values[end] = count;
      end += 1;
    }
    ends[unit] = end;
  }
  const next = seededIntegers(seed);
  const drawn = new Uint32Array(units);
  const sums = new Float64Array(sumsLength);
  for (let resample = 0; resample < resamples; resample += 1) {
    sums.fill(0);
    drawn.fill(0);
    for (let draw = 0; draw < units; draw += 1) drawn[Math.floor((next() / 0x1_0000_0000) * units)]! += 1;
    for (let unit = 0, at = 0; unit < units; unit += 1) {
      const times = drawn[unit]!;
      if (times === 0) at = ends[unit]!;
      for (; at < ends[unit]!; at += 1) sums[targets[at]!]! += times * values[at]!;
    }
    visit(sums, resample);
  }
};

/** Ranks from 1, the smallest first; equal values share the mean of their ranks. */
export const averageRanks = (values: readonly number[]): number[] => {
  const order = values.map((_, index) => index).sort((a, b) => values[a]! - values[b]!);
  const ranks = new Array<number>(values.length);
  for (let start = 0, end = 0; start < order.length; start = end) {
    while (end < order.length && values[order[end]!] === values[order[start]!]) end += 1;
    for (let place = start; place < end; place += 1) ranks[order[place]!] = (start + end + 1) / 2;
  }
  return ranks;
};

/**
 * Spearman's rank correlation: Pearson's of the average ranks, so that ties are taken into account. Null where it is not
 * defined: fewer than two values, or one side all equal.
 */
export const spearman = (first: readonly number[], second: readonly number[]): number | null => {
  const [a, b] = [averageRanks(first), averageRanks(second)];
  const middle = (a.length + 1) / 2;
  let [together, ofFirst, ofSecond] = [0, 0, 0];
  for (const [index, rank] of a.entries()) {
    const [x, y] = [rank - middle, b[index]! - middle];
    together += x * y;
    ofFirst += x * x;
    ofSecond += y * y;
  }
  return ofFirst === 0 || ofSecond === 0 ? null : together / Math.sqrt(ofFirst * ofSecond);
};

/** Square table of counts: rows are what the first rater said, columns what the second said of the same items. */
export type ContingencyTable = readonly (readonly number[])[];

const tableSums = (table: ContingencyTable) => {
  const rows = table.map((row) => row.reduce((sum, count) => sum + count, 0));
  const columns = table.map((_, column) => table.reduce((sum, row) => sum + row[column]!, 0));
  const agreed = table.reduce((sum, row, index) => sum + row[index]!, 0);
  return { rows, columns, agreed, total: rows.reduce((sum, count) => sum + count, 0) };
};

/** Share of items on which two raters agree, 0 to 1; null where there are none. */
export const observedAgreement = (table: ContingencyTable): number | null => {
  const { agreed, total } = tableSums(table);
  return total === 0 ? null : agreed / total;
};

/**
 * Cohen's κ (1960), unweighted: agreement beyond what the raters' own frequencies let expect. Null where it is not
 * defined: no items, or both raters always said the same one thing.
 */
export const cohenKappa = (table: ContingencyTable): number | null => {
  const { rows, columns, agreed, total } = tableSums(table);
  const expected = rows.reduce((sum, count, index) => sum + count * columns[index]!, 0) / total;
  return total === 0 || expected === total ? null : (agreed - expected) / (total - expected);
};

/** Mean of the absolute differences of values that belong together, in their unit; null where there are none. */
export const meanAbsoluteDifference = (first: readonly number[], second: readonly number[]): number | null =>
  first.length === 0 ? null : mean(first.map((value, index) => Math.abs(value - second[index]!)));
