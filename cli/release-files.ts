import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readFile, realpath, stat } from 'node:fs/promises';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { errorNames, TurnsweepError } from '../shared/errors.ts';

/** Files of a release on disk. Paths come from benchmark files, so each is held inside the release. */
export interface ReleaseFiles {
  directory: string;
  text(file: string): Promise<string>;
  lines(file: string): AsyncIterable<string>;
  sha256(file: string): Promise<string>;
  /** Absolute path; throws where it leads out of the release, also through links. */
  locate(file: string): Promise<string>;
}

export const openRelease = async (directory: string): Promise<ReleaseFiles> => {
  const root = await realpath(directory).catch((cause) => {
    throw new TurnsweepError(errorNames.usage, 'no such release directory', {
      where: directory,
      remedy: 'set benchmark.release to the directory that holds data/tasks',
      cause,
    });
  });
  const locate = async (file: string): Promise<string> => {
    if (path.isAbsolute(file) || file.split(/[\\/]/).includes('..')) {
      throw new TurnsweepError(errorNames.usage, 'a path must stay inside the release', { where: file });
    }
    const located = await realpath(path.join(root, file)).catch((cause) => {
      throw new TurnsweepError(errorNames.benchmarkInvalid, 'the release lacks a file', {
        where: path.join(directory, file),
        remedy: 'check benchmark.release and the paths in the sweep file',
        cause,
      });
    });
    if (located !== root && !located.startsWith(root + path.sep)) {
      throw new TurnsweepError(errorNames.benchmarkInvalid, 'a link leads out of the release', {
        where: file,
      });
    }
    if (!(await stat(located)).isFile()) {
      throw new TurnsweepError(errorNames.benchmarkInvalid, 'not a file', {
        where: path.join(directory, file),
      });
    }
    return located;
  };
  return {
    directory: root,
    locate,
    text: async (file) => readFile(await locate(file), 'utf8'),
    async *lines(file) {
      yield* createInterface({ input: createReadStream(await locate(file), 'utf8'), crlfDelay: Infinity });
    },
    sha256: async (file) => {
      const hash = createHash('sha256');
      for await (const chunk of createReadStream(await locate(file))) hash.update(chunk);
      return hash.digest('hex');
    },
  };
};
