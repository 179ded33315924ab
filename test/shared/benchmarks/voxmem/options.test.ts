import { describe, expect, it } from 'vitest';
import { voxmemOptions } from '../../../../shared/benchmarks/voxmem/options.ts';

describe('benchmark.options', () => {
  it('asks everything, permits abstaining, and has a judge unless told otherwise', () => {
    expect(voxmemOptions.parse({})).toEqual({
      abstention: true,
      grader: 'judge',
      attribution: false,
      families: {},
    });
  });

  it('takes every option', () => {
    const options = {
      lengths: ['8k', '64k'],
      evidenceTypes: ['environmental_sound'],
      ids: ['q_00006', 'q_00007_8k'],
      abstention: false,
      grader: 'exact-match',
      attribution: true,
      families: { 'some-lane': 'Qwen', 'some-judge': 'GPT' },
    };

    expect(voxmemOptions.parse(options)).toEqual(options);
  });

  it.each([
    { lengths: [] },
    { lengths: ['8K'] },
    { lengths: '8k' },
    { evidenceTypes: ['music'] },
    { ids: [''] },
    { abstention: 'no' },
    { grader: 'llm' },
    { grading: 'judge' },
  ])('refuses %j', (options) => {
    expect(voxmemOptions.safeParse(options).success).toBe(false);
  });
});
