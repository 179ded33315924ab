import { Duration, Stack, type StackProps } from 'aws-cdk-lib';
import {
  Alarm,
  ComparisonOperator,
  Dashboard,
  GraphWidget,
  type IMetric,
  MathExpression,
  Metric,
  TextWidget,
  TreatMissingData,
} from 'aws-cdk-lib/aws-cloudwatch';
import { SnsAction } from 'aws-cdk-lib/aws-cloudwatch-actions';
import { Rule } from 'aws-cdk-lib/aws-events';
import { SnsTopic } from 'aws-cdk-lib/aws-events-targets';
import { type ITopic, Topic } from 'aws-cdk-lib/aws-sns';
import type { Construct } from 'constructs';
import { judgeDimension, metricNames, metricNamespace } from '../../shared/metric-names.ts';
import { deployedName } from '../../shared/naming.ts';
import { isHosted, type LanesConfig } from '../config/lanes.ts';
import { constructId } from '../constructs/stage-function.ts';
import type { GpuStack } from './gpu.ts';
import type { ScheduleStack } from './schedule.ts';
import type { SweepStack } from './sweep.ts';

export interface ObservabilityStackProps extends StackProps {
  deployment: string;
  lanes: LanesConfig;
  sweep: SweepStack;
  schedule: ScheduleStack;
  /** Null where no lane has its own GPUs. */
  gpu: GpuStack | null;
}

/** An alarm kind and its article: `docs/runbook.md#<article>`. */
export type RunbookArticle =
  | 'dead-letters'
  | 'throttled-calls'
  | 'budget-nearly-spent'
  | 'oldest-message'
  | 'batch-waiting'
  | 'excluded-views'
  | 'missed-ticks'
  | 'failing-stage';

interface AlarmRule {
  article: RunbookArticle;
  /** Distinguishes alarms of one kind. */
  subject?: string;
  says: string;
  metric: IMetric;
  threshold: number;
  /** Five-minute periods in a row; 1 unless said. */
  periods?: number;
}

const period = Duration.minutes(5);
const sum = { statistic: 'Sum', period };
const maximum = { statistic: 'Maximum', period };

export const createObservabilityStack = (
  scope: Construct,
  id: string,
  props: ObservabilityStackProps,
): Stack => {
  const stack = new Stack(scope, id, props);
  const { deployment, sweep } = props;
  const topic = new Topic(stack, 'Alarms', {
    topicName: deployedName(deployment, 'alarms'),
    enforceSSL: true,
  });

  const callers = [
    ...props.lanes.lanes.filter(isHosted).map((lane) => lane.id),
    ...(props.lanes.judge === undefined ? [] : [judgeDimension]),
  ];
  const calls = (name: string, lane: string) =>
    new Metric({
      namespace: metricNamespace,
      metricName: name,
      dimensionsMap: { lane },
      label: lane,
      ...sum,
    });
  const throttledPercent = (lane: string) => {
    // Ids must differ within a graph.
    const [all, throttled] = [`calls${callers.indexOf(lane)}`, `throttled${callers.indexOf(lane)}`];
    return new MathExpression({
      // A handful of calls says nothing about a rate.
      expression: `IF(${all} >= 20, 100 * ${throttled} / ${all}, 0)`,
      usingMetrics: {
        [all]: calls(metricNames.calls, lane),
        [throttled]: calls(metricNames.throttledCalls, lane),
      },
      label: lane,
      period,
    });
  };
  const budget = new Metric({
    namespace: metricNamespace,
    metricName: metricNames.budgetUsedPercent,
    dimensionsMap: { stage: 'generate-turns' },
    ...maximum,
  });
  const queues = [...sweep.laneQueues, [judgeDimension, sweep.judgeQueue] as const];
  const excluded = sweep.functions['exclude-request'].metricInvocations(sum);

  const rules: AlarmRule[] = [
    ...queues.map(
      ([name, { deadLetters }]): AlarmRule => ({
        article: 'dead-letters',
        subject: name,
        says: `Messages of ${name} failed at every delivery`,
        metric: deadLetters.metricApproximateNumberOfMessagesVisible(maximum),
        threshold: 1,
      }),
    ),
    ...queues.map(
      ([name, { queue }]): AlarmRule => ({
        article: 'oldest-message',
        subject: name,
        says: `A message of ${name} has waited for two hours`,
        metric: queue.metricApproximateAgeOfOldestMessage(maximum),
        threshold: 7200,
      }),
    ),
    ...callers.map(
      (lane): AlarmRule => ({
        article: 'throttled-calls',
        subject: lane,
        says: `More than 10 % of the calls of ${lane} are turned away for their rate`,
        metric: throttledPercent(lane),
        threshold: 10,
        periods: 3,
      }),
    ),
    {
      article: 'budget-nearly-spent',
      says: 'A run has used 80 % of its budget',
      metric: budget,
      threshold: 80,
    },
    {
      article: 'excluded-views',
      says: 'More than 25 requests were given up within five minutes',
      metric: excluded,
      threshold: 25,
    },
    {
      article: 'missed-ticks',
      says: 'A scheduled sweep could not be started',
      metric: props.schedule.deadLetters.metricApproximateNumberOfMessagesVisible(maximum),
      threshold: 1,
    },
    ...(
      [
        'plan-sweep',
        'prepare-media',
        'plan-judging',
        'submit-judge-batch',
        'poll-judge-batch',
        'aggregate-run',
        'publish-report',
      ] as const
    ).map(
      (stage): AlarmRule => ({
        article: 'failing-stage',
        subject: stage,
        says: `${stage} failed`,
        metric: sweep.functions[stage].metricErrors(sum),
        threshold: 1,
      }),
    ),
    ...(props.gpu === null
      ? []
      : [
          {
            article: 'batch-waiting',
            says: 'A GPU job waits and no machine can be had for it',
            metric: blockedJobs(stack, deployment, props.gpu, topic),
            threshold: 1,
          } satisfies AlarmRule,
        ]),
  ];
  for (const rule of rules) {
    const name = [rule.article, ...(rule.subject === undefined ? [] : [rule.subject])].join('-');
    const alarm = new Alarm(stack, constructId(name), {
      alarmName: deployedName(deployment, name),
      alarmDescription: `${rule.says}. What to do: docs/runbook.md#${rule.article}`,
      metric: rule.metric,
      threshold: rule.threshold,
      evaluationPeriods: rule.periods ?? 1,
      comparisonOperator: ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
      treatMissingData: TreatMissingData.NOT_BREACHING,
    });
    alarm.addAlarmAction(new SnsAction(topic));
  }

  const dashboard = new Dashboard(stack, 'Dashboard', { dashboardName: deployedName(deployment, 'sweeps') });
  dashboard.addWidgets(
    new TextWidget({
      markdown: `# ${deployment}\nAlarms and what to do: docs/runbook.md. To stop everything: docs/runbook.md#global-stop`,
      width: 24,
      height: 3,
    }),
  );
  const graph = (title: string, left: IMetric[]) => new GraphWidget({ title, left, width: 12, height: 6 });
  dashboard.addWidgets(
    graph(
      'Calls',
      callers.map((lane) => calls(metricNames.calls, lane)),
    ),
    graph('Calls turned away, per cent', callers.map(throttledPercent)),
  );
  dashboard.addWidgets(
    graph(
      'Messages waiting',
      queues.map(([name, { queue }]) =>
        queue.metricApproximateNumberOfMessagesVisible({ ...maximum, label: name }),
      ),
    ),
    graph(
      'Messages at work',
      queues.map(([name, { queue }]) =>
        queue.metricApproximateNumberOfMessagesNotVisible({ ...maximum, label: name }),
      ),
    ),
  );
  dashboard.addWidgets(graph('Budget used, per cent', [budget]), graph('Requests given up', [excluded]));
  dashboard.addWidgets(
    graph('Executions', [
      sweep.machines.sweep.metricStarted(sum),
      sweep.machines.sweep.metricSucceeded(sum),
      sweep.machines.sweep.metricFailed(sum),
      sweep.machines['view-group'].metricFailed(sum),
    ]),
    graph('Time of a delivery, 99 %', [
      sweep.functions['generate-turns'].metricDuration({ statistic: 'p99', period }),
      sweep.functions['judge-answers'].metricDuration({ statistic: 'p99', period }),
    ]),
  );
  return stack;
};

/** Batch counts no waiting jobs in metrics, but says by an event when the first of a queue cannot be placed. */
const blockedJobs = (stack: Stack, deployment: string, gpu: GpuStack, topic: ITopic): Metric => {
  const ruleName = deployedName(deployment, 'gpu-jobs-blocked');
  const rule = new Rule(stack, 'GpuJobsBlocked', {
    ruleName,
    description: `Job queues of ${deployment} whose first job cannot be placed`,
    eventPattern: {
      source: ['aws.batch'],
      detailType: ['Batch Job Queue Blocked'],
      resources: gpu.jobQueues.map((queue) => queue.jobQueueArn),
    },
  });
  rule.addTarget(new SnsTopic(topic));
  return new Metric({
    namespace: 'AWS/Events',
    metricName: 'MatchedEvents',
    dimensionsMap: { RuleName: ruleName },
    ...sum,
  });
};
