import { expect, test } from 'vitest';
import { scaled, scriptByChance } from '../../../bench/paper/chance.ts';
import { paperComposition } from '../../../bench/paper/composition.ts';
import { expectedCounts } from '../../../bench/paper/expected.ts';
import { outcomeAt } from '../../../bench/paper/outcomes.ts';
import { buildSplit } from '../../../bench/paper/release.ts';

const omni = { displayName: 'Omni', modalities: ['V', 'A'] as ('V' | 'A')[], model: 'omni-1' };
const seer = { displayName: 'Seer', modalities: ['V'] as 'V'[], model: 'seer-1' };

test('a composition is scaled kind by kind and keeps one root of each', () => {
  expect(scaled(paperComposition, 0.1)).toEqual({
    taskShort: { V: 31, A: 31 },
    taskLong: { V: 31, A: 31 },
    evidence: { V: 31, A: 31 },
  });
  expect(scaled(paperComposition, 0.0001).evidence).toEqual({ V: 1, A: 1 });
  expect(scaled(paperComposition, 2).taskShort).toEqual({ V: 624, A: 626 });
});

test('a script by chance asks what a lane may see and refuses final requests only', () => {
  const split = buildSplit(scaled(paperComposition, 0.05), 5, 1);

  const [all, visual] = [omni, seer].map((lane) => scriptByChance(lane, split, 5, 20));

  const refused = split.requests.filter(({ index }) => outcomeAt(all!, index) === 'http_400');
  expect(refused.length).toBeGreaterThan(1);
  expect(new Set(refused.map(({ condition }) => condition))).toEqual(new Set(['H0']));
  for (const { index, condition, modality } of split.requests) {
    expect(outcomeAt(visual!, index) === 'not-asked').toBe(modality === 'A');
    expect(outcomeAt(all!, index) === 'unscored').toBe(condition === 'AUX');
  }
  // A final request belongs to one view: every refused one costs that view.
  const { views, valid } = expectedCounts(split, [all!]);
  expect(views - valid).toBe(refused.length);
  // 16 + 16 roots of one pair and 16 of two on each channel: 128 pairs of four views.
  expect(views).toBe(512);
});

test('a script by chance is the same again, differs by lane, and refuses at least one request', () => {
  const split = buildSplit(scaled(paperComposition, 0.01), 5, 1);

  const script = scriptByChance(omni, split, 5, 0);

  expect(scriptByChance(omni, split, 5, 0).codes).toEqual(script.codes);
  expect(scriptByChance({ ...omni, model: 'omni-2' }, split, 5, 0).codes).not.toEqual(script.codes);
  const refused = split.requests.filter(({ index }) => outcomeAt(script, index) === 'http_400');
  expect(refused.map(({ id }) => id)).toEqual([
    split.requests.find(({ condition }) => condition === 'H0')!.id,
  ]);
});
