import { readFile } from 'node:fs/promises';
import path from 'node:path';
import type { RunSummary } from '../../functions/aggregate-run/aggregate-run.ts';
import { createLocalHome, type LocalHome, openRunFolder } from '../../local/home.ts';
import { createProgress } from '../../local/progress.ts';
import { onDisk } from '../../shared/adapters/local/storage-errors.ts';
import { benchmarkOf } from '../../shared/benchmarks/registry.ts';
import { errorNames, ProblemsFound } from '../../shared/errors.ts';
import { claimRunFolder, type KnownRun, openKnownRun, withFileNames } from '../run-folder.ts';
import { addReviewCaches } from '../upload-run.ts';
import { type RunningContext, runToEnd } from './run.ts';

interface PhaseOptions {
  reviews?: string;
  json?: boolean;
}

const onRun = async (
  out: string,
  options: PhaseOptions,
  before: (known: KnownRun, store: RunningContext['store']) => Promise<void>,
  work: (home: LocalHome) => Promise<RunSummary>,
): Promise<number> => {
  const directory = path.resolve(out);
  const known = await openKnownRun(directory);
  const phase = async (): Promise<number> => {
    const store = openRunFolder(directory, known.run, { reviewsDirectory: options.reviews });
    await before(known, store);
    const progress = createProgress([]);
    const home = await createLocalHome({ store, directory, run: known.run, progress });
    return runToEnd(home, () => work(home), {
      store,
      directory,
      run: known.run,
      contract: known.contract,
      progress,
      json: options.json ?? false,
    });
  };
  const lock = await claimRunFolder(directory);
  try {
    return await withFileNames(known, phase);
  } finally {
    await lock.release();
  }
};

const nothing = async () => {};

export const score = (out: string, options: PhaseOptions & { reviewCache?: string[] }): Promise<number> =>
  onRun(
    out,
    options,
    async ({ run, contract }, store) => {
      const texts: string[] = [];
      for (const file of options.reviewCache ?? []) {
        const text = await onDisk('read the review cache', file, () => readFile(file, 'utf8'));
        const { problems } = await benchmarkOf(contract.benchmark.kind).importReviews(file, text.split('\n'));
        if (problems.length > 0) {
          throw new ProblemsFound(errorNames.benchmarkInvalid, 'the review cache has problems', problems);
        }
        texts.push(text);
      }
      await addReviewCaches(store, run, texts);
    },
    (home) => home.judging({ judge: false }),
  );

export const judge = (out: string, options: PhaseOptions): Promise<number> =>
  onRun(out, options, nothing, (home) => home.judging({ judge: true }));

export const report = (out: string, options: PhaseOptions): Promise<number> =>
  onRun(out, options, nothing, (home) => home.report());
