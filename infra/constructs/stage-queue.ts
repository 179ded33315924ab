import { Duration } from 'aws-cdk-lib';
import { Queue, QueueEncryption } from 'aws-cdk-lib/aws-sqs';
import type { Construct } from 'constructs';
import { deadLetterName, deployedName, queueResourceName } from '../../shared/naming.ts';
import { maxReceiveCount, visibilityPerTimeout } from '../config/stages.ts';
import { constructId } from './stage-function.ts';

export interface StageQueue {
  queue: Queue;
  deadLetters: Queue;
}

/** Longest that SQS keeps a message: dead letters wait for a person, live ones for a paused lane. */
const retention = Duration.days(14);

/** One queue with its dead letters. `workSeconds`: how long one delivery may be worked on. */
export const createStageQueue = (
  scope: Construct,
  deployment: string,
  queue: string,
  workSeconds: number,
): StageQueue => {
  const id = constructId(queueResourceName(queue));
  const shared = { encryption: QueueEncryption.SQS_MANAGED, enforceSSL: true, retentionPeriod: retention };
  const deadLetters = new Queue(scope, `${id}Dead`, {
    ...shared,
    queueName: deployedName(deployment, deadLetterName(queue)),
  });
  return {
    deadLetters,
    queue: new Queue(scope, `${id}Queue`, {
      ...shared,
      queueName: deployedName(deployment, queueResourceName(queue)),
      visibilityTimeout: Duration.seconds(visibilityPerTimeout * workSeconds),
      // One more than a stage may use: a handler that was killed at its last leaves nobody waiting.
      deadLetterQueue: { queue: deadLetters, maxReceiveCount: maxReceiveCount + 1 },
    }),
  };
};
