import { errorNames, TurnsweepError } from '../../../errors.ts';
import type { ByteSource, FileSet } from '../../../ports/byte-source.ts';
import type { KeptClip } from './clips.ts';
import { quoted } from './problem-list.ts';
import { type FoundRow, type KeepClip, type OnFault, type RowSource, spokenColumns } from './row-source.ts';

const longestLineBytes = 64 * 1024 * 1024;
const largestClipBytes = 512 * 1024 * 1024;
const newline = 10;

/** Lines of a UTF-8 file without their ends. */
async function* linesOf(source: ByteSource): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  let line = 1;
  const decoded = (bytes: Uint8Array): string => {
    const text = bytes.at(-1) === 13 ? bytes.subarray(0, -1) : bytes;
    try {
      return decoder.decode(text);
    } catch (cause) {
      throw new TurnsweepError(errorNames.benchmarkInvalid, `line ${line} is not UTF-8 text`, {
        where: source.name,
        remedy: 'save the file as UTF-8',
        cause,
      });
    } finally {
      line += 1;
    }
  };
  let unfinished: Uint8Array[] = [];
  let unfinishedBytes = 0;
  for (let at = 0; at < source.byteLength; ) {
    const end = Math.min(source.byteLength, at + source.windowBytes);
    let chunk = await source.read(at, end);
    at = end;
    for (let lineEnd = chunk.indexOf(newline); lineEnd >= 0; lineEnd = chunk.indexOf(newline)) {
      yield decoded(Buffer.concat([...unfinished, chunk.subarray(0, lineEnd)]));
      unfinished = [];
      unfinishedBytes = 0;
      chunk = chunk.subarray(lineEnd + 1);
    }
    unfinished.push(chunk);
    unfinishedBytes += chunk.length;
    if (unfinishedBytes > longestLineBytes) {
      throw new TurnsweepError(errorNames.benchmarkInvalid, `line ${line} is too long`, {
        where: source.name,
        remedy: `the limit is ${longestLineBytes} bytes; check that this is a file of lines`,
      });
    }
  }
  if (unfinishedBytes > 0) yield decoded(Buffer.concat(unfinished));
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

async function* rowsOf(source: ByteSource, onFault: OnFault): AsyncGenerator<FoundRow> {
  let row = 0;
  for await (const line of linesOf(source)) {
    row += 1;
    if (row === 1 && line.startsWith('\uFEFF')) {
      onFault(row, 'starts with a byte order mark; save it without');
      continue;
    }
    if (line.trim() === '') continue;
    let fields: unknown;
    try {
      fields = JSON.parse(line);
    } catch (error) {
      onFault(row, `not valid JSON: ${quoted(error instanceof Error ? error.message : error)}`);
      continue;
    }
    if (isRecord(fields)) yield { row, fields };
    else onFault(row, 'not a JSON object');
  }
}

/** What stands in every place of a row that holds audio, as far as it is an object. */
const audioOf = (fields: Record<string, unknown>): Record<string, unknown>[] => {
  const places: unknown[] = [fields.question_audio];
  for (const session of Array.isArray(fields.sessions) ? fields.sessions : []) {
    if (!isRecord(session) || !Array.isArray(session.turns)) continue;
    for (const turn of session.turns) if (isRecord(turn)) places.push(turn.audio);
  }
  return places.filter(isRecord);
};

/** Files of audio that the rows of a JSONL file name, each once, in order of first mention. Rows with faults are passed. */
export async function* audioFilesOf(source: ByteSource): AsyncGenerator<string> {
  const seen = new Set<string>();
  for await (const { fields } of rowsOf(source, () => {})) {
    for (const { path } of audioOf(fields)) {
      if (typeof path !== 'string' || seen.has(path)) continue;
      seen.add(path);
      yield path;
    }
  }
}

/** Rows of a JSONL file, whose `audio` names WAV files beside it: `{"path": "audio/one.wav"}`. */
export const openJsonlRows = (source: ByteSource, beside: FileSet): RowSource => {
  const keepFile = async (audio: Record<string, unknown>, keep: KeepClip): Promise<KeptClip | null> => {
    const { path, bytes } = audio;
    if (bytes !== undefined && bytes !== null) {
      return { fault: 'JSON lines hold no bytes; give {"path": …} of a WAV file beside them' };
    }
    if (path === undefined || path === null) return null;
    if (typeof path !== 'string') return { fault: 'its path is no text' };
    let clip: ByteSource;
    try {
      clip = await beside.open(path);
    } catch (error) {
      const isOfRow =
        error instanceof TurnsweepError &&
        [errorNames.benchmarkInvalid, errorNames.objectMissing].some((name) => name === error.name);
      if (!isOfRow) throw error;
      return { fault: `${quoted(path)}: ${error.message}` };
    }
    try {
      if (clip.byteLength > largestClipBytes) {
        return { fault: `${quoted(path)}: ${clip.byteLength} bytes are too large for a clip` };
      }
      const kept = await keep(await clip.read(0, clip.byteLength));
      return 'fault' in kept ? { fault: `${quoted(path)}: ${kept.fault}` } : kept;
    } finally {
      await clip.close();
    }
  };
  return {
    file: source.name,
    async *scan(_columns, onFault) {
      for await (const { row, fields } of rowsOf(source, onFault)) {
        for (const name of spokenColumns) delete fields[name];
        yield { row, fields };
      }
    },
    async *read(rows, keep) {
      // Lines with faults were told by the scan.
      for await (const { row, fields } of rowsOf(source, () => {})) {
        if (!rows.has(row)) continue;
        for (const audio of audioOf(fields)) audio.bytes = await keepFile(audio, keep);
        yield { row, fields };
      }
    },
  };
};
