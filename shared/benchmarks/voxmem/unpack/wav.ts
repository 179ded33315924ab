/** Length of a WAV clip, or why it is none. */
export type WavFacts = { seconds: number } | { fault: string };

/**
 * Reads the header of a WAV file and holds it to what is there: the sizes of file and samples must be true, and there
 * must be samples. Seconds are samples by the rate, not what any tag says.
 */
export const wavFacts = (bytes: Uint8Array): WavFacts => {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const nameAt = (offset: number): string => String.fromCharCode(...bytes.subarray(offset, offset + 4));
  if (bytes.length === 0) return { fault: 'the clip is empty' };
  if (bytes.length < 12 || nameAt(0) !== 'RIFF' || nameAt(8) !== 'WAVE') {
    return { fault: 'not a WAV file (no RIFF/WAVE header)' };
  }
  const promised = view.getUint32(4, true) + 8;
  if (promised !== bytes.length && promised + (promised % 2) !== bytes.length) {
    return { fault: `its WAV header promises ${promised} bytes, there are ${bytes.length}` };
  }
  let frameBytes = 0;
  let framesPerSecond = 0;
  for (let offset = 12; offset + 8 <= bytes.length; ) {
    const name = nameAt(offset);
    const size = view.getUint32(offset + 4, true);
    const start = offset + 8;
    if (start + size > bytes.length) {
      return {
        fault: `its WAV chunk ${JSON.stringify(name)} promises ${size} bytes, there are ${bytes.length - start}`,
      };
    }
    if (name === 'fmt ' && size >= 16) {
      framesPerSecond = view.getUint32(start + 4, true);
      frameBytes = view.getUint16(start + 12, true);
      const bytesPerSecond = view.getUint32(start + 8, true);
      if (framesPerSecond === 0 || frameBytes === 0 || bytesPerSecond !== framesPerSecond * frameBytes) {
        return { fault: 'its WAV header gives no possible sample rate' };
      }
    }
    if (name === 'data') {
      if (frameBytes === 0) return { fault: 'its WAV samples stand before their format' };
      if (size === 0) return { fault: 'the clip has no samples' };
      if (size % frameBytes !== 0) return { fault: 'its last WAV sample is cut' };
      return { seconds: size / frameBytes / framesPerSecond };
    }
    offset = start + size + (size % 2);
  }
  return { fault: 'the WAV file has no samples' };
};
