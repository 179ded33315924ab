import {
  type ColumnMetaData,
  type FileMetaData,
  parquetMetadataAsync,
  parquetSchema,
  type SchemaTree,
} from 'hyparquet';
import { assembleLists, assembleNested } from 'hyparquet/src/assemble.js';
import { DEFAULT_PARSERS } from 'hyparquet/src/convert.js';
import { getMaxDefinitionLevel, getTreePath } from 'hyparquet/src/schema.js';
import { errorNames, TurnsweepError } from '../../../../errors.ts';
import type { ByteSource } from '../../../../ports/byte-source.ts';
import { type ColumnRows, type RowLevels, readColumnRows } from './column-rows.ts';
import { knownCodecs } from './page-body.ts';

export interface ParquetRow {
  /** From 0 over the whole file. */
  row: number;
  /** By the name of the top-level column. */
  fields: Record<string, unknown>;
}

export interface ParquetFile {
  rowCount: number;
  /** Top-level columns. */
  schema: ReadonlyMap<string, SchemaTree>;
  /**
   * Wanted rows in order, one in memory at a time, of the named top-level columns. Values of binary columns named `bytes`
   * become what `keep` makes of them, one value in memory at a time: that memory is used again once `keep` is done.
   */
  rows(
    columns: readonly string[],
    wanted: (row: number) => boolean,
    keep: (bytes: Uint8Array) => Promise<unknown>,
  ): AsyncGenerator<ParquetRow>;
}

const damaged = (source: ByteSource, error: unknown, column?: string): TurnsweepError => {
  if (error instanceof TurnsweepError) return error;
  const what = error instanceof Error ? error.message : String(error);
  return new TurnsweepError(errorNames.benchmarkInvalid, `cannot be read as Parquet: ${what}`, {
    where: column === undefined ? source.name : `${source.name}, column ${column}`,
    remedy: 'download the file again, or write it anew',
    cause: error,
  });
};

/** Whether values of a column are kept one by one instead of decoded page-wise. */
const isBinary = (metadata: ColumnMetaData): boolean =>
  metadata.type === 'BYTE_ARRAY' && metadata.path_in_schema.at(-1) === 'bytes';

interface OpenColumn {
  name: string;
  schemaPath: SchemaTree[];
  rows: ColumnRows;
}

const nextOf = async (source: ByteSource, column: OpenColumn): Promise<RowLevels> => {
  try {
    const levels = await column.rows.next();
    if (levels === null) throw new Error('it ends before the last row');
    return levels;
  } catch (error) {
    throw damaged(source, error, column.name);
  }
};

/** Value of a top-level column in one row. */
const assembled = (tree: SchemaTree, leaves: readonly (OpenColumn & { levels: RowLevels })[]): unknown => {
  if (tree.children.length === 0) {
    const { levels, schemaPath } = leaves[0]!;
    return levels.definitions[0] === getMaxDefinitionLevel(schemaPath) ? levels.values[0] : null;
  }
  const byPath = new Map(
    leaves.map(({ name, levels, schemaPath }) => [
      name,
      assembleLists([], levels.definitions, levels.repetitions, levels.values, schemaPath),
    ]),
  );
  assembleNested(byPath, tree, DEFAULT_PARSERS);
  return (byPath.get(tree.element.name) as unknown[])[0];
};

/** Reads the footer. Throws `BenchmarkInvalid` where this is no Parquet file or one written in a way not known here. */
export const openParquetFile = async (source: ByteSource): Promise<ParquetFile> => {
  let metadata: FileMetaData;
  let root: SchemaTree;
  try {
    metadata = await parquetMetadataAsync(
      {
        byteLength: source.byteLength,
        async slice(start, end = source.byteLength) {
          const bytes = await source.read(start, end);
          return bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length) as ArrayBuffer;
        },
      },
      { geoparquet: false },
    );
    root = parquetSchema(metadata);
  } catch (error) {
    throw damaged(source, error);
  }

  const openColumns = (
    group: FileMetaData['row_groups'][number],
    columns: readonly string[],
    isWanted: (row: number) => boolean,
    keep: (bytes: Uint8Array) => Promise<unknown>,
  ): OpenColumn[] =>
    group.columns.flatMap((column) => {
      const { meta_data: chunk } = column;
      if (chunk === undefined || column.crypto_metadata !== undefined) {
        throw damaged(source, new Error('it is encrypted'));
      }
      if (!columns.includes(chunk.path_in_schema[0]!)) return [];
      const name = chunk.path_in_schema.join('.');
      if (column.file_path) throw damaged(source, new Error('a column lies in another file'), name);
      if (!knownCodecs.includes(chunk.codec)) {
        throw new TurnsweepError(errorNames.benchmarkInvalid, `compressed with ${chunk.codec}`, {
          where: `${source.name}, column ${name}`,
          remedy: `write the file with ${knownCodecs.join(', ').toLowerCase()} or none`,
        });
      }
      const schemaPath = getTreePath(root, chunk.path_in_schema);
      const rows = readColumnRows({
        source,
        metadata: chunk,
        schemaPath,
        isWanted,
        ...(isBinary(chunk) ? { keep } : {}),
      });
      return [{ name, schemaPath, rows }];
    });

  return {
    rowCount: Number(metadata.num_rows),
    schema: new Map(root.children.map((child) => [child.element.name, child])),
    async *rows(columns, wanted, keep) {
      let firstRow = 0;
      for (const group of metadata.row_groups) {
        const groupStart = firstRow;
        const count = Number(group.num_rows);
        firstRow += count;
        let last = count - 1;
        while (last >= 0 && !wanted(groupStart + last)) last -= 1;
        if (last < 0) continue;
        let open: OpenColumn[] = [];
        try {
          open = openColumns(group, columns, (row) => wanted(groupStart + row), keep);
        } catch (error) {
          throw damaged(source, error);
        }
        try {
          for (let row = 0; row <= last; row += 1) {
            const leaves: (OpenColumn & { levels: RowLevels })[] = [];
            for (const column of open) leaves.push({ ...column, levels: await nextOf(source, column) });
            if (!wanted(groupStart + row)) continue;
            const fields: Record<string, unknown> = {};
            for (const name of columns) {
              const tree = root.children.find((child) => child.element.name === name);
              if (tree === undefined) continue;
              const own = leaves.filter(({ schemaPath }) => schemaPath[1] === tree);
              try {
                fields[name] = assembled(tree, own);
              } catch (error) {
                throw damaged(source, error, name);
              }
            }
            yield { row: groupStart + row, fields };
          }
        } finally {
          for (const { rows } of open) rows.close();
        }
      }
    },
  };
};
