import { readdirSync, readFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import path from 'node:path';
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3';
import { CreateStateMachineCommand, ListExecutionsCommand, SFNClient } from '@aws-sdk/client-sfn';
import { CreateQueueCommand, SQSClient } from '@aws-sdk/client-sqs';
import { describe, expect, it } from 'vitest';
import { createS3ObjectStore } from '../../shared/adapters/aws/s3-object-store.ts';
import { createSqsStageQueue } from '../../shared/adapters/aws/sqs-stage-queue.ts';
import { createStepFunctionsWorkflow } from '../../shared/adapters/aws/step-functions-workflow.ts';
import { startAwsEmulator } from '../support/aws-emulator.ts';
import { collect } from '../support/collect.ts';
import { useAwsEmulator } from './emulator.ts';
import { createMachine, ending, waitForToken } from './machines.ts';

// What the launcher repairs (docs/emulator.md), as AWS documents it. An emulator that is wrong here would let a
// sweep pass with another meaning.

const emulator = useAwsEmulator({ enforcesPolicies: false });

let names = 0;
const home = async () => {
  const options = emulator().clientOptions;
  const [client, s3, sqs] = [new SFNClient(options), new S3Client(options), new SQSClient(options)];
  names += 1;
  const bucket = `bucket-${names}`;
  await s3.send(new CreateBucketCommand({ Bucket: bucket }));
  const { QueueUrl } = await sqs.send(new CreateQueueCommand({ QueueName: `queue-${names}` }));
  return {
    client,
    bucket,
    store: createS3ObjectStore({ client: s3, bucket }),
    queueUrl: QueueUrl!,
    queue: createSqsStageQueue({ client: sqs, queueUrl: QueueUrl! }),
    workflow: createStepFunctionsWorkflow({ client }),
  };
};

const overLines = (bucket: string, states: Record<string, object>, rest: object = {}) => ({
  Each: {
    Type: 'Map',
    ItemReader: {
      Resource: 'arn:aws:states:::s3:getObject',
      ReaderConfig: { InputType: 'JSONL' },
      Parameters: { Bucket: bucket, 'Key.$': '$.key' },
    },
    ItemSelector: { 'item.$': '$$.Map.Item.Value', 'kept.$': '$.kept' },
    MaxConcurrencyPath: '$.atOnce',
    ToleratedFailureCountPath: '$.tolerated',
    ItemProcessor: {
      ProcessorConfig: { Mode: 'DISTRIBUTED', ExecutionType: 'STANDARD' },
      StartAt: Object.keys(states)[0],
      States: states,
    },
    End: true,
    ...rest,
  },
});

const failOdd = {
  Look: {
    Type: 'Choice',
    Choices: [{ Variable: '$.item.odd', BooleanEquals: true, Next: 'Refuse' }],
    Default: 'Keep',
  },
  Refuse: { Type: 'Fail', Error: 'Odd', Cause: 'it is odd' },
  Keep: { Type: 'Pass', End: true },
};

describe('Distributed Map in the emulator', () => {
  it('reads every line of JSON Lines, and only line feeds end lines', async () => {
    const { client, bucket, store, workflow } = await home();
    const items = Array.from({ length: 25 }, (_, n) => ({ n, text: 'a\u2028b\u0085c\u000bd' }));
    await store.putLines(
      'items.jsonl',
      items.map((item) => JSON.stringify(item)),
    );
    const machine = await createMachine(client, overLines(bucket, { Keep: { Type: 'Pass', End: true } }));

    const id = await workflow.start(machine, 'one', {
      key: 'items.jsonl',
      atOnce: 10,
      tolerated: 0,
      kept: 'k',
    });

    expect((await ending(workflow, id)).output).toEqual(items.map((item) => ({ item, kept: 'k' })));
  });

  it('fails where there is nothing to read', async () => {
    const { client, bucket, workflow } = await home();
    const machine = await createMachine(client, overLines(bucket, { Keep: { Type: 'Pass', End: true } }));

    const id = await workflow.start(machine, 'one', { key: 'none', atOnce: 1, tolerated: 9, kept: 1 });

    expect(await ending(workflow, id)).toMatchObject({ status: 'FAILED', error: 'States.ItemReaderFailed' });
  });

  it('has no more children at work than the path says', async () => {
    const { client, bucket, store, queueUrl, queue, workflow } = await home();
    await store.putLines('items.jsonl', ['1', '2', '3', '4', '5']);
    const machine = await createMachine(client, overLines(bucket, { Wait: waitForToken(queueUrl) }));
    const id = await workflow.start(machine, 'one', { key: 'items.jsonl', atOnce: 2, tolerated: 0, kept: 1 });

    const atWork: number[] = [];
    for (let answered = 0; answered < 5; answered += 1) {
      const [message] = await queue.receive(1, 20);
      const { visible, hidden } = await queue.depth();
      atWork.push(visible + hidden);
      await queue.delete(message!.receipt);
      await workflow.succeed(JSON.parse(message!.body).taskToken, {});
    }

    expect((await ending(workflow, id)).status).toBe('SUCCEEDED');
    expect(Math.max(...atWork)).toBeLessThanOrEqual(2);
  });

  it.each([
    [3, 'SUCCEEDED', null],
    [2, 'FAILED', 'States.ExceedToleratedFailureThreshold'],
  ])('tolerates as many failures as the path says: %d of 3', async (tolerated, status, error) => {
    const { client, bucket, store, workflow } = await home();
    await store.putLines(
      'items.jsonl',
      Array.from({ length: 6 }, (_, n) => JSON.stringify({ odd: n % 2 === 1 })),
    );
    const machine = await createMachine(client, overLines(bucket, failOdd));

    const id = await workflow.start(machine, 'one', { key: 'items.jsonl', atOnce: 3, tolerated, kept: 1 });

    expect(await ending(workflow, id)).toMatchObject({ status, error });
  });

  it('writes results and failures to the bucket and passes on where they are', async () => {
    const { client, bucket, store, workflow } = await home();
    await store.putLines(
      'items.jsonl',
      Array.from({ length: 5 }, (_, n) => JSON.stringify({ n, odd: n % 2 === 1 })),
    );
    const writer = {
      ResultWriter: {
        Resource: 'arn:aws:states:::s3:putObject',
        Parameters: { Bucket: bucket, 'Prefix.$': '$.prefix' },
      },
      ResultPath: '$.written',
    };
    const machine = await createMachine(client, overLines(bucket, failOdd, writer));

    const input = { key: 'items.jsonl', atOnce: 3, tolerated: 5, kept: 1, prefix: 'runs/r/map' };
    const { output } = await ending(workflow, await workflow.start(machine, 'one', input));

    const { written, ...rest } = output as typeof input & {
      written: { MapRunArn: string; ResultWriterDetails: { Bucket: string; Key: string } };
    };
    expect(rest).toEqual(input);
    expect(written.ResultWriterDetails.Key).toMatch(/^runs\/r\/map\/[0-9a-f-]{36}\/manifest\.json$/);
    const manifest = JSON.parse((await store.getText(written.ResultWriterDetails.Key))!);
    const rows = async (status: 'SUCCEEDED' | 'FAILED') =>
      JSON.parse((await store.getText(manifest.ResultFiles[status][0].Key))!);
    const succeeded = await rows('SUCCEEDED');
    expect(succeeded.map((row: { Output: string }) => JSON.parse(row.Output).item.n).sort()).toEqual([
      0, 2, 4,
    ]);
    expect(await rows('FAILED')).toMatchObject([
      { Status: 'FAILED', Error: 'Odd', Cause: 'it is odd' },
      { Status: 'FAILED', Error: 'Odd', Cause: 'it is odd' },
    ]);
    expect((await collect(store.list('runs/'))).length).toBe(3);
  });
});

describe('executions in the emulator', () => {
  it('stop with the execution that started them, and their tokens with them', async () => {
    const { client, queueUrl, queue, workflow } = await home();
    const child = await createMachine(client, { Wait: waitForToken(queueUrl) }, 'child');
    const parent = await createMachine(client, {
      Both: {
        Type: 'Map',
        ItemsPath: '$.items',
        ItemProcessor: {
          ProcessorConfig: { Mode: 'INLINE' },
          StartAt: 'Start',
          States: {
            Start: {
              Type: 'Task',
              Resource: 'arn:aws:states:::states:startExecution.sync:2',
              Parameters: { StateMachineArn: child, Input: { 'n.$': '$' } },
              TimeoutSeconds: 60,
              End: true,
            },
          },
        },
        End: true,
      },
    });
    const id = await workflow.start(parent, 'one', { items: [1, 2] });
    const tokens: string[] = [];
    while (tokens.length < 2) {
      for (const { body } of await queue.receive(1, 20)) tokens.push(JSON.parse(body).taskToken);
    }

    await workflow.stop(id, 'cancelled');

    const answers = await Promise.all(tokens.map((token) => workflow.succeed(token, {})));
    const { executions } = await client.send(new ListExecutionsCommand({ stateMachineArn: child }));
    expect(answers).toEqual([false, false]);
    expect(executions!.map(({ status }) => status)).toEqual(['ABORTED', 'ABORTED']);
    expect((await workflow.describe(id)).status).toBe('ABORTED');
  });

  it('end the other branches of a Parallel of which one has failed, and their tokens with them', async () => {
    const { client, queueUrl, queue, workflow } = await home();
    const waiting = (which: string, rest: object) =>
      waitForToken(queueUrl, {
        Parameters: { QueueUrl: queueUrl, MessageBody: { which, 'taskToken.$': '$$.Task.Token' } },
        ...rest,
      });
    const machine = await createMachine(client, {
      Both: {
        Type: 'Parallel',
        Branches: [
          { StartAt: 'Patient', States: { Patient: waiting('patient', { End: true }) } },
          {
            StartAt: 'Hasty',
            States: {
              Hasty: waiting('hasty', { Next: 'No' }),
              No: { Type: 'Fail', Error: 'LaneDrained', Cause: 'all done' },
            },
          },
        ],
        Catch: [{ ErrorEquals: ['LaneDrained'], ResultPath: '$.error', Next: 'Caught' }],
        End: true,
      },
      Caught: { Type: 'Pass', End: true },
    });
    const id = await workflow.start(machine, 'one', { kept: true });
    const tokens: Record<string, string> = {};
    while (Object.keys(tokens).length < 2) {
      for (const { body } of await queue.receive(1, 20)) {
        const { which, taskToken } = JSON.parse(body);
        tokens[which] = taskToken;
      }
    }

    await workflow.succeed(tokens.hasty!, {});
    const { output } = await ending(workflow, id);

    expect(output).toEqual({ kept: true, error: { Error: 'LaneDrained', Cause: 'all done' } });
    expect(await workflow.succeed(tokens.patient!, {})).toBe(false);
  });

  it('fail where a path leads nowhere', async () => {
    const { client, workflow } = await home();
    const machine = await createMachine(client, {
      Take: { Type: 'Pass', Parameters: { 'n.$': '$.a.missing' }, End: true },
    });

    const id = await workflow.start(machine, 'one', { a: {} });

    expect(await ending(workflow, id)).toMatchObject({ status: 'FAILED', error: 'States.Runtime' });
  });
});

describe('definitions in the emulator', () => {
  const create = async (states: Record<string, object>) => createMachine((await home()).client, states);
  const item = { StartAt: 'Keep', States: { Keep: { Type: 'Pass', End: true } } };

  it.each([
    [
      'ItemBatcher',
      { Each: { Type: 'Map', ItemProcessor: item, ItemBatcher: { MaxItemsPerBatch: 2 }, End: true } },
    ],
    ['Assign', { One: { Type: 'Pass', Assign: { a: 1 }, End: true } }],
    ['batch:submitJob', { One: { Type: 'Task', Resource: 'arn:aws:states:::batch:submitJob', End: true } }],
    ['Queue', { One: { Type: 'Pass', Parameters: { a: '$' + '{Queue}' }, End: true } }],
  ])('are refused when they need %s, which it would ignore', async (what, states) => {
    await expect(create(states)).rejects.toMatchObject({
      name: 'InvalidDefinition',
      message: expect.stringContaining(what),
    });
  });

  const directory = path.join(import.meta.dirname, '..', '..', 'state-machines');
  it.each(readdirSync(directory).filter((name) => name.endsWith('.asl.json')))(
    'are taken: %s',
    async (name) => {
      const { client } = await home();
      const definition = readFileSync(path.join(directory, name), 'utf8').replaceAll(
        /\$\{\w+\}/g,
        'supplied',
      );

      const { stateMachineArn } = await client.send(
        new CreateStateMachineCommand({
          name: name.split('.')[0]!,
          roleArn: 'arn:aws:iam::000000000000:role/machine',
          definition,
        }),
      );

      expect(stateMachineArn).toContain(':stateMachine:');
    },
  );
});

describe('the emulator as a process', () => {
  it('is heard on the loopback interface only, and is gone when it is stopped', async () => {
    const own = await startAwsEmulator();
    const { port } = new URL(own.endpoint);
    const outside = Object.values(networkInterfaces())
      .flatMap((addresses) => addresses ?? [])
      .filter(({ internal, family }) => !internal && family === 'IPv4');

    const fromOutside = await Promise.allSettled(
      outside.map(({ address }) => fetch(`http://${address}:${port}`)),
    );
    await own.stop();

    expect(fromOutside.filter(({ status }) => status === 'fulfilled')).toEqual([]);
    await expect(fetch(own.endpoint)).rejects.toThrow();
  });
});
