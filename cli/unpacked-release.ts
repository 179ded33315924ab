import { existsSync, readdirSync } from 'node:fs';
import { mkdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { openFolder } from '../shared/adapters/local/file-byte-source.ts';
import { errnoCode, onDisk, storageFailed } from '../shared/adapters/local/storage-errors.ts';
import type {
  Benchmark,
  DataFile,
  Unpacking,
  UnpackProgress,
  UnpackSink,
} from '../shared/benchmarks/benchmark.ts';
import { errorNames, TurnsweepError } from '../shared/errors.ts';
import { canonicalJson, sha256 } from '../shared/naming.ts';
import type { FileSet, ListedFile } from '../shared/ports/byte-source.ts';
import { openUnpackFolder } from './unpack-folder.ts';

/** Where files of a data set are: `data` follows links, `beside` opens what rows name, which must not. */
interface DataSet {
  data: FileSet;
  /** Files in the folder of a data file. */
  beside(name: string): Promise<FileSet>;
  /** One file alone; null for all. */
  only: string | null;
}

const formOf = (name: string, { forms }: Unpacking): string | undefined =>
  forms.find((form) => name.endsWith(form));

const folderOf = (name: string): string => name.slice(0, name.lastIndexOf('/') + 1);

const openS3 = async (source: string, unpacking: Unpacking): Promise<DataSet> => {
  const [, bucket, key = ''] = /^s3:\/\/([^/]+)\/?(.*)$/.exec(source) ?? [];
  if (bucket === undefined) {
    throw new TurnsweepError(errorNames.usage, 'not a place in S3', {
      where: source,
      remedy: 'write s3://bucket/prefix',
    });
  }
  const { connectS3, openS3Prefix } = await import('../shared/adapters/aws/s3-byte-source.ts');
  const place = connectS3(bucket);
  const isFile = formOf(key, unpacking) !== undefined;
  const prefix = isFile ? folderOf(key) : key === '' || key.endsWith('/') ? key : `${key}/`;
  return {
    data: openS3Prefix(place, prefix),
    beside: async (name) => openS3Prefix(place, prefix + folderOf(name)),
    only: isFile ? key.slice(prefix.length) : null,
  };
};

const shownPath = (absolute: string): string => {
  const relative = path.relative(process.cwd(), absolute);
  return relative === '' || relative.startsWith('..') || path.isAbsolute(relative) ? absolute : relative;
};

const openLocal = async (source: string, isFile: boolean): Promise<DataSet> => {
  const folder = path.resolve(isFile ? path.dirname(source) : source);
  return {
    data: await openFolder(folder, { followsLinks: true, shown: shownPath }),
    beside: (name) => openFolder(path.join(folder, folderOf(name)), { shown: shownPath }),
    only: isFile ? path.basename(source) : null,
  };
};

/** The data set's own files, by name. */
const dataFilesOf = async (set: DataSet, source: string, unpacking: Unpacking): Promise<ListedFile[]> => {
  const listed = set.only === null ? await set.data.list() : [await set.data.find(set.only)];
  const files = listed.flatMap((file) => (file !== null && formOf(file.name, unpacking) ? [file] : []));
  const forms = new Set(files.map(({ name }) => formOf(name, unpacking)));
  if (forms.size === 1) return files;
  const names = unpacking.forms.map((form) => `*${form}`);
  throw new TurnsweepError(
    errorNames.benchmarkInvalid,
    forms.size === 0 ? `no ${names.join(' or ')} there` : `both ${names.join(' and ')} are there`,
    { where: source, remedy: 'name a file, or a folder that holds the data set in one form' },
  );
};

/** Files that rows name, as they are now; what is missing is told by the unpacking. */
const versionsBeside = async (files: readonly DataFile[], unpacking: Unpacking): Promise<unknown[]> => {
  const versions: unknown[] = [];
  for (const file of files) {
    for await (const clip of unpacking.filesBeside(file)) {
      const found = await file.beside.find(clip).catch((error: unknown) => {
        if (error instanceof TurnsweepError && error.name === errorNames.benchmarkInvalid) return null;
        throw error;
      });
      versions.push([file.name, clip, found?.bytes ?? null, found?.version ?? null]);
    }
  }
  return versions;
};

const isRunning = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return errnoCode(error) === 'EPERM';
  }
};

/** Of this process, so that two at once do not share a folder. */
let unpackings = 0;

/** Removes what unpackings that were killed have left. */
const removeLeftovers = async (cacheDirectory: string): Promise<void> => {
  for (const name of readdirSync(cacheDirectory)) {
    const pid = /\.unpacking-(\d+)-\d+$/.exec(name)?.[1];
    if (pid === undefined || isRunning(Number(pid))) continue;
    await rm(path.join(cacheDirectory, name), { recursive: true, force: true });
  }
};

/**
 * Directory of a benchmark's release, unpacked where its data set is published in another form. `source` is a folder with
 * the data set's files at any depth, one such file, or either in S3 as `s3://bucket/prefix`; a folder that holds a release
 * is given back as it is, whatever the selection. Each source and selection is unpacked once into a folder of its
 * own below `cacheDirectory`, which appears only when it is complete; `source.json` in it tells from what it was made.
 *
 * Throws `ProblemsFound` with every fault of the data, `BenchmarkInvalid`, `UsageWrong` or `StorageFailed`.
 */
export const unpackedRelease = async (wanted: {
  source: string;
  benchmark: Pick<Benchmark, 'kind'> & { unpacking: Unpacking };
  /** The benchmark's own options, as its schema has read them, and the most items wanted. */
  options: unknown;
  limit: number | null;
  cacheDirectory: string;
  onProgress?: (progress: UnpackProgress) => void;
}): Promise<string> => {
  const { source, cacheDirectory, onProgress } = wanted;
  const { kind, unpacking } = wanted.benchmark;
  const isInS3 = source.startsWith('s3://');
  if (!isInS3 && existsSync(path.join(source, unpacking.releaseFile))) return source;
  const facts = isInS3
    ? null
    : await stat(source).catch((cause: unknown) => {
        if (errnoCode(cause) !== 'ENOENT') throw storageFailed(cause, 'read', source);
        throw new TurnsweepError(errorNames.usage, 'no such file or folder', {
          where: source,
          remedy: 'set benchmark.release to the data set',
          cause,
        });
      });
  const set = facts === null ? await openS3(source, unpacking) : await openLocal(source, facts.isFile());
  const listed = await dataFilesOf(set, source, unpacking);
  const files: DataFile[] = [];
  try {
    for (const { name } of listed) {
      files.push({ name, bytes: await set.data.open(name), beside: await set.beside(name) });
    }
    const selection = unpacking.selection(wanted.options, wanted.limit);
    const beside = await versionsBeside(files, unpacking);
    const fingerprint = {
      v: unpacking.version,
      files: listed,
      besideSha256: beside.length === 0 ? null : sha256(canonicalJson(beside)),
      selection,
    };
    const name = `${kind}-${sha256(canonicalJson(fingerprint)).slice(0, 16)}`;
    const unpackedTo = path.join(cacheDirectory, name);
    if (existsSync(path.join(unpackedTo, unpacking.releaseFile))) return unpackedTo;
    await unpackInto(unpackedTo, fingerprint, (sink) =>
      unpacking.unpack({ files, selection, sink, onProgress }),
    );
    return unpackedTo;
  } finally {
    for (const { bytes } of files) await bytes.close();
  }
};

/** Lets a folder appear with all that is written into it, or not at all. */
const unpackInto = async (
  folder: string,
  fingerprint: unknown,
  write: (sink: UnpackSink) => Promise<void>,
): Promise<void> => {
  const parent = path.dirname(folder);
  await onDisk('write', parent, () => mkdir(parent, { recursive: true }));
  await removeLeftovers(parent);
  unpackings += 1;
  const temporary = `${folder}.unpacking-${process.pid}-${unpackings}`;
  await onDisk('write', temporary, async () => {
    await rm(temporary, { recursive: true, force: true });
    await mkdir(temporary);
  });
  try {
    const sink = openUnpackFolder(temporary);
    try {
      await write(sink);
    } finally {
      await sink.close();
    }
    const note = path.join(temporary, 'source.json');
    await onDisk('write', note, () => writeFile(note, `${JSON.stringify(fingerprint, null, 2)}\n`));
    await rename(temporary, folder).catch((error: unknown) => {
      // Another process was first, with the same files.
      if (['ENOTEMPTY', 'EEXIST'].includes(errnoCode(error) ?? '')) return;
      throw storageFailed(error, 'write', folder);
    });
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
};
