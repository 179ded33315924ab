import { createHash, randomBytes } from 'node:crypto';
import { readFileSync, renameSync, unlinkSync, writeFileSync } from 'node:fs';
import { open, readdir, readFile, writeFile } from 'node:fs/promises';
import { errorNames, TurnsweepError } from '../../errors.ts';
import type { ObjectStore } from '../../ports/object-store.ts';
import { checkPrefix, compareKeys, sortKeys } from './object-keys.ts';
import { createObjectPlaces, type FilePath, type ObjectPlaces, type Place } from './object-places.ts';
import { errnoCode, onDisk, storageFailed } from './storage-errors.ts';
import { readLines } from './text-lines.ts';
import { createTurnTaking } from './turn-taking.ts';
import { discard, linkIfAbsent, unlinkIfPresent } from './whole-files.ts';

export interface FileObjectStoreSettings {
  root: string;
  /** Keys that begin with `prefix` (ending in a slash; the longest match counts) live in `directory`. */
  mounts?: readonly { prefix: string; directory: string }[];
  /** Keys that stand for a read-only file elsewhere, by absolute path. */
  aliases?: ReadonlyMap<string, string>;
  /** A longer line makes `lines` throw; 64 MiB unless given. */
  longestLineBytes?: number;
}

/** Larger contents go through the thread pool, so that they do not hold up everything else. */
const largeBytes = 4 * 1024 * 1024;
const batchCharacters = 256 * 1024;

/**
 * Objects as files: a key is a path below the root (or a mount). A write goes to a temporary file in the
 * same folder and appears whole by `rename` or, first writer wins, by `link`; it survives the death of the
 * process but, for want of fsync, not a power cut. Names that begin with a dot are no keys, so that
 * temporary files of killed processes are never seen. `putIfAbsent` is atomic among processes,
 * `putIfMatch` only within one: one process at a time should work on a folder (`lockRunFolder`).
 *
 * Small files are read and written synchronously: through the thread pool a write was measured to take
 * twice the CPU time and a read up to ten times.
 *
 * Throws `AccessDenied` for unsafe keys, links and writes to aliases, `StorageFailed` with a remedy for
 * whatever the disk refuses.
 */
export const createFileObjectStore = (settings: FileObjectStoreSettings): ObjectStore => {
  const { root, mounts = [], aliases = new Map(), longestLineBytes = 64 * 1024 * 1024 } = settings;
  const places = createObjectPlaces(root, mounts, aliases);
  const takeTurn = createTurnTaking();
  const writer = `.${process.pid}-${randomBytes(6).toString('hex')}`;
  let written = 0;

  const temporaryFor = (file: FilePath): string => {
    written += 1;
    return `${file.directory}/${writer}-${written}.tmp`;
  };

  /** Writes the body aside, then lets `publish` make it the key's content. */
  const writeNow = <Result>(
    key: string,
    body: string | Uint8Array,
    publish: (temporary: string, path: string) => Result,
  ): Result => {
    for (let isRetry = false; ; isRetry = true) {
      const file = places.forWriting(key);
      const temporary = temporaryFor(file);
      try {
        writeFileSync(temporary, body, { flag: 'wx' });
        return publish(temporary, file.path);
      } catch (error) {
        discard(temporary);
        if (errnoCode(error) !== 'ENOENT' || isRetry) throw storageFailed(error, 'write', file.path);
        // Somebody removed the folder that was there a moment ago.
        places.forget();
      }
    }
  };

  /** As `writeNow`, but `fill` writes the temporary file and may take its time. */
  const writeLater = async <Result>(
    key: string,
    fill: (temporary: string) => Promise<Result>,
  ): Promise<Result> => {
    places.forget();
    const file = places.forWriting(key);
    const temporary = temporaryFor(file);
    try {
      const result = await fill(temporary);
      // Synchronous like every change of a key, so that none falls between the two halves of putIfMatch.
      await onDisk('write', file.path, async () => renameSync(temporary, file.path));
      return result;
    } catch (error) {
      discard(temporary);
      throw error;
    }
  };

  const readNow = <Content>(key: string, read: (path: string) => Content): Content | null => {
    const found = places.find(key);
    if (found === null) return null;
    try {
      return read(found.path);
    } catch (error) {
      if (errnoCode(error) === 'ENOENT') return null;
      throw storageFailed(error, 'read', found.path);
    }
  };

  const tagNow = (key: string): string | null => readNow(key, (path) => tagOf(readFileSync(path)));

  return {
    async getText(key) {
      await takeTurn();
      return readNow(key, (path) => readFileSync(path, 'utf8'));
    },
    async getBytes(key) {
      await takeTurn();
      const found = places.find(key);
      if (found === null || found.size <= largeBytes)
        return found && readNow(key, (path) => readFileSync(path));
      return onDisk('read', found.path, () => readFile(found.path));
    },
    async put(key, body) {
      await takeTurn();
      if (body.length <= largeBytes) writeNow(key, body, renameSync);
      else
        await writeLater(key, (path) => onDisk('write', path, () => writeFile(path, body, { flag: 'wx' })));
    },
    async putIfAbsent(key, body) {
      await takeTurn();
      return writeNow(key, body, (temporary, path) => {
        const isFirst = linkIfAbsent(temporary, path);
        unlinkSync(temporary);
        return isFirst;
      });
    },
    async tag(key) {
      await takeTurn();
      return tagNow(key);
    },
    async putIfMatch(key, body, tag) {
      await takeTurn();
      // No await from here on: that makes comparing and writing one step within this process.
      if (tagNow(key) !== tag) return false;
      writeNow(key, body, renameSync);
      return true;
    },
    async delete(key) {
      await takeTurn();
      if (places.find(key) === null) return;
      const { path } = places.forWriting(key);
      await onDisk('delete', path, async () => unlinkIfPresent(path));
    },
    async *list(prefix) {
      checkPrefix(prefix);
      const streams: AsyncIterable<string>[] = places.places
        .filter((place) => mayHold(places, place, prefix))
        .map((place) => walkPlace(places, place, prefix));
      const aliased = [...aliases.keys()].filter(
        (key) => key.startsWith(prefix) && places.find(key) !== null,
      );
      if (aliased.length > 0) streams.push(inOrder(sortKeys(aliased)));
      yield* streams.reduce(merged);
    },
    async *lines(key) {
      const found = places.find(key);
      if (found === null) {
        throw new TurnsweepError(errorNames.objectMissing, 'there is no such object', { where: key });
      }
      yield* readLines(found.path, key, longestLineBytes);
    },
    async putLines(key, lines) {
      return writeLater(key, (path) => writeLines(path, lines, key));
    },
  };
};

/** Version tag of a content. */
export const tagOf = (content: string | Uint8Array): string =>
  createHash('sha256').update(content).digest('hex').slice(0, 32);

const writeLines = async (
  path: string,
  lines: Iterable<string> | AsyncIterable<string>,
  key: string,
): Promise<number> => {
  const file = await onDisk('write', path, () => open(path, 'wx'));
  let count = 0;
  let batch: string[] = [];
  let characters = 0;
  const flush = async () => {
    await onDisk('write', path, () => file.appendFile(batch.join('')));
    batch = [];
    characters = 0;
  };
  try {
    for await (const line of lines) {
      count += 1;
      if (line.includes('\n')) {
        throw new TurnsweepError(errorNames.contractViolated, `line ${count} has a line end inside`, {
          where: key,
        });
      }
      batch.push(line, '\n');
      characters += line.length + 1;
      if (characters >= batchCharacters) await flush();
    }
    await flush();
  } finally {
    await onDisk('write', path, () => file.close());
  }
  return count;
};

/** True if keys with this prefix may live in this place. */
const mayHold = (places: ObjectPlaces, place: Place, prefix: string): boolean =>
  place.prefix.startsWith(prefix) || places.placeOf(prefix) === place;

export async function* inOrder(keys: readonly string[]): AsyncGenerator<string> {
  yield* keys;
}

/** Two ascending streams as one; a key that both have comes once. */
export async function* merged(
  first: AsyncIterable<string>,
  second: AsyncIterable<string>,
): AsyncGenerator<string> {
  const [a, b] = [first[Symbol.asyncIterator](), second[Symbol.asyncIterator]()];
  let [nextA, nextB] = await Promise.all([a.next(), b.next()]);
  while (!nextA.done || !nextB.done) {
    const order = nextA.done ? 1 : nextB.done ? -1 : compareKeys(nextA.value, nextB.value);
    yield order <= 0 ? nextA.value : nextB.value;
    if (order <= 0) nextA = await a.next();
    if (order >= 0) nextB = await b.next();
  }
}

/** Keys of one place that begin with `prefix`, without those that a longer mount hides. */
const walkPlace = (places: ObjectPlaces, place: Place, prefix: string): AsyncGenerator<string> => {
  const rest = prefix.slice(place.prefix.length);
  const folderEnd = rest.lastIndexOf('/') + 1;
  return walkFolder(places, place, rest.slice(0, folderEnd), rest.slice(folderEnd));
};

async function* walkFolder(
  places: ObjectPlaces,
  place: Place,
  folder: string,
  namePrefix: string,
): AsyncGenerator<string> {
  if (places.placeOf(place.prefix + folder) !== place) return;
  const directory = folder === '' ? place.directory : `${place.directory}/${folder.slice(0, -1)}`;
  if (!places.isFolder(directory, place)) return;
  for (const name of await namesIn(directory, namePrefix)) {
    if (name.endsWith('/')) yield* walkFolder(places, place, folder + name, '');
    else yield place.prefix + folder + name;
  }
}

/** Names of files, and of folders with a slash behind: so they sort as the keys below them do. */
const namesIn = async (directory: string, namePrefix: string): Promise<string[]> => {
  const names: string[] = [];
  try {
    for (const entry of await readdir(directory, { withFileTypes: true })) {
      const { name } = entry;
      if (name.startsWith('.') || !name.startsWith(namePrefix)) continue;
      if (entry.isFile()) names.push(name);
      else if (entry.isDirectory()) names.push(`${name}/`);
    }
  } catch (error) {
    if (errnoCode(error) !== 'ENOENT') throw storageFailed(error, 'list', directory);
  }
  return sortKeys(names);
};
