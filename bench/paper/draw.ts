import { hash } from 'node:crypto';

/** The next number in [0, 1). */
export type Draw = () => number;

/** A seed as 32 bits; the same words give the same seed everywhere. */
export const seedOf = (...words: (string | number)[]): number =>
  Number.parseInt(hash('sha256', words.join('\n')).slice(0, 8), 16);

/** Numbers of a generator that its words alone determine (mulberry32), so that nothing depends on the order of use. */
export const drawFrom = (...words: (string | number)[]): Draw => {
  let state = seedOf(...words);
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
};

/** 32 bits of two numbers, well mixed: cheap enough for every call of a server. */
export const mix = (a: number, b: number): number => {
  let mixed = Math.imul(a ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul(b + 0x7f4a7c15, 0xc2b2ae35);
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x45d9f3b);
  return (mixed ^ (mixed >>> 15)) >>> 0;
};

export const pick = <Item>(items: readonly Item[], draw: Draw): Item =>
  items[Math.floor(draw() * items.length)]!;

export const shuffled = <Item>(items: readonly Item[], draw: Draw): Item[] => {
  const result = [...items];
  for (let at = result.length - 1; at > 0; at -= 1) {
    const other = Math.floor(draw() * (at + 1));
    [result[at], result[other]] = [result[other]!, result[at]!];
  }
  return result;
};
