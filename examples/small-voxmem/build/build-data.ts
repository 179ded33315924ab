import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parquetReadObjects } from 'hyparquet';
import { type ParquetWriteOptions, parquetWriteBuffer } from 'hyparquet-writer';
import { buildClips, clipName, writeClips } from './build-clips.ts';
import {
  historyOf,
  type Length,
  lengths,
  type Question,
  questions,
  type Session,
  type Utterance,
} from './plan.ts';

/** A clip as the data set has it; a JSONL row has the path alone, of a file beside it. */
export interface Audio {
  bytes?: Uint8Array;
  path: string;
}

/** A row of the data set (voxmem-protocol §2). */
export interface ItemColumns {
  item_id: string;
  question_id: string;
  context_length: Length;
  family_id: string;
  evidence_type: string;
  memory_operation: string;
  subtype: string;
  question_text: string;
  expected_response: 'answer' | 'insufficient_evidence';
  gold_json: string | null;
  answer_type: string;
  answer_normalization: string;
  session_count: bigint;
  evidence_session_count: bigint;
  samekey_haystack_session_count: bigint;
  query_timestamp: string;
  question_audio: Audio;
  sessions: {
    timestamp: string;
    turns: { role: 'user' | 'assistant'; text: string; audio: Audio | null }[];
  }[];
}

export const itemId = ({ id }: Question, length: Length): string => `${id}_${length.toLowerCase()}`;

/** What is to be heard; for people and judges, never for models. */
export const transcript = ({ text, lost }: Utterance): string => (lost ? `${text} [noise]` : text);

/** How to compare; with options, a JSON object that holds them too. */
const normalizationOf = ({ normalization, options }: Question): string =>
  options.length === 0 ? normalization : JSON.stringify({ rule: normalization, options });

/** All rows, shortest histories first. `audio` gives what stands for a clip. */
export const rows = (audio: (path: string) => Audio): ItemColumns[] => {
  const clipOf = (utterance: Utterance): Audio => audio(`clips/${clipName(utterance)}.wav`);
  return lengths.flatMap((length) =>
    questions.map((question): ItemColumns => {
      const history = historyOf(question, length);
      const count = (role: Session['role']): bigint =>
        BigInt(history.filter((session) => session.role === role).length);
      return {
        item_id: itemId(question, length),
        question_id: question.id,
        context_length: length,
        family_id: question.family,
        evidence_type: question.evidenceType,
        memory_operation: question.operation,
        subtype: question.subtype,
        question_text: transcript(question.ask),
        expected_response: question.gold === null ? 'insufficient_evidence' : 'answer',
        gold_json: question.gold === null ? null : JSON.stringify(question.gold),
        answer_type: question.answerType,
        answer_normalization: normalizationOf(question),
        session_count: BigInt(history.length),
        evidence_session_count: count('evidence'),
        samekey_haystack_session_count: count('samekey_haystack'),
        query_timestamp: question.timestamp,
        question_audio: clipOf(question.ask),
        sessions: history.map(({ timestamp, turns }) => ({
          timestamp,
          turns: turns.flatMap(({ user, assistant }) => [
            { role: 'user' as const, text: transcript(user), audio: clipOf(user) },
            { role: 'assistant' as const, text: assistant, audio: null },
          ]),
        })),
      };
    }),
  );
};

type SchemaElement = NonNullable<ParquetWriteOptions['schema']>[number];

const optional = { repetition_type: 'OPTIONAL' } as const;
const text = (name: string): SchemaElement => ({
  name,
  type: 'BYTE_ARRAY',
  converted_type: 'UTF8',
  ...optional,
});
const count = (name: string): SchemaElement => ({ name, type: 'INT64', ...optional });
const struct = (name: string, fields: SchemaElement[][]): SchemaElement[] => [
  { name, num_children: fields.length, ...optional },
  ...fields.flat(),
];
const list = (name: string, fields: SchemaElement[][]): SchemaElement[] => [
  { name, num_children: 1, converted_type: 'LIST', ...optional },
  { name: 'list', num_children: 1, repetition_type: 'REPEATED' },
  ...struct('element', fields),
];
const audioStruct = (name: string): SchemaElement[] =>
  struct(name, [[{ name: 'bytes', type: 'BYTE_ARRAY', ...optional }], [text('path')]]);

const texts = [
  ...(['item_id', 'question_id', 'context_length', 'family_id', 'evidence_type'] as const),
  ...(['memory_operation', 'subtype', 'question_text', 'expected_response'] as const),
  ...(['gold_json', 'answer_type', 'answer_normalization'] as const),
];
const counts = ['session_count', 'evidence_session_count', 'samekey_haystack_session_count'] as const;
const columns: [keyof ItemColumns, SchemaElement[]][] = [
  ...texts.map((name): [keyof ItemColumns, SchemaElement[]] => [name, [text(name)]]),
  ...counts.map((name): [keyof ItemColumns, SchemaElement[]] => [name, [count(name)]]),
  ['query_timestamp', [text('query_timestamp')]],
  ['question_audio', audioStruct('question_audio')],
  [
    'sessions',
    list('sessions', [
      [text('timestamp')],
      list('turns', [[text('role')], [text('text')], audioStruct('audio')]),
    ]),
  ],
];

/**
 * The data set as one Parquet file. All rows are one row group: its dictionary has each clip once, however many
 * histories it is in.
 */
export const parquetOf = (clips: ReadonlyMap<string, Uint8Array>): Buffer => {
  const found = rows((clip) => ({ bytes: clips.get(clip)!, path: clip }));
  const buffer = parquetWriteBuffer({
    schema: [{ name: 'root', num_children: columns.length }, ...columns.flatMap(([, elements]) => elements)],
    columnData: columns.map(([name]) => ({ name, data: found.map((row) => row[name]) })),
    rowGroupSize: found.length,
    statistics: false,
  });
  return Buffer.from(buffer);
};

export const parquetFile = new URL('../data/small-voxmem.parquet', import.meta.url);

/** Rows of the committed file, with the bytes of their clips. */
export const readParquet = async (): Promise<ItemColumns[]> => {
  const bytes = readFileSync(parquetFile);
  const file = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length) as ArrayBuffer;
  return (await parquetReadObjects({ file, utf8: false })) as unknown as ItemColumns[];
};

/** Every clip of rows once, by path. */
export const clipsOf = (found: readonly ItemColumns[]): Map<string, Uint8Array> => {
  const heard = found.flatMap(({ question_audio: question, sessions }) => [
    ...sessions.flatMap(({ turns }) => turns.flatMap(({ audio }) => audio ?? [])),
    question,
  ]);
  return new Map(heard.map(({ path: clip, bytes }) => [clip, bytes!]));
};

/** The same rows as JSON lines with the clips as files beside them, below a folder. */
export const writeJsonl = (clips: ReadonlyMap<string, Uint8Array>, folder: string): void => {
  mkdirSync(path.join(folder, 'clips'), { recursive: true });
  for (const [clip, bytes] of clips) writeFileSync(path.join(folder, clip), bytes);
  const lines = rows((clip) => ({ path: clip })).map((row) =>
    JSON.stringify(row, (_, value) => (typeof value === 'bigint' ? Number(value) : value)),
  );
  writeFileSync(path.join(folder, 'items.jsonl'), `${lines.join('\n')}\n`);
};

if (import.meta.main) {
  const built = buildClips();
  writeClips(built, path.join(import.meta.dirname, '..'));
  mkdirSync(new URL('.', parquetFile), { recursive: true });
  writeFileSync(parquetFile, parquetOf(built.clips));
}
