import type { Sound } from './plan.ts';

/** Uniform numbers in [0, 1) from a 32-bit seed (a multiply-and-shift mix of a counter). */
const createDraws = (seed: number) => {
  let state = seed >>> 0;
  return (): number => {
    state = (state + 0x9e3779b9) >>> 0;
    let mixed = state;
    mixed = Math.imul(mixed ^ (mixed >>> 16), 0x21f0aaad);
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
    return ((mixed ^ (mixed >>> 15)) >>> 0) / 2 ** 32;
  };
};
type Draws = ReturnType<typeof createDraws>;

/** White noise without its lows; `smoothing` 0…1 takes the highs away. */
export const hiss = (count: number, seed: number, smoothing: number): Float64Array => {
  const draw = createDraws(seed);
  let smooth = 0;
  let before = 0;
  return Float64Array.from({ length: count }, () => {
    smooth += (1 - smoothing) * (2 * draw() - 1 - smooth);
    const value = smooth - 0.9 * before;
    before = smooth;
    return value;
  });
};

/** Adds a tone that fades by e each `fadeSeconds` and may glide. */
const strike = (
  samples: Float64Array,
  rate: number,
  from: number,
  tone: { hertz: number; glideHertz?: number; fadeSeconds: number; loudness: number },
): void => {
  const end = Math.min(samples.length, from + Math.ceil(7 * tone.fadeSeconds * rate));
  let phase = 0;
  for (let index = from; index < end; index += 1) {
    const seconds = (index - from) / rate;
    const fade = Math.exp(-seconds / tone.fadeSeconds);
    phase += (2 * Math.PI * (tone.hertz + (tone.glideHertz ?? 0) * (1 - fade))) / rate;
    samples[index]! += tone.loudness * fade * Math.sin(phase);
  }
};

const rain = (count: number, rate: number, draw: Draws): Float64Array => {
  const samples = hiss(count, Math.floor(draw() * 2 ** 32), 0.3).map((value) => 0.5 * value);
  for (let at = 0; at < count; at += Math.ceil(rate * 0.02 * (0.2 + draw()))) {
    strike(samples, rate, at, { hertz: 1500 + 2000 * draw(), fadeSeconds: 0.002, loudness: draw() });
  }
  return samples;
};

/** A wail that rises and falls once in 1.2 s. */
const siren = (count: number, rate: number): Float64Array => {
  let phase = 0;
  return Float64Array.from({ length: count }, (_, index) => {
    const hertz = 850 - 350 * Math.cos((2 * Math.PI * index) / rate / 1.2);
    phase += (2 * Math.PI * hertz) / rate;
    return Math.sin(phase) + 0.3 * Math.sin(2 * phase);
  });
};

/** Struck each 0.7 s, with the partials of a small bell. */
const bell = (count: number, rate: number): Float64Array => {
  const samples = new Float64Array(count);
  const partials = [
    [1, 0.5, 0.5],
    [2, 0.4, 1],
    [2.4, 0.3, 0.6],
    [3, 0.2, 0.4],
    [4.5, 0.15, 0.3],
  ] as const;
  for (let at = 0; at < count; at += Math.ceil(0.7 * rate)) {
    for (const [ratio, fadeSeconds, loudness] of partials) {
      strike(samples, rate, at, { hertz: 620 * ratio, fadeSeconds, loudness });
    }
  }
  return samples;
};

const dripping = (count: number, rate: number, draw: Draws): Float64Array => {
  const samples = new Float64Array(count);
  for (let at = 0; at < count; at += Math.ceil(rate * (0.22 + 0.15 * draw()))) {
    strike(samples, rate, at, {
      hertz: 900 + 300 * draw(),
      glideHertz: 700,
      fadeSeconds: 0.025,
      loudness: 0.7 + 0.3 * draw(),
    });
  }
  return samples;
};

/** An environmental sound, computed: the same for the same seed. */
export const soundOf = (sound: Sound, count: number, rate: number, seed: number): Float64Array => {
  const draw = createDraws(seed);
  if (sound === 'rain') return rain(count, rate, draw);
  if (sound === 'siren') return siren(count, rate);
  return sound === 'bell' ? bell(count, rate) : dripping(count, rate, draw);
};
