import { describe, expect, it } from 'vitest';
import {
  createMemoryStageQueue,
  type MemoryStageQueueOptions,
} from '../../../../shared/adapters/local/memory-stage-queue.ts';
import { createVirtualClock } from '../../../../shared/adapters/local/virtual-clock.ts';
import type { QueueSettings } from '../../../../shared/ports/stage-queue.ts';
import { stageQueueContract } from '../../../contracts/stage-queue.contract.ts';

const queueWith = (
  settings: Partial<QueueSettings> = {},
  options: Partial<Omit<MemoryStageQueueOptions, 'clock'>> = {},
) => {
  const clock = createVirtualClock();
  const queue = createMemoryStageQueue(
    { visibilitySeconds: 30, maxReceiveCount: 3, ...settings },
    { clock, ...options },
  );
  return { clock, queue };
};

stageQueueContract('in memory', async (settings) => {
  const { clock, queue } = queueWith(settings);
  return { queue, pass: (seconds) => clock.advance(seconds * 1000) };
});

describe('the queue in memory', () => {
  it('is first in, first out', async () => {
    const { queue } = queueWith();
    for (const body of ['a', 'b', 'c', 'd']) await queue.send(body);

    const batches = [await queue.receive(2, 0), await queue.receive(10, 0)];

    expect(batches.map((batch) => batch.map((message) => message.body))).toEqual([
      ['a', 'b'],
      ['c', 'd'],
    ]);
  });

  it('gives each message to one of many waiting', async () => {
    const { queue } = queueWith();
    const polls = Array.from({ length: 5 }, () => queue.receive(1, 20));

    for (const body of ['a', 'b', 'c', 'd', 'e']) await queue.send(body);

    const bodies = (await Promise.all(polls)).flat().map((message) => message.body);
    expect(bodies).toEqual(['a', 'b', 'c', 'd', 'e']);
  });

  it('brings messages back in the order in which their visibilities end', async () => {
    const { clock, queue } = queueWith();
    for (const body of ['a', 'b', 'c']) await queue.send(body);
    const [a, b, c] = await queue.receive(3, 0);
    await queue.extend(a!.receipt, 50);
    await queue.extend(b!.receipt, 10);
    await queue.extend(c!.receipt, 20);

    const order: string[] = [];
    for (let poll = 0; poll < 3; poll += 1) {
      const polling = queue.receive(1, 60);
      const [message] = await clock.runUntilSettled(polling);
      order.push(`${message!.body} at ${clock.monotonic()}`);
      await queue.delete(message!.receipt);
    }

    expect(order).toEqual(['b at 10000', 'c at 20000', 'a at 50000']);
  });

  it('gives back before its time a message that a poll waits for', async () => {
    const { clock, queue } = queueWith();
    await queue.send('work');
    const [message] = await queue.receive(1, 0);
    const polling = queue.receive(1, 20);
    await clock.advance(1000);

    await queue.extend(message!.receipt, 0);

    expect(await polling).toMatchObject([{ body: 'work', receiveCount: 2 }]);
    expect(clock.monotonic()).toBe(1000);
  });

  it('lets a late delete count as long as nobody else has the message', async () => {
    const { clock, queue } = queueWith();
    await queue.send('slow');
    const [message] = await queue.receive(1, 0);
    await clock.advance(31_000);

    await queue.delete(message!.receipt);

    expect(await queue.receive(1, 0)).toEqual([]);
  });

  it('ignores a late extend: the message is anybody’s', async () => {
    const { clock, queue } = queueWith();
    await queue.send('slow');
    const [message] = await queue.receive(1, 0);
    await clock.advance(31_000);
    await queue.depth();

    await queue.extend(message!.receipt, 100);

    expect(await queue.receive(1, 0)).toMatchObject([{ body: 'slow', receiveCount: 2 }]);
  });

  it('lists dead letters oldest first', async () => {
    const { clock, queue } = queueWith({ maxReceiveCount: 1 });
    for (const body of ['a', 'b', 'c']) {
      await queue.send(body);
      await queue.receive(1, 0);
      await clock.advance(1000);
    }

    await clock.advance(30_000);

    expect(await queue.deadLetters()).toEqual(['a', 'b', 'c']);
  });

  it('holds one timer however many wait, and none when nobody does', async () => {
    const { clock, queue } = queueWith();
    const polls = Array.from({ length: 100 }, () => queue.receive(1, 20));
    const whileWaiting = clock.sleepers();

    for (let at = 0; at < 100; at += 1) await queue.send(`message ${at}`);
    await Promise.all(polls);

    expect(whileWaiting).toBe(1);
    expect(clock.sleepers()).toBe(0);
  });

  it('wakes only when something is due', async () => {
    const wakeUps: number[] = [];
    const virtual = createVirtualClock();
    const clock = {
      monotonic: virtual.monotonic,
      sleep: async (ms: number, signal?: AbortSignal) => {
        await virtual.sleep(ms, signal);
        wakeUps.push(virtual.monotonic());
      },
    };
    const queue = createMemoryStageQueue({ visibilitySeconds: 7, maxReceiveCount: 9 }, { clock });
    await queue.send('work');
    await queue.receive(1, 0);

    const polls = [queue.receive(1, 20), queue.receive(1, 10)];
    await virtual.advance(60_000);

    expect((await Promise.all(polls)).map((batch) => batch.length)).toEqual([1, 1]);
    // The poll that gives up first is served first; the message comes back 7 seconds later for the other.
    expect(wakeUps).toEqual([7000, 14_000]);
  });

  it('ends all waits when it is closed', async () => {
    const { clock, queue } = queueWith();
    const polls = [queue.receive(1, 20), queue.receive(1, 20)];

    queue.close();

    expect(await Promise.all(polls)).toEqual([[], []]);
    expect(await queue.receive(1, 20)).toEqual([]);
    expect(clock.sleepers()).toBe(0);
  });

  it('carries 100,000 messages through failure and success', async () => {
    const { clock, queue } = queueWith({ visibilitySeconds: 10 });
    const count = 100_000;
    for (let at = 0; at < count; at += 1) await queue.send(String(at));

    let [deliveries, sum] = [0, 0];
    for (let round = 1; round <= 2; round += 1) {
      for (let batch = await queue.receive(10, 0); batch.length > 0; batch = await queue.receive(10, 0)) {
        for (const message of batch) {
          deliveries += 1;
          // Odd ones fail the first time.
          if (round === 1 && Number(message.body) % 2 === 1) continue;
          sum += Number(message.body);
          await queue.delete(message.receipt);
        }
      }
      await clock.advance(10_000);
    }

    expect(deliveries).toBe(150_000);
    expect(sum).toBe((count * (count - 1)) / 2);
    expect(await queue.depth()).toEqual({ visible: 0, hidden: 0, dead: 0 });
  });
});

describe('delivering twice', () => {
  it('hands out every message a second time while its first delivery is hidden', async () => {
    const { queue } = queueWith({}, { deliverTwice: true });
    for (const body of ['a', 'b']) await queue.send(body);

    const deliveries = [];
    for (let at = 0; at < 5; at += 1) deliveries.push(...(await queue.receive(1, 0)));

    expect(deliveries.map(({ messageId, body, receiveCount }) => [messageId, body, receiveCount])).toEqual([
      ['message-1', 'a', 1],
      ['message-1', 'a', 2],
      ['message-2', 'b', 1],
      ['message-2', 'b', 2],
    ]);
    expect(new Set(deliveries.map((delivery) => delivery.receipt)).size).toBe(4);
  });

  it('gives what is visible in the order that it is told to draw, copies too', async () => {
    // One number for each message as it becomes visible: three sent, then the copy of each as it is received.
    const drawn = [0.5, 0.9, 0.1, 0.7, 0.2, 0.8];
    const outOfOrder = { next: () => drawn.shift()! };
    const { queue } = queueWith({}, { deliverTwice: true, outOfOrder });
    for (const body of ['a', 'b', 'c']) await queue.send(body);

    const bodies = [];
    for (let at = 0; at < 6; at += 1) bodies.push(...(await queue.receive(1, 0)).map(({ body }) => body));

    expect(bodies).toEqual(['c', 'a', 'a', 'c', 'b', 'b']);
  });

  it('wakes a second waiter with the copy', async () => {
    const { queue } = queueWith({}, { deliverTwice: true });
    const polls = [queue.receive(10, 20), queue.receive(10, 20)];

    await queue.send('a');

    expect(await Promise.all(polls)).toMatchObject([[{ body: 'a' }], [{ body: 'a' }]]);
  });

  it('never puts both deliveries into one batch', async () => {
    const { queue } = queueWith({}, { deliverTwice: true });
    for (const body of ['a', 'b']) await queue.send(body);

    const batches = [await queue.receive(10, 0), await queue.receive(10, 0), await queue.receive(10, 0)];

    expect(batches.map((batch) => batch.map((message) => message.body))).toEqual([
      ['a', 'b'],
      ['a', 'b'],
      [],
    ]);
  });

  it('delivers the copy even when the first delivery is done with', async () => {
    const { queue } = queueWith({}, { deliverTwice: true });
    await queue.send('a');
    const [first] = await queue.receive(1, 0);
    await queue.delete(first!.receipt);

    const [second] = await queue.receive(1, 0);
    await queue.delete(second!.receipt);

    expect(second).toMatchObject({ body: 'a', receiveCount: 2 });
    expect(await queue.depth()).toEqual({ visible: 0, hidden: 0, dead: 0 });
  });

  it('keeps copies out of the dead letters', async () => {
    const { clock, queue } = queueWith({ maxReceiveCount: 2 }, { deliverTwice: true });
    await queue.send('a');
    for (let round = 0; round < 5; round += 1) {
      await queue.receive(1, 0);
      await queue.receive(1, 0);
      await clock.advance(30_000);
    }

    expect(await queue.deadLetters()).toEqual(['a']);
    expect(await queue.depth()).toEqual({ visible: 0, hidden: 0, dead: 1 });
  });
});
