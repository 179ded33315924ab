import { setTimeout as sleep } from 'node:timers/promises';
import { CreateQueueCommand, GetQueueAttributesCommand, SQSClient } from '@aws-sdk/client-sqs';
import { describe, expect, it } from 'vitest';
import { createSqsStageQueue } from '../../shared/adapters/aws/sqs-stage-queue.ts';
import type { QueueSettings } from '../../shared/ports/stage-queue.ts';
import { stageQueueContract } from '../contracts/stage-queue.contract.ts';
import { useAwsEmulator } from './emulator.ts';

const emulator = useAwsEmulator();

let queues = 0;
const newQueue = async (settings: QueueSettings) => {
  const client = new SQSClient(emulator().clientOptions);
  queues += 1;
  const create = async (name: string, Attributes: Record<string, string>) =>
    (await client.send(new CreateQueueCommand({ QueueName: `${name}-${queues}`, Attributes }))).QueueUrl!;
  const deadLetterQueueUrl = await create('dead', {});
  const { Attributes } = await client.send(
    new GetQueueAttributesCommand({ QueueUrl: deadLetterQueueUrl, AttributeNames: ['QueueArn'] }),
  );
  const queueUrl = await create('lane', {
    VisibilityTimeout: String(settings.visibilitySeconds),
    RedrivePolicy: JSON.stringify({
      deadLetterTargetArn: Attributes!.QueueArn,
      maxReceiveCount: settings.maxReceiveCount,
    }),
  });
  return { client, queueUrl, queue: createSqsStageQueue({ client, queueUrl, deadLetterQueueUrl }) };
};

stageQueueContract('SQS', async (settings) => {
  const { client, queue } = await newQueue(settings);
  return {
    queue,
    pass: (seconds) => sleep(seconds * 1000),
    dispose: async () => client.destroy(),
  };
});

describe('the stage queue on SQS', () => {
  it('leaves dead letters where they are when they are read', async () => {
    const { queue } = await newQueue({ visibilitySeconds: 1, maxReceiveCount: 1 });
    for (const body of ['first', 'second']) await queue.send(body);
    while ((await queue.receive(10, 0)).length > 0);
    await sleep(1500);
    await queue.receive(10, 0);

    const twice = [await queue.deadLetters(), await queue.deadLetters()];

    expect(twice).toEqual([
      ['first', 'second'],
      ['first', 'second'],
    ]);
    expect(await queue.depth()).toEqual({ visible: 0, hidden: 0, dead: 2 });
  });

  it('names the remedy where the queue is not there', async () => {
    const { client, queueUrl } = await newQueue({ visibilitySeconds: 1, maxReceiveCount: 1 });
    const queue = createSqsStageQueue({ client, queueUrl: `${queueUrl}-gone` });

    await expect(queue.send('x')).rejects.toMatchObject({ name: 'StorageFailed' });
    await expect(queue.receive(1, 0)).rejects.toMatchObject({ name: 'StorageFailed' });
  });
});
