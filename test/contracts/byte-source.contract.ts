import { describe, expect, it, onTestFinished } from 'vitest';
import type { FileSet } from '../../shared/ports/byte-source.ts';

export interface FileSetUnderTest {
  files: FileSet;
  /** Writes a file, or replaces it. */
  write(name: string, content: Uint8Array): Promise<void>;
  dispose?(): Promise<void>;
}

/** What every FileSet and its ByteSources do. `makeFiles` gives an empty set for each test. */
export const byteSourceContract = (name: string, makeFiles: () => Promise<FileSetUnderTest>): void => {
  const filesWith = async (contents: Record<string, Uint8Array | string>) => {
    const { files, write, dispose } = await makeFiles();
    if (dispose) onTestFinished(dispose);
    for (const [file, content] of Object.entries(contents)) await write(file, Buffer.from(content));
    return { files, write };
  };

  describe(`ByteSource contract: ${name}`, () => {
    it('reads any part of a file', async () => {
      const content = Buffer.from(Array.from({ length: 1000 }, (_, at) => at % 251));
      const { files } = await filesWith({ 'data.bin': content });

      const source = await files.open('data.bin');
      const parts = [
        await source.read(0, 1000),
        await source.read(0, 0),
        await source.read(999, 1000),
        await source.read(250, 253),
      ];
      const target = new Uint8Array(4);
      await source.readInto(target.subarray(1, 3), 250);
      await source.close();

      expect(source.byteLength).toBe(1000);
      expect(parts.map((part) => [...part])).toEqual([[...content], [], [999 % 251], [250, 0, 1]]);
      expect([...target]).toEqual([0, 250, 0, 0]);
    });

    it('tells where a file ends before what is asked', async () => {
      const { files } = await filesWith({ short: 'abc' });
      const source = await files.open('short');

      const reading = source.read(1, 4);

      await expect(reading).rejects.toMatchObject({ name: 'StorageFailed', where: source.name });
      await source.close();
    });

    it('tells where a file was replaced since it was opened', async () => {
      const { files, write } = await filesWith({ 'data.bin': 'the first text' });
      const source = await files.open('data.bin');
      await write('data.bin', Buffer.from('another text, longer'));

      const reading = source.read(0, 5);

      await expect(reading).rejects.toMatchObject({ name: 'ObjectChanged', where: source.name });
      await source.close();
    });

    it('lists files at any depth by name, without hidden folders', async () => {
      const { files } = await filesWith({
        'b.parquet': 'bb',
        'a/z.parquet': 'z',
        'a.jsonl': '',
        '.cache/c.parquet': 'c',
      });

      const listed = await files.list();

      expect(listed.map(({ name, bytes }) => [name, bytes])).toEqual([
        ['a.jsonl', 0],
        ['a/z.parquet', 1],
        ['b.parquet', 2],
      ]);
    });

    it('finds one file as it lists it', async () => {
      const { files } = await filesWith({ 'a/z.parquet': 'z' });

      const found = [await files.find('a/z.parquet'), await files.find('a/y.parquet')];

      expect(found).toEqual([(await files.list())[0], null]);
    });

    it('gives new content a new version', async () => {
      const { files, write } = await filesWith({ one: 'first' });
      const before = await files.find('one');
      await write('one', Buffer.from('other content'));

      const after = await files.find('one');

      expect(after!.version).not.toBe(before!.version);
    });

    it('throws ObjectMissing for a file that is not there', async () => {
      const { files } = await filesWith({});

      await expect(files.open('nothing.wav')).rejects.toMatchObject({ name: 'ObjectMissing' });
    });

    it.each(['../outside', 'a/../../outside', '/etc/hostname', ''])(
      'opens nothing outside: %j',
      async (file) => {
        const { files } = await filesWith({ 'a/b': 'x' });

        const opening = files.open(file);

        await expect(opening).rejects.toMatchObject({ name: 'BenchmarkInvalid' });
      },
    );
  });
};
