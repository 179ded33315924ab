import { pipeline, Readable, type Transform } from 'node:stream';
import { createBrotliDecompress, createGunzip, createZstdDecompress } from 'node:zlib';
import type { CompressionCodec } from 'hyparquet';
import { type ByteStream, createByteStream } from './byte-stream.ts';
import { decompressSnappy } from './snappy-stream.ts';

const transforms: Partial<Record<CompressionCodec, () => Transform>> = {
  GZIP: createGunzip,
  ZSTD: createZstdDecompress,
  BROTLI: createBrotliDecompress,
};

export const knownCodecs: readonly CompressionCodec[] = ['UNCOMPRESSED', 'SNAPPY', 'GZIP', 'ZSTD', 'BROTLI'];

const pieceBytes = 64 * 1024;

async function* pieces(stream: ByteStream): AsyncGenerator<Uint8Array> {
  for (;;) {
    const piece = await stream.takeSome(pieceBytes);
    if (piece.length === 0) return;
    // The transform may hold on to it longer than the stream does.
    yield piece.slice();
  }
}

export interface PageBody {
  stream: ByteStream;
  /** Ends what still decompresses; nothing of the stream may be read afterwards. */
  close(): void;
}

/** Contents of a compressed page as a stream of at most `size` bytes. `input` must be used by nobody else meanwhile. */
export const openPageBody = (input: ByteStream, codec: CompressionCodec, size: number): PageBody => {
  if (codec === 'UNCOMPRESSED') return { stream: input, close: () => {} };
  if (codec === 'SNAPPY') return { stream: decompressSnappy(input, size), close: () => {} };
  const transform = transforms[codec]!();
  // A failure of either ends the transform, and so comes out of the reading below; one that comes after `close` is of no
  // concern, but without a listener it would end the process.
  transform.on('error', () => {});
  pipeline(Readable.from(pieces(input)), transform, () => {});
  const output = transform[Symbol.asyncIterator]();
  let left = size;
  let rest: Uint8Array = new Uint8Array();
  return {
    stream: createByteStream({
      windowBytes: pieceBytes,
      async next(target) {
        if (rest.length === 0) {
          const { value, done } = await output.next();
          if (done) return 0;
          rest = value as Uint8Array;
          left -= rest.length;
          if (left < 0) throw new Error(`it holds more than the ${size} bytes it promises`);
        }
        const count = Math.min(rest.length, target.length);
        target.set(rest.subarray(0, count));
        rest = rest.subarray(count);
        return count;
      },
    }),
    close: () => void transform.destroy(),
  };
};
