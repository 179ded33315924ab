import type { DataFile, Unpacking } from '../benchmark.ts';
import { itemsFile } from './format.ts';
import type { VoxmemOptions } from './options.ts';
import { audioFilesOf, openJsonlRows } from './unpack/jsonl-rows.ts';
import { openParquetRows } from './unpack/parquet-rows.ts';
import type { RowSource } from './unpack/row-source.ts';
import { type UnpackSelection, unpack } from './unpack/unpack.ts';

const isJsonl = ({ name }: DataFile): boolean => name.endsWith('.jsonl');

/** The published data set: Parquet with WAV bytes inside, or the same rows as JSON lines with audio files beside them. */
export const voxmemUnpacking: Unpacking = {
  version: 1,
  releaseFile: itemsFile,
  forms: ['.parquet', '.jsonl'],
  selection(options, limit): UnpackSelection {
    const { lengths, evidenceTypes, ids } = options as VoxmemOptions;
    return {
      lengths: lengths?.toSorted() ?? null,
      evidenceTypes: evidenceTypes?.toSorted() ?? null,
      ids: ids?.toSorted() ?? null,
      limit,
    };
  },
  async *filesBeside(file) {
    if (isJsonl(file)) yield* audioFilesOf(file.bytes);
  },
  async unpack({ files, selection, sink, onProgress }) {
    const sources: RowSource[] = [];
    for (const file of files) {
      sources.push(
        isJsonl(file) ? openJsonlRows(file.bytes, file.beside) : await openParquetRows(file.bytes),
      );
    }
    await unpack({ sources, selection: selection as UnpackSelection, sink, onProgress });
  },
};
