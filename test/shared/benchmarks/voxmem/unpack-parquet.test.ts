import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { brotliCompressSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { snappyCompress } from 'hyparquet-writer/src/snappy.js';
import { describe, expect, it } from 'vitest';
import { openFileByteSource } from '../../../../shared/adapters/local/file-byte-source.ts';
import {
  createByteStream,
  streamBytes,
} from '../../../../shared/benchmarks/voxmem/unpack/parquet/byte-stream.ts';
import { openPageBody } from '../../../../shared/benchmarks/voxmem/unpack/parquet/page-body.ts';
import { openParquetFile } from '../../../../shared/benchmarks/voxmem/unpack/parquet/parquet-file.ts';
import { decodeRuns } from '../../../../shared/benchmarks/voxmem/unpack/parquet/runs.ts';
import { decompressSnappy } from '../../../../shared/benchmarks/voxmem/unpack/parquet/snappy-stream.ts';
import type { ByteSource } from '../../../../shared/ports/byte-source.ts';
import { temporaryDirectory } from '../../../support/temporary-directory.ts';
import { type DataSetRow, fixtureRows, rowOf, writeParquet } from '../../../support/voxmem-data-set.ts';

const fixtures = path.join(import.meta.dirname, '..', '..', '..', 'fixtures', 'voxmem-parquet');
const fixtureFiles = readdirSync(fixtures).filter((name) => name.endsWith('.parquet'));

/** Bytes without pattern, the same each time. */
const noise = (seed: number, count: number): Buffer => {
  const blocks = Array.from({ length: Math.ceil(count / 64) }, (_, block) =>
    createHash('sha512').update(`${seed}/${block}`).digest(),
  );
  return Buffer.concat(blocks).subarray(0, count);
};

/** A file in memory; `onRead` is told how much is read. */
const fixedSource = (bytes: Uint8Array, onRead: (count: number) => void = () => {}): ByteSource => {
  const read = async (start: number, end: number): Promise<Uint8Array> => {
    if (end > bytes.length || start < 0) throw new Error(`read beyond the end: ${start}-${end}`);
    onRead(end - start);
    return bytes.slice(start, end);
  };
  return {
    name: 'memory',
    byteLength: bytes.length,
    windowBytes: 4096,
    read,
    readInto: async (target, start) => target.set(await read(start, start + target.length)),
    close: async () => {},
  };
};

const rowsOf = async (
  source: ByteSource,
  columns: string[],
  wanted: (row: number) => boolean = () => true,
  kept: Uint8Array[] = [],
) => {
  const file = await openParquetFile(source);
  const rows = [];
  const keep = async (bytes: Uint8Array) => {
    kept.push(bytes.slice());
    return Buffer.from(bytes).toString('hex');
  };
  for await (const row of file.rows(columns, wanted, keep)) rows.push(row);
  return rows;
};

/** What a row of the file must read as: bytes as hex. */
const expectedFields = (row: DataSetRow): Record<string, unknown> =>
  JSON.parse(
    JSON.stringify({ question_audio: row.question_audio, sessions: row.sessions }, (key, value) =>
      key === 'bytes' && value !== null ? Buffer.from(value.data ?? value).toString('hex') : value,
    ),
  );

describe('Parquet as pyarrow writes it', () => {
  it('has fixtures of every kind', () => {
    expect(fixtureFiles).toHaveLength(12);
  });

  it.each(fixtureFiles)('gives the rows that were written: %s', async (name) => {
    const source = await openFileByteSource(path.join(fixtures, name));

    const rows = await rowsOf(source, ['question_audio', 'sessions']);

    expect(rows.map(({ row }) => row)).toEqual([0, 1, 2, 3, 4, 5]);
    expect(rows.map(({ fields }) => fields)).toEqual(fixtureRows().map(expectedFields));
    await source.close();
  });

  it.each(fixtureFiles)('gives its texts and numbers, with nulls: %s', async (name) => {
    const source = await openFileByteSource(path.join(fixtures, name));

    const rows = await rowsOf(source, [
      'item_id',
      'family_id',
      'gold_json',
      'session_count',
      'samekey_haystack_session_count',
    ]);

    const numbers = rows.map(
      ({ fields: { session_count, samekey_haystack_session_count: samekey, ...texts } }) => ({
        ...texts,
        session_count: Number(session_count),
        samekey_haystack_session_count: samekey === null ? null : Number(samekey),
      }),
    );
    expect(numbers).toEqual(
      fixtureRows().map((row) => ({
        item_id: row.item_id,
        family_id: row.family_id,
        gold_json: row.gold_json,
        session_count: row.session_count,
        samekey_haystack_session_count: row.samekey_haystack_session_count,
      })),
    );
    await source.close();
  });

  it.each(fixtureFiles)('keeps no clip of rows that are not wanted: %s', async (name) => {
    const source = await openFileByteSource(path.join(fixtures, name));
    const kept: Uint8Array[] = [];

    const rows = await rowsOf(source, ['question_audio', 'sessions'], (row) => row === 1 || row === 4, kept);

    const wanted = [fixtureRows()[1]!, fixtureRows()[4]!];
    expect(rows.map(({ row, fields }) => [row, fields])).toEqual([
      [1, expectedFields(wanted[0]!)],
      [4, expectedFields(wanted[1]!)],
    ]);
    const clipsOf = (row: DataSetRow) =>
      [row.question_audio, ...row.sessions.flatMap(({ turns }) => turns.map(({ audio }) => audio))].flatMap(
        (audio) => (audio === null ? [] : [Buffer.from(audio.bytes!).toString('hex')]),
      );
    expect(new Set(kept.map((bytes) => Buffer.from(bytes).toString('hex')))).toEqual(
      new Set(wanted.flatMap(clipsOf)),
    );
    await source.close();
  });
});

describe('Parquet with pages that are larger than what is read at a time', () => {
  /** 12 rows of 5 clips, 60 KB each, in pages of about 1.5 MB: the content of a page spans several rows and windows. */
  const rows = Array.from({ length: 12 }, (_, index) =>
    rowOf(index, '8k', {
      sessions: [
        {
          timestamp: `t${index}`,
          turns: Array.from({ length: 5 }, (__, turn) => ({
            role: 'user',
            text: `u${turn}`,
            audio: { bytes: noise(index * 5 + turn, 60_000 + index), path: null },
          })),
        },
      ],
    }),
  );
  const compressors = {
    GZIP: (input: Uint8Array) => gzipSync(input),
    ZSTD: (input: Uint8Array) => zstdCompressSync(input),
    BROTLI: (input: Uint8Array) => brotliCompressSync(input, { params: { 1: 1 } }),
  };

  it.each(['UNCOMPRESSED', 'SNAPPY', 'GZIP', 'ZSTD', 'BROTLI'] as const)('reads %s', async (codec) => {
    const file = path.join(temporaryDirectory(), 'large.parquet');
    writeParquet(file, rows, { codec, compressors, pageSize: 1_500_000, dictionarySize: 1 });
    const source = fixedSource(readFileSync(file));

    const read = await rowsOf(source, ['sessions'], (row) => row % 5 !== 3);

    const wanted = rows.filter((_, row) => row % 5 !== 3);
    expect(read.map(({ fields }) => fields.sessions)).toEqual(
      wanted.map((row) => expectedFields(row).sessions),
    );
  });

  it('reads from a file only what wanted rows need', async () => {
    const file = path.join(temporaryDirectory(), 'large.parquet');
    writeParquet(file, rows, { codec: 'UNCOMPRESSED', pageSize: 1_500_000, dictionarySize: 1 });
    let readBytes = 0;
    const source = fixedSource(readFileSync(file), (count) => {
      readBytes += count;
    });

    await rowsOf(source, ['sessions'], (row) => row === 11);

    // The footer's window (512 KiB), the last page, and heads of the others.
    expect(source.byteLength).toBeGreaterThan(3_600_000);
    expect(readBytes).toBeLessThan(2_500_000);
  });
});

describe('damaged Parquet', () => {
  const intact = readFileSync(path.join(fixtures, 'data-page-v2-zstd.parquet'));

  it.each([0, 3, 8, 100, 4000, intact.length - 1])('cut to %i bytes is told by name', async (length) => {
    const reading = rowsOf(fixedSource(intact.subarray(0, length)), ['sessions']);

    await expect(reading).rejects.toMatchObject({
      name: 'BenchmarkInvalid',
      message: expect.stringContaining('cannot be read as Parquet'),
    });
  });

  it('never hangs, floods the memory or fails in another way, whichever byte is wrong', async () => {
    const outcomes = { read: 0, told: 0 };
    for (const name of fixtureFiles) {
      const bytes = readFileSync(path.join(fixtures, name));
      for (let at = 5 + (name.length % 7); at < bytes.length; at += Math.ceil(bytes.length / 40)) {
        const damaged = Buffer.from(bytes);
        damaged[at] = damaged[at]! ^ (1 << (at % 8)) ^ 0x80;
        try {
          await rowsOf(fixedSource(damaged), ['item_id', 'session_count', 'question_audio', 'sessions']);
          outcomes.read += 1;
        } catch (error) {
          expect(error).toMatchObject({ name: 'BenchmarkInvalid' });
          outcomes.told += 1;
        }
      }
    }
    expect(outcomes.told).toBeGreaterThan(50);
  });

  it('names the codec it does not know', async () => {
    const file = path.join(temporaryDirectory(), 'lz4.parquet');
    writeParquet(file, [rowOf(1)], { codec: 'LZ4', compressors: { LZ4: (input) => input } });

    const reading = rowsOf(fixedSource(readFileSync(file)), ['item_id']);

    await expect(reading).rejects.toThrow('compressed with LZ4 (memory, column item_id)');
  });

  it('is told from a file that is no Parquet at all', async () => {
    const file = path.join(temporaryDirectory(), 'text.parquet');
    writeFileSync(file, 'version https://git-lfs.github.com/spec/v1\n'.repeat(3));
    const source = await openFileByteSource(file, 'text.parquet');

    await expect(openParquetFile(source)).rejects.toMatchObject({
      name: 'BenchmarkInvalid',
      where: 'text.parquet',
    });
    await source.close();
  });
});

const wholeOf = async (stream: { takeSome(most: number): Promise<Uint8Array> }): Promise<Buffer> => {
  const pieces = [];
  for (let piece = await stream.takeSome(1000); piece.length > 0; piece = await stream.takeSome(1000)) {
    pieces.push(Buffer.from(piece));
  }
  return Buffer.concat(pieces);
};

/** Bytes in pieces of a few, as a slow file might give them. */
const inPieces = (bytes: Uint8Array, size: number) => {
  let at = 0;
  return createByteStream({
    windowBytes: 100,
    async next(target) {
      const piece = bytes.subarray(at, at + Math.min(size, target.length));
      target.set(piece);
      at += piece.length;
      return piece.length;
    },
  });
};

describe('Snappy as a stream', () => {
  it.each([
    ['nothing that repeats', noise(1, 700_000)],
    ['a run', Buffer.alloc(900_000, 7)],
    [
      'repeats at many distances',
      Buffer.concat(Array.from({ length: 40 }, (_, at) => noise(at % 9, 9_000 + at))),
    ],
    ['a text', Buffer.from('the same words again and again, '.repeat(20_000))],
    ['a single byte', Buffer.from([5])],
    ['nothing', Buffer.alloc(0)],
  ])('gives back %s', async (_, content) => {
    const compressed = snappyCompress(content);

    const [whole, pieces] = [
      await wholeOf(decompressSnappy(streamBytes(compressed), content.length)),
      await wholeOf(decompressSnappy(inPieces(compressed, 777), content.length)),
    ];

    expect(Buffer.compare(whole, content)).toBe(0);
    expect(Buffer.compare(pieces, content)).toBe(0);
  });

  it('follows its format, element by element', async () => {
    // Length 15; literal "abcd"; copy 4 from 4 back (1-byte offset); copy 6 from 2 back (2-byte offset), overlapping
    // itself; literal "z" with its length in a byte of its own.
    const compressed = Uint8Array.from([
      15, 0b0000_1100, 97, 98, 99, 100, 0b0000_0001, 4, 0b0001_0110, 2, 0, 0b1111_0000, 0, 122,
    ]);

    const content = await wholeOf(decompressSnappy(streamBytes(compressed), 15));

    expect(content.toString()).toBe('abcdabcdcdcdcdz');
  });

  it.each([
    ['another length', [4, 0b0000_1100, 97, 98, 99, 100], 5, 'promises 4 bytes where its page promises 5'],
    ['too little', [4, 0b0000_1100, 97, 98], 4, 'is cut short'],
    ['an element without its end', [4, 0b0000_1000, 97, 98, 99, 0b0000_0001], 4, 'is cut short'],
    [
      'a copy from before the start',
      [8, 0b0000_1100, 97, 98, 99, 100, 0b0000_0001, 5],
      8,
      'copies from 5 bytes back',
    ],
    ['a copy from nowhere', [8, 0b0000_1100, 97, 98, 99, 100, 0b0000_0001, 0], 8, 'copies from 0 bytes back'],
    ['no length', [], 4, 'is cut short'],
  ])('refuses %s', async (_, compressed, size, message) => {
    const reading = wholeOf(decompressSnappy(streamBytes(Uint8Array.from(compressed)), size));

    await expect(reading).rejects.toThrow(message);
  });
});

describe('contents of a page', () => {
  it('may not hold more than the page promises', async () => {
    const { stream, close } = openPageBody(
      streamBytes(zstdCompressSync(Buffer.alloc(1_000_000))),
      'ZSTD',
      1000,
    );

    await expect(wholeOf(stream)).rejects.toThrow('more than the 1000 bytes it promises');
    close();
  });

  it.each(['GZIP', 'ZSTD', 'BROTLI'] as const)('tell where their %s is damaged', async (codec) => {
    const { stream, close } = openPageBody(streamBytes(Buffer.from('this is not compressed')), codec, 1000);

    await expect(stream.take(10)).rejects.toThrow();
    close();
  });
});

describe('runs and bit-packed groups', () => {
  it.each([
    // The example of the format's own page: 0 to 7 in three bits each.
    ['a group', [0b0000_0011, 0b1000_1000, 0b1100_0110, 0b1111_1010], 3, 8, [0, 1, 2, 3, 4, 5, 6, 7]],
    ['a run', [10, 2], 2, 5, [2, 2, 2, 2, 2]],
    ['a run of two-byte numbers', [4, 0x34, 0x01], 9, 2, [308, 308]],
    ['a run that promises more than is wanted', [200, 1, 1], 1, 3, [1, 1, 1]],
    ['a run, then a group cut to what is wanted', [4, 1, 0b0000_0011, 0b0000_0101], 1, 5, [1, 1, 1, 0, 1]],
    ['numbers of no bits', [], 0, 4, [0, 0, 0, 0]],
  ])('decode %s', (_, bytes, width, count, numbers) => {
    expect([...decodeRuns(Uint8Array.from(bytes), width, count)]).toEqual(numbers);
  });

  it.each([
    ['nothing', [], 1],
    ['runs of none', [0, 1, 0, 1], 1],
    ['a group without its bytes', [3, 1], 3],
    ['an endless length', [0x80, 0x80, 0x80, 0x80, 0x80, 0x80], 1],
    ['too many bits', [2, 1, 1, 1, 1, 1], 33],
  ])('refuse %s', (_, bytes, width) => {
    expect(() => decodeRuns(Uint8Array.from(bytes), width, 4)).toThrow(/cut short|too long|too wide/);
  });
});
