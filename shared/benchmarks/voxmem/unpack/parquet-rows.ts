import type { SchemaTree } from 'hyparquet';
import type { ByteSource } from '../../../ports/byte-source.ts';
import { openParquetFile } from './parquet/parquet-file.ts';
import { type RowSource, spokenColumns } from './row-source.ts';

const isAudio = (tree: SchemaTree | undefined): boolean =>
  tree?.children.find(({ element }) => element.name === 'bytes')?.element.type === 'BYTE_ARRAY';

const isList = (tree: SchemaTree): boolean =>
  tree.children.length === 1 && tree.children[0]!.element.repetition_type === 'REPEATED';

/** Fields of the structs in a list; writers name what lies between in different ways. */
const fieldsInList = (tree: SchemaTree | undefined): SchemaTree[] => {
  if (tree === undefined || !isList(tree)) return [];
  const repeated = tree.children[0]!;
  return repeated.children.length === 1 ? repeated.children[0]!.children : repeated.children;
};

const named = (fields: readonly SchemaTree[], name: string): SchemaTree | undefined =>
  fields.find(({ element }) => element.name === name);

const formOfSessions = 'list<struct<timestamp, turns: list<struct<role, text, audio: struct<bytes, path>>>>>';

/** Rows of a Parquet file with the WAV bytes inside. Throws `BenchmarkInvalid` where it cannot be read. */
export const openParquetRows = async (source: ByteSource): Promise<RowSource> => {
  const file = await openParquetFile(source);
  return {
    file: source.name,
    async *scan(columns, onFault) {
      let isSound = true;
      const fault = (message: string) => {
        onFault(null, message);
        isSound = false;
      };
      for (const { name, isRequired } of columns) {
        const tree = file.schema.get(name);
        if (tree === undefined ? isRequired : tree.children.length > 0) {
          fault(`column ${name} is ${tree === undefined ? 'missing' : 'no plain column'}`);
        }
      }
      if (!isAudio(file.schema.get('question_audio'))) {
        fault('column question_audio is missing, or not struct<bytes, path>');
      }
      const session = fieldsInList(file.schema.get('sessions'));
      const turn = fieldsInList(named(session, 'turns'));
      const lacks = ['role', 'text', 'audio'].some((name) => named(turn, name) === undefined);
      if (lacks || named(session, 'timestamp') === undefined || !isAudio(named(turn, 'audio'))) {
        fault(`column sessions is missing, or not ${formOfSessions}`);
      }
      if (!isSound) return;
      const names = columns.map(({ name }) => name);
      for await (const { row, fields } of file.rows(
        names,
        () => true,
        async () => null,
      )) {
        yield { row: row + 1, fields };
      }
    },
    async *read(rows, keep) {
      for await (const { row, fields } of file.rows(spokenColumns, (at) => rows.has(at + 1), keep)) {
        yield { row: row + 1, fields };
      }
    },
  };
};
