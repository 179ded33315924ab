import { type Dirent, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { unpackedRelease as unpackedReleaseOf } from '../../cli/unpacked-release.ts';
import { type VoxmemOptions, voxmemOptions } from '../../shared/benchmarks/voxmem/options.ts';
import { voxmemUnpacking } from '../../shared/benchmarks/voxmem/unpacking.ts';

/** Unpacks a VoxMem data set as a sweep with these options does; the directory of the release. */
export const unpackedRelease = (wanted: {
  source: string;
  cacheDirectory: string;
  options?: Partial<VoxmemOptions>;
  limit?: number;
}): Promise<string> =>
  unpackedReleaseOf({
    source: wanted.source,
    benchmark: { kind: 'voxmem', unpacking: voxmemUnpacking },
    options: voxmemOptions.parse(wanted.options ?? {}),
    limit: wanted.limit ?? null,
    cacheDirectory: wanted.cacheDirectory,
  });

/** Contents of all files of a release by path, without what tells where it came from. */
export const releaseContents = (directory: string): Record<string, string> =>
  Object.fromEntries(
    (readdirSync(directory, { recursive: true, withFileTypes: true }) as Dirent[])
      .filter((entry) => entry.isFile() && entry.name !== 'source.json')
      .map((entry) => path.join(entry.parentPath, entry.name))
      .sort()
      .map((file) => [path.relative(directory, file), readFileSync(file).toString('latin1')]),
  );

/** Rows of one of the release's JSONL files. */
export const releaseRows = <Row>(directory: string, file: string): Row[] =>
  readFileSync(path.join(directory, file), 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Row);
