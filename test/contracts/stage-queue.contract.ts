import { describe, expect, it, onTestFinished } from 'vitest';
import type { QueueSettings, ReceivedMessage, StageQueue } from '../../shared/ports/stage-queue.ts';

export interface StageQueueUnderTest {
  queue: StageQueue;
  /** Lets so many seconds go by, on a virtual clock or by waiting. */
  pass(seconds: number): Promise<void>;
  dispose?(): Promise<void>;
}

/** What every StageQueue does. Visibilities and delays are whole seconds and few: some clocks are real. */
export const stageQueueContract = (
  name: string,
  makeQueue: (settings: QueueSettings) => Promise<StageQueueUnderTest>,
): void => {
  const emptyQueue = async (settings: Partial<QueueSettings> = {}) => {
    const made = await makeQueue({ visibilitySeconds: 2, maxReceiveCount: 3, ...settings });
    if (made.dispose) onTestFinished(made.dispose);
    return made;
  };
  /** Receives until the queue has nothing more to show. */
  const receiveAll = async (queue: StageQueue): Promise<ReceivedMessage[]> => {
    const all: ReceivedMessage[] = [];
    for (;;) {
      const batch = await queue.receive(10, 0);
      if (batch.length === 0) return all;
      all.push(...batch);
    }
  };

  describe(`StageQueue contract: ${name}`, () => {
    it('delivers what was sent, once', async () => {
      const { queue } = await emptyQueue();
      const messageId = await queue.send('{"text":"grüße 漢字"}');

      const [first, second] = [await queue.receive(1, 1), await queue.receive(1, 0)];

      expect(first).toEqual([
        { messageId, receipt: expect.any(String), body: '{"text":"grüße 漢字"}', receiveCount: 1 },
      ]);
      expect(second).toEqual([]);
    });

    it('has nothing to deliver when nothing was sent', async () => {
      const { queue } = await emptyQueue();

      const received = await queue.receive(10, 0);

      expect(received).toEqual([]);
      expect(await queue.depth()).toEqual({ visible: 0, hidden: 0, dead: 0 });
    });

    it('delivers every one of many messages, at most the wanted number at a time', async () => {
      const { queue } = await emptyQueue({ visibilitySeconds: 30 });
      const bodies = Array.from({ length: 25 }, (_, at) => `message ${at}`);
      for (const body of bodies) await queue.send(body);

      const few = await queue.receive(3, 1);
      const rest = await receiveAll(queue);

      expect(few.length).toBeLessThanOrEqual(3);
      expect(new Set([...few, ...rest].map((message) => message.body))).toEqual(new Set(bodies));
      expect(new Set([...few, ...rest].map((message) => message.receipt)).size).toBe(25);
    });

    it.each([0, 11, 1.5])('refuses to receive %d messages', async (max) => {
      const { queue } = await emptyQueue();

      await expect(queue.receive(max, 0)).rejects.toThrow();
    });

    it('brings a message back when its visibility has run out', async () => {
      const { queue, pass } = await emptyQueue();
      await queue.send('work');
      const [first] = await queue.receive(1, 1);

      const whileHidden = await queue.receive(1, 0);
      await pass(3);
      const [again] = await queue.receive(1, 1);

      expect(whileHidden).toEqual([]);
      expect(again).toMatchObject({ messageId: first!.messageId, body: 'work', receiveCount: 2 });
      expect(again!.receipt).not.toBe(first!.receipt);
    });

    it('never delivers a deleted message again', async () => {
      const { queue, pass } = await emptyQueue();
      await queue.send('work');
      const [message] = await queue.receive(1, 1);

      await queue.delete(message!.receipt);
      await queue.delete(message!.receipt);
      await pass(3);

      expect(await queue.receive(1, 0)).toEqual([]);
      expect(await queue.depth()).toEqual({ visible: 0, hidden: 0, dead: 0 });
    });

    it('hides a message for longer when its delivery is extended', async () => {
      const { queue, pass } = await emptyQueue();
      await queue.send('slow work');
      const [message] = await queue.receive(1, 1);

      await queue.extend(message!.receipt, 6);
      await pass(4);
      const meanwhile = await queue.receive(1, 0);
      await pass(3);
      const [again] = await queue.receive(1, 1);

      expect(meanwhile).toEqual([]);
      expect(again).toMatchObject({ body: 'slow work', receiveCount: 2 });
    });

    it('gives a message back at once when its delivery is extended by zero', async () => {
      const { queue } = await emptyQueue({ visibilitySeconds: 30 });
      await queue.send('not now');
      const [message] = await queue.receive(1, 1);

      await queue.extend(message!.receipt, 0);
      const [again] = await queue.receive(1, 1);

      expect(again).toMatchObject({ body: 'not now', receiveCount: 2 });
    });

    it('leaves a newer delivery alone when an old receipt is used', async () => {
      const { queue, pass } = await emptyQueue({ maxReceiveCount: 5 });
      await queue.send('work');
      const [first] = await queue.receive(1, 1);
      await pass(3);
      const [second] = await queue.receive(1, 1);

      await queue.delete(second!.receipt);
      await queue.delete(first!.receipt);
      await queue.delete('no such receipt'.padEnd(40, '='));

      expect(await queue.depth()).toEqual({ visible: 0, hidden: 0, dead: 0 });
    });

    it('moves a message that nobody finishes to the dead letters', async () => {
      const { queue, pass } = await emptyQueue({ maxReceiveCount: 2 });
      await queue.send('poison');
      await queue.send('fine');

      const counts: number[] = [];
      for (let round = 0; round < 2; round += 1) {
        for (const message of await receiveAll(queue)) {
          if (message.body === 'fine') await queue.delete(message.receipt);
          else counts.push(message.receiveCount);
        }
        await pass(3);
      }
      const afterwards = await queue.receive(10, 0);

      expect(counts).toEqual([1, 2]);
      expect(afterwards).toEqual([]);
      expect(await queue.deadLetters()).toEqual(['poison']);
      expect(await queue.depth()).toEqual({ visible: 0, hidden: 0, dead: 1 });
    });

    it('delivers a delayed message only after its delay', async () => {
      const { queue, pass } = await emptyQueue();
      await queue.send('later', { delaySeconds: 3 });

      const early = await queue.receive(1, 0);
      await pass(4);
      const [late] = await queue.receive(1, 1);

      expect(early).toEqual([]);
      expect(late).toMatchObject({ body: 'later', receiveCount: 1 });
    });

    it('ends a long poll when a message arrives', async () => {
      const { queue, pass } = await emptyQueue();

      const polling = queue.receive(10, 15);
      await pass(1);
      await queue.send('there');

      expect(await polling).toMatchObject([{ body: 'there' }]);
    });

    it('ends a long poll when a hidden message comes back', async () => {
      const { queue, pass } = await emptyQueue();
      await queue.send('work');
      await queue.receive(1, 1);

      const polling = queue.receive(10, 15);
      await pass(3);

      expect(await polling).toMatchObject([{ body: 'work', receiveCount: 2 }]);
    });

    it('ends a long poll with nothing when its time is over', async () => {
      const { queue, pass } = await emptyQueue();

      const polling = queue.receive(10, 1);
      await pass(2);

      expect(await polling).toEqual([]);
    });

    it('counts what waits, what is hidden and what is dead', async () => {
      const { queue } = await emptyQueue({ visibilitySeconds: 30 });
      for (const body of ['a', 'b', 'c']) await queue.send(body);
      await queue.send('delayed', { delaySeconds: 30 });
      await queue.receive(1, 1);

      const depth = await queue.depth();

      expect(depth).toEqual({ visible: 2, hidden: 2, dead: 0 });
    });
  });
};
