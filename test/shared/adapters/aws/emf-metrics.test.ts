import { describe, expect, it } from 'vitest';
import { createEmfMetrics } from '../../../../shared/adapters/aws/emf-metrics.ts';

const collectingMetrics = () => {
  const lines: string[] = [];
  const clock = { now: () => 1_700_000_000_123 };
  return {
    lines,
    metrics: createEmfMetrics({ namespace: 'Turnsweep', clock, write: (line) => lines.push(line) }),
  };
};

describe('metrics in the embedded format', () => {
  it('are one line of JSON that names namespace, dimensions, metrics and values', () => {
    const { lines, metrics } = collectingMetrics();

    metrics.put(
      { lane: 'a', stage: 'generate-turns' },
      { Calls: 1, DurationMs: 812.5, BudgetUsedPercent: 40 },
    );

    expect(lines).toHaveLength(1);
    expect(JSON.parse(lines[0]!)).toEqual({
      _aws: {
        Timestamp: 1_700_000_000_123,
        CloudWatchMetrics: [
          {
            Namespace: 'Turnsweep',
            Dimensions: [['lane', 'stage']],
            Metrics: [
              { Name: 'Calls', Unit: 'Count' },
              { Name: 'DurationMs', Unit: 'Milliseconds' },
              { Name: 'BudgetUsedPercent', Unit: 'Percent' },
            ],
          },
        ],
      },
      lane: 'a',
      stage: 'generate-turns',
      Calls: 1,
      DurationMs: 812.5,
      BudgetUsedPercent: 40,
    });
  });

  it('have only the dimensions that are given', () => {
    const { lines, metrics } = collectingMetrics();

    metrics.put({ stage: 'judge-answers' }, { Calls: 2 });

    const line = JSON.parse(lines[0]!);
    expect(line._aws.CloudWatchMetrics[0].Dimensions).toEqual([['stage']]);
    expect(Object.keys(line)).toEqual(['_aws', 'stage', 'Calls']);
  });
});
