import type { RunContract } from '../shared/contracts/run.ts';
import { errorNames, TurnsweepError } from '../shared/errors.ts';
import { keys } from '../shared/keys.ts';
import { canonicalJson } from '../shared/naming.ts';
import type { ObjectStore } from '../shared/ports/object-store.ts';
import type { PreparedRun } from './prepare-run.ts';

/** Members that only sum up others: where both differ, the others tell people more. */
const isDigest = (place: string): boolean => place === 'benchmark.id' || place.endsWith('Sha256');

interface Difference {
  place: string;
  ours: unknown;
  theirs: unknown;
}

/** First member in which two contracts differ, as a path, with both values. */
export const contractDifference = (ours: unknown, theirs: unknown, place = ''): Difference | null => {
  if (canonicalJson(ours ?? null) === canonicalJson(theirs ?? null)) return null;
  const isObject = (value: unknown): value is Record<string, unknown> =>
    value !== null && typeof value === 'object';
  if (!isObject(ours) || !isObject(theirs)) return { place, ours, theirs };
  const inside = (key: string): string =>
    Array.isArray(ours) ? `${place}[${key}]` : place === '' ? key : `${place}.${key}`;
  const inner = [...new Set([...Object.keys(ours), ...Object.keys(theirs)])]
    .map((key) => contractDifference(ours[key], theirs[key], inside(key)))
    .filter((difference) => difference !== null);
  return inner.find((difference) => !isDigest(difference.place)) ?? inner[0] ?? null;
};

const short = (value: unknown): string => {
  const text = JSON.stringify(value) ?? 'nothing';
  return text.length > 80 ? `${text.slice(0, 77)}...` : text;
};

/** What a member means that only shows a digest. */
const meanings: readonly [RegExp, string][] = [
  [/^benchmark\.id$/, "the release's files"],
  [/^benchmark\.taskIdsSha256$/, 'the selected tasks'],
  [/^benchmark\.mediaSha256$/, 'the media'],
  [/recordingSha256$/, 'the recorded replies'],
];

/** Refuses to go on where a folder holds a run of another contract. */
export const checkSameContract = (
  existing: { hash: string; run: string; contract: RunContract } | null,
  prepared: PreparedRun,
  where: string,
): void => {
  if (existing === null) return;
  if (existing.hash === prepared.contractHash) {
    if (existing.run === prepared.run) return;
    throw new TurnsweepError(
      errorNames.contractDiffers,
      `the folder holds the scheduled run ${existing.run}`,
      {
        where,
        remedy: 'choose another folder with --out',
      },
    );
  }
  const found = contractDifference(prepared.contract, existing.contract);
  const place = found?.place ?? 'the contract';
  const meaning = meanings.find(([pattern]) => pattern.test(place))?.[1];
  throw new TurnsweepError(
    errorNames.contractDiffers,
    `the folder holds a run of another contract: ${meaning === undefined ? '' : `${meaning} differ, `}${place} is ${short(found?.ours)} now and ${short(found?.theirs)} in that run`,
    { where, remedy: 'choose another folder with --out, or restore the sweep' },
  );
};

/** Puts what the stages need under the run's and the benchmark's keys; what is there already stays. */
export const uploadRun = async (store: ObjectStore, prepared: PreparedRun): Promise<void> => {
  const { benchmark, release, run } = prepared;
  const { id } = prepared.contract.benchmark;
  const copy = async (key: string, file: string) => {
    if ((await store.tag(key)) === null) await store.putLines(key, release.lines(file));
  };
  for (const file of benchmark.inputFiles) await copy(keys.benchmark.input(id, file), file);
  for (const file of benchmark.answerFiles) await copy(keys.benchmark.answers(id, file), file);
  for (const lane of prepared.contract.lanes) {
    const file = prepared.recordings.get(lane.id);
    if (file !== undefined) await copy(keys.benchmark.recording(id, lane.recordingSha256!), file);
  }
  if (prepared.media !== null) {
    await store.putIfAbsent(
      keys.benchmark.input(id, 'media.json'),
      JSON.stringify(Object.fromEntries(prepared.media)),
    );
  }
  const caches: string[] = [];
  for (const file of prepared.reviewCaches) caches.push(await release.text(file));
  await addReviewCaches(store, run, caches);
  await store.put(keys.run.settings(run), `${JSON.stringify(prepared.settings, null, 2)}\n`);
  await store.put(
    keys.run.contract(run),
    `${JSON.stringify({ hash: prepared.contractHash, contract: prepared.contract }, null, 2)}\n`,
  );
};

/** Adds review caches to those that the run has; a line that is there already is not added again. */
export const addReviewCaches = async (
  store: ObjectStore,
  run: string,
  texts: readonly string[],
): Promise<void> => {
  if (texts.length === 0) return;
  const key = keys.judging.imported(run);
  const present = (await store.getText(key)) ?? '';
  const lines = new Set(`${present}\n${texts.join('\n')}`.split('\n').filter((line) => line.trim() !== ''));
  await store.put(key, `${[...lines].join('\n')}\n`);
};
