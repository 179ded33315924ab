import { createHash, randomBytes } from 'node:crypto';
import { linkSync, readFileSync, renameSync, rmSync, unlinkSync, writeFileSync } from 'node:fs';
import { type FileHandle, open, readdir, readFile, writeFile } from 'node:fs/promises';
import { errorNames, TurnsweepError } from '../../errors.ts';
import type { ObjectStore } from '../../ports/object-store.ts';
import { checkPrefix, compareKeys, sortKeys } from './object-keys.ts';
import { createObjectPlaces, type FileObjectStoreSettings, type FilePath, type Place } from './object-places.ts';
import { errnoCode, storageFailed } from './storage-errors.ts';
import { readLines } from './text-lines.ts';

export type { FileObjectStoreSettings } from './object-places.ts';

const longestLineBytes = 64 * 1024 * 1024;
/** Larger contents go through the thread pool, so that they do not hold up everything else. */
const largeBytes = 4 * 1024 * 1024;
const batchCharacters = 256 * 1024;
/** Small operations in a row before timers, signals and sockets get their turn. */
const operationsPerTurn = 64;

/**
 * Objects as files: a key is a path below the root (or a mount). A write goes to a temporary file in the
 * same folder and appears whole by `rename` or, first writer wins, by `link`; it survives the death of the
 * process but, for want of fsync, not a power cut. Names that begin with a dot are no keys, so that
 * temporary files of killed processes are never seen. One process at a time should write to a folder
 * (`lockRunFolder`): `putIfAbsent` is atomic among processes, `putIfMatch` only within one.
 *
 * Small files are read and written synchronously: measured at half the CPU time of a write and a tenth
 * of that of a read through the thread pool.
 *
 * Throws `AccessDenied` for unsafe keys, links and writes to aliases, `StorageFailed` with a remedy for
 * whatever the disk refuses.
 */
export const createFileObjectStore = (settings: FileObjectStoreSettings): ObjectStore => {
  const places = createObjectPlaces(settings);
  const takeTurn = createTurnTaking();
  const writer = `.${process.pid}-${randomBytes(6).toString('hex')}`;
  let written = 0;

  const temporaryFor = (file: FilePath): string => {
    written += 1;
    return `${file.directory}/${writer}-${written}.tmp`;
  };

  /** Runs `write` with the key's file; once more with its folder made anew if that has gone. */
  const writing = <Result>(key: string, write: (file: FilePath, temporary: string) => Result): Result => {
    for (let isRetry = false; ; isRetry = true) {
      const file = places.forWriting(key);
      const temporary = temporaryFor(file);
      try {
        return write(file, temporary);
      } catch (error) {
        rmSync(temporary, { force: true });
        if (errnoCode(error) !== 'ENOENT' || isRetry) throw storageFailed(error, 'write', file.path);
        places.forget();
      }
    }
  };

  const replaceNow = (key: string, body: string | Uint8Array): void =>
    writing(key, (file, temporary) => {
      writeFileSync(temporary, body, { flag: 'wx' });
      renameSync(temporary, file.path);
    });

  /** `fill` writes the temporary file as it likes; the object appears when it is done. */
  const replaceLater = async <Result>(
    key: string,
    fill: (temporary: string) => Promise<Result>,
  ): Promise<Result> => {
    places.forget();
    const file = places.forWriting(key);
    const temporary = temporaryFor(file);
    try {
      const result = await fill(temporary);
      // Synchronous like every change of a key, so that none falls between the two halves of putIfMatch.
      renameSync(temporary, file.path);
      return result;
    } catch (error) {
      rmSync(temporary, { force: true });
      if (errnoCode(error) === undefined) throw error;
      throw storageFailed(error, 'write', file.path);
    }
  };

  const read = <Content>(key: string, readFrom: (path: string, size: number) => Content): Content | null => {
    const found = places.find(key);
    if (found === null) return null;
    try {
      return readFrom(found.path, found.size);
    } catch (error) {
      if (errnoCode(error) === 'ENOENT') return null;
      throw storageFailed(error, 'read', found.path);
    }
  };

  const tagNow = (key: string): string | null => read(key, (path) => tagOf(readFileSync(path)));

  return {
    async getText(key) {
      await takeTurn();
      return read(key, (path) => readFileSync(path, 'utf8'));
    },
    async getBytes(key) {
      await takeTurn();
      return await read(key, (path, size) =>
        size > largeBytes ? readLarge(path) : readFileSync(path),
      );
    },
    async put(key, body) {
      await takeTurn();
      if (body.length <= largeBytes) replaceNow(key, body);
      else await replaceLater(key, (temporary) => writeFile(temporary, body, { flag: 'wx' }));
    },
    async putIfAbsent(key, body) {
      await takeTurn();
      return writing(key, (file, temporary) => {
        writeFileSync(temporary, body, { flag: 'wx' });
        const isFirst = linkIfAbsent(temporary, file.path);
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
      // No await from here on: that is what makes comparing and writing one step within this process.
      if (tagNow(key) !== tag) return false;
      replaceNow(key, body);
      return true;
    },
    async delete(key) {
      await takeTurn();
      if (places.find(key) === null) return;
      const file = places.forWriting(key);
      try {
        unlinkSync(file.path);
      } catch (error) {
        if (errnoCode(error) !== 'ENOENT') throw storageFailed(error, 'delete', file.path);
      }
    },
    async *list(prefix) {
      checkPrefix(prefix);
      const aliases = [...places.aliases.keys()].filter((key) => key.startsWith(prefix) && places.find(key));
      let keys: AsyncIterable<string> = inOrder(sortKeys(aliases));
      for (const place of places.places) {
        const isConcerned =
          place.prefix.startsWith(prefix) ||
          (prefix.startsWith(place.prefix) && places.placeOf(prefix).prefix.length <= place.prefix.length);
        if (isConcerned) keys = merged(walkPlace(place, prefix, places), keys);
      }
      yield* keys;
    },
    async *lines(key) {
      const found = places.find(key);
      if (found === null) {
        throw new TurnsweepError(errorNames.objectMissing, 'there is no such object', { where: key });
      }
      yield* readLines(found.path, key, longestLineBytes);
    },
    async putLines(key, lines) {
      return replaceLater(key, async (temporary) => {
        const file = await open(temporary, 'wx');
        try {
          return await writeLines(file, lines, key);
        } finally {
          await file.close();
        }
      });
    },
  };
};

/** Lets the event loop turn after every so many operations, which would else starve it: they never wait. */
const createTurnTaking = (): (() => Promise<void> | undefined) => {
  let operations = 0;
  let turn: Promise<void> | undefined;
  return () => {
    if (turn !== undefined) return turn;
    operations += 1;
    if (operations < operationsPerTurn) return undefined;
    turn = new Promise((resolve) => {
      setImmediate(() => {
        operations = 0;
        turn = undefined;
        resolve();
      });
    });
    return turn;
  };
};

const tagOf = (content: Uint8Array): string => createHash('sha256').update(content).digest('hex').slice(0, 32);

const readLarge = async (path: string): Promise<Uint8Array | null> => {
  try {
    return await readFile(path);
  } catch (error) {
    if (errnoCode(error) === 'ENOENT') return null;
    throw storageFailed(error, 'read', path);
  }
};

const linkIfAbsent = (from: string, to: string): boolean => {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    if (errnoCode(error) === 'EEXIST') return false;
    throw error;
  }
};

const writeLines = async (
  file: FileHandle,
  lines: Iterable<string> | AsyncIterable<string>,
  key: string,
): Promise<number> => {
  let count = 0;
  let batch: string[] = [];
  let characters = 0;
  const flush = async () => {
    await file.appendFile(batch.join(''));
    batch = [];
    characters = 0;
  };
  for await (const line of lines) {
    count += 1;
    if (line.includes('\n')) {
      throw new TurnsweepError(errorNames.contractViolated, `line ${count} has a line end inside`, { where: key });
    }
    batch.push(line, '\n');
    characters += line.length + 1;
    if (characters >= batchCharacters) await flush();
  }
  await flush();
  return count;
};

async function* inOrder(keys: readonly string[]): AsyncGenerator<string> {
  yield* keys;
}

/** Two ascending streams as one; a key that both have comes once. */
async function* merged(first: AsyncIterable<string>, second: AsyncIterable<string>): AsyncGenerator<string> {
  const [a, b] = [first[Symbol.asyncIterator](), second[Symbol.asyncIterator]()];
  let [nextA, nextB] = [await a.next(), await b.next()];
  while (!nextA.done || !nextB.done) {
    const order = nextA.done ? 1 : nextB.done ? -1 : compareKeys(nextA.value, nextB.value);
    yield order <= 0 ? nextA.value : nextB.value;
    const isBoth = order === 0;
    if (order <= 0) nextA = await a.next();
    if (order > 0 || isBoth) nextB = await b.next();
  }
}

/** Keys of one place that begin with `prefix`, without those that a longer mount hides. */
async function* walkPlace(
  place: Place,
  prefix: string,
  places: ReturnType<typeof createObjectPlaces>,
): AsyncGenerator<string> {
  const rest = prefix.slice(place.prefix.length);
  const folderEnd = rest.lastIndexOf('/') + 1;
  yield* walkFolder(place, rest.slice(0, folderEnd), rest.slice(folderEnd), places);
}

async function* walkFolder(
  place: Place,
  folder: string,
  namePrefix: string,
  places: ReturnType<typeof createObjectPlaces>,
): AsyncGenerator<string> {
  if (places.placeOf(place.prefix + folder) !== place) return;
  const directory = folder === '' ? place.directory : `${place.directory}/${folder.slice(0, -1)}`;
  if (!places.isFolder(directory, place)) return;
  for (const name of await namesIn(directory, namePrefix)) {
    if (name.endsWith('/')) yield* walkFolder(place, folder + name, '', places);
    else yield place.prefix + folder + name;
  }
}

/** Names of files, and of folders with a slash behind: so they sort as the keys below them do. */
const namesIn = async (directory: string, namePrefix: string): Promise<string[]> => {
  try {
    const names: string[] = [];
    for (const entry of await readdir(directory, { withFileTypes: true })) {
      const { name } = entry;
      if (name.startsWith('.') || !name.startsWith(namePrefix)) continue;
      if (entry.isFile()) names.push(name);
      else if (entry.isDirectory()) names.push(`${name}/`);
    }
    return sortKeys(names);
  } catch (error) {
    if (errnoCode(error) === 'ENOENT') return [];
    throw storageFailed(error, 'list', directory);
  }
};
