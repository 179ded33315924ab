import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Clock } from '../ports/clock.ts';
import type { StageQueue } from '../ports/stage-queue.ts';
import type { BatchResponse, QueueEvent } from './queue-stage.ts';

export interface QueueConsumer {
  /** Takes no further message and resolves when those at work are done. */
  drain(): Promise<void>;
  /** Resolves once every message at work has ended, after `drain` or by itself when the queue stayed empty. */
  ended: Promise<void>;
  /** Hands the messages at work back, so that another consumer may have them at once. */
  handBack(): Promise<void>;
}

export interface QueueConsumerOptions {
  queue: StageQueue;
  concurrency: number;
  handler: (event: QueueEvent) => Promise<BatchResponse>;
  /** A fault of the queue itself; the worker that met it takes no further message. */
  onFault: (error: unknown) => void;
  /** Set where calls may outlast the queue's visibility: how long it is and whose time it counts. */
  keepHidden?: { visibilitySeconds: number; clock: Clock };
  /** End by itself once the queue has been empty, nothing hidden, for this many polls in a row. */
  endAfterEmptyPolls?: number;
}

/** A message that failed comes back after 1, 2, 4 … seconds, at most this many. */
const longestReturnSeconds = 60;
/** The longest poll that SQS has. */
const pollSeconds = 20;
/** Visibility is renewed when this part of it has passed. */
const renewalShare = 1 / 3;

/**
 * What an SQS event source mapping does, for homes that have none: up to `concurrency` handlers at once
 * with one message each; a message is deleted when its handler succeeded and comes back when it did not.
 */
export const startQueueConsumer = (options: QueueConsumerOptions): QueueConsumer => {
  const { queue, handler, keepHidden } = options;
  const atWork = new Set<string>();
  let draining = false;
  let emptyPolls = 0;

  const hide = async (receipt: string, signal: AbortSignal): Promise<void> => {
    if (keepHidden === undefined) return;
    const { clock, visibilitySeconds } = keepHidden;
    while (!signal.aborted) {
      const slept = await clock.sleep(visibilitySeconds * renewalShare * 1000, signal).then(
        () => true,
        () => false,
      );
      if (slept && atWork.has(receipt)) await queue.extend(receipt, visibilitySeconds);
    }
  };

  const handle = async (message: Awaited<ReturnType<StageQueue['receive']>>[number]): Promise<void> => {
    const { receipt, messageId, body, receiveCount } = message;
    const done = new AbortController();
    atWork.add(receipt);
    const hiding = hide(receipt, done.signal);
    try {
      const response = await handler({
        Records: [{ messageId, body, attributes: { ApproximateReceiveCount: String(receiveCount) } }],
      });
      if (response.batchItemFailures.length === 0) await queue.delete(receipt);
      else if (atWork.has(receipt)) {
        await queue.extend(receipt, Math.min(longestReturnSeconds, 2 ** (receiveCount - 1)));
      }
    } finally {
      atWork.delete(receipt);
      done.abort();
      await hiding;
    }
  };

  const isDrained = async (): Promise<boolean> => {
    if (options.endAfterEmptyPolls === undefined) return false;
    const { visible, hidden } = await queue.depth();
    emptyPolls = visible + hidden === 0 ? emptyPolls + 1 : 0;
    return emptyPolls >= options.endAfterEmptyPolls;
  };

  const work = async (): Promise<void> => {
    while (!draining) {
      const [message] = await queue.receive(1, pollSeconds);
      if (message === undefined) {
        if (await isDrained()) draining = true;
        else await nextTurn();
        continue;
      }
      emptyPolls = 0;
      if (draining) {
        await queue.extend(message.receipt, 0);
        return;
      }
      await handle(message);
    }
  };
  const workers = Promise.all(
    Array.from({ length: options.concurrency }, () => work().catch(options.onFault)),
  );
  const ended = workers.then(() => undefined);
  return {
    ended,
    drain: () => {
      draining = true;
      return ended;
    },
    async handBack() {
      draining = true;
      const receipts = [...atWork];
      atWork.clear();
      for (const receipt of receipts) await queue.extend(receipt, 0);
    },
  };
};
