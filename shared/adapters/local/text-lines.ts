import { type FileHandle, open } from 'node:fs/promises';
import { errorNames, TurnsweepError } from '../../errors.ts';
import { storageFailed } from './storage-errors.ts';

const chunkBytes = 256 * 1024;
const newline = 10;

/**
 * Lines of a UTF-8 file; only `\n` ends a line (a `\r` before it stays), a last line needs none. Memory
 * holds one chunk and one unfinished line. Throws `StorageFailed` for a line over `longestLineBytes`.
 */
export async function* readLines(path: string, key: string, longestLineBytes: number): AsyncGenerator<string> {
  let file: FileHandle;
  try {
    file = await open(path, 'r');
  } catch (error) {
    throw storageFailed(error, 'read', path);
  }
  try {
    const chunk = Buffer.allocUnsafe(chunkBytes);
    let unfinished: Buffer[] = [];
    let unfinishedBytes = 0;
    let lineNumber = 1;
    for (;;) {
      const size = await readChunk(file, chunk, path);
      if (size === 0) break;
      const end = chunk.subarray(0, size).lastIndexOf(newline) + 1;
      if (end > 0) {
        // A newline byte is never part of another character, so that this cut is safe to decode.
        const lines = Buffer.concat([...unfinished, chunk.subarray(0, end - 1)]).toString('utf8').split('\n');
        yield* lines;
        lineNumber += lines.length;
        unfinished = [];
        unfinishedBytes = 0;
      }
      if (end < size) {
        unfinished.push(Buffer.from(chunk.subarray(end, size)));
        unfinishedBytes += size - end;
      }
      if (unfinishedBytes > longestLineBytes) {
        throw new TurnsweepError(
          errorNames.storageFailed,
          `line ${lineNumber} is longer than ${longestLineBytes} bytes`,
          { where: key, remedy: 'check that this is a file of lines' },
        );
      }
    }
    if (unfinishedBytes > 0) yield Buffer.concat(unfinished).toString('utf8');
  } finally {
    await file.close();
  }
}

const readChunk = async (file: FileHandle, chunk: Buffer, path: string): Promise<number> => {
  try {
    return (await file.read(chunk, 0, chunk.length)).bytesRead;
  } catch (error) {
    throw storageFailed(error, 'read', path);
  }
};
