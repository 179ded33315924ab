import { setTimeout as sleep } from 'node:timers/promises';
import { ListExecutionsCommand, SFNClient } from '@aws-sdk/client-sfn';
import { CreateQueueCommand, SQSClient } from '@aws-sdk/client-sqs';
import { describe, expect, it } from 'vitest';
import { createSqsStageQueue } from '../../shared/adapters/aws/sqs-stage-queue.ts';
import { createStepFunctionsWorkflow } from '../../shared/adapters/aws/step-functions-workflow.ts';
import { workflowContract } from '../contracts/workflow.contract.ts';
import { useAwsEmulator } from './emulator.ts';
import { createMachine, ending, waitForToken } from './machines.ts';

// Policies are another suite's affair: these machines have no role.
const emulator = useAwsEmulator({ enforcesPolicies: false });

const succeedAtOnce = { Done: { Type: 'Succeed' } };

let queues = 0;
const newWorkflow = async () => {
  const client = new SFNClient(emulator().clientOptions);
  const sqs = new SQSClient(emulator().clientOptions);
  queues += 1;
  const { QueueUrl } = await sqs.send(new CreateQueueCommand({ QueueName: `lane-${queues}` }));
  const queue = createSqsStageQueue({ client: sqs, queueUrl: QueueUrl! });
  const nextToken = async (): Promise<string> => {
    const [message] = await queue.receive(1, 20);
    return JSON.parse(message!.body).taskToken;
  };
  return { client, queueUrl: QueueUrl!, nextToken, workflow: createStepFunctionsWorkflow({ client }) };
};

workflowContract('Step Functions', async (states) => {
  const { client, queueUrl, nextToken, workflow } = await newWorkflow();
  return {
    workflow,
    machine: await createMachine(client, states(queueUrl) as Record<string, object>),
    nextToken,
  };
});

describe('the workflow on Step Functions', () => {
  it('runs a machine to its end with the input it was given', async () => {
    const { client, workflow } = await newWorkflow();
    const machine = await createMachine(client, succeedAtOnce);

    const id = await workflow.start(machine, 'one', { run: 'r', ключ: [1, null] });

    expect(await ending(workflow, id)).toEqual({
      name: 'one',
      status: 'SUCCEEDED',
      output: { run: 'r', ключ: [1, null] },
      error: null,
      cause: null,
    });
  });

  it('tells error and cause of a failed execution', async () => {
    const { client, workflow } = await newWorkflow();
    const machine = await createMachine(client, {
      No: { Type: 'Fail', Error: 'ContractViolated', Cause: 'because' },
    });

    const id = await workflow.start(machine, 'one', {});

    expect(await ending(workflow, id)).toMatchObject({
      status: 'FAILED',
      output: null,
      error: 'ContractViolated',
      cause: 'because',
    });
  });

  it('starts a name once, while it runs and after its end', async () => {
    const { client, queueUrl, nextToken, workflow } = await newWorkflow();
    const machine = await createMachine(client, { Wait: waitForToken(queueUrl) });
    const first = await workflow.start(machine, 'sweep-1', { a: 1, b: 2 });

    const whileRunning = await workflow.start(machine, 'sweep-1', { b: 2, a: 1 });
    await workflow.succeed(await nextToken(), {});
    await ending(workflow, first);
    const afterwards = await workflow.start(machine, 'sweep-1', { a: 1, b: 2 });

    expect([whileRunning, afterwards]).toEqual([first, first]);
    const { executions } = await client.send(new ListExecutionsCommand({ stateMachineArn: machine }));
    expect(executions).toHaveLength(1);
  });

  it('refuses a name that stands for another input', async () => {
    const { client, workflow } = await newWorkflow();
    const machine = await createMachine(client, succeedAtOnce);
    await workflow.start(machine, 'sweep-1', { a: 1 });

    await expect(workflow.start(machine, 'sweep-1', { a: 2 })).rejects.toMatchObject({
      name: 'ContractDiffers',
    });
  });

  it.each(['', 'with space', 'a'.repeat(81), 'a:b', 'näme'])('refuses the name %j', async (name) => {
    const { client, workflow } = await newWorkflow();
    const machine = await createMachine(client, succeedAtOnce);

    await expect(workflow.start(machine, name, {})).rejects.toMatchObject({ name: 'UsageWrong' });
  });

  it('says so when there is no such execution or machine', async () => {
    const { client, workflow } = await newWorkflow();
    const machine = await createMachine(client, succeedAtOnce);
    const nowhere = `${machine.replace(':stateMachine:', ':execution:')}:nothing`;

    await expect(workflow.describe(nowhere)).rejects.toMatchObject({ name: 'ObjectMissing' });
    await expect(workflow.stop(nowhere, 'why')).rejects.toMatchObject({ name: 'ObjectMissing' });
    await expect(workflow.start(`${machine}-gone`, 'one', {})).rejects.toMatchObject({
      name: 'StorageFailed',
      remedy: 'deploy the stacks first',
    });
  });

  it('lets a token be answered once', async () => {
    const { client, queueUrl, nextToken, workflow } = await newWorkflow();
    const machine = await createMachine(client, { Wait: waitForToken(queueUrl) });
    const id = await workflow.start(machine, 'one', { n: 1 });
    const token = await nextToken();

    const answers = [
      await workflow.heartbeat(token),
      await workflow.succeed(token, { status: 'done' }),
      await workflow.succeed(token, { status: 'again' }),
      await workflow.fail(token, 'MessagePoisoned', 'too late'),
      await workflow.heartbeat(token),
    ];

    expect(answers).toEqual([true, true, false, false, false]);
    expect((await ending(workflow, id)).output).toEqual({ status: 'done' });
  });

  it('has one taker among answers at once', async () => {
    const { client, queueUrl, nextToken, workflow } = await newWorkflow();
    const machine = await createMachine(client, { Wait: waitForToken(queueUrl) });
    const id = await workflow.start(machine, 'one', {});
    const token = await nextToken();

    const taken = await Promise.all([0, 1, 2, 3, 4, 5].map((answer) => workflow.succeed(token, { answer })));

    expect(taken.filter(Boolean)).toHaveLength(1);
    expect((await ending(workflow, id)).output).toEqual({ answer: taken.indexOf(true) });
  });

  it('hands an error by its name to the Catch that lists it', async () => {
    const { client, queueUrl, nextToken, workflow } = await newWorkflow();
    const machine = await createMachine(client, {
      Wait: waitForToken(queueUrl, {
        Catch: [{ ErrorEquals: ['MessagePoisoned'], ResultPath: '$.error', Next: 'Caught' }],
        End: true,
      }),
      Caught: { Type: 'Pass', End: true },
    });
    const id = await workflow.start(machine, 'one', { kept: true });

    const failed = await workflow.fail(await nextToken(), 'MessagePoisoned', 'x'.repeat(40_000));

    expect(failed).toBe(true);
    expect((await ending(workflow, id)).output).toEqual({
      kept: true,
      error: { Error: 'MessagePoisoned', Cause: 'x'.repeat(32_768) },
    });
  });

  it('knows nobody who waits for a made-up token, for one that timed out or whose execution was stopped', async () => {
    const { client, queueUrl, nextToken, workflow } = await newWorkflow();
    const patient = await createMachine(client, { Wait: waitForToken(queueUrl) });
    const hasty = await createMachine(client, {
      Wait: waitForToken(queueUrl, { TimeoutSeconds: 1, End: true }),
    });
    const timedOut = await workflow.start(hasty, 'one', {});
    const lateToken = await nextToken();
    const stopped = await workflow.start(patient, 'one', {});
    const stoppedToken = await nextToken();

    await workflow.stop(stopped, 'the user wants it');
    const ends = [await ending(workflow, timedOut), await ending(workflow, stopped)];
    const answers = await Promise.all(
      ['made up', lateToken, stoppedToken].map((token) => workflow.succeed(token, {})),
    );

    expect(ends).toMatchObject([
      { status: 'FAILED', error: 'States.Timeout' },
      { status: 'ABORTED', cause: 'the user wants it' },
    ]);
    expect(answers).toEqual([false, false, false]);
  });

  it('stops an execution once; stopping what has ended changes nothing', async () => {
    const { client, workflow } = await newWorkflow();
    const machine = await createMachine(client, succeedAtOnce);
    const id = await workflow.start(machine, 'one', {});
    await ending(workflow, id);

    await workflow.stop(id, 'late');

    expect((await workflow.describe(id)).status).toBe('SUCCEEDED');
  });

  it('keeps a task alive by heartbeats, and no longer', async () => {
    const { client, queueUrl, nextToken, workflow } = await newWorkflow();
    const machine = await createMachine(client, {
      Wait: waitForToken(queueUrl, { HeartbeatSeconds: 2, End: true }),
    });
    const id = await workflow.start(machine, 'one', {});
    const token = await nextToken();

    for (let beat = 0; beat < 3; beat += 1) {
      await sleep(1200);
      expect(await workflow.heartbeat(token)).toBe(true);
    }

    expect(await ending(workflow, id)).toMatchObject({ status: 'FAILED', error: 'States.HeartbeatTimeout' });
    expect(await workflow.heartbeat(token)).toBe(false);
  });
});
