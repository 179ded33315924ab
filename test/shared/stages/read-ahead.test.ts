import { describe, expect, it } from 'vitest';
import { readAhead } from '../../../shared/stages/read-ahead.ts';

const numbers = (count: number): number[] => Array.from({ length: count }, (_, index) => index);

describe('readAhead', () => {
  it('gives every result in the order of the items, with 48 reads under way and no more', async () => {
    let [underWay, most] = [0, 0];
    const read = async (item: number): Promise<number> => {
      underWay += 1;
      most = Math.max(most, underWay);
      await new Promise((resolve) => setTimeout(resolve, item % 3));
      underWay -= 1;
      return item * item;
    };

    const pairs = await Array.fromAsync(readAhead(numbers(500), read));

    expect(pairs).toEqual(numbers(500).map((item) => [item, item * item]));
    expect(most).toBe(48);
  });

  it('throws what a read throws, at its turn', async () => {
    const seen: number[] = [];
    const read = async (item: number): Promise<number> => {
      if (item === 60) throw new Error('unreadable');
      return item;
    };

    const reading = (async () => {
      for await (const [item] of readAhead(numbers(100), read)) seen.push(item);
    })();

    await expect(reading).rejects.toThrow('unreadable');
    expect(seen).toEqual(numbers(60));
  });

  it('of nothing gives nothing', async () => {
    expect(await Array.fromAsync(readAhead([], async () => 1))).toEqual([]);
  });
});
