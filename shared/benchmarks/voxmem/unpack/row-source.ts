import type { KeptClip } from './clips.ts';

/** A row of the data set as it was found, unchecked. */
export interface FoundRow {
  /** From 1 in its file: the row of Parquet, the line of JSONL. */
  row: number;
  fields: Record<string, unknown>;
}

/** Where a source holds a fault that concerns no single field. `row` is null where it concerns the file. */
export type OnFault = (row: number | null, message: string) => void;

export type KeepClip = (bytes: Uint8Array) => Promise<KeptClip>;

/** Columns that hold audio, or stand beside it. All others are texts and numbers. */
export const spokenColumns = ['question_audio', 'sessions'] as const;

/** One file of the data set. */
export interface RowSource {
  /** As people should see it in messages. */
  file: string;
  /** Every row without its spoken columns: no audio is read. */
  scan(columns: { name: string; isRequired: boolean }[], onFault: OnFault): AsyncIterable<FoundRow>;
  /** Spoken columns of these rows in order; each `audio` in them has `bytes` as kept. */
  read(rows: ReadonlySet<number>, keep: KeepClip): AsyncIterable<FoundRow>;
}
