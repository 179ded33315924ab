import { lstatSync, mkdirSync, type Stats, statSync } from 'node:fs';
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
  path: string;
  /** Folder of the file. */
  directory: string;
  place: Place | 'alias';
}

export interface ObjectPlaces {
  /** Longest prefix first; the root, with prefix '', last. */
  places: readonly Place[];
  aliases: ReadonlyMap<string, string>;
  /** The place of a key, or of every key below a folder `…/`. */
  placeOf(key: string): Place;
  /** The file under a key, or null where there is none. Throws `AccessDenied` for a link. */
  find(key: string): { path: string; size: number } | null;
  /** The file to write a key to, its folder made ready. Throws `AccessDenied` for an alias. */
  forWriting(key: string): FilePath;
  /** True if the folder exists and may be used. */
  isFolder(directory: string, place: Place): boolean;
  /** Looks at every folder anew: one that was ready may have gone. */
  forget(): void;
}

/**
 * Where keys live on disk. Symbolic links below a place's folder are refused, whether they lead out or
 * not. A folder once seen to be real is not looked at again: a link that somebody puts in the place of a
 * folder while the program runs is not noticed.
 */
export const createObjectPlaces = (
  root: string,
  mounts: readonly Place[],
  aliases: ReadonlyMap<string, string>,
): ObjectPlaces => {
  for (const { prefix } of mounts) checkMount(prefix);
  const places: Place[] = [...mounts, { prefix: '', directory: root }]
    .map(({ prefix, directory }) => ({ prefix, directory: resolve(directory) }))
    .sort((a, b) => b.prefix.length - a.prefix.length);
  const known = new Set<string>();

  const placeOf = (key: string): Place => places.find(({ prefix }) => key.startsWith(prefix))!;

  const locate = (key: string): FilePath => {
    checkKey(key);
    const alias = aliases.get(key);
    if (alias !== undefined) return { path: alias, directory: parentOf(alias), place: 'alias' };
    const place = placeOf(key);
    const path = `${place.directory}/${key.slice(place.prefix.length)}`;
    return { path, directory: parentOf(path), place };
  };

  const isThere = (directory: string, place: Place, create: boolean): boolean => {
    if (known.has(directory)) return true;
    const isBase = directory === place.directory;
    if (!isBase && !isThere(parentOf(directory), place, create)) return false;
    const look = (): Stats | undefined =>
      (isBase ? statSync : lstatSync)(directory, { throwIfNoEntry: false });
    let found = look();
    if (found === undefined) {
      if (!create) return false;
      makeFolder(directory, isBase);
      found = look();
    }
    if (found?.isSymbolicLink()) throw linkRefused(directory);
    if (!found?.isDirectory()) {
      if (!create) return false;
      throw Object.assign(new Error('not a folder'), { code: 'ENOTDIR' });
    }
    known.add(directory);
    return true;
  };

  return {
    places,
    aliases,
    placeOf,
    find(key) {
      const { path, directory, place } = locate(key);
      try {
        if (place !== 'alias' && !isThere(directory, place, false)) return null;
        const found = (place === 'alias' ? statSync : lstatSync)(path, { throwIfNoEntry: false });
        if (found === undefined || found.isDirectory()) return null;
        if (found.isSymbolicLink()) throw linkRefused(path);
        return { path, size: found.size };
      } catch (error) {
        throw storageFailed(error, 'read', path);
      }
    },
    forWriting(key) {
      const file = locate(key);
      if (file.place === 'alias') {
        throw new TurnsweepError(errorNames.accessDenied, 'the file under this key is read-only', {
          where: key,
        });
      }
      try {
        isThere(file.directory, file.place, true);
      } catch (error) {
        throw storageFailed(error, 'make a folder', file.directory);
      }
      return file;
    },
    isFolder(directory, place) {
      try {
        return isThere(directory, place, false);
      } catch (error) {
        throw storageFailed(error, 'list', directory);
      }
    },
    forget: () => known.clear(),
  };
};

const parentOf = (path: string): string => path.slice(0, path.lastIndexOf('/')) || '/';

const checkMount = (prefix: string): void => {
  if (!prefix.endsWith('/')) {
    throw new TurnsweepError(errorNames.usage, 'the prefix of a mount must end in a slash', {
      where: prefix,
    });
  }
  checkKey(prefix.slice(0, -1));
};

const linkRefused = (path: string): TurnsweepError =>
  new TurnsweepError(errorNames.accessDenied, 'a symbolic link could lead out of the store', {
    where: path,
    remedy: 'replace the link by what it points to',
  });

const makeFolder = (directory: string, recursive: boolean): void => {
  try {
    mkdirSync(directory, { recursive });
  } catch (error) {
    // Another process was faster.
    if (errnoCode(error) !== 'EEXIST') throw error;
  }
};
