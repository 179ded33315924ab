import { expect, test } from 'vitest';
import { measureNode, median, wellEnded } from '../../bench/measure.ts';

test('a median is the middle value, or the mean of the middle two', () => {
  expect(median([9, 1, 4])).toBe(4);
  expect(median([10, 1, 3, 2])).toBe(2.5);
});

test('what a process used is its own, however much its parent has in memory', async () => {
  const script = 'globalThis.kept = Buffer.alloc(100 * 2 ** 20, 1); console.log("one\\ntwo")';
  // Arrange: more in memory than the child will have.
  const held = Buffer.alloc(400 * 2 ** 20, 1);

  const small = await measureNode(['-e', 'console.log(0)']);
  const large = await measureNode(['-e', script]);

  expect(held.at(-1)).toBe(1);
  expect(large).toMatchObject({ code: 0, output: 'one\ntwo', lastLine: 'two', complaints: '' });
  expect(small.peakMebibytes).toBeLessThan(200);
  expect(large.peakMebibytes - small.peakMebibytes).toBeGreaterThan(90);
  expect(large.peakMebibytes - small.peakMebibytes).toBeLessThan(150);
});

test('a process that ends badly is told from one that ends well', async () => {
  const bad = await measureNode(['-e', 'console.error("no"); process.exitCode = 3']);

  expect(bad.code).toBe(3);
  expect(() => wellEnded(bad)).toThrow('it ended with 3: no');
});
