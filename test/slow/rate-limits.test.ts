import { describe, expect, it } from 'vitest';
import { sweepUnderTest } from '../support/sweep-under-test.ts';

const reply = { text: 'It might be a trombone.' };

describe('a provider that takes few calls at once', () => {
  it('costs no request its reply: the lane and the judge come down to what it takes', async () => {
    const sweep = await sweepUnderTest({
      roots: 8,
      models: {
        narrow: { reply, latencyMs: 20, capacity: 3 },
        polite: { reply, latencyMs: 20, capacity: 3, retryAfterSeconds: 1 },
        judge: { reply: { judge: 'aliases' }, latencyMs: 20, capacity: 1 },
      },
      lanes: [
        { id: 'narrow', maxInFlight: 32, backoff: undefined },
        { id: 'polite', maxInFlight: 32, backoff: undefined },
      ],
      judge: { maxInFlight: 8, itemsPerRequest: 2, backoff: undefined },
    });

    const ended = await sweep.run();

    expect(ended).toMatchObject({ code: 0, stderr: '' });
    const { byModel } = sweep.mock.stats();
    for (const lane of ['narrow', 'polite']) {
      const records = sweep.records(lane);
      expect(records).toHaveLength(sweep.requestIds.length);
      expect(sweep.failures(lane)).toEqual([]);
      expect(sweep.views(lane).every(({ outcome }) => outcome === 'done')).toBe(true);
      // Every refusal is an attempt on record, and nothing else was repeated.
      const kinds = records.flatMap(({ attempts }) => attempts.map(({ kind }) => kind));
      expect(kinds.filter((kind) => kind === 'http_429')).toHaveLength(byModel[lane]!.rateLimited);
      expect(kinds.filter((kind) => kind === null)).toHaveLength(records.length);
      expect(Math.max(...records.map(({ attempts }) => attempts.length))).toBeLessThanOrEqual(5);
      expect(byModel[lane]).toMatchObject({ peakInFlight: 3, replies: records.length });
    }
    // Slow start, and once below the limit a look above it every hundred calls.
    expect(byModel.narrow!.rateLimited / byModel.narrow!.requests).toBeLessThanOrEqual(0.05);
    expect(byModel.judge!.peakInFlight).toBe(1);
  });

  it('becomes one that takes hardly any: still no request is lost', async () => {
    const model = { reply, latencyMs: 20, capacity: 32 };
    const sweep = await sweepUnderTest({
      roots: 12,
      models: { changing: model },
      lanes: [{ id: 'changing', maxInFlight: 64, backoff: undefined }],
    });

    const running = sweep.run();
    while (sweep.mock.stats().replies < 150) await new Promise((resolve) => setTimeout(resolve, 5));
    sweep.setModels({ changing: { ...model, capacity: 2 } });
    await running;

    expect(sweep.failures('changing')).toEqual([]);
    expect(sweep.records('changing')).toHaveLength(sweep.requestIds.length);
  });
});
