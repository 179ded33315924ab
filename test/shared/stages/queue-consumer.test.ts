import { describe, expect, it } from 'vitest';
import { createMemoryStageQueue } from '../../../shared/adapters/local/memory-stage-queue.ts';
import { createVirtualClock } from '../../../shared/adapters/local/virtual-clock.ts';
import { type QueueConsumerOptions, startQueueConsumer } from '../../../shared/stages/queue-consumer.ts';
import type { BatchResponse, QueueEvent } from '../../../shared/stages/queue-stage.ts';

const done: BatchResponse = { batchItemFailures: [] };
const failed: BatchResponse = { batchItemFailures: [{ itemIdentifier: 'it' }] };

/** A queue whose messages are hidden for 20 seconds, and a handler that ends when the test says so. */
const consumerUnderTest = (options: Partial<QueueConsumerOptions> = {}) => {
  const clock = createVirtualClock(0);
  const queue = createMemoryStageQueue({ visibilitySeconds: 20, maxReceiveCount: 9 }, { clock });
  const atWork: { body: string; end: (response: BatchResponse) => void; fail: (error: Error) => void }[] = [];
  const faults: unknown[] = [];
  const consumer = startQueueConsumer({
    queue,
    clock,
    concurrency: 2,
    handler: ({ Records: [record] }: QueueEvent) =>
      new Promise((end, fail) => atWork.push({ body: record!.body, end, fail })),
    onFault: (fault) => faults.push(fault),
    ...options,
  });
  const send = (...bodies: string[]) => Promise.all(bodies.map((body) => queue.send(body)));
  return { clock, queue, consumer, atWork, faults, send, bodies: () => atWork.map(({ body }) => body) };
};

describe('a queue consumer', () => {
  it('has so many messages at work as it may, and takes the next when one has ended', async () => {
    const { clock, queue, atWork, bodies, send } = consumerUnderTest();
    await send('a', 'b', 'c', 'd');
    await clock.advance(0);
    const first = bodies();

    atWork[1]!.end(done);
    await clock.advance(0);

    expect([first, bodies()]).toEqual([
      ['a', 'b'],
      ['a', 'b', 'c'],
    ]);
    expect(await queue.depth()).toEqual({ visible: 1, hidden: 2, dead: 0 });
  });

  it('follows a number of messages that changes: takes more at once when it grows, none while too many are at work', async () => {
    let [allowed, wake] = [1, () => {}];
    const { clock, atWork, bodies, send } = consumerUnderTest({
      concurrency: {
        allowed: () => allowed,
        onGrowth: (told) => {
          wake = told;
        },
      },
    });
    const change = async (to: number) => {
      const grows = to > allowed;
      allowed = to;
      if (grows) wake();
      await clock.advance(0);
      return bodies().length;
    };
    const end = async (index: number) => {
      atWork[index]!.end(done);
      await clock.advance(0);
      return bodies().length;
    };
    await send('a', 'b', 'c', 'd', 'e', 'f');
    await clock.advance(0);

    const counts = [
      bodies().length,
      await change(4),
      await change(2),
      await end(0),
      await end(1),
      await end(2),
    ];
    counts.push(await change(0), await end(3), await change(1));

    // Begun so far: one; four; none more while 3 and 2 are at work; one more when there is one; none while it is 0.
    expect(counts).toEqual([1, 4, 4, 4, 4, 5, 5, 5, 5]);
    expect(await end(4)).toBe(6);
  });

  it('keeps a message hidden while it is at work, and only then', async () => {
    const { clock, queue, atWork, bodies, send } = consumerUnderTest({ hiddenSeconds: 9 });
    await send('long');

    await clock.advance(100_000);
    const whileAtWork = bodies();
    atWork[0]!.end(failed);
    await clock.advance(999);
    const waiting = await queue.depth();
    await clock.advance(1);

    expect(whileAtWork).toEqual(['long']);
    expect(waiting).toEqual({ visible: 0, hidden: 1, dead: 0 });
    expect(bodies()).toEqual(['long', 'long']);
  });

  it('has a message whose handler fails back after 1, 2, 4 … 60 seconds, until it is a dead letter', async () => {
    const workedOnAtMs: number[] = [];
    const { clock, queue, send } = consumerUnderTest({
      handler: async () => {
        workedOnAtMs.push(clock.monotonic());
        return failed;
      },
    });
    await send('a');

    await clock.advance(600_000);

    expect(workedOnAtMs).toEqual([0, 1, 3, 7, 15, 31, 63, 123, 183].map((seconds) => seconds * 1000));
    expect(await queue.deadLetters()).toEqual(['a']);
  });

  it('gives unfinished messages back at once when it is told to, and takes no other', async () => {
    const handBack = new AbortController();
    const { clock, queue, consumer, atWork, bodies, send } = consumerUnderTest({
      hiddenSeconds: 9,
      handBack: handBack.signal,
    });
    await send('a', 'b', 'c');
    await clock.advance(0);

    const drained = consumer.drain();
    handBack.abort();
    for (const { end } of atWork) end(failed);
    await drained;

    expect(bodies()).toEqual(['a', 'b']);
    expect(await queue.depth()).toEqual({ visible: 3, hidden: 0, dead: 0 });
    expect(clock.sleepers()).toBe(0);
  });

  it('ends by itself once it was idle for long enough, not while something is at work', async () => {
    const { clock, consumer, atWork, send } = consumerUnderTest({
      stopWhenIdleSeconds: 60,
      hiddenSeconds: 9,
    });
    let endedAtMs: number | null = null;
    consumer.ended.then(() => {
      endedAtMs = clock.now();
    });
    await send('a');
    await clock.advance(300_000);
    const whileAtWork = endedAtMs;

    atWork[0]!.end(done);
    await clock.advance(300_000);

    expect(whileAtWork).toBeNull();
    // Three empty polls of 20 seconds.
    expect(endedAtMs).toBe(360_000);
  });

  it('reports a handler that throws, and ends', async () => {
    const { clock, consumer, atWork, faults, send } = consumerUnderTest();
    await send('a', 'b');
    await clock.advance(0);

    atWork[0]!.fail(new Error('broken'));
    atWork[1]!.end(done);
    await clock.advance(20_000);
    await consumer.ended;

    expect(faults).toEqual([new Error('broken')]);
  });
});
