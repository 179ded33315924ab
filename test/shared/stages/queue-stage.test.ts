import { describe, expect, it, onTestFinished } from 'vitest';
import { z } from 'zod';
import { createMemoryStageQueue } from '../../../shared/adapters/local/memory-stage-queue.ts';
import { createSqliteLedger } from '../../../shared/adapters/local/sqlite-ledger.ts';
import { createVirtualClock } from '../../../shared/adapters/local/virtual-clock.ts';
import { startQueueConsumer } from '../../../shared/stages/queue-consumer.ts';
import { createQueueStage } from '../../../shared/stages/queue-stage.ts';

const schema = z.strictObject({ taskToken: z.string(), item: z.string() });
const body = JSON.stringify({ taskToken: 'token-1', item: 'a' });
const record = (receiveCount = 1, text = body) => ({
  Records: [{ messageId: 'm1', body: text, attributes: { ApproximateReceiveCount: String(receiveCount) } }],
});

const stageUnderTest = (core: () => Promise<unknown>, { isWaitedFor = true } = {}) => {
  const clock = createVirtualClock(1_000_000);
  const ledger = createSqliteLedger(':memory:', { clock });
  onTestFinished(() => ledger.close());
  const answers: unknown[] = [];
  const errors: unknown[] = [];
  const stage = createQueueStage({
    stage: 'work',
    schema,
    core,
    workflow: {
      succeed: async (token, output) => answers.push(['succeed', token, output]) > 0,
      fail: async (token, error, cause) => answers.push(['fail', token, error, cause]) > 0,
      heartbeat: async () => isWaitedFor,
    },
    ledger,
    visibilitySeconds: 60,
    maxReceiveCount: 3,
    onError: (error) => errors.push(error),
  });
  return { stage, clock, answers, errors };
};

describe('a queue stage', () => {
  it('fails the token at a receive beyond the last, without any work', async () => {
    let works = 0;
    const { stage, answers, errors } = stageUnderTest(async () => {
      works += 1;
    });

    const response = await stage(record(4));

    expect(works).toBe(0);
    expect(answers).toEqual([
      ['fail', 'token-1', 'MessagePoisoned', 'its handler was killed at the last receive'],
    ]);
    expect(errors).toHaveLength(1);
    expect(response.batchItemFailures).toHaveLength(1);
  });

  it('works once, however the deliveries of a message overlap', async () => {
    let works = 0;
    const started = Promise.withResolvers<void>();
    const { stage, answers } = stageUnderTest(async () => {
      works += 1;
      await started.promise;
      return 'done';
    });

    // Deliveries in every phase of the first: at work, answering, answered.
    const deliveries = [stage(record())];
    for (let turn = 0; turn < 40; turn += 1) {
      if (turn === 10) started.resolve();
      deliveries.push(stage(record()));
      await Promise.resolve();
    }
    const responses = await Promise.all(deliveries);
    const late = await stage(record(2));

    expect(works).toBe(1);
    expect(answers).toEqual([['succeed', 'token-1', 'done']]);
    expect(responses[0]).toEqual({ batchItemFailures: [] });
    expect(responses[1]).toEqual({ batchItemFailures: [{ itemIdentifier: 'm1' }] });
    expect(late).toEqual({ batchItemFailures: [] });
  });

  it('works again after the worker was lost, once its visibility is over', async () => {
    let works = 0;
    const { stage, clock, answers } = stageUnderTest(() => {
      works += 1;
      return works === 1 ? new Promise(() => {}) : Promise.resolve('second');
    });
    void stage(record());
    await clock.advance(59_000);

    const tooEarly = await stage(record(2));
    await clock.advance(2_000);
    const afterwards = await stage(record(3));

    expect(tooEarly.batchItemFailures).toHaveLength(1);
    expect(afterwards.batchItemFailures).toHaveLength(0);
    expect(answers).toEqual([['succeed', 'token-1', 'second']]);
  });

  it('fails the token of a message that does not keep the contract', async () => {
    const { stage, answers } = stageUnderTest(async () => 'never');

    const response = await stage(record(1, JSON.stringify({ taskToken: 'token-1', item: 7 })));

    expect(response).toEqual({ batchItemFailures: [] });
    expect(answers).toMatchObject([['fail', 'token-1', 'ContractViolated', expect.stringContaining('item')]]);
  });

  it('drops the message of a stopped execution without any work', async () => {
    let works = 0;
    const { stage, answers, errors } = stageUnderTest(
      async () => {
        works += 1;
      },
      { isWaitedFor: false },
    );

    const responses = [await stage(record()), await stage(record(2))];

    expect(responses).toEqual([{ batchItemFailures: [] }, { batchItemFailures: [] }]);
    expect([works, answers, errors]).toEqual([0, [], []]);
  });

  it('leaves a message without a token to the dead letters and tells of it', async () => {
    const { stage, answers, errors } = stageUnderTest(async () => 'never');

    const responses = [await stage(record(1, 'not JSON')), await stage(record(1, '{"item":"a"}'))];

    expect(responses.flatMap((response) => response.batchItemFailures)).toHaveLength(2);
    expect([answers.length, errors.length]).toEqual([0, 2]);
  });

  it('that throws gets the message again, then fails its token while the message goes to the dead letters', async () => {
    let works = 0;
    const { stage, clock, answers, errors } = stageUnderTest(async () => {
      works += 1;
      throw new Error(`broken ${works}`);
    });
    const queue = createMemoryStageQueue({ visibilitySeconds: 3600, maxReceiveCount: 3 }, { clock });
    const faults: unknown[] = [];
    const source = startQueueConsumer({
      clock,
      queue,
      concurrency: 2,
      handler: stage,
      onFault: (fault) => faults.push(fault),
    });
    await queue.send(body);

    await clock.advance(60_000);
    const deadLetters = await queue.deadLetters();
    const drained = source.drain();
    queue.close();
    await drained;

    expect(works).toBe(3);
    expect(errors).toEqual([new Error('broken 1'), new Error('broken 2'), new Error('broken 3')]);
    expect(answers).toEqual([['fail', 'token-1', 'MessagePoisoned', 'broken 3']]);
    expect(deadLetters).toEqual([body]);
    expect(faults).toEqual([]);
    expect(clock.sleepers()).toBe(0);
  });
});
