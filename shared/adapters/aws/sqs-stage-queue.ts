import {
  ChangeMessageVisibilityCommand,
  DeleteMessageCommand,
  GetQueueAttributesCommand,
  type Message,
  ReceiveMessageCommand,
  SendMessageCommand,
  type SQSClient,
} from '@aws-sdk/client-sqs';
import { errorNames, TurnsweepError } from '../../errors.ts';
import type { StageQueue } from '../../ports/stage-queue.ts';
import { asked, serviceErrorName, serviceFailed } from './service-errors.ts';

export interface SqsStageQueueOptions {
  client: SQSClient;
  queueUrl: string;
  /** Without it `deadLetters` is empty and `depth` counts none. */
  deadLetterQueueUrl?: string;
}

/** The longest poll that SQS has. */
const longestPollSeconds = 20;
/** While `deadLetters` reads them; then they are given back. */
const peekSeconds = 30;

/**
 * An SQS standard queue. Counts are SQS's approximations. `deadLetters` receives the dead letters and gives
 * them back, since SQS has no reading without it: use it when nobody else works on them.
 */
export const createSqsStageQueue = (options: SqsStageQueueOptions): StageQueue => {
  const { client, queueUrl: QueueUrl, deadLetterQueueUrl } = options;

  const receive = async (url: string, max: number, waitSeconds: number, visibilitySeconds?: number) => {
    const { Messages = [] } = await asked(
      'receive',
      url,
      client.send(
        new ReceiveMessageCommand({
          QueueUrl: url,
          MaxNumberOfMessages: max,
          WaitTimeSeconds: waitSeconds,
          VisibilityTimeout: visibilitySeconds,
          MessageSystemAttributeNames: ['ApproximateReceiveCount', 'SentTimestamp'],
        }),
      ),
    );
    return Messages;
  };

  /** Requests about a delivery that is over are no error. */
  const unlessOver = async (doing: string, request: Promise<unknown>): Promise<void> => {
    try {
      await request;
    } catch (error) {
      if (!isOver(error)) throw serviceFailed(error, doing, QueueUrl);
    }
  };

  const counts = async (url: string) => {
    const { Attributes = {} } = await asked(
      'count the messages of',
      url,
      client.send(
        new GetQueueAttributesCommand({
          QueueUrl: url,
          AttributeNames: [
            'ApproximateNumberOfMessages',
            'ApproximateNumberOfMessagesNotVisible',
            'ApproximateNumberOfMessagesDelayed',
          ],
        }),
      ),
    );
    return {
      visible: Number(Attributes.ApproximateNumberOfMessages),
      hidden:
        Number(Attributes.ApproximateNumberOfMessagesNotVisible) +
        Number(Attributes.ApproximateNumberOfMessagesDelayed),
    };
  };

  return {
    async send(body, { delaySeconds } = {}) {
      const request = new SendMessageCommand({ QueueUrl, MessageBody: body, DelaySeconds: delaySeconds });
      return (await asked('send', QueueUrl, client.send(request))).MessageId!;
    },
    async receive(max, waitSeconds) {
      if (!Number.isInteger(max) || max < 1 || max > 10) {
        throw new TurnsweepError(errorNames.usage, `a receive takes 1 to 10 messages, not ${max}`);
      }
      let messages: Message[];
      let leftSeconds = waitSeconds;
      do {
        messages = await receive(QueueUrl, max, Math.min(longestPollSeconds, leftSeconds));
        leftSeconds -= longestPollSeconds;
      } while (messages.length === 0 && leftSeconds > 0);
      return messages.map(({ MessageId, ReceiptHandle, Body, Attributes }) => ({
        messageId: MessageId!,
        receipt: ReceiptHandle!,
        body: Body!,
        receiveCount: Number(Attributes!.ApproximateReceiveCount),
      }));
    },
    async extend(receipt, visibilitySeconds) {
      await unlessOver(
        'extend a message of',
        client.send(
          new ChangeMessageVisibilityCommand({
            QueueUrl,
            ReceiptHandle: receipt,
            VisibilityTimeout: visibilitySeconds,
          }),
        ),
      );
    },
    async delete(receipt) {
      await unlessOver(
        'delete a message of',
        client.send(new DeleteMessageCommand({ QueueUrl, ReceiptHandle: receipt })),
      );
    },
    async depth() {
      const dead =
        deadLetterQueueUrl === undefined ? { visible: 0, hidden: 0 } : await counts(deadLetterQueueUrl);
      return { ...(await counts(QueueUrl)), dead: dead.visible + dead.hidden };
    },
    async deadLetters() {
      if (deadLetterQueueUrl === undefined) return [];
      const found = new Map<string, Message>();
      for (;;) {
        const batch = await receive(deadLetterQueueUrl, 10, 0, peekSeconds);
        for (const message of batch) found.set(message.MessageId!, message);
        if (batch.length === 0) break;
      }
      for (const { ReceiptHandle } of found.values()) {
        await unlessOver(
          'give back a dead letter of',
          client.send(
            new ChangeMessageVisibilityCommand({
              QueueUrl: deadLetterQueueUrl,
              ReceiptHandle,
              VisibilityTimeout: 0,
            }),
          ),
        );
      }
      const sentAt = (message: Message) => Number(message.Attributes!.SentTimestamp);
      return [...found.values()].sort((a, b) => sentAt(a) - sentAt(b)).map(({ Body }) => Body!);
    },
  };
};

/** The receipt is of no use any more: deleted, back among the visible, or no receipt at all. */
const isOver = (error: unknown): boolean => {
  const name = serviceErrorName(error);
  if (name === 'MessageNotInflight' || name === 'ReceiptHandleIsInvalid') return true;
  return name === 'InvalidParameterValue' && error instanceof Error && /receipt ?handle/i.test(error.message);
};
