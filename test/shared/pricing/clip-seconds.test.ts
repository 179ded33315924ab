import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { clipSeconds } from '../../../shared/pricing/clip-seconds.ts';

const media = path.join(import.meta.dirname, '../../../examples/small-return/release/data/media');

const secondsOf = (bytes: Uint8Array) =>
  clipSeconds(async (offset, length) => bytes.subarray(offset, offset + length));

const box = (name: string, content: Buffer): Buffer => {
  const head = Buffer.alloc(8);
  head.writeUInt32BE(content.length + 8);
  head.write(name, 4, 'latin1');
  return Buffer.concat([head, content]);
};
const fileType = box('ftyp', Buffer.from('isom\0\0\0\0mp42'));

const movieHeader = (timescale: number, duration: number): Buffer => {
  const content = Buffer.alloc(100);
  content.writeUInt32BE(timescale, 12);
  content.writeUInt32BE(duration, 16);
  return box('mvhd', content);
};
const longMovieHeader = (timescale: number, duration: bigint): Buffer => {
  const content = Buffer.alloc(112);
  content.writeUInt8(1);
  content.writeUInt32BE(timescale, 20);
  content.writeBigUInt64BE(duration, 24);
  return box('mvhd', content);
};

const wav = (bytesPerSecond: number, chunks: [string, number][]): Buffer => {
  const format = Buffer.alloc(24);
  format.write('fmt ');
  format.writeUInt32LE(16, 4);
  format.writeUInt32LE(bytesPerSecond, 16);
  const rest = chunks.map(([name, size]) => {
    const chunk = Buffer.alloc(8 + size + (size % 2));
    chunk.write(name);
    chunk.writeUInt32LE(size, 4);
    return chunk;
  });
  return Buffer.concat([Buffer.from('RIFF\0\0\0\0WAVE'), format, ...rest]);
};

describe('the length of a clip', () => {
  it('of MP4 is that of its movie header, wherever the index stands', async () => {
    const index = box('moov', Buffer.concat([box('udta', Buffer.alloc(5)), movieHeader(600, 1500)]));

    expect(await secondsOf(Buffer.concat([fileType, index, box('mdat', Buffer.alloc(99))]))).toBe(2.5);
    expect(await secondsOf(Buffer.concat([fileType, box('mdat', Buffer.alloc(99)), index]))).toBe(2.5);
  });

  it('of MP4 with 64-bit sizes is read too', async () => {
    const large = Buffer.alloc(20);
    large.writeUInt32BE(1);
    large.write('mdat', 4, 'latin1');
    large.writeBigUInt64BE(20n, 8);
    const index = box('moov', longMovieHeader(1000, 7250n));

    expect(await secondsOf(Buffer.concat([fileType, large, index]))).toBe(7.25);
  });

  it('of WAV is its data by its bytes a second, whatever chunks stand between', async () => {
    expect(
      await secondsOf(
        wav(32_000, [
          ['LIST', 13],
          ['data', 48_000],
        ]),
      ),
    ).toBe(1.5);
  });

  it('is unknown for what is neither, and for what is cut or broken', async () => {
    const unknown = [
      Buffer.alloc(0),
      Buffer.from('not a clip at all'),
      fileType,
      Buffer.concat([fileType, Buffer.alloc(16)]),
      Buffer.concat([fileType, box('moov', movieHeader(0, 10))]),
      wav(0, [['data', 10]]),
      wav(32_000, []),
    ];
    for (const bytes of unknown) expect(await secondsOf(bytes)).toBeNull();
  });

  it('of the example’s own clips is what their headers say', async () => {
    for (const name of ['clip-01.mp4', 'clip-01.wav']) {
      const bytes = readFileSync(path.join(media, name));
      const seconds = await secondsOf(bytes);
      // 16 kHz, 16 bit, mono: 32,000 bytes a second after a header of 44.
      if (name.endsWith('.wav')) expect(seconds).toBeCloseTo((bytes.length - 44) / 32_000, 1);
      else expect(seconds).toBeGreaterThan(0.5);
    }
  });
});
