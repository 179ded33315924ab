import type { z } from 'zod';
import type { Benchmark } from '../benchmarks/benchmark.ts';
import { type RunContract, type RunSettings, runSettings, storedContract } from '../contracts/run.ts';
import { errorNames, ProblemsFound, TurnsweepError } from '../errors.ts';
import { keys } from '../keys.ts';
import type { ObjectStore } from '../ports/object-store.ts';
import { readStored } from './stored-json.ts';

export interface RunContext {
  hash: string;
  contract: RunContract;
  settings: RunSettings;
}

const required = async <T>(store: ObjectStore, key: string, schema: z.ZodType<T>): Promise<T> => {
  const found = await readStored(store, key, schema);
  if (found !== null) return found;
  throw new TurnsweepError(errorNames.objectMissing, 'this is not a run, or its start did not finish', {
    where: key,
    remedy: 'start it with `turnsweep run`',
  });
};

export const loadRun = async (store: ObjectStore, run: string): Promise<RunContext> => {
  const { hash, contract } = await required(store, keys.run.contract(run), storedContract);
  const settings = await required(store, keys.run.settings(run), runSettings);
  return { hash, contract, settings };
};

/**
 * The run's benchmark inputs as stored: what requests are made of for who asks for it, answers for who asks for (and
 * may read) them.
 */
export const readStoredBenchmark = async (
  store: ObjectStore,
  benchmark: Benchmark,
  { contract, settings }: RunContext,
  parts: { requests: boolean; answers: boolean },
) => {
  const { id } = contract.benchmark;
  const found = await benchmark.read(
    (path) => store.lines(keys.benchmark.input(id, path)),
    parts.answers ? (path) => store.lines(keys.benchmark.answers(id, path)) : null,
    settings,
    parts.requests,
  );
  if (found.problems.length > 0) {
    // The release itself may be sound: the copy is what is to be looked at.
    const keyOf = (file: string): string =>
      benchmark.answerFiles.includes(file)
        ? keys.benchmark.answers(id, file)
        : keys.benchmark.input(id, file);
    throw new ProblemsFound(
      errorNames.benchmarkInvalid,
      'the stored benchmark is damaged',
      found.problems.map((problem) => ({ ...problem, file: keyOf(problem.file) })),
    );
  }
  return found;
};

/** Names that `list` gives under a prefix, without prefix and `.json`. */
export const listedHashes = async (store: ObjectStore, prefix: string): Promise<Set<string>> => {
  const hashes = new Set<string>();
  for await (const key of store.list(prefix)) hashes.add(key.slice(prefix.length, -'.json'.length));
  return hashes;
};
