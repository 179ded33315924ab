import { errorNames, TurnsweepError } from '../../errors.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Random } from '../../ports/random.ts';
import type { QueueSettings, ReceivedMessage, StageQueue } from '../../ports/stage-queue.ts';
import { createOrderedHeap, type HeapEntry } from './ordered-heap.ts';

export interface MemoryStageQueueOptions {
  clock: Pick<Clock, 'monotonic' | 'sleep'>;
  /**
   * Fault injection: every message comes a second time (same id, own receipt) at once, while its first
   * delivery is still at work, as an at-least-once queue may do. Such a copy never becomes a dead letter.
   */
  deliverTwice?: boolean;
  /** Fault injection: what is visible, copies too, comes in an order drawn from this. */
  outOfOrder?: Random;
}

export interface MemoryStageQueue extends StageQueue {
  /** Ends every wait: `receive` gives what is there and waits no more. */
  close(): void;
}

interface Message {
  messageId: string;
  body: string;
  receiveCount: number;
  isCopy: boolean;
  /** Handle of the latest delivery. */
  receipt: string | null;
  /** Its place among the visible or the hidden, whichever it is in. */
  entry: HeapEntry<Message> | null;
}

interface Waiter {
  max: number;
  resolve(messages: ReceivedMessage[]): void;
}

const timerReplaced = Symbol('timer replaced');
const inTurn = 0;
const aheadOfAll = -1;

/**
 * A queue in this process with the manners of SQS: hidden while at work, redelivered when the visibility
 * runs out, dead after `maxReceiveCount` receives. Unlike SQS it is first in, first out among the visible.
 * A receipt lasts until the message is received again, so that a late delete still counts, as on SQS.
 * Everything takes O(log n); nobody polls: a wait holds one timer for the next thing due.
 */
export const createMemoryStageQueue = (
  settings: QueueSettings,
  options: MemoryStageQueueOptions,
): MemoryStageQueue => {
  const { clock } = options;
  const visible = createOrderedHeap<Message>();
  /** Ordered by the millisecond at which they come back. */
  const hidden = createOrderedHeap<Message>();
  const deliveries = new Map<string, Message>();
  /** Ordered by the millisecond at which they give up. */
  const waiters = createOrderedHeap<Waiter>();
  const dead: string[] = [];
  let sent = 0;
  let delivered = 0;
  let isClosed = false;
  let timer: { atMs: number; abort: AbortController } | null = null;

  const show = (message: Message, order = inTurn): void => {
    message.entry = visible.push(options.outOfOrder?.next() ?? order, message);
  };
  const hide = (message: Message, seconds: number): void => {
    message.entry = hidden.push(clock.monotonic() + seconds * 1000, message);
  };
  /** Takes the message out of wherever it waits. */
  const take = (message: Message): void => {
    if (message.entry !== null && !visible.remove(message.entry)) hidden.remove(message.entry);
    message.entry = null;
  };
  const forget = (message: Message): void => {
    take(message);
    if (message.receipt !== null) deliveries.delete(message.receipt);
  };

  const bringBackDue = (): void => {
    const nowMs = clock.monotonic();
    for (let next = hidden.first(); next !== undefined && next.order <= nowMs; next = hidden.first()) {
      const message = next.value;
      take(message);
      if (message.receiveCount < settings.maxReceiveCount) {
        show(message);
        continue;
      }
      forget(message);
      if (!message.isCopy) dead.push(message.body);
    }
  };

  const deliver = (message: Message): ReceivedMessage => {
    forget(message);
    delivered += 1;
    message.receiveCount += 1;
    message.receipt = `${message.messageId}/${delivered}`;
    deliveries.set(message.receipt, message);
    hide(message, settings.visibilitySeconds);
    const { messageId, receipt, body, receiveCount } = message;
    return { messageId, receipt, body, receiveCount };
  };

  const takeVisible = (max: number): ReceivedMessage[] => {
    const batch: ReceivedMessage[] = [];
    const copies: Message[] = [];
    while (batch.length < max) {
      const next = visible.first();
      if (next === undefined) break;
      const message = next.value;
      batch.push(deliver(message));
      if (options.deliverTwice && !message.isCopy && message.receiveCount === 1) {
        copies.push({ ...message, isCopy: true, receipt: null, entry: null });
      }
    }
    // Only now: a batch does not hold a message twice.
    for (const copy of copies) show(copy, aheadOfAll);
    return batch;
  };

  /** Gives waiters what is there or sends them away, then sets the timer for the next thing due. */
  const serve = (): void => {
    bringBackDue();
    const nowMs = clock.monotonic();
    for (let next = waiters.first(); next !== undefined; next = waiters.first()) {
      if (visible.size === 0 && next.order > nowMs && !isClosed) break;
      waiters.remove(next);
      next.value.resolve(takeVisible(next.value.max));
    }
    const givesUpMs = waiters.first()?.order;
    setTimer(givesUpMs === undefined ? null : Math.min(givesUpMs, hidden.first()?.order ?? givesUpMs));
  };

  const setTimer = (atMs: number | null): void => {
    if (timer !== null && atMs !== null && timer.atMs <= atMs) return;
    timer?.abort.abort(timerReplaced);
    timer = null;
    if (atMs === null) return;
    const mine = { atMs, abort: new AbortController() };
    timer = mine;
    clock.sleep(atMs - clock.monotonic(), mine.abort.signal).then(
      () => {
        if (timer !== mine) return;
        timer = null;
        serve();
      },
      (reason: unknown) => {
        if (reason !== timerReplaced) throw reason;
      },
    );
  };

  return {
    async send(body, { delaySeconds = 0 } = {}) {
      sent += 1;
      const messageId = `message-${sent}`;
      const message: Message = {
        messageId,
        body,
        receiveCount: 0,
        isCopy: false,
        receipt: null,
        entry: null,
      };
      if (delaySeconds > 0) hide(message, delaySeconds);
      else show(message);
      if (waiters.size > 0) serve();
      return messageId;
    },
    async receive(max, waitSeconds) {
      if (!Number.isInteger(max) || max < 1 || max > 10) {
        throw new TurnsweepError(errorNames.usage, `a receive takes 1 to 10 messages, not ${max}`);
      }
      bringBackDue();
      if (visible.size > 0 || waitSeconds <= 0 || isClosed) {
        const batch = takeVisible(max);
        // What deliverTwice has just added may be what another one waits for.
        if (waiters.size > 0) serve();
        return batch;
      }
      return new Promise((resolve) => {
        waiters.push(clock.monotonic() + waitSeconds * 1000, { max, resolve });
        serve();
      });
    },
    async extend(receipt, visibilitySeconds) {
      bringBackDue();
      const message = deliveries.get(receipt);
      // Back among the visible: the delivery's time is over, and somebody else may take it any moment.
      if (message === undefined || message.entry === null || !hidden.remove(message.entry)) return;
      hide(message, visibilitySeconds);
      serve();
    },
    async delete(receipt) {
      const message = deliveries.get(receipt);
      if (message !== undefined) forget(message);
    },
    async depth() {
      bringBackDue();
      return { visible: visible.size, hidden: hidden.size, dead: dead.length };
    },
    async deadLetters() {
      bringBackDue();
      return [...dead];
    },
    close() {
      isClosed = true;
      serve();
    },
  };
};
