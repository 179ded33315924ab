import { expect, test } from 'vitest';
import { jsonl, pythonFloat } from '../../../shared/benchmarks/csv.ts';

test.each([
  [100, '100.0'],
  [0, '0.0'],
  [-0, '-0.0'],
  [-25, '-25.0'],
  [100 / 3, '33.333333333333336'],
  [0.1, '0.1'],
  [0.0001, '0.0001'],
  [0.00001, '1e-05'],
  [-7.105427357601002e-15, '-7.105427357601002e-15'],
  [1.5e-7, '1.5e-07'],
  [1e16, '1e+16'],
  [123456789012345680, '1.2345678901234568e+17'],
  [9007199254740992, '9007199254740992.0'],
  [5e-324, '5e-324'],
])('prints %d as Python does: %s', (value, printed) => {
  expect(pythonFloat(value)).toBe(printed);
});

test('writes one JSON value a line', () => {
  expect([...jsonl([{ a: 1 }, { b: 'x\ny' }])].join('')).toBe('{"a":1}\n{"b":"x\\ny"}\n');
});
