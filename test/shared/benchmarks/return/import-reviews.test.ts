import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { importReviews } from '../../../../shared/benchmarks/return/import-reviews.ts';

const released = resolve(import.meta.dirname, '../../../../../shared/reference/return-release');

const identity = (candidate: string, ...more: string[]) =>
  JSON.stringify(['Which tool?', 'hammer', ['hammer'], [], 'openqa', candidate, ...more]);

const aRow = (candidate: string, verdict = 'equivalent', changes: Record<string, unknown> = {}) => ({
  identity: identity(candidate),
  judgment: { id: 'item-000003', verdict, format_compliant: true, reason: `${verdict} it is` },
  ...changes,
});

const cache = (file: string, rows: unknown[]) => ({ file, lines: rows.map((row) => JSON.stringify(row)) });

describe('importReviews', () => {
  it('takes verdicts by identity, other keys ignored', async () => {
    const colour = {
      ...aRow('x', 'uncertain'),
      identity: identity('x', 'question_requested_color_granularity_v1'),
    };

    const { verdicts, problems, conflicts } = await importReviews([
      cache('a', [aRow('Hammer!', 'equivalent', { judge_model: 'j-1', provenance: 'here' }), colour]),
    ]);

    expect([...verdicts]).toEqual([
      [
        identity('Hammer!'),
        { verdict: 'equivalent', formatCompliant: true, reason: 'equivalent it is', judgeModel: 'j-1' },
      ],
      [
        colour.identity,
        { verdict: 'uncertain', formatCompliant: true, reason: 'uncertain it is', judgeModel: null },
      ],
    ]);
    expect([problems, conflicts]).toEqual([[], []]);
  });

  it('lets later rows and files win and tells where they disagree', async () => {
    const formatOnly = aRow('b', 'incorrect');
    formatOnly.judgment.format_compliant = false;

    const { verdicts, conflicts } = await importReviews([
      cache('one', [aRow('a'), aRow('a'), aRow('b', 'incorrect')]),
      cache('two', [formatOnly, aRow('a', 'incorrect')]),
    ]);

    expect(verdicts.get(identity('a'))!.verdict).toBe('incorrect');
    expect(verdicts.get(identity('b'))!.formatCompliant).toBe(false);
    expect(conflicts).toEqual([
      {
        file: 'two',
        line: 1,
        message:
          'replaces "incorrect, format compliant" by "incorrect, format not compliant" for one identity',
      },
      {
        file: 'two',
        line: 2,
        message: 'replaces "equivalent, format compliant" by "incorrect, format compliant" for one identity',
      },
    ]);
  });

  it.each([
    [{ judgment: aRow('a').judgment }, 'missing key "identity"'],
    [aRow('a', 'correct'), 'judgment.verdict "correct": '],
    [
      aRow('a', 'equivalent', { judgment: { ...aRow('a').judgment, format_compliant: 'yes' } }),
      'judgment.format_compliant "yes": ',
    ],
    [
      aRow('a', 'equivalent', { judgment: { ...aRow('a').judgment, verdikt: 1 } }),
      'unknown key "verdikt" in judgment; did you mean "verdict"?',
    ],
    [
      aRow('a', 'equivalent', { identity: 'Which tool?' }),
      'identity "Which tool?": is not a review identity',
    ],
    [
      aRow('a', 'equivalent', { identity: '["Which tool?"]' }),
      'identity "[\\"Which tool?\\"]": is not a review identity',
    ],
    [null, 'Invalid input: expected object, received null'],
  ])('refuses %j', async (row, message) => {
    const { verdicts, problems } = await importReviews([cache('a', [aRow('kept'), row])]);

    expect(problems).toHaveLength(1);
    expect(problems[0]).toMatchObject({ file: 'a', line: 2 });
    expect(problems[0]!.message).toContain(message);
    expect([...verdicts.keys()]).toEqual([identity('kept')]);
  });
});

describe.runIf(existsSync(released))('the real caches (need ../shared/reference/return-release)', () => {
  // Counts of distinct identities by an independent Python script.
  it.each([
    ['current_validation/qwen38_api', 6],
    ['current_validation/qwen3_vl', 5],
    ['current_validation/stepaudio_api', 1],
    ['recorded_outputs/qwen38_api', 4],
  ])('of %s are read without problems', async (run, count) => {
    const text = readFileSync(`${released}/examples/${run}/review_cache.jsonl`, 'utf8');

    const { verdicts, problems, conflicts } = await importReviews([{ file: run, lines: text.split('\n') }]);

    expect(verdicts.size).toBe(count);
    expect([problems, conflicts]).toEqual([[], []]);
  });
});
