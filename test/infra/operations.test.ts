import { readFileSync } from 'node:fs';
import path from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { scheduledRunId } from '../../shared/naming.ts';
import { asText, type Synthesized, synthesize } from './synthesized.ts';

let app: Synthesized;
beforeAll(() => {
  app = synthesize();
});

const runbook = readFileSync(path.join(import.meta.dirname, '..', '..', 'docs', 'runbook.md'), 'utf8');
const articles = new Set(
  [...runbook.matchAll(/^## (.+)$/gm)].map((match) => match[1]!.toLowerCase().replaceAll(' ', '-')),
);

const alarms = () => Object.values(app.resources('Observability', 'AWS::CloudWatch::Alarm'));

describe('alarms', () => {
  it('each link to an article that exists, and each article of an alarm has one', () => {
    const linked = alarms().map(
      ({ Properties }) =>
        /docs\/runbook\.md#([a-z-]+)$/.exec(Properties.AlarmDescription)?.[1] ?? Properties.AlarmName,
    );

    expect(linked.filter((article) => !articles.has(article))).toEqual([]);
    expect(
      [...articles].filter((article) => !['global-stop', 'redrive'].includes(article)).toSorted(),
    ).toEqual([...new Set(linked)].toSorted());
  });

  it('tell somebody', () => {
    const topicId = Object.keys(app.resources('Observability', 'AWS::SNS::Topic'))[0]!;

    for (const { Properties } of alarms())
      expect(Properties.AlarmActions.map(asText)).toEqual([`<${topicId}>`]);
  });

  it('watch the dead letters of every queue', () => {
    const dead = Object.values(app.resources('Sweep', 'AWS::SQS::Queue')).filter((queue) =>
      queue.Properties.QueueName.endsWith('--dead'),
    );
    const watching = alarms().filter(({ Properties }) =>
      Properties.AlarmName.startsWith('turnsweep-dead-letters-'),
    );

    expect(dead.length).toBe(4);
    expect(watching).toHaveLength(4);
    for (const { Properties } of watching) {
      expect(Properties).toMatchObject({
        Namespace: 'AWS/SQS',
        MetricName: 'ApproximateNumberOfMessagesVisible',
        Threshold: 1,
        ComparisonOperator: 'GreaterThanOrEqualToThreshold',
      });
    }
  });

  it('come before the money is spent', () => {
    const [, { Properties }] = app.named(
      'Observability',
      'AWS::CloudWatch::Alarm',
      'AlarmName',
      'turnsweep-budget-nearly-spent',
    );

    expect(Properties).toMatchObject({
      MetricName: 'BudgetUsedPercent',
      Threshold: 80,
      Statistic: 'Maximum',
    });
  });
});

describe('the runbook', () => {
  it('tells how to stop everything and how to go on', () => {
    expect(articles).toContain('global-stop');
    expect(articles).toContain('redrive');
  });

  it('has no link that leads nowhere', () => {
    const links = [...runbook.matchAll(/\]\(#([a-z-]+)\)/g)].map((match) => match[1]!);

    expect(links.length).toBeGreaterThan(8);
    expect(links.filter((link) => !articles.has(link))).toEqual([]);
  });
});

describe('schedules', () => {
  it('give the scheduled time, which no second delivery changes, and keep ticks that failed', () => {
    const [schedule] = Object.values(app.resources('Schedule', 'AWS::Scheduler::Schedule'));
    const { Target } = schedule!.Properties;

    expect(JSON.parse(Target.Input).scheduledTime).toBe('<aws.scheduler.scheduled-time>');
    expect(asText(Target.Arn)).toContain('StartSweep');
    expect(asText(Target.DeadLetterConfig.Arn)).toContain('MissedTicks');
    expect(schedule!.Properties.FlexibleTimeWindow).toEqual({ Mode: 'OFF' });
  });

  it('name a run by the stored run and the tick', () => {
    const run = scheduledRunId('weekly-0123456789ab', new Date('2026-01-05T03:00:00Z'));

    expect(run).toBe('weekly-20260105t030000z-0123456789ab');
    expect(run.length).toBeLessThanOrEqual(80);
  });
});
