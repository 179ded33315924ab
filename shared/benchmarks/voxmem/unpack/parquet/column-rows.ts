import type { ColumnMetaData, DecodedArray, PageHeader, SchemaTree } from 'hyparquet';
import { parquetHeader } from 'hyparquet/src/column.js';
import { convert, DEFAULT_PARSERS } from 'hyparquet/src/convert.js';
import { deltaBinaryUnpack, deltaByteArray, deltaLengthByteArray } from 'hyparquet/src/delta.js';
import { readPlain } from 'hyparquet/src/plain.js';
import { getMaxDefinitionLevel, getMaxRepetitionLevel } from 'hyparquet/src/schema.js';
import type { ByteSource } from '../../../../ports/byte-source.ts';
import { type ByteStream, streamBytes, streamRange } from './byte-stream.ts';
import { openPageBody, type PageBody } from './page-body.ts';
import { decodeRuns } from './runs.ts';

/** Values of one column in one row with their Dremel levels, as the library's assembly takes them. */
export interface RowLevels {
  repetitions: number[];
  definitions: number[];
  /** Only those that are there: as many as there are definitions of the highest level. */
  values: unknown[];
}

export interface ColumnRows {
  /** Levels and values of the next row; of a row that is not wanted nothing. Null after the last row. */
  next(): Promise<RowLevels | null>;
  close(): void;
}

export interface ColumnChunk {
  source: ByteSource;
  metadata: ColumnMetaData;
  /** From the root of the schema to the column. */
  schemaPath: SchemaTree[];
  /** Whether a row is wanted, by its number from 0 in its row group. */
  isWanted(row: number): boolean;
  /**
   * Of a column of large binary values: what becomes of each, whose memory is used again afterwards. Without it pages are
   * decoded whole.
   */
  keep?: (bytes: Uint8Array) => Promise<unknown>;
}

/** Levels of a page and, behind them, its values in order. */
interface Page {
  count: number;
  repetitionAt(at: number): number;
  definitionAt(at: number): number;
  take(): Promise<unknown>;
  skip(): void;
  close(): void;
}

/** Levels of a page, and the stream of its values behind them. */
interface Levels {
  count: number;
  encoding: string;
  repetitions: Uint32Array;
  definitions: Uint32Array;
  /** How many values are there. */
  there: number;
  body: PageBody;
  /** Of the values, decompressed. */
  valueBytes: number;
}

const smallPageBytes = 1024 * 1024;
const headerWindowBytes = 64 * 1024;
const firstHeaderBytes = 4 * 1024;
const longestHeaderBytes = 16 * 1024 * 1024;
const mostValuesOfPage = 16 * 1024 * 1024;
const largestValueBytes = 512 * 1024 * 1024;

const readerOf = (bytes: Uint8Array) => ({
  view: new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength),
  offset: 0,
});

const strictText = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const textOf = (bytes: Uint8Array): string => strictText.decode(bytes);

/** JSON columns stay texts: whoever uses them parses them and says where they fail. */
const parsers = { ...DEFAULT_PARSERS, stringFromBytes: textOf, jsonFromBytes: textOf };

/** Rows of one column chunk, page by page: never more in memory than a window, a page of texts or one binary value. */
export const readColumnRows = (chunk: ColumnChunk): ColumnRows => {
  const { source, metadata, schemaPath, isWanted, keep } = chunk;
  const { windowBytes } = source;
  const { element } = schemaPath.at(-1)!;
  const maxDefinition = getMaxDefinitionLevel(schemaPath);
  const maxRepetition = getMaxRepetitionLevel(schemaPath);
  const decoder = {
    pathInSchema: metadata.path_in_schema,
    type: metadata.type,
    element,
    schemaPath,
    codec: metadata.codec,
    parsers,
  };

  // Some writers name no dictionary page, and some name one at 0.
  const offsets = [metadata.dictionary_page_offset, metadata.data_page_offset].flatMap((offset) =>
    offset === undefined || offset === 0n ? [] : [Number(offset)],
  );
  let at = Math.min(...offsets);
  const end = at + Number(metadata.total_compressed_size);
  // Bodies of large pages are read by streams of their own; here only what lies between them is.
  const raw = streamRange(source, at, end, keep === undefined ? windowBytes : headerWindowBytes);

  const nextHeader = async (): Promise<PageHeader> => {
    for (let bytes = firstHeaderBytes; ; bytes *= 16) {
      const head = await raw.peek(bytes);
      const reader = readerOf(head);
      try {
        const header = parquetHeader(reader);
        if (header.compressed_page_size < 0 || at + reader.offset + header.compressed_page_size > end) {
          throw new Error('a page is longer than its column');
        }
        await raw.skip(reader.offset);
        at += reader.offset;
        return header;
      } catch (error) {
        // What is cut off by the end of what was read shows as some error or other.
        if (head.length < bytes || bytes >= longestHeaderBytes) throw error;
      }
    }
  };

  /** Bytes of the page that `raw` stands before, as a stream of their own. */
  const bodyStream = async (compressedBytes: number): Promise<ByteStream> => {
    const start = at;
    at += compressedBytes;
    if (compressedBytes <= smallPageBytes) return streamBytes(await raw.take(compressedBytes));
    await raw.skip(compressedBytes);
    return streamRange(source, start, start + compressedBytes, windowBytes);
  };

  /** The row that was begun last. */
  let row = -1;
  let dictionaryPage: { start: number; header: PageHeader } | null = null;
  let textDictionary: DecodedArray | undefined;
  /** Kept values of the dictionary, as far as wanted rows needed them. */
  const kept = new Map<number, unknown>();

  const lengthAt = (bytes: Uint8Array): number => readerOf(bytes).view.getUint32(0, true);

  const checkLength = (length: number, most = largestValueBytes): number => {
    if (length >= 0 && length <= most) return length;
    throw new Error(`a value of ${length} bytes is too large`);
  };

  /** Reads the dictionary once, keeping only values of these indices. */
  const keepOfDictionary = async (indices: ReadonlySet<number>): Promise<void> => {
    if (indices.size === 0) return;
    if (dictionaryPage === null) throw new Error('a page uses a dictionary that is not there');
    const { start, header } = dictionaryPage;
    const { compressed_page_size: compressed, uncompressed_page_size: size } = header;
    let last = 0;
    for (const index of indices) last = Math.max(last, index);
    if (last >= header.dictionary_page_header!.num_values) {
      throw new Error(`a value names entry ${last} of a smaller dictionary`);
    }
    const body = openPageBody(
      streamRange(source, start, start + compressed, windowBytes),
      metadata.codec,
      size,
    );
    try {
      for (let index = 0; index <= last; index += 1) {
        const length = checkLength(lengthAt(await body.stream.take(4)), size);
        if (indices.has(index)) kept.set(index, await keep!(await body.stream.take(length)));
        else await body.stream.skip(length);
      }
    } finally {
      body.close();
    }
  };

  const widthOf = (highest: number): number => 32 - Math.clz32(highest);

  const openLevels = async (header: PageHeader): Promise<Levels> => {
    const v1 = header.data_page_header;
    const v2 = header.data_page_header_v2;
    const { num_values: count, encoding } = (v2 ?? v1)!;
    if (count < 0 || count > mostValuesOfPage) throw new Error(`a page of ${count} values is too large`);
    const input = await bodyStream(header.compressed_page_size);
    let repetitions: Uint32Array = new Uint32Array();
    let definitions: Uint32Array = new Uint32Array();
    let valueBytes = header.uncompressed_page_size;
    let codec = metadata.codec;
    if (v2 !== undefined) {
      const { repetition_levels_byte_length: repeats, definition_levels_byte_length: defines } = v2;
      repetitions = decodeRuns(await input.take(repeats), widthOf(maxRepetition), maxRepetition && count);
      definitions = decodeRuns(await input.take(defines), widthOf(maxDefinition), maxDefinition && count);
      valueBytes -= repeats + defines;
      if (v2.is_compressed === false || valueBytes === 0) codec = 'UNCOMPRESSED';
    }
    const body = openPageBody(input, codec, valueBytes);
    if (v2 === undefined) {
      const nextLevels = async (highest: number): Promise<Uint32Array> => {
        if (highest === 0) return new Uint32Array();
        const bytes = checkLength(lengthAt(await body.stream.take(4)));
        valueBytes -= 4 + bytes;
        return decodeRuns(await body.stream.take(bytes), widthOf(highest), count);
      };
      repetitions = await nextLevels(maxRepetition);
      definitions = await nextLevels(maxDefinition);
    }
    let there = count;
    for (const definition of definitions) if (definition !== maxDefinition) there -= 1;
    return { count, encoding, repetitions, definitions, there, body, valueBytes };
  };

  /** Indices into the dictionary, all of a page. */
  const indicesOf = (bytes: Uint8Array, there: number): Uint32Array =>
    there === 0 ? new Uint32Array() : decodeRuns(bytes.subarray(1), bytes[0] ?? 0, there);

  /** A page of texts or numbers, decoded whole. */
  const wholePage = async (header: PageHeader): Promise<Page> => {
    const { count, encoding, repetitions, definitions, there, body, valueBytes } = await openLevels(header);
    // Numbers are views of these bytes.
    const bytes = (await body.stream.take(checkLength(valueBytes))).slice();
    body.close();
    const reader = readerOf(bytes);
    let plain: DecodedArray;
    switch (encoding) {
      case 'PLAIN':
        plain = readPlain(reader, decoder.type, there, element.type_length);
        break;
      case 'RLE_DICTIONARY':
      case 'PLAIN_DICTIONARY':
        plain = Array.from(indicesOf(bytes, there), (index) => textDictionary?.[index]);
        break;
      case 'DELTA_BINARY_PACKED':
        plain = decoder.type === 'INT32' ? new Int32Array(there) : new BigInt64Array(there);
        if (there > 0) deltaBinaryUnpack(reader, there, plain as Int32Array | BigInt64Array);
        break;
      case 'DELTA_LENGTH_BYTE_ARRAY':
        plain = new Array<Uint8Array>(there);
        if (there > 0) deltaLengthByteArray(reader, there, plain as Uint8Array[]);
        break;
      case 'DELTA_BYTE_ARRAY':
        plain = new Array<Uint8Array>(there);
        if (there > 0) deltaByteArray(reader, there, plain as Uint8Array[]);
        break;
      default:
        throw new Error(`its encoding ${encoding} is not known`);
    }
    const values = encoding.endsWith('_DICTIONARY') ? plain : convert(plain, decoder);
    let taken = 0;
    return {
      count,
      repetitionAt: (index) => repetitions[index] ?? 0,
      definitionAt: (index) => definitions[index] ?? maxDefinition,
      async take() {
        const value: unknown = values[taken];
        taken += 1;
        if (value === undefined) throw new Error('a page has fewer values than it says');
        return value;
      },
      skip: () => {
        taken += 1;
      },
      close: () => {},
    };
  };

  /** A page of large binary values, decoded one value after the other. */
  const streamedPage = async (header: PageHeader): Promise<Page> => {
    const { count, encoding, repetitions, definitions, there, body, valueBytes } = await openLevels(header);
    const { stream } = body;

    const unpackLengths = (reader: { view: DataView; offset: number }): Int32Array => {
      const lengths = new Int32Array(there);
      if (there > 0) deltaBinaryUnpack(reader, there, lengths);
      return lengths;
    };
    let taken = 0;
    /** Values that were passed over: only what is behind them decides whether they are read at all. */
    let passed = 0;
    let takeNext: () => Promise<unknown>;
    let skipNext: () => Promise<void>;
    switch (encoding) {
      case 'PLAIN':
        takeNext = async () =>
          keep!(await stream.take(checkLength(lengthAt(await stream.take(4)), valueBytes)));
        skipNext = async () => stream.skip(lengthAt(await stream.take(4)));
        break;
      case 'DELTA_LENGTH_BYTE_ARRAY':
      case 'DELTA_BYTE_ARRAY': {
        // Lengths stand before all values and take at most 5 bytes each, padded to blocks.
        const reader = readerOf(await stream.peek(2 * (there * 6 + 16 * 1024)));
        const isShared = encoding === 'DELTA_BYTE_ARRAY';
        const prefixes = isShared ? unpackLengths(reader) : null;
        const suffixes = unpackLengths(reader);
        await stream.skip(reader.offset);
        let previous: Uint8Array = new Uint8Array();
        let next = 0;
        const nextValue = async (): Promise<Uint8Array> => {
          const suffix = await stream.take(checkLength(suffixes[next]!, valueBytes));
          const prefix = prefixes?.[next] ?? 0;
          next += 1;
          const value = prefix === 0 ? suffix : Buffer.concat([previous.subarray(0, prefix), suffix]);
          if (isShared) previous = Buffer.from(value);
          return value;
        };
        takeNext = async () => keep!(await nextValue());
        skipNext = async () => void (await nextValue());
        break;
      }
      case 'RLE_DICTIONARY':
      case 'PLAIN_DICTIONARY': {
        const indices = indicesOf(await stream.take(checkLength(valueBytes)), there);
        const needed = new Set<number>();
        let rowOfValue = row;
        let next = 0;
        for (let index = 0; index < count; index += 1) {
          if ((repetitions[index] ?? 0) === 0) rowOfValue += 1;
          if ((definitions[index] ?? maxDefinition) !== maxDefinition) continue;
          if (isWanted(rowOfValue) && !kept.has(indices[next]!)) needed.add(indices[next]!);
          next += 1;
        }
        await keepOfDictionary(needed);
        takeNext = async () => kept.get(indices[taken]!);
        skipNext = async () => {};
        break;
      }
      default:
        throw new Error(`its encoding ${encoding} is not one of binary values`);
    }
    return {
      count,
      repetitionAt: (index) => repetitions[index] ?? 0,
      definitionAt: (index) => definitions[index] ?? maxDefinition,
      async take() {
        for (; passed > 0; passed -= 1) {
          await skipNext();
          taken += 1;
        }
        const value = await takeNext();
        taken += 1;
        return value;
      },
      skip: () => {
        passed += 1;
      },
      close: body.close,
    };
  };

  let page: Page | null = null;
  let index = 0;

  /** The next page with values in it; null after the last. */
  const nextPage = async (): Promise<Page | null> => {
    page?.close();
    while (at < end) {
      const header = await nextHeader();
      const { compressed_page_size: compressed } = header;
      if (header.type === 'DICTIONARY_PAGE') {
        dictionaryPage = { start: at, header };
        if (keep === undefined) {
          const size = checkLength(header.uncompressed_page_size);
          const body = openPageBody(
            streamBytes(await raw.take(checkLength(compressed))),
            metadata.codec,
            size,
          );
          const plain = readerOf((await body.stream.take(size)).slice());
          body.close();
          const { num_values: count } = header.dictionary_page_header!;
          textDictionary = convert(readPlain(plain, decoder.type, count, element.type_length), decoder);
        } else await raw.skip(compressed);
        at += compressed;
        continue;
      }
      if (header.data_page_header === undefined && header.data_page_header_v2 === undefined) {
        await raw.skip(compressed);
        at += compressed;
        continue;
      }
      const opened = keep === undefined ? await wholePage(header) : await streamedPage(header);
      index = 0;
      if (opened.count > 0) return opened;
    }
    return null;
  };

  return {
    async next() {
      const levels: RowLevels = { repetitions: [], definitions: [], values: [] };
      let isBegun = false;
      for (;;) {
        if (page === null || index >= page.count) {
          page = await nextPage();
          if (page === null) return isBegun ? levels : null;
        }
        const repetition = page.repetitionAt(index);
        if (repetition === 0) {
          if (isBegun) return levels;
          row += 1;
        } else if (!isBegun) throw new Error('a row begins in the middle of a list');
        isBegun = true;
        const definition = page.definitionAt(index);
        index += 1;
        if (!isWanted(row)) {
          if (definition === maxDefinition) page.skip();
          continue;
        }
        levels.repetitions.push(repetition);
        levels.definitions.push(definition);
        if (definition === maxDefinition) levels.values.push(await page.take());
      }
    },
    close: () => page?.close(),
  };
};
