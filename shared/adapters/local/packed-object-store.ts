import { isUtf8 } from 'node:buffer';
import { readdirSync, readFileSync } from 'node:fs';
import { errorNames, TurnsweepError } from '../../errors.ts';
import type { ObjectStore } from '../../ports/object-store.ts';
import {
  createFileObjectStore,
  type FileObjectStoreSettings,
  inOrder,
  merged,
  tagOf,
} from './file-object-store.ts';
import { checkKey, checkPrefix, sortKeys } from './object-keys.ts';
import { createObjectPlaces } from './object-places.ts';
import { createPackFile, type PackFile } from './pack-file.ts';
import { packLine, packLineOfDeletion } from './pack-line.ts';
import { errnoCode, storageFailed } from './storage-errors.ts';
import { createTurnTaking } from './turn-taking.ts';

export interface PackedObjectStoreSettings extends FileObjectStoreSettings {
  /** Keys below these prefixes are kept in packs; `*` stands for one path segment, once in a prefix at most. */
  packs: readonly string[];
}

type Content = string | Uint8Array;

interface Change {
  name: string;
  /** Null takes the name away. */
  body: Content | null;
  /** Whether to change, by what is there now; asking for the content reads it. */
  mayChange: (isThere: () => boolean, content: () => Content | null) => boolean;
  resolve: (hasChanged: boolean) => void;
  reject: (error: unknown) => void;
}

interface Pack {
  prefix: string;
  file: PackFile;
  /** True where single files below the prefix count too. */
  hasFiles: boolean;
  changes: Change[];
}

/**
 * As `createFileObjectStore`, but keys of many small objects are lines of one file, a pack, which stands in the
 * place of their folder: `…/requests.pack` for `…/requests/`. Objects that stand there as files of their own,
 * from an earlier version or by hand, are found too; what is put from now on goes to the pack.
 *
 * What is put in one turn of the event loop is one write, and resolves when it is done. `putIfAbsent` and
 * `putIfMatch` are atomic within one process, which must be the only one that writes (`lockRunFolder`). Packed
 * objects are read and written whole: `putLines` keeps the lines in memory.
 *
 * Beside the errors of the files, throws `ObjectDamaged` with file and line, see `createPackFile`.
 */
export const createPackedObjectStore = (settings: PackedObjectStoreSettings): ObjectStore => {
  const files = createFileObjectStore(settings);
  const places = createObjectPlaces(settings.root, settings.mounts ?? [], settings.aliases ?? new Map());
  const patterns = settings.packs.map((prefix) => patternOf(prefix));
  const packs = new Map<string, Pack>();
  const takeTurn = createTurnTaking();

  const pathOf = (key: string): string => {
    const place = places.placeOf(key);
    return `${place.directory}/${key.slice(place.prefix.length)}`;
  };

  const packAt = (prefix: string): Pack => {
    const found = packs.get(prefix);
    if (found !== undefined) return found;
    const folder = prefix.slice(0, -1);
    checkKey(folder);
    const key = folder + packExtension;
    const forWriting = () => {
      places.forget();
      places.forWriting(key);
    };
    // Looks for links on the way.
    places.find(key);
    const pack: Pack = {
      prefix,
      file: createPackFile(pathOf(key), key, forWriting),
      hasFiles: places.isFolder(pathOf(folder), places.placeOf(prefix)),
      changes: [],
    };
    packs.set(prefix, pack);
    return pack;
  };

  const packOf = (key: string): Pack | null => {
    for (const { prefixOf } of patterns) {
      const prefix = prefixOf(key);
      if (prefix !== null) return packAt(prefix);
    }
    return null;
  };

  const fileNow = (pack: Pack, name: string): Buffer | null => {
    const found = pack.hasFiles ? places.find(pack.prefix + name) : null;
    if (found === null) return null;
    try {
      return readFileSync(found.path);
    } catch (error) {
      throw storageFailed(error, 'read', found.path);
    }
  };

  const writeChanges = (pack: Pack): void => {
    const changes = pack.changes;
    pack.changes = [];
    const written = new Map<string, Content | null>();
    const lines: Parameters<PackFile['append']>[0][number][] = [];
    const decided: { change: Change; hasChanged: boolean }[] = [];
    for (const change of changes) {
      const { name, body } = change;
      const early = written.get(name);
      const isThere = () =>
        early === undefined
          ? pack.file.has(name) || (pack.hasFiles && places.find(pack.prefix + name) !== null)
          : early !== null;
      const content = () => (early === undefined ? (pack.file.read(name) ?? fileNow(pack, name)) : early);
      try {
        const hasChanged = change.mayChange(isThere, content);
        decided.push({ change, hasChanged });
        if (!hasChanged) continue;
        const line = body === null ? packLineOfDeletion(name) : packLine(name, body);
        lines.push({ name, line, isDeletion: body === null });
        written.set(name, body);
      } catch (error) {
        change.reject(error);
      }
    }
    try {
      if (lines.length > 0) pack.file.append(lines);
    } catch (error) {
      // What was refused was refused for the sake of something that is not there now.
      for (const { change } of decided) change.reject(error);
      return;
    }
    for (const { change, hasChanged } of decided) change.resolve(hasChanged);
  };

  const change = (
    pack: Pack,
    key: string,
    body: Content | null,
    mayChange: Change['mayChange'],
  ): Promise<boolean> => {
    checkKey(key);
    return new Promise((resolve, reject) => {
      if (pack.changes.length === 0) setImmediate(() => writeChanges(pack));
      pack.changes.push({ name: key.slice(pack.prefix.length), body, mayChange, resolve, reject });
    });
  };

  const read = (pack: Pack, key: string): string | Buffer | null => {
    checkKey(key);
    const name = key.slice(pack.prefix.length);
    return pack.file.read(name) ?? fileNow(pack, name);
  };

  const packsFor = (prefix: string): Pack[] =>
    patterns
      .flatMap(({ prefixesUnder }) => prefixesUnder(prefix, (head) => foldersIn(pathOf(head))))
      .filter((candidate) => candidate.startsWith(prefix) || prefix.startsWith(candidate))
      .map(packAt);

  return {
    async getText(key) {
      const pack = packOf(key);
      if (pack === null) return files.getText(key);
      await takeTurn();
      const content = read(pack, key);
      return content === null || typeof content === 'string' ? content : content.toString('utf8');
    },
    async getBytes(key) {
      const pack = packOf(key);
      if (pack === null) return files.getBytes(key);
      await takeTurn();
      const content = read(pack, key);
      return typeof content === 'string' ? Buffer.from(content) : content;
    },
    async tag(key) {
      const pack = packOf(key);
      if (pack === null) return files.tag(key);
      await takeTurn();
      const content = read(pack, key);
      return content && tagOf(content);
    },
    async put(key, body) {
      const pack = packOf(key);
      if (pack === null) await files.put(key, body);
      else await change(pack, key, body, () => true);
    },
    async putIfAbsent(key, body) {
      const pack = packOf(key);
      return pack === null ? files.putIfAbsent(key, body) : change(pack, key, body, (isThere) => !isThere());
    },
    async putIfMatch(key, body, tag) {
      const pack = packOf(key);
      if (pack === null) return files.putIfMatch(key, body, tag);
      return change(pack, key, body, (_, content) => {
        const found = content();
        return found !== null && tagOf(found) === tag;
      });
    },
    async delete(key) {
      const pack = packOf(key);
      if (pack === null || pack.hasFiles) await files.delete(key);
      if (pack !== null) await change(pack, key, null, (isThere) => isThere());
    },
    async *list(prefix) {
      checkPrefix(prefix);
      const found = packsFor(prefix);
      const keysIn = ({ prefix: ofPack, file }: Pack): string[] => {
        const keys: string[] = [];
        for (const name of file.names()) if ((ofPack + name).startsWith(prefix)) keys.push(ofPack + name);
        return sortKeys(keys);
      };
      const [only] = found;
      if (only !== undefined && !only.hasFiles && prefix.startsWith(only.prefix)) {
        // Nothing else can be there; hundreds of thousands of keys go straight through.
        for (const key of keysIn(only)) yield key;
        return;
      }
      const streams: AsyncIterable<string>[] = [withoutPacks(files.list(prefix), patterns)];
      for (const pack of found) streams.push(inOrder(keysIn(pack)));
      yield* streams.reduce(merged);
    },
    async *lines(key) {
      const pack = packOf(key);
      const content = pack && read(pack, key);
      if (content === null) {
        yield* files.lines(key);
      } else if (typeof content === 'string' || isUtf8(content)) {
        const lines = content.toString().split('\n');
        if (lines.at(-1) === '') lines.pop();
        yield* lines;
      } else {
        throw new TurnsweepError(errorNames.storageFailed, 'this is not UTF-8 text', { where: key });
      }
    },
    async putLines(key, lines) {
      const pack = packOf(key);
      if (pack === null) return files.putLines(key, lines);
      const texts: string[] = [];
      for await (const line of lines) {
        texts.push(line);
        if (!line.includes('\n')) continue;
        throw new TurnsweepError(errorNames.contractViolated, `line ${texts.length} has a line end inside`, {
          where: key,
        });
      }
      await change(pack, key, texts.map((line) => `${line}\n`).join(''), () => true);
      return texts.length;
    },
  };
};

const packExtension = '.pack';

interface Pattern {
  /** The part of a key that fits the whole pattern; null if it does not. */
  prefixOf(key: string): string | null;
  /** Prefixes that fit the pattern and may share keys with `prefix`; `foldersIn` gives the names there are. */
  prefixesUnder(prefix: string, foldersIn: (head: string) => readonly string[]): string[];
}

const patternOf = (pattern: string): Pattern => {
  const [head = '', tail] = pattern.split('*');
  if (tail === undefined) {
    return {
      prefixOf: (key) => (key.startsWith(pattern) ? pattern : null),
      prefixesUnder: () => [pattern],
    };
  }
  return {
    prefixOf(key) {
      const end = key.startsWith(head) ? key.indexOf('/', head.length) : -1;
      return end > head.length && key.startsWith(tail, end) ? key.slice(0, end + tail.length) : null;
    },
    prefixesUnder(prefix, foldersIn) {
      const end = prefix.startsWith(head) ? prefix.indexOf('/', head.length) : -1;
      const names = end < 0 ? foldersIn(head) : [prefix.slice(head.length, end)];
      return names.map((name) => head + name + tail);
    },
  };
};

const foldersIn = (directory: string): string[] => {
  try {
    return readdirSync(directory, { withFileTypes: true })
      .filter((entry) => entry.isDirectory() && !entry.name.startsWith('.'))
      .map(({ name }) => name);
  } catch (error) {
    const code = errnoCode(error);
    if (code === 'ENOENT' || code === 'ENOTDIR') return [];
    throw storageFailed(error, 'list', directory);
  }
};

/** The packs themselves, and what was cut off them, are no objects. */
async function* withoutPacks(
  keys: AsyncIterable<string>,
  patterns: readonly Pattern[],
): AsyncGenerator<string> {
  for await (const key of keys) {
    const folder = /^(.*)\.pack(?:\.torn)?$/.exec(key)?.[1];
    if (folder === undefined || patterns.every(({ prefixOf }) => prefixOf(`${folder}/`) !== `${folder}/`)) {
      yield key;
    }
  }
}
