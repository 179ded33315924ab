/** Reads so many bytes of a clip from an offset; fewer at its end. */
export type ReadBytes = (offset: number, length: number) => Promise<Uint8Array>;

const viewOf = (bytes: Uint8Array): DataView =>
  new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
const nameAt = (bytes: Uint8Array, offset: number): string =>
  String.fromCharCode(...bytes.subarray(offset, offset + 4));

/** Chunks or boxes looked at before a file counts as none of ours. */
const partsAtMost = 1_000;

const wavSeconds = async (read: ReadBytes): Promise<number | null> => {
  let bytesPerSecond: number | null = null;
  for (let offset = 12, part = 0; part < partsAtMost; part += 1) {
    const head = await read(offset, 24);
    if (head.length < 8) return null;
    const size = viewOf(head).getUint32(4, true);
    if (nameAt(head, 0) === 'fmt ' && head.length >= 20) bytesPerSecond = viewOf(head).getUint32(16, true);
    if (nameAt(head, 0) === 'data') return bytesPerSecond ? size / bytesPerSecond : null;
    offset += 8 + size + (size % 2);
  }
  return null;
};

/** ISO base media (MP4, MOV): `mvhd` inside `moov` has the length of the whole. */
const mp4Seconds = async (read: ReadBytes): Promise<number | null> => {
  for (let offset = 0, part = 0; part < partsAtMost; part += 1) {
    const head = await read(offset, 40);
    if (head.length < 8) return null;
    const view = viewOf(head);
    const name = nameAt(head, 4);
    if (name === 'moov') {
      offset += 8;
      continue;
    }
    if (name === 'mvhd' && head.length >= 28) {
      const isLong = view.getUint8(8) === 1;
      if (isLong && head.length < 40) return null;
      const timescale = view.getUint32(isLong ? 28 : 20);
      const units = isLong ? Number(view.getBigUint64(32)) : view.getUint32(24);
      return timescale === 0 ? null : units / timescale;
    }
    const short = view.getUint32(0);
    const size = short === 1 && head.length >= 16 ? Number(view.getBigUint64(8)) : short;
    if (size < 8) return null;
    offset += size;
  }
  return null;
};

/** Length of a WAV, MP4 or MOV clip by its own header; null for other formats and for headers that do not tell. */
export const clipSeconds = async (read: ReadBytes): Promise<number | null> => {
  const head = await read(0, 12);
  if (head.length < 12) return null;
  if (nameAt(head, 0) === 'RIFF' && nameAt(head, 8) === 'WAVE') return wavSeconds(read);
  return nameAt(head, 4) === 'ftyp' ? mp4Seconds(read) : null;
};
