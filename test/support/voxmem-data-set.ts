import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parquetWriteFile } from 'hyparquet-writer';
import { wavFile } from './wav.ts';

type Writing = Parameters<typeof parquetWriteFile>[0];
type SchemaElement = NonNullable<Writing['schema']>[number];

/** Rows as the VoxMem data set publishes them: WAV bytes inside. */
export interface DataSetRow {
  item_id: string;
  question_id: string;
  context_length: string;
  family_id: string | null;
  evidence_type: string;
  memory_operation: string;
  subtype: string | null;
  question_text: string;
  expected_response: string;
  gold_json: string | null;
  answer_type: string;
  answer_normalization: string | null;
  session_count: number;
  evidence_session_count: number;
  samekey_haystack_session_count: number | null;
  query_timestamp: string;
  question_audio: DataSetAudio | null;
  sessions: DataSetSession[];
}

export interface DataSetAudio {
  bytes: Uint8Array | null;
  path: string | null;
}

export interface DataSetTurn {
  role: string;
  text: string | null;
  audio: DataSetAudio | null;
}

export interface DataSetSession {
  timestamp: string;
  turns: DataSetTurn[];
}

/** A WAV of 8-bit samples, 8,000 a second, which say nothing. Other seeds, other bytes. */
export const wavOf = (seed: number, sampleCount = 40): Buffer => {
  const samples = Buffer.alloc(sampleCount);
  for (let at = 0; at < sampleCount; at += 1) samples[at] = (seed * 31 + at * (seed % 7)) % 256;
  return wavFile(samples, { samplesPerSecond: 8000, bytesPerSample: 1 });
};

export const audioOf = (seed: number, sampleCount?: number): DataSetAudio => ({
  bytes: wavOf(seed, sampleCount),
  path: `clip-${seed}.wav`,
});

export const sessionOf = (seed: number): DataSetSession => ({
  timestamp: `2025-03-${String((seed % 27) + 1).padStart(2, '0')} 09:${String(seed % 60).padStart(2, '0')}`,
  turns: [
    { role: 'user', text: `said ${seed}`, audio: audioOf(seed) },
    { role: 'assistant', text: `reply ${seed}`, audio: null },
    // Some transcripts are missing, and histories may end with a user turn.
    { role: 'user', text: seed % 3 === 0 ? null : `also said ${seed} – ünï`, audio: audioOf(seed + 1000) },
    ...(seed % 2 === 0 ? [{ role: 'assistant', text: `more ${seed}`, audio: null }] : []),
  ],
});

/** An answerable item of question `question` at one length; a longer history holds the shorter one. */
export const rowOf = (
  question: number,
  length: '8k' | '16k' | '32k' | '64k' = '8k',
  changes: Partial<DataSetRow> = {},
): DataSetRow => {
  const sessionCount = { '8k': 2, '16k': 4, '32k': 6, '64k': 9 }[length];
  const questionId = `q_${String(question).padStart(5, '0')}`;
  return {
    item_id: `${questionId}_${length}`,
    question_id: questionId,
    context_length: length.toUpperCase(),
    family_id: `family-${question}`,
    evidence_type: 'speaker_information',
    memory_operation: 'information_extraction',
    subtype: 'who',
    question_text: `Who said ${question}?`,
    expected_response: 'answer',
    gold_json: JSON.stringify({ answer: `speaker ${question}` }),
    answer_type: 'categorical',
    answer_normalization: 'lowercase',
    session_count: sessionCount,
    evidence_session_count: 1,
    samekey_haystack_session_count: 1,
    query_timestamp: '2025-04-01 10:00',
    question_audio: audioOf(5000 + question),
    sessions: Array.from({ length: sessionCount }, (_, at) => sessionOf(question * 20 + at)),
    ...changes,
  };
};

/** An item to be refused. */
export const refusalOf = (
  question: number,
  length: '8k' | '16k' | '32k' | '64k' = '8k',
  changes: Partial<DataSetRow> = {},
): DataSetRow =>
  rowOf(question, length, {
    memory_operation: 'answer_refusal',
    expected_response: 'insufficient_evidence',
    gold_json: null,
    answer_normalization: null,
    ...changes,
  });

/** The rows of the Parquet files in `test/fixtures/voxmem-parquet`. */
export const fixtureRows = (): DataSetRow[] => [
  rowOf(1, '16k'),
  rowOf(1, '8k'),
  refusalOf(2, '8k', { family_id: null, subtype: null, samekey_haystack_session_count: null }),
  rowOf(3, '8k', {
    evidence_type: 'environmental_sound',
    memory_operation: 'temporal_evolution_tracking',
    gold_json: JSON.stringify({ answer: ['rain', 'wind'], options: ['rain', 'wind', 'hail'] }),
    answer_type: 'ordered_list',
  }),
  refusalOf(2, '16k', { family_id: null, subtype: null, samekey_haystack_session_count: null }),
  rowOf(4, '8k', { evidence_type: 'speech_semantics', memory_operation: 'multi_session_reasoning' }),
];

/** Rows as JSON lines with their audio in files beside them; the path of the JSONL file. */
export const writeJsonl = (folder: string, rows: readonly DataSetRow[], name = 'items.jsonl'): string => {
  mkdirSync(path.join(folder, 'audio'), { recursive: true });
  const withPath = (audio: DataSetAudio | null): { path: string } | null => {
    if (audio === null || audio.bytes === null) return audio === null ? null : { path: audio.path! };
    const file = `audio/${audio.path}`;
    writeFileSync(path.join(folder, file), audio.bytes);
    return { path: file };
  };
  const lines = rows.map((row) =>
    JSON.stringify({
      ...row,
      question_audio: withPath(row.question_audio),
      sessions: row.sessions.map((session) => ({
        ...session,
        turns: session.turns.map((turn) => ({ ...turn, audio: withPath(turn.audio) })),
      })),
    }),
  );
  const file = path.join(folder, name);
  writeFileSync(file, lines.map((line) => `${line}\n`).join(''));
  return file;
};

const texts = (name: string): SchemaElement => ({
  name,
  type: 'BYTE_ARRAY',
  converted_type: 'UTF8',
  repetition_type: 'OPTIONAL',
});
const struct = (name: string, num_children: number): SchemaElement => ({
  name,
  num_children,
  repetition_type: 'OPTIONAL',
});
const list = (name: string): SchemaElement[] => [
  { name, num_children: 1, converted_type: 'LIST', repetition_type: 'OPTIONAL' },
  { name: 'list', num_children: 1, repetition_type: 'REPEATED' },
];
const audio = (name: string): SchemaElement[] => [
  struct(name, 2),
  { name: 'bytes', type: 'BYTE_ARRAY', repetition_type: 'OPTIONAL' },
  texts('path'),
];

const textColumns = [
  'item_id',
  'question_id',
  'context_length',
  'family_id',
  'evidence_type',
  'memory_operation',
  'subtype',
  'question_text',
  'expected_response',
  'gold_json',
  'answer_type',
  'answer_normalization',
  'query_timestamp',
] as const;
const countColumns = ['session_count', 'evidence_session_count', 'samekey_haystack_session_count'] as const;

/** Rows as a Parquet file in the schema of the data set. */
export const writeParquet = (
  file: string,
  rows: readonly DataSetRow[],
  options: {
    rowGroupSize?: number;
    /** Bytes of a page before compression; 1 MiB unless given. */
    pageSize?: number;
    codec?: Writing['codec'];
    compressors?: Writing['compressors'];
    /** Largest dictionary in bytes. */
    dictionarySize?: number;
    /** Column that is not written. */
    leaveOut?: string;
  } = {},
): void => {
  const { leaveOut, ...writing } = options;
  const columns: { name: string; elements: SchemaElement[]; data: unknown[] }[] = [
    ...textColumns.map((name) => ({ name, elements: [texts(name)], data: rows.map((row) => row[name]) })),
    ...countColumns.map((name) => ({
      name,
      elements: [{ name, type: 'INT64', repetition_type: 'OPTIONAL' } as const],
      data: rows.map((row) => (row[name] === null ? null : BigInt(row[name]))),
    })),
    {
      name: 'question_audio',
      elements: audio('question_audio'),
      data: rows.map((row) => row.question_audio),
    },
    {
      name: 'sessions',
      elements: [
        ...list('sessions'),
        struct('element', 2),
        texts('timestamp'),
        ...list('turns'),
        struct('element', 3),
        texts('role'),
        texts('text'),
        ...audio('audio'),
      ],
      data: rows.map((row) => row.sessions),
    },
  ];
  const written = columns.filter(({ name }) => name !== leaveOut);
  mkdirSync(path.dirname(file), { recursive: true });
  parquetWriteFile({
    filename: file,
    schema: [{ name: 'root', num_children: written.length }, ...written.flatMap(({ elements }) => elements)],
    columnData: written.map(({ name, data }) => ({ name, data })),
    ...writing,
  });
};
