import { isUtf8 } from 'node:buffer';
import { open } from 'node:fs/promises';
import { errorNames, TurnsweepError } from '../../errors.ts';
import { onDisk } from './storage-errors.ts';

const chunkBytes = 256 * 1024;
const newline = 10;

/**
 * Lines of a UTF-8 file; only `\n` ends a line (a `\r` before it stays), a last line needs none. Memory
 * holds one chunk and one unfinished line. Throws `StorageFailed` for a line over `longestLineBytes`
 * that does not fit one chunk (256 KiB), and for one that is not UTF-8.
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
        const whole = Buffer.concat([...unfinished, read.subarray(0, lastEnd)]);
        const lines = decoded(whole, key, lineNumber).split('\n');
        for (const line of lines) yield line;
        lineNumber += lines.length;
        unfinished = [];
        unfinishedBytes = 0;
      }
      unfinished.push(Buffer.from(read.subarray(lastEnd + 1)));
      unfinishedBytes += bytesRead - lastEnd - 1;
    }
    if (unfinishedBytes > 0) yield decoded(Buffer.concat(unfinished), key, lineNumber);
  } finally {
    await file.close();
  }
}

/** Text of whole lines, of which the first has the number `firstLine`. */
const decoded = (lines: Buffer, key: string, firstLine: number): string => {
  if (isUtf8(lines)) return lines.toString('utf8');
  let line = firstLine;
  let from = 0;
  for (let end = lines.indexOf(newline); end >= 0 && isUtf8(lines.subarray(from, end)); ) {
    line += 1;
    from = end + 1;
    end = lines.indexOf(newline, from);
  }
  throw new TurnsweepError(errorNames.storageFailed, `line ${line} is not UTF-8 text`, {
    where: key,
    remedy: 'save the file as UTF-8, or put back the original',
  });
};
