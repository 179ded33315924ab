import type { ByteSource } from '../../../../ports/byte-source.ts';

/**
 * Bytes read once, from front to end, of which only what was asked for is in memory. What a call gives is the stream's
 * own memory, used again by the next call: reading gigabytes leaves no garbage behind.
 */
export interface ByteStream {
  /** The next `count` bytes, fewer only at the end; they stay where they are. */
  peek(count: number): Promise<Uint8Array>;
  /** The next `count` bytes; throws where fewer are left. */
  take(count: number): Promise<Uint8Array>;
  /** Between one and `most` bytes, whatever is at hand; none at the end. */
  takeSome(most: number): Promise<Uint8Array>;
  /** Throws where fewer are left. */
  skip(count: number): Promise<void>;
}

/** Where a stream gets its bytes. */
export interface Supply {
  /** How many bytes it would give at a time. */
  windowBytes: number;
  /** Writes the next bytes to the front of `target`, as many as it likes and fit; gives their number, 0 at the end. */
  next(target: Uint8Array): Promise<number>;
  /** Leaves out so many bytes, if that can be had without reading them. */
  jump?(count: number): void;
}

const cutShort = (): Error => new Error('it is cut short');

export const createByteStream = (supply: Supply): ByteStream => {
  let buffer: Uint8Array = new Uint8Array();
  let start = 0;
  let end = 0;
  /** Makes room for `count` bytes from `start` on. */
  const reserve = (count: number): void => {
    if (start + count <= buffer.length) return;
    const roomy = count <= buffer.length ? buffer : new Uint8Array(Math.max(count, supply.windowBytes));
    roomy.set(buffer.subarray(start, end));
    buffer = roomy;
    end -= start;
    start = 0;
  };
  const fill = async (count: number): Promise<void> => {
    if (end - start >= count) return;
    if (start === end) {
      start = 0;
      end = 0;
    }
    reserve(count);
    while (end - start < count) {
      const added = await supply.next(buffer.subarray(end));
      if (added === 0) return;
      end += added;
    }
  };
  const takeHeld = (most: number): Uint8Array => {
    const taken = buffer.subarray(start, Math.min(end, start + most));
    start += taken.length;
    return taken;
  };
  return {
    async peek(count) {
      // Bytes that were never there need no room.
      await fill(count);
      return buffer.subarray(start, Math.min(end, start + count));
    },
    async take(count) {
      await fill(count);
      if (end - start < count) throw cutShort();
      return takeHeld(count);
    },
    async takeSome(most) {
      await fill(1);
      return takeHeld(most);
    },
    async skip(count) {
      let left = count - takeHeld(count).length;
      if (left > 0 && supply.jump !== undefined) supply.jump(left);
      else {
        while (left > 0) {
          await fill(1);
          if (start === end) throw cutShort();
          left -= takeHeld(left).length;
        }
      }
    },
  };
};

/** A part of a file. */
export const streamRange = (
  source: ByteSource,
  start: number,
  end: number,
  windowBytes: number,
): ByteStream => {
  let at = start;
  return createByteStream({
    windowBytes: Math.min(windowBytes, end - start),
    async next(target) {
      const from = at;
      const count = Math.min(end - from, target.length);
      at += count;
      if (count > 0) await source.readInto(target.subarray(0, count), from);
      return count;
    },
    jump(count) {
      at += count;
      if (at > end) throw cutShort();
    },
  });
};

/** Bytes that are in memory already, which must not change meanwhile. */
export const streamBytes = (bytes: Uint8Array): ByteStream => {
  let at = 0;
  const takeNext = (most: number): Uint8Array => {
    const taken = bytes.subarray(at, at + most);
    at += taken.length;
    return taken;
  };
  const left = (count: number): void => {
    if (at + count > bytes.length) throw cutShort();
  };
  return {
    peek: async (count) => bytes.subarray(at, at + count),
    async take(count) {
      left(count);
      return takeNext(count);
    },
    takeSome: async (most) => takeNext(most),
    async skip(count) {
      left(count);
      at += count;
    },
  };
};
