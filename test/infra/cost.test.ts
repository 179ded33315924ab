import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { createGenerateTurns } from '../../functions/generate-turns/generate-turns.ts';
import {
  behaviour,
  computeCost,
  costPage,
  limitUsd,
  paperSweep,
  totalUsd,
  transitions,
} from '../../infra/cost/compute-cost.ts';
import { prices } from '../../infra/cost/prices.ts';
import { laneContract, runSettings } from '../../shared/contracts/run.ts';
import { unknownUsage } from '../../shared/domain/outcome.ts';
import { keys } from '../../shared/keys.ts';
import type { Ledger } from '../../shared/ports/ledger.ts';
import type { ObjectStore } from '../../shared/ports/object-store.ts';

describe('the cost of a sweep', () => {
  it('is what the page says', () => {
    const page = readFileSync(path.join(import.meta.dirname, '..', '..', 'docs', 'cost.md'), 'utf8');

    expect(costPage()).toBe(page);
  });

  it('stays under its limit for 95,000 views with calls of 10 s', () => {
    expect(paperSweep.views).toBe(95_000);
    expect(paperSweep.meanCallSeconds).toBe(10);
    expect(totalUsd(computeCost(paperSweep))).toBeLessThanOrEqual(limitUsd);
    expect(limitUsd).toBe(35);
  });

  it('is arithmetic that can be done by hand', () => {
    // 100 views in 25 groups, 200 calls without a retry, no judge: 100 × 3 + 25 × 4 transitions.
    const shape = {
      views: 100,
      requests: 200,
      requestsOfViewsAlone: 250,
      viewsPerGroup: 4,
      judgeItems: 0,
      itemsPerChunk: 20,
      meanCallSeconds: 10,
      retriedShare: 0,
      continuedShare: 0,
    };

    const lines = new Map(computeCost(shape).map(({ what, count }) => [what, count]));

    expect(lines.get('Step Functions')).toBe(400);
    // (200 × 10 s + 100 × 0.4 s) × 0.25 GB
    expect(lines.get('Lambda, waiting for evaluated models')).toBe(510);
    expect(lines.get('SQS')).toBe(300);
    // 200 × 4 + 50 reused + 100 groups + 200 records for scoring
    expect(lines.get('S3, reading')).toBe(1150);
    // 100 × 3 + 200 × 12
    expect(lines.get('DynamoDB, writing')).toBe(2700);
  });

  it('counts the states as they are written', () => {
    expect(transitions()).toEqual({
      perView: 3, // Generate Turns, Turn Outcome, View Done
      perClip: 2, // start of the child, Prepare Clip
      perRetry: 3, // Wait Before Retry, Generate Turns, Turn Outcome
      perContinue: 3, // Use First Cap, Generate Turns, Turn Outcome
      perGroup: 4, // map child, Run View Group, view-group execution, Run Views
      perChunk: 4, // map child, Judge Answers, Judge Outcome, Chunk Judged
      perChunkRetry: 3, // Wait Before Judging Again, Judge Answers, Judge Outcome
    });
  });

  it('has a price and a date for everything', () => {
    for (const { usd, asOf, source } of Object.values(prices)) {
      expect(usd).toBeGreaterThan(0);
      expect(asOf).toMatch(/^20\d\d-\d\d$/);
      expect(source).not.toBe('');
    }
  });
});

describe('what the cost supposes of the generating stage', () => {
  const run = 'demo-0123456789ab';
  const lane = 'a';
  const requestIds = ['r1', 'r2', 'r3', 'r4'];
  const contract = laneContract.parse({
    id: lane,
    provider: 'vllm',
    model: 'm',
    baseUrl: 'http://127.0.0.1:1',
    recordingSha256: null,
    modalities: ['V'],
    maxTokens: 16,
    retryMaxTokens: null,
    settings: {},
  });
  const settings = runSettings.shape.lanes.element.parse({
    id: lane,
    displayName: lane,
    family: null,
    apiKeyEnv: null,
    attempts: 3,
    maxInFlight: 1,
    deadlineSeconds: 60,
    backoff: { baseSeconds: 1, maxSeconds: 2 },
    price: null,
    budgetMicroUsd: null,
  });

  it('is what its code does', async () => {
    const objects = new Map<string, string>([
      [
        keys.run.group(run, 'g'),
        JSON.stringify({
          v: 2,
          groupId: 'g',
          views: [
            {
              viewId: 'v',
              taskId: 't',
              interface: 'i',
              targetRequestIds: ['r1', 'r4'],
              requestIds,
            },
          ],
          requests: requestIds.map((id) => [id, [{ role: 'user', content: [{ type: 'text', text: id }] }]]),
        }),
      ],
    ]);
    const counts = { gets: 0, puts: 0 };
    const store = {
      getText: async (key: string) => {
        counts.gets += 1;
        return objects.get(key) ?? null;
      },
      putIfAbsent: async (key: string, body: string) => {
        counts.puts += 1;
        objects.set(key, body);
        return true;
      },
    } as Partial<ObjectStore> as ObjectStore;
    const generateTurns = createGenerateTurns({
      store,
      ledger: {} as Ledger,
      clock: { now: () => 0, monotonic: () => 0, sleep: async () => {} },
      random: { next: () => 0 },
      hasTimeLeft: () => true,
      laneAtWork: async () => ({
        contract,
        settings,
        hasBudget: false,
        client: {
          call: async () => ({
            status: 'ok',
            text: 'reply',
            httpStatus: 200,
            responseId: null,
            servedModel: null,
            finishReason: 'stop',
            usage: unknownUsage,
            consumed: { audio: 0, video: 0 },
          }),
          close: async () => {},
        },
      }),
    });

    const outcome = await generateTurns({
      v: 1,
      taskToken: 't',
      run,
      lane,
      groupId: 'g',
      viewId: 'v',
      cap: 'first',
    });

    expect(outcome.status).toBe('done');
    expect(counts.gets).toBe(behaviour.getsPerDelivery + requestIds.length * behaviour.getsPerCall);
    expect(counts.puts).toBe(requestIds.length * behaviour.putsPerCall);
  });
});
