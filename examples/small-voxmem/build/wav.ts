/** Samples of a mono sound, each in [-1, 1). */
export interface Pcm {
  rate: number;
  samples: Float64Array;
}

const headerBytes = 44;

/** 16-bit mono PCM WAV. Throws where a sample does not fit: a clipped clip is a mistake of the build. */
export const encodeWav = ({ rate, samples }: Pcm): Buffer => {
  const wav = Buffer.alloc(headerBytes + 2 * samples.length);
  wav.write('RIFF', 0, 'latin1');
  wav.writeUInt32LE(wav.length - 8, 4);
  wav.write('WAVEfmt ', 8, 'latin1');
  wav.writeUInt32LE(16, 16);
  wav.writeUInt16LE(1, 20);
  wav.writeUInt16LE(1, 22);
  wav.writeUInt32LE(rate, 24);
  wav.writeUInt32LE(2 * rate, 28);
  wav.writeUInt16LE(2, 32);
  wav.writeUInt16LE(16, 34);
  wav.write('data', 36, 'latin1');
  wav.writeUInt32LE(2 * samples.length, 40);
  for (const [index, sample] of samples.entries()) {
    const value = Math.round(sample * 32_768);
    if (value < -32_768 || value > 32_767) throw new Error(`sample ${index} does not fit into 16 bits`);
    wav.writeInt16LE(value, headerBytes + 2 * index);
  }
  return wav;
};

/** Reads what `encodeWav` and the synthesizers write. Throws for anything but 16-bit mono PCM. */
export const decodeWav = (wav: Buffer): Pcm => {
  if (wav.toString('latin1', 0, 4) !== 'RIFF' || wav.toString('latin1', 8, 12) !== 'WAVE') {
    throw new Error('not a WAV');
  }
  let rate: number | null = null;
  for (let at = 12; at + 8 <= wav.length; ) {
    const name = wav.toString('latin1', at, at + 4);
    const size = Math.min(wav.readUInt32LE(at + 4), wav.length - at - 8);
    if (name === 'fmt ') {
      const [format, channels, bits] = [at + 8, at + 10, at + 22].map((place) => wav.readUInt16LE(place));
      if (format !== 1 || channels !== 1 || bits !== 16) throw new Error('not 16-bit mono PCM');
      rate = wav.readUInt32LE(at + 12);
    }
    if (name === 'data' && rate !== null) {
      const samples = Float64Array.from(
        { length: Math.floor(size / 2) },
        (_, index) => wav.readInt16LE(at + 8 + 2 * index) / 32_768,
      );
      return { rate, samples };
    }
    at += 8 + size + (size % 2);
  }
  throw new Error('a WAV without sound');
};

export const rms = (samples: Float64Array): number =>
  Math.sqrt(samples.reduce((sum, sample) => sum + sample * sample, 0) / samples.length);

export const fromDecibels = (decibels: number): number => 10 ** (decibels / 20);
export const toDecibels = (ratio: number): number => 20 * Math.log10(ratio);

/** The same sound with this RMS, in dB below full scale. */
export const levelled = (samples: Float64Array, rmsDecibels: number): Float64Array => {
  const gain = fromDecibels(rmsDecibels) / rms(samples);
  return samples.map((sample) => sample * gain);
};
