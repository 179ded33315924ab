import { createHash } from 'node:crypto';
import { closeSync, openSync, readSync } from 'node:fs';
import { readFile, realpath, stat } from 'node:fs/promises';
import path from 'node:path';
import { errnoCode, storageFailed } from '../shared/adapters/local/storage-errors.ts';
import { readLines } from '../shared/adapters/local/text-lines.ts';
import { errorNames, TurnsweepError } from '../shared/errors.ts';

/**
 * Files of a release on disk. Paths come from benchmark files and sweeps, so each is held inside the
 * release. Everything throws one error that names the file where it is missing, outside or unreadable.
 */
export interface ReleaseFiles {
  directory: string;
  text(file: string): Promise<string>;
  /** Only `\n` ends a line, whatever else the text holds. */
  lines(file: string): AsyncIterable<string>;
  sha256(file: string): Promise<string>;
  /** Size in bytes. */
  bytes(file: string): Promise<number>;
  /** Absolute path; throws where it leads out of the release, also through links. */
  locate(file: string): Promise<string>;
  /** The file as people should see it in a message. */
  shown(file: string): string;
}

const longestLineBytes = 64 * 1024 * 1024;

/** Relative to the working folder where it lies below it. */
const shownPath = (absolute: string): string => {
  const relative = path.relative(process.cwd(), absolute);
  return relative === '' || relative.startsWith('..') || path.isAbsolute(relative) ? absolute : relative;
};

const chunk = Buffer.allocUnsafe(1024 * 1024);

/**
 * Synchronous and with one buffer for all: a release has thousands of small clips, and a stream each, with a buffer of
 * its own, had the garbage collector at work more than the hash.
 */
const sha256OfFile = (path: string): string => {
  const hash = createHash('sha256');
  const file = openSync(path, 'r');
  try {
    for (let bytes = readSync(file, chunk); bytes > 0; bytes = readSync(file, chunk))
      hash.update(chunk.subarray(0, bytes));
  } finally {
    closeSync(file);
  }
  return hash.digest('hex');
};

export const openRelease = async (directory: string): Promise<ReleaseFiles> => {
  const noRelease = (what: string, cause?: unknown) =>
    new TurnsweepError(errorNames.usage, what, {
      where: shownPath(directory),
      remedy: 'set benchmark.release to the directory that holds data/tasks',
      cause,
    });
  const root = await realpath(directory).catch((cause) => {
    throw noRelease('no such release directory', cause);
  });
  if (!(await stat(root)).isDirectory()) throw noRelease('the release is a file, not a directory');
  const shown = (file: string): string => shownPath(path.join(directory, file));
  const outside = (what: string, file: string) =>
    new TurnsweepError(errorNames.benchmarkInvalid, what, {
      where: file,
      remedy: 'put a copy of the file into the release and give its path inside it',
    });
  const locate = async (file: string): Promise<string> => {
    if (path.isAbsolute(file) || file.split(/[\\/]/).includes('..')) {
      throw outside('a path must stay inside the release', file);
    }
    const located = await realpath(path.join(root, file)).catch((cause) => {
      const isMissing = ['ENOENT', 'ENOTDIR'].includes(errnoCode(cause) ?? '');
      if (!isMissing) throw storageFailed(cause, 'read', shown(file));
      throw new TurnsweepError(errorNames.benchmarkInvalid, 'no such file in the release', {
        where: shown(file),
        remedy: 'complete the release, or correct the path in the sweep file',
        cause,
      });
    });
    if (!located.startsWith(root.endsWith(path.sep) ? root : root + path.sep)) {
      throw outside('a link leads out of the release', shown(file));
    }
    if (!(await stat(located)).isFile()) {
      throw new TurnsweepError(errorNames.benchmarkInvalid, 'not a file', {
        where: shown(file),
        remedy: 'put the file there that belongs to the release',
      });
    }
    return located;
  };
  const reading = async <Result>(
    file: string,
    read: (located: string) => Promise<Result>,
  ): Promise<Result> => {
    const located = await locate(file);
    try {
      return await read(located);
    } catch (error) {
      throw storageFailed(error, 'read', shown(file));
    }
  };
  return {
    directory: root,
    locate,
    shown,
    text: (file) => reading(file, (located) => readFile(located, 'utf8')),
    bytes: (file) => reading(file, async (located) => (await stat(located)).size),
    async *lines(file) {
      yield* readLines(await locate(file), shown(file), longestLineBytes);
    },
    sha256: (file) => reading(file, async (located) => sha256OfFile(located)),
  };
};
