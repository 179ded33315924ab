import { open, readdir, realpath, stat } from 'node:fs/promises';
import path from 'node:path';
import { errorNames, TurnsweepError } from '../../errors.ts';
import type { ByteSource, FileSet, ListedFile } from '../../ports/byte-source.ts';
import { errnoCode, onDisk, storageFailed } from './storage-errors.ts';

const versionOf = (facts: { size: number; mtimeMs: number }): string =>
  `${facts.size}-${Math.round(facts.mtimeMs * 1000)}`;

/** A file on disk, opened once and held open until it is closed. `name` is how messages call it. */
export const openFileByteSource = async (file: string, name = file): Promise<ByteSource> => {
  const handle = await open(file, 'r').catch((cause: unknown) => {
    if (errnoCode(cause) !== 'ENOENT') throw storageFailed(cause, 'read', name);
    throw new TurnsweepError(errorNames.objectMissing, 'there is no such file', { where: name, cause });
  });
  const opened = await onDisk('read', name, () => handle.stat());
  const readInto = async (target: Uint8Array, start: number): Promise<void> => {
    let filled = 0;
    while (filled < target.length) {
      const { bytesRead } = await onDisk('read', name, () =>
        handle.read(target, filled, target.length - filled, start + filled),
      );
      if (bytesRead === 0) break;
      filled += bytesRead;
    }
    const now = await onDisk('read', name, () => handle.stat());
    if (versionOf(now) !== versionOf(opened)) {
      throw new TurnsweepError(errorNames.objectChanged, 'the file was changed while it was read', {
        where: name,
        remedy: 'wait until it is whole, then run again',
      });
    }
    if (filled < target.length) {
      throw new TurnsweepError(
        errorNames.storageFailed,
        `the file ends before byte ${start + target.length}`,
        { where: name },
      );
    }
  };
  return {
    name,
    byteLength: opened.size,
    windowBytes: 1024 * 1024,
    async read(start, end) {
      const bytes = Buffer.allocUnsafeSlow(end - start);
      await readInto(bytes, start);
      return bytes;
    },
    readInto,
    close: () => onDisk('read', name, () => handle.close()),
  };
};

const byCodeUnits = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/**
 * Files of a folder. `shown` gives the name of a path in messages. Unless `followsLinks`, no name may lead through a
 * link: names that come from files of others are held inside the folder that way.
 */
export const openFolder = async (
  folder: string,
  options: { followsLinks?: boolean; shown?: (file: string) => string } = {},
): Promise<FileSet> => {
  const { followsLinks = false, shown = (file) => file } = options;
  const root = await onDisk('read', shown(folder), () => realpath(folder));
  const outside = (what: string, name: string) =>
    new TurnsweepError(errorNames.benchmarkInvalid, what, {
      where: JSON.stringify(name),
      remedy: 'put the file itself into the folder and give its path inside it',
    });
  const nameShown = (name: string): string => shown(path.join(folder, name));
  /** Null where there is no such file. */
  const located = async (name: string): Promise<string | null> => {
    if (name === '' || name.includes('\0') || path.isAbsolute(name) || name.split(/[\\/]/).includes('..')) {
      throw outside('a path must stay inside its folder', name);
    }
    const file = path.join(root, name);
    let real: string;
    try {
      real = await realpath(file);
    } catch (error) {
      if (['ENOENT', 'ENOTDIR'].includes(errnoCode(error) ?? '')) return null;
      throw storageFailed(error, 'read', nameShown(name));
    }
    if (real !== file && !followsLinks) throw outside('a path must not lead through a link', name);
    return (await onDisk('read', nameShown(name), () => stat(file))).isFile() ? file : null;
  };
  const find = async (name: string): Promise<ListedFile | null> => {
    const file = await located(name);
    if (file === null) return null;
    const facts = await onDisk('read', nameShown(name), () => stat(file));
    return { name, bytes: facts.size, version: versionOf(facts) };
  };
  const namesBelow = async (below: string): Promise<string[]> => {
    const entries = await onDisk('read', nameShown(below), () =>
      readdir(path.join(root, below), { withFileTypes: true }),
    );
    const names = await Promise.all(
      entries.map(async (entry) => {
        const name = below === '' ? entry.name : `${below}/${entry.name}`;
        if (entry.isDirectory()) return entry.name.startsWith('.') ? [] : namesBelow(name);
        return entry.isFile() || (followsLinks && entry.isSymbolicLink()) ? [name] : [];
      }),
    );
    return names.flat();
  };
  return {
    async list() {
      const names = (await namesBelow('')).sort(byCodeUnits);
      return (await Promise.all(names.map(find))).filter((file) => file !== null);
    },
    find,
    async open(name) {
      const file = await located(name);
      if (file !== null) return openFileByteSource(file, nameShown(name));
      throw new TurnsweepError(errorNames.objectMissing, 'there is no such file', { where: nameShown(name) });
    },
  };
};
