import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { findJson } from '../../../shared/benchmarks/json-in-prose.ts';

describe('JSON in prose', () => {
  const plain = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(plain);
    if (!(value instanceof Map)) return value;
    return Object.fromEntries(Array.from(value, ([key, inner]) => [key, plain(inner)]));
  };

  it('is read as JSON.parse reads it', () => {
    const document = fc
      .oneof(
        fc.array(fc.jsonValue({ maxDepth: 4 })),
        fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 4 })),
      )
      .map((value) => JSON.stringify(value, null, 1));

    fc.assert(
      fc.property(document, (json) => {
        const found = findJson(`So: ${json}.`);

        expect('values' in found && found.values.map(plain)).toEqual([JSON.parse(json)]);
      }),
    );
  });

  it.each(['[01]', '[1.]', '[.5]', '[+1]', '[NaN]', '[1e]', '["\\u12"]', '{"a" 1}', '{"a":1,}', '{a:1}'])(
    'is not %s',
    (notJson) => {
      const found = findJson(notJson);

      expect('values' in found ? found.values : []).toEqual([]);
    },
  );
});
