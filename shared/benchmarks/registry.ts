import { errorNames, TurnsweepError } from '../errors.ts';
import type { Benchmark } from './benchmark.ts';
import { returnBenchmark } from './return/benchmark.ts';
import { voxmemBenchmark } from './voxmem/benchmark.ts';

const benchmarks: readonly Benchmark[] = [returnBenchmark as Benchmark, voxmemBenchmark as Benchmark];

/** Kinds that this version can run. */
export const benchmarkKinds: readonly string[] = benchmarks.map((benchmark) => benchmark.kind);

/** Names of the exports in the formats of the benchmarks' releases. */
export const releaseFormats: readonly string[] = benchmarks.map(({ exportFormat }) => exportFormat);

/** The plug-in of a benchmark kind; throws `UsageWrong` for a kind that is not known. */
export const benchmarkOf = (kind: string): Benchmark => {
  const found = benchmarks.find((benchmark) => benchmark.kind === kind);
  if (found !== undefined) return found;
  throw new TurnsweepError(errorNames.usage, `unknown benchmark kind "${kind}"`, {
    remedy: `use one of ${benchmarkKinds.join(', ')}`,
  });
};
