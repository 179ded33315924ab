import { describe, expect, it } from 'vitest';
import { exitCodes } from '../../cli/exit-codes.ts';
import { sweepFile, turnsweep } from '../support/command-line.ts';
import { sweepUnderTest } from '../support/sweep-under-test.ts';

const reply = 'The evidence is insufficient. 蓝';
const baseline = { id: 'baseline', provider: 'fixed-reply', reply, maxTokens: 64 };

describe('a lane with a fixed reply', () => {
  it('gives it to every request, calls nobody and costs nothing', async () => {
    const sweep = await sweepUnderTest({ models: {}, lanes: [baseline], budgetUsd: 1 });

    const ran = await sweep.run();

    expect(ran.stderr).toBe('');
    // Reviews are pending: no judge is named for what the rules cannot score.
    expect(ran.code).toBe(exitCodes.incomplete);
    expect(sweep.views('baseline').every(({ outcome }) => outcome === 'done')).toBe(true);
    expect(sweep.bodies).toEqual([]);
    const records = sweep.records('baseline');
    expect(records.map(({ requestId }) => requestId).toSorted()).toEqual(sweep.requestIds.toSorted());
    expect(new Set(records.map(({ rawText }) => rawText))).toEqual(new Set([reply]));
    expect(records.every(({ attempts }) => attempts.length === 1)).toBe(true);
    expect(records.every(({ consumed }) => consumed.audio === 0 && consumed.video === 0)).toBe(true);
    const [costs] = sweep.costs();
    expect(costs).toMatchObject({
      lane: 'baseline',
      calls: String(records.length),
      input_tokens: '0',
      output_tokens: '0',
      usd: '0',
      unpriced_calls: '0',
    });
  });

  it('is another run with another reply', async () => {
    const sweep = await sweepUnderTest({ models: {}, lanes: [baseline] });
    await sweep.run();
    const other = sweepFile(
      sweep.folder,
      {
        name: 'faulty',
        benchmark: { kind: 'return', release: sweep.release.directory, manifest: 'manifest.json' },
        models: [{ ...baseline, modalities: ['V', 'A'], family: 'Omni', model: 'baseline', reply: 'No.' }],
      },
      'other.yaml',
    );

    const refused = await turnsweep(['run', other, '--out', sweep.out]);

    expect(refused.code).not.toBe(0);
    expect(refused.stderr).toMatch(/lanes\[0\]\.reply/);
  });
});
