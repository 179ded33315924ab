import { openRunFolder } from '../../local/home.ts';
import { errorNames, TurnsweepError } from '../../shared/errors.ts';
import { keys } from '../../shared/keys.ts';
import type { ObjectStore } from '../../shared/ports/object-store.ts';
import { readAhead } from '../../shared/stages/read-ahead.ts';

/** Objects that one machine does not read again. */
const staysThere = (key: string): boolean =>
  /\/(plan\/([^/]+\/pending|pending-clips)\.jsonl|map\/.*)$/.test(key);

/** Objects that never change once they are there. */
const isFinal = (key: string): boolean => /\/requests\/[^/]+\.json$|^reviews\/|^benchmarks\//.test(key);

/** Objects that a later start takes back: errors that were asked again, marks of what had stopped. */
const mayBeTakenBack = (key: string): boolean => /\/failures\/[^/]+\.json$|\/stopped\.json$/.test(key);

/**
 * Brings a run home: its keys, its benchmark and the reviews, under the same keys in the run folder, so that
 * every later phase works there. What is there already and cannot have changed is not fetched again. The
 * contract comes first: it makes the folder this run's, also where the rest breaks off.
 */
export const downloadRun = async (
  bucket: ObjectStore,
  run: string,
  benchmarkId: string,
  directory: string,
): Promise<number> => {
  const folder = openRunFolder(directory, run);
  const wanted: string[] = [keys.run.contract(run)];
  for (const prefix of [`benchmarks/${benchmarkId}/`, 'reviews/', keys.run.root(run)]) {
    for await (const key of bucket.list(prefix)) {
      if (key !== keys.run.contract(run) && !staysThere(key)) wanted.push(key);
    }
  }
  const fetch = async (key: string): Promise<Uint8Array | null> =>
    isFinal(key) && (await folder.tag(key)) !== null ? null : needed(key, await bucket.getBytes(key));
  let fetched = 0;
  for await (const [key, content] of readAhead(wanted, fetch)) {
    if (content === null) continue;
    await folder.put(key, content);
    fetched += 1;
  }
  const inBucket = new Set(wanted);
  for await (const key of folder.list(keys.run.root(run))) {
    if (mayBeTakenBack(key) && !inBucket.has(key)) await folder.delete(key);
  }
  return fetched;
};

const needed = (key: string, content: Uint8Array | null): Uint8Array => {
  if (content !== null) return content;
  throw new TurnsweepError(errorNames.objectMissing, 'an object went while the run was brought home', {
    where: key,
  });
};
