import type { StageQueue } from '../shared/ports/stage-queue.ts';
import type { BatchResponse, QueueEvent } from '../shared/stages/queue-stage.ts';

export interface EventSource {
  /** Takes no further message and resolves when those at work are done. */
  drain(): Promise<void>;
}

/** A message that failed comes back after 1, 2, 4 … seconds, at most this many. */
const longestReturnSeconds = 60;

/**
 * What an SQS event source mapping does: up to `concurrency` invocations at once with one message each;
 * a message is deleted when its handler succeeded and comes back when it did not.
 */
export const startEventSource = (options: {
  queue: StageQueue;
  concurrency: number;
  handler: (event: QueueEvent) => Promise<BatchResponse>;
  onFault: (error: unknown) => void;
}): EventSource => {
  const { queue, handler } = options;
  let draining = false;
  const work = async () => {
    while (!draining) {
      const [message] = await queue.receive(1, pollSeconds);
      if (message === undefined) continue;
      if (draining) {
        await queue.extend(message.receipt, 0);
        return;
      }
      const response = await handler({
        Records: [
          {
            messageId: message.messageId,
            body: message.body,
            attributes: { ApproximateReceiveCount: String(message.receiveCount) },
          },
        ],
      });
      if (response.batchItemFailures.length === 0) await queue.delete(message.receipt);
      else
        await queue.extend(message.receipt, Math.min(longestReturnSeconds, 2 ** (message.receiveCount - 1)));
    }
  };
  const workers = Array.from({ length: options.concurrency }, () => work().catch(options.onFault));
  return {
    drain: async () => {
      draining = true;
      await Promise.all(workers);
    },
  };
};

/** The longest poll that SQS has. */
const pollSeconds = 20;
