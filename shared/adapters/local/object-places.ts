import { lstatSync, mkdirSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { errorNames, TurnsweepError } from '../../errors.ts';
import { checkKey } from './object-keys.ts';
import { errnoCode, storageFailed } from './storage-errors.ts';

export interface Place {
  /** Keys of this place begin with it; '' or ending in a slash. */
  prefix: string;
  /** Absolute path of the folder that holds them. */
  directory: string;
}

export interface FilePath {
  key: string;
  path: string;
  /** Folder of the file, with no link between it and the place's own folder. */
  directory: string;
  readOnly: boolean;
}

export interface FileObjectStoreSettings {
  root: string;
  /** Keys that begin with `prefix` (ending in a slash; the longest match counts) live in `directory`. */
  mounts?: readonly { prefix: string; directory: string }[];
  /** Keys that stand for a read-only file elsewhere, by absolute path. */
  aliases?: ReadonlyMap<string, string>;
}

const linkRefused = (path: string): TurnsweepError =>
  new TurnsweepError(errorNames.accessDenied, 'a symbolic link could lead out of the store', {
    where: path,
    remedy: 'replace the link by what it points to',
  });

/**
 * Where keys live on disk. Symbolic links below a place's folder are refused, whether they lead out or
 * not. A folder once seen to be real is not looked at again: links that somebody puts in place of a
 * folder while the program runs are not found.
 */
export const createObjectPlaces = (settings: FileObjectStoreSettings) => {
  const aliases = settings.aliases ?? new Map<string, string>();
  for (const { prefix } of settings.mounts ?? []) {
    if (!prefix.endsWith('/')) {
      throw new TurnsweepError(errorNames.usage, 'the prefix of a mount must end in a slash', { where: prefix });
    }
    checkKey(prefix.slice(0, -1));
  }
  const places: Place[] = [...(settings.mounts ?? []), { prefix: '', directory: settings.root }]
    .map(({ prefix, directory }) => ({ prefix, directory: resolve(directory) }))
    .sort((a, b) => b.prefix.length - a.prefix.length);
  const known = new Set<string>();

  /** The place of a key, or of every key below a folder `…/`. */
  const placeOf = (key: string): Place => places.find(({ prefix }) => key.startsWith(prefix))!;

  const isThere = (directory: string, place: Place, create: boolean): boolean => {
    if (known.has(directory)) return true;
    const isBase = directory === place.directory;
    if (!isBase && !isThere(parentOf(directory), place, create)) return false;
    let found = (isBase ? statSync : lstatSync)(directory, { throwIfNoEntry: false });
    if (found === undefined) {
      if (!create) return false;
      makeDirectory(directory, isBase);
      found = lstatSync(directory);
    }
    if (found.isSymbolicLink()) throw linkRefused(directory);
    if (!found.isDirectory()) {
      if (!create) return false;
      throw storageFailed(Object.assign(new Error('not a folder'), { code: 'ENOTDIR' }), 'write', directory);
    }
    known.add(directory);
    return true;
  };

  const locate = (key: string): FilePath => {
    checkKey(key);
    const alias = aliases.get(key);
    if (alias !== undefined) return { key, path: alias, directory: parentOf(alias), readOnly: true };
    const place = placeOf(key);
    const path = `${place.directory}/${key.slice(place.prefix.length)}`;
    return { key, path, directory: parentOf(path), readOnly: false };
  };

  return {
    places: places as readonly Place[],
    aliases,
    placeOf,
    /** Size of the file under a key, or null where there is none. Throws `AccessDenied` for a link. */
    find(key: string): { path: string; size: number } | null {
      const { path, directory, readOnly } = locate(key);
      try {
        if (!readOnly && !isThere(directory, placeOf(key), false)) return null;
        const found = (readOnly ? statSync : lstatSync)(path, { throwIfNoEntry: false });
        if (found === undefined || found.isDirectory()) return null;
        if (found.isSymbolicLink()) throw linkRefused(path);
        return { path, size: found.size };
      } catch (error) {
        throw storageFailed(error, 'read', path);
      }
    },
    /** The folder of a key's file if it exists and may be used. */
    isFolder: (directory: string, place: Place): boolean => isThere(directory, place, false),
    /** The file to write a key to, its folder made ready. Throws `AccessDenied` for an alias. */
    forWriting(key: string): FilePath {
      const file = locate(key);
      if (file.readOnly) {
        throw new TurnsweepError(errorNames.accessDenied, 'the file under this key is read-only', { where: key });
      }
      isThere(file.directory, placeOf(key), true);
      return file;
    },
    /** Looks at every folder anew: one that was ready has gone. */
    forget: () => known.clear(),
  };
};

const parentOf = (path: string): string => path.slice(0, path.lastIndexOf('/')) || '/';

const makeDirectory = (directory: string, recursive: boolean): void => {
  try {
    mkdirSync(directory, { recursive });
  } catch (error) {
    // Another process was faster.
    if (errnoCode(error) !== 'EEXIST') throw storageFailed(error, 'make a folder', directory);
  }
};
