import { type ByteStream, createByteStream } from './byte-stream.ts';

/** Compressors cut their input into blocks of this size, so that no copy reaches further back. */
const historyBytes = 64 * 1024;
const pieceBytes = 256 * 1024;
const inputBytes = 128 * 1024;

const damaged = (what: string): Error => new Error(`its Snappy data ${what}`);

/** Length of an element's head by its first byte. */
const headLength = (tag: number): number => {
  switch (tag & 3) {
    case 0:
      return tag >> 2 < 60 ? 1 : (tag >> 2) - 58;
    case 1:
      return 2;
    case 2:
      return 3;
    default:
      return 5;
  }
};

const littleEndian = (bytes: Uint8Array, start: number, end: number): number => {
  let value = 0;
  for (let at = end - 1; at >= start; at -= 1) value = value * 256 + bytes[at]!;
  return value;
};

/**
 * Decompresses raw Snappy piece by piece: pages of hundreds of megabytes never lie in memory whole. `size` is what the
 * page promises; anything else is an error. https://github.com/google/snappy/blob/main/format_description.txt
 */
export const decompressSnappy = (input: ByteStream, size: number): ByteStream => {
  let isStarted = false;
  let produced = 0;
  let literalLeft = 0;
  let copyLeft = 0;
  let copyOffset = 0;
  /** The history and, behind it, the piece that is made. */
  const out = new Uint8Array(historyBytes + pieceBytes);
  let held = 0;

  const start = async (): Promise<void> => {
    isStarted = true;
    const head = await input.peek(5);
    let promised = 0;
    let at = 0;
    for (let byte = 0x80; byte & 0x80; at += 1) {
      if (at >= head.length) throw damaged('is cut short');
      byte = head[at]!;
      promised += (byte & 0x7f) * 2 ** (7 * at);
    }
    if (promised !== size) throw damaged(`promises ${promised} bytes where its page promises ${size}`);
    await input.skip(at);
  };

  const next = async (target: Uint8Array): Promise<number> => {
    if (!isStarted) await start();
    // What was given last becomes the history.
    const from = Math.min(historyBytes, held);
    out.copyWithin(0, held - from, held);
    const wanted = Math.min(pieceBytes, size - produced, target.length);
    const end = from + wanted;
    let to = from;
    while (to < end) {
      const block = await input.peek(inputBytes);
      let at = 0;
      while (to < end) {
        if (copyLeft > 0) {
          const count = Math.min(copyLeft, end - to);
          if (copyOffset >= count) out.copyWithin(to, to - copyOffset, to - copyOffset + count);
          else for (let done = 0; done < count; done += 1) out[to + done] = out[to + done - copyOffset]!;
          to += count;
          copyLeft -= count;
          continue;
        }
        if (at >= block.length) break;
        if (literalLeft > 0) {
          const count = Math.min(literalLeft, block.length - at, end - to);
          out.set(block.subarray(at, at + count), to);
          at += count;
          to += count;
          literalLeft -= count;
          continue;
        }
        const tag = block[at]!;
        const headEnd = at + headLength(tag);
        if (headEnd > block.length) break;
        if ((tag & 3) === 0) {
          literalLeft = (tag >> 2 < 60 ? tag >> 2 : littleEndian(block, at + 1, headEnd)) + 1;
        } else {
          copyLeft = (tag & 3) === 1 ? ((tag >> 2) & 7) + 4 : (tag >> 2) + 1;
          copyOffset =
            (tag & 3) === 1 ? ((tag & 0xe0) << 3) | block[at + 1]! : littleEndian(block, at + 1, headEnd);
          if (copyOffset === 0 || copyOffset > to || copyOffset > historyBytes) {
            throw damaged(`copies from ${copyOffset} bytes back`);
          }
        }
        at = headEnd;
      }
      if (at === 0 && to < end) throw damaged('is cut short');
      await input.skip(at);
    }
    produced += wanted;
    held = end;
    target.set(out.subarray(from, end));
    return wanted;
  };

  return createByteStream({ windowBytes: Math.min(pieceBytes, size), next });
};
