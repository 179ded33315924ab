import {
  appendFileSync,
  closeSync,
  fstatSync,
  lstatSync,
  openSync,
  readSync,
  type Stats,
  truncateSync,
  writeSync,
} from 'node:fs';
import { errorNames, TurnsweepError } from '../../errors.ts';
import { createNameIndex } from './name-index.ts';
import { contentOfLine, isDeletion, isWhole, nameInLine } from './pack-line.ts';
import { errnoCode, storageFailed } from './storage-errors.ts';

export interface PackFile {
  /** True if the pack has content under this name. Throws `ObjectDamaged` where a damaged line may be the one. */
  has(name: string): boolean;
  /** Content under a name: text or, where it was none, bytes; null where there is none. Throws `ObjectDamaged`. */
  read(name: string): string | Buffer | null;
  /** Every name, in no order. Throws `ObjectDamaged` where a line is damaged. */
  names(): string[];
  /** Adds lines (of `pack-line.ts`) in one write: all of them or, with an error, none. */
  append(lines: readonly { name: string; line: Buffer; isDeletion: boolean }[]): void;
}

const newline = 10;
const chunkBytes = 1024 * 1024;
/** An unused file is closed after so long. */
const idleMilliseconds = 1000;

/**
 * A pack: a file of lines that is only ever added to, the last line of a name counts. One process may write
 * while others read, who see whole lines only. What is written survives the death of the process but, for want
 * of fsync, not a power cut; the checksums tell what that has damaged.
 *
 * A last line that a kill cut short is no damage: its writer was never told that it is there. The next writer
 * moves it to a file of its own (`….torn`). Any other line that does not match its checksum is damage: of its
 * name where that can still be read, and of every name that is not found elsewhere, as it may be that one.
 *
 * `forWriting` makes the folder ready, `key` names the pack in errors.
 */
export const createPackFile = (path: string, key: string, forWriting: () => void): PackFile => {
  let index = createNameIndex();
  /** Lines that are damaged, by number; the name where it can be read. */
  let damaged = new Map<number, string | null>();
  let lineEnds = 0;
  /** Up to here the index knows the file. */
  let known = 0;
  let endsInsideLine = false;
  let inode = -1;
  const files = new Map<'r' | 'a', number>();
  let idle: NodeJS.Timeout | undefined;

  const close = (): void => {
    for (const file of files.values()) closeSync(file);
    files.clear();
    clearTimeout(idle);
    idle = undefined;
  };

  const opened = (flag: 'r' | 'a'): number => {
    if (idle === undefined) idle = setTimeout(close, idleMilliseconds).unref();
    else idle.refresh();
    const found = files.get(flag);
    if (found !== undefined) return found;
    const file = openSync(path, flag);
    files.set(flag, file);
    return file;
  };

  const startAnew = (ofInode: number): void => {
    close();
    index = createNameIndex();
    damaged = new Map();
    lineEnds = 0;
    known = 0;
    endsInsideLine = false;
    inode = ofInode;
  };

  const take = (line: Buffer, offset: number): void => {
    const name = nameInLine(line);
    if (name !== null && isWhole(line)) index.set(name, offset, isDeletion(line) ? 0 : line.length);
    else damaged.set(lineEnds + 1, name && Buffer.from(name).toString('utf8'));
  };

  /** Reads lines that the index does not know yet. */
  const readOn = (): void => {
    const file = opened('r');
    let chunk = Buffer.allocUnsafe(chunkBytes);
    for (;;) {
      const bytes = readSync(file, chunk, 0, chunk.length, known);
      const read = chunk.subarray(0, bytes);
      let at = 0;
      for (let end = read.indexOf(newline); end >= 0; end = read.indexOf(newline, at)) {
        // An empty piece is the rest of a line that was taken without its end.
        if (end > at) take(read.subarray(at, end), known + at);
        lineEnds += 1;
        at = end + 1;
        endsInsideLine = false;
      }
      known += at;
      if (at > 0) continue;
      if (bytes === chunk.length) {
        chunk = Buffer.allocUnsafe(2 * chunk.length);
        continue;
      }
      if (bytes > 0 && !endsInsideLine && isWhole(read)) {
        take(read, known);
        known += bytes;
        endsInsideLine = true;
      }
      return;
    }
  };

  const look = (): Stats | undefined => {
    const found = lstatSync(path, { throwIfNoEntry: false });
    if (found === undefined || found.isFile()) return found;
    throw new TurnsweepError(
      errorNames.accessDenied,
      'something else stands in the place of a file of records',
      {
        where: path,
        remedy: 'put the file back itself, no link',
      },
    );
  };

  /** Learns what is new in the file; gives its size. */
  const refresh = (): number => {
    try {
      const found = look();
      if (found === undefined) {
        if (inode !== -1) startAnew(-1);
      } else {
        if (found.ino !== inode || found.size < known) startAnew(found.ino);
        if (found.size > known) readOn();
      }
      return found?.size ?? 0;
    } catch (error) {
      if (errnoCode(error) !== 'ENOENT' && errnoCode(error) !== 'ENOTDIR') {
        throw storageFailed(error, 'read', path);
      }
      startAnew(-1);
      return 0;
    }
  };

  const damage = (line: number | null, name: string | null): TurnsweepError =>
    new TurnsweepError(
      errorNames.objectDamaged,
      'a stored file is damaged: the line does not match its checksum',
      {
        where: `${key}${line === null ? '' : `:${line}`}${name === null ? '' : `, ${name}`}`,
        remedy: 'restore the line, or delete it (no other) and run again',
      },
    );

  const refuseDamage = (): void => {
    for (const [line, name] of damaged) throw damage(line, name);
  };

  const entryOf = (name: string): number => {
    refresh();
    for (const [line, damagedName] of damaged) if (damagedName === name) throw damage(line, name);
    const entry = index.find(Buffer.from(name));
    if (entry >= 0 && index.length(entry) > 0) return entry;
    refuseDamage();
    return -1;
  };

  const lineAt = (entry: number, name: string): Buffer | null => {
    const line = Buffer.allocUnsafe(index.length(entry));
    try {
      const bytes = readSync(opened('r'), line, 0, line.length, index.offset(entry));
      const isOurs = bytes === line.length && isWhole(line) && nameInLine(line)?.toString() === name;
      return isOurs ? line : null;
    } catch (error) {
      throw storageFailed(error, 'read', path);
    }
  };

  /** What a kill left of a line goes aside, so that the next line begins on its own. */
  const cutTornLine = (size: number): void => {
    if (size <= known) return;
    const torn = Buffer.alloc(size - known);
    readSync(opened('r'), torn, 0, torn.length, known);
    appendFileSync(`${path}.torn`, Buffer.concat([torn, Buffer.from('\n')]));
    truncateSync(path, known);
  };

  const appendWhole = (bytes: Buffer): void => {
    const file = opened('a');
    try {
      for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at);
    } catch (error) {
      truncateSync(path, known);
      throw error;
    }
    if (inode === -1) inode = fstatSync(file).ino;
  };

  return {
    has: (name) => entryOf(name) >= 0,
    read(name) {
      for (let isRetry = false; ; isRetry = true) {
        const entry = entryOf(name);
        if (entry < 0) return null;
        const line = lineAt(entry, name);
        if (line !== null) return contentOfLine(line, name);
        if (isRetry) throw damage(null, name);
        // Somebody wrote the file anew, over itself.
        startAnew(-1);
      }
    },
    names() {
      refresh();
      refuseDamage();
      return index.names();
    },
    append(lines) {
      const size = refresh();
      try {
        if (!files.has('a')) forWriting();
        cutTornLine(size);
        const before = endsInsideLine ? [Buffer.from('\n')] : [];
        appendWhole(Buffer.concat([...before, ...lines.map(({ line }) => line)]));
      } catch (error) {
        throw storageFailed(error, 'write', path);
      }
      if (endsInsideLine) {
        known += 1;
        lineEnds += 1;
        endsInsideLine = false;
      }
      for (const { name, line, isDeletion: isGone } of lines) {
        index.set(Buffer.from(name), known, isGone ? 0 : line.length - 1);
        known += line.length;
        lineEnds += 1;
      }
    },
  };
};
