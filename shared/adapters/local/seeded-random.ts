import type { Random } from '../../ports/random.ts';

/**
 * Numbers that a seed decides (mulberry32 by Tommy Ettinger: a Weyl sequence through a 32-bit mixer).
 * Good for back-off and shuffling, not for secrets. Only the seed's low 32 bits count.
 */
export const createSeededRandom = (seed: number): Random => {
  let state = seed >>> 0;
  return {
    next() {
      state = (state + 0x6d2b79f5) >>> 0;
      let mixed = Math.imul(state ^ (state >>> 15), state | 1);
      mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
      return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
    },
  };
};

export const createSystemRandom = (): Random => ({ next: () => Math.random() });
