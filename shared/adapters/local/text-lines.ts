import { open } from 'node:fs/promises';
import { errorNames, TurnsweepError } from '../../errors.ts';
import { onDisk } from './storage-errors.ts';

const chunkBytes = 256 * 1024;
const newline = 10;

/**
 * Lines of a UTF-8 file; only `\n` ends a line (a `\r` before it stays), a last line needs none. Memory
 * holds one chunk and one unfinished line. Throws `StorageFailed` for a line over `longestLineBytes`
 * that does not fit one chunk (256 KiB).
 */
export async function* readLines(
  path: string,
  key: string,
  longestLineBytes: number,
): AsyncGenerator<string> {
  const file = await onDisk('read', path, () => open(path, 'r'));
  try {
    const chunk = Buffer.allocUnsafe(chunkBytes);
    let unfinished: Buffer[] = [];
    let unfinishedBytes = 0;
    let lineNumber = 1;
    for (;;) {
      const { bytesRead } = await onDisk('read', path, () => file.read(chunk, 0, chunkBytes));
      if (bytesRead === 0) break;
      const read = chunk.subarray(0, bytesRead);
      const firstEnd = read.indexOf(newline);
      if (unfinishedBytes + (firstEnd < 0 ? bytesRead : firstEnd) > Math.max(longestLineBytes, chunkBytes)) {
        throw new TurnsweepError(
          errorNames.storageFailed,
          `line ${lineNumber} is longer than ${longestLineBytes} bytes`,
          { where: key, remedy: 'check that this is a file of lines' },
        );
      }
      const lastEnd = read.lastIndexOf(newline);
      if (lastEnd >= 0) {
        // A newline byte is never part of another character, so that this cut is safe to decode.
        const lines = Buffer.concat([...unfinished, read.subarray(0, lastEnd)])
          .toString('utf8')
          .split('\n');
        for (const line of lines) yield line;
        lineNumber += lines.length;
        unfinished = [];
        unfinishedBytes = 0;
      }
      unfinished.push(Buffer.from(read.subarray(lastEnd + 1)));
      unfinishedBytes += bytesRead - lastEnd - 1;
    }
    if (unfinishedBytes > 0) yield Buffer.concat(unfinished).toString('utf8');
  } finally {
    await file.close();
  }
}
