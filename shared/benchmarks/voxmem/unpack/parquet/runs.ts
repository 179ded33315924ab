/**
 * Decodes `count` small numbers in Parquet's mix of runs and bit-packed groups. Unlike the library's decoder it never
 * writes more than `count`, whatever damaged bytes say, and tells where there are fewer.
 * https://parquet.apache.org/docs/file-format/data-pages/encodings/#RLE
 */
export const decodeRuns = (bytes: Uint8Array, bitWidth: number, count: number): Uint32Array => {
  const numbers = new Uint32Array(count);
  if (bitWidth === 0) return numbers;
  if (bitWidth > 32) throw new Error(`numbers of ${bitWidth} bits are too wide`);
  let at = 0;
  const nextByte = (): number => {
    const byte = bytes[at];
    if (byte === undefined) throw new Error('a page is cut short');
    at += 1;
    return byte;
  };
  for (let done = 0; done < count; ) {
    let header = 0;
    for (let byte = 0x80, shift = 0; byte & 0x80; shift += 7) {
      if (shift > 28) throw new Error('a run is too long');
      byte = nextByte();
      header += (byte & 0x7f) * 2 ** shift;
    }
    const length = Math.floor(header / 2);
    if (header % 2 === 0) {
      let value = 0;
      for (let shift = 0; shift < bitWidth; shift += 8) value += nextByte() * 2 ** shift;
      const end = Math.min(count, done + length);
      numbers.fill(value, done, end);
      done = end;
      continue;
    }
    const end = Math.min(count, done + length * 8);
    const first = at;
    for (let bit = 0; done < end; bit += bitWidth, done += 1) {
      let value = 0;
      for (let taken = 0; taken < bitWidth; ) {
        const position = bit + taken;
        const byte = bytes[first + (position >> 3)];
        if (byte === undefined) throw new Error('a page is cut short');
        const inByte = position & 7;
        const bits = Math.min(8 - inByte, bitWidth - taken);
        value += ((byte >> inByte) & ((1 << bits) - 1)) * 2 ** taken;
        taken += bits;
      }
      numbers[done] = value;
    }
    at = first + length * bitWidth;
  }
  return numbers;
};
