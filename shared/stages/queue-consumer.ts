import type { Clock } from '../ports/clock.ts';
import type { ReceivedMessage, StageQueue } from '../ports/stage-queue.ts';
import type { BatchResponse, QueueEvent } from './queue-stage.ts';

/** How many messages may be at work, where that changes. */
export interface Concurrency {
  allowed(): number;
  /** Asks to be told whenever more are allowed than before. */
  onGrowth(wake: () => void): void;
}

export interface QueueConsumerOptions {
  queue: StageQueue;
  /** Messages at work at once. Where fewer are allowed than are at work, these end and no other begins. */
  concurrency: number | Concurrency;
  handler: (event: QueueEvent) => Promise<BatchResponse>;
  /** Told about what ended the consumer: the queue, or a handler that threw. */
  onFault: (error: unknown) => void;
  clock: Pick<Clock, 'monotonic' | 'sleep'>;
  /** Longest wait for a first message; that of SQS unless given. */
  pollSeconds?: number;
  /**
   * A message at work stays hidden for so long, and is hidden anew in thirds of it: a consumer that was killed is
   * missed soon, however long the work may take. Without it the queue's own time counts.
   */
  hiddenSeconds?: number;
  /** Ends by itself once it had nothing to do for so long. */
  stopWhenIdleSeconds?: number;
  /** Once aborted, a message whose handler failed is visible again at once: others are to take it. */
  handBack?: AbortSignal;
}

export interface QueueConsumer {
  /** Takes no further message and resolves when those at work are done. */
  drain(): Promise<void>;
  /** Resolves when it has ended: drained, idle for too long, or after a fault. */
  ended: Promise<void>;
}

const longestReturnSeconds = 60;
/** The longest poll that SQS has, and its largest batch. */
const longestPollSeconds = 20;
const largestBatch = 10;

/** Seconds after which a message comes back whose handler has failed for the `receiveCount`-th time: 1, 2, 4 … 60. */
export const returnSecondsAfter = (receiveCount: number): number =>
  Math.min(longestReturnSeconds, 2 ** (receiveCount - 1));

/**
 * What an SQS event source mapping does, for handlers outside Lambda: up to `concurrency` invocations at once with
 * one message each; a message is deleted when its handler succeeded and comes back when it did not.
 */
export const startQueueConsumer = (options: QueueConsumerOptions): QueueConsumer => {
  const { queue, clock, hiddenSeconds, pollSeconds = longestPollSeconds } = options;
  const atWork = new Set<string>();
  const over = new AbortController();
  let freed = Promise.withResolvers<void>();
  let isDraining = false;
  const { concurrency } = options;
  const allowed = typeof concurrency === 'number' ? () => concurrency : concurrency.allowed;
  if (typeof concurrency !== 'number') concurrency.onGrowth(() => freed.resolve());

  const fault = (error: unknown) => {
    isDraining = true;
    options.onFault(error);
  };
  const giveBackSeconds = ({ receiveCount }: ReceivedMessage) =>
    options.handBack?.aborted ? 0 : returnSecondsAfter(receiveCount);

  const work = async (message: ReceivedMessage): Promise<void> => {
    const { receipt, messageId, body, receiveCount } = message;
    try {
      if (hiddenSeconds !== undefined) await queue.extend(receipt, hiddenSeconds);
      const response = await options.handler({
        Records: [{ messageId, body, attributes: { ApproximateReceiveCount: String(receiveCount) } }],
      });
      // Before the queue hears of it: the timer must not hide what is given back.
      atWork.delete(receipt);
      if (response.batchItemFailures.length === 0) await queue.delete(receipt);
      else await queue.extend(receipt, giveBackSeconds(message));
    } catch (error) {
      fault(error);
    } finally {
      atWork.delete(receipt);
    }
  };

  const keepHidden = async (seconds: number): Promise<void> => {
    for (;;) {
      await clock.sleep((seconds * 1000) / 3, over.signal);
      await Promise.all([...atWork].map((receipt) => queue.extend(receipt, seconds)));
    }
  };

  const running = new Set<Promise<void>>();
  const isIdleTooLong = (sinceMs: number): boolean =>
    options.stopWhenIdleSeconds !== undefined &&
    running.size === 0 &&
    clock.monotonic() - sinceMs >= options.stopWhenIdleSeconds * 1000;

  const consume = async (): Promise<void> => {
    let busyAtMs = clock.monotonic();
    while (!isDraining) {
      const free = allowed() - running.size;
      if (free <= 0) {
        freed = Promise.withResolvers();
        await freed.promise;
        continue;
      }
      const messages = await queue.receive(Math.min(largestBatch, free), pollSeconds);
      for (const message of messages) {
        if (isDraining) {
          await queue.extend(message.receipt, 0);
          continue;
        }
        atWork.add(message.receipt);
        const working = work(message).finally(() => {
          running.delete(working);
          freed.resolve();
        });
        running.add(working);
      }
      if (messages.length > 0 || running.size > 0) busyAtMs = clock.monotonic();
      else if (isIdleTooLong(busyAtMs)) isDraining = true;
    }
  };

  const consumed = consume().catch(fault);
  if (hiddenSeconds !== undefined) {
    keepHidden(hiddenSeconds).catch((error) => {
      if (!over.signal.aborted) fault(error);
    });
  }
  const ended = consumed
    .then(async () => {
      while (running.size > 0) await Promise.all(running);
    })
    .finally(() => over.abort());
  return {
    ended,
    drain: async () => {
      isDraining = true;
      freed.resolve();
      await ended;
    },
  };
};
