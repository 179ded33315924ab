import { Duration, Stack, type StackProps, TimeZone } from 'aws-cdk-lib';
import { PolicyStatement, Role, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import { CfnSchedule, CfnScheduleGroup } from 'aws-cdk-lib/aws-scheduler';
import { Queue, QueueEncryption } from 'aws-cdk-lib/aws-sqs';
import type { Construct } from 'constructs';
import { deployedName } from '../../shared/naming.ts';
import type { Schedule } from '../config/schedules.ts';
import { constructId } from '../constructs/stage-function.ts';
import type { SweepStack } from './sweep.ts';

export interface ScheduleStackProps extends StackProps {
  deployment: string;
  schedules: readonly Schedule[];
  sweep: SweepStack;
}

export interface ScheduleStack {
  stack: Stack;
  deadLetters: Queue;
}

/**
 * Starts stored runs again by the clock. The scheduled time, which stays the same however often a tick is
 * delivered, becomes part of the run id; the execution's name is the run id, so a second delivery finds the
 * name taken and starts nothing.
 */
export const createScheduleStack = (
  scope: Construct,
  id: string,
  props: ScheduleStackProps,
): ScheduleStack => {
  const stack = new Stack(scope, id, props);
  const { deployment, sweep } = props;
  const target = sweep.functions['start-sweep'];
  const deadLetters = new Queue(stack, 'MissedTicks', {
    queueName: deployedName(deployment, 'schedule--dead'),
    encryption: QueueEncryption.SQS_MANAGED,
    enforceSSL: true,
    retentionPeriod: Duration.days(14),
  });
  const group = new CfnScheduleGroup(stack, 'Schedules', { name: deployedName(deployment, 'sweeps') });
  const role = new Role(stack, 'SchedulerRole', {
    assumedBy: new ServicePrincipal('scheduler.amazonaws.com'),
    description: `Schedules of ${deployment}`,
  });
  role.addToPolicy(
    new PolicyStatement({ actions: ['lambda:InvokeFunction'], resources: [target.functionArn] }),
  );
  role.addToPolicy(new PolicyStatement({ actions: ['sqs:SendMessage'], resources: [deadLetters.queueArn] }));
  for (const schedule of props.schedules) {
    const { timezoneName } = TimeZone.of(schedule.timezone);
    new CfnSchedule(stack, constructId(schedule.name), {
      name: deployedName(deployment, schedule.name),
      groupName: group.ref,
      scheduleExpression: `cron(${schedule.cron})`,
      scheduleExpressionTimezone: timezoneName,
      state: schedule.isEnabled ? 'ENABLED' : 'DISABLED',
      flexibleTimeWindow: { mode: 'OFF' },
      target: {
        arn: target.functionArn,
        roleArn: role.roleArn,
        // The scheduler's execution id would be new at every attempt; the time is not.
        input: JSON.stringify({ run: schedule.run, scheduledTime: '<aws.scheduler.scheduled-time>' }),
        deadLetterConfig: { arn: deadLetters.queueArn },
        retryPolicy: { maximumRetryAttempts: 10, maximumEventAgeInSeconds: 3600 },
      },
    });
  }
  return { stack, deadLetters };
};
