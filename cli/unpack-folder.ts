import { type FileHandle, mkdir, open, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { errnoCode, onDisk, storageFailed } from '../shared/adapters/local/storage-errors.ts';
import type { UnpackSink } from '../shared/benchmarks/benchmark.ts';

const bufferedCharacters = 256 * 1024;

interface OpenText {
  handle: FileHandle;
  lines: string[];
  characters: number;
}

/** A sink that writes below a folder, which is there and empty. `close` ends its files; only then are they whole. */
export const openUnpackFolder = (folder: string): UnpackSink & { close(): Promise<void> } => {
  const texts = new Map<string, OpenText>();
  const folders = new Set<string>();
  const placeFor = async (file: string): Promise<string> => {
    const place = path.join(folder, file);
    const parent = path.dirname(place);
    if (!folders.has(parent)) {
      await onDisk('write', parent, () => mkdir(parent, { recursive: true }));
      folders.add(parent);
    }
    return place;
  };
  const flush = async (file: string, text: OpenText): Promise<void> => {
    const { lines } = text;
    if (lines.length === 0) return;
    text.lines = [];
    text.characters = 0;
    await onDisk('write', path.join(folder, file), () => text.handle.writeFile(`${lines.join('\n')}\n`));
  };
  return {
    async appendLine(file, line) {
      let text = texts.get(file);
      if (text === undefined) {
        const place = await placeFor(file);
        text = { handle: await onDisk('write', place, () => open(place, 'w')), lines: [], characters: 0 };
        texts.set(file, text);
      }
      text.lines.push(line);
      text.characters += line.length + 1;
      if (text.characters >= bufferedCharacters) await flush(file, text);
    },
    async putClipIfAbsent(file, bytes) {
      const place = await placeFor(file);
      try {
        await writeFile(place, bytes, { flag: 'wx' });
      } catch (error) {
        if (errnoCode(error) !== 'EEXIST') throw storageFailed(error, 'write', place);
      }
    },
    async close() {
      try {
        for (const [file, text] of texts) await flush(file, text);
      } finally {
        await Promise.all([...texts.values()].map(({ handle }) => handle.close()));
        texts.clear();
      }
    },
  };
};
