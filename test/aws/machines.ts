import { setTimeout as sleep } from 'node:timers/promises';
import { CreateStateMachineCommand, type SFNClient } from '@aws-sdk/client-sfn';
import type { ExecutionDescription, Workflow } from '../../shared/ports/workflow.ts';

let machines = 0;

/** Creates a state machine of these states, the first of which it starts at; returns its ARN. */
export const createMachine = async (
  client: SFNClient,
  states: Record<string, object>,
  name = 'machine',
): Promise<string> => {
  machines += 1;
  const { stateMachineArn } = await client.send(
    new CreateStateMachineCommand({
      name: `${name}-${machines}`,
      roleArn: 'arn:aws:iam::000000000000:role/machine',
      definition: JSON.stringify({ StartAt: Object.keys(states)[0], States: states }),
    }),
  );
  return stateMachineArn!;
};

/** A task that sends a message with its token and waits for the answer. */
export const waitForToken = (queueUrl: string, rest: object = { End: true }) => ({
  Type: 'Task',
  Resource: 'arn:aws:states:::sqs:sendMessage.waitForTaskToken',
  Parameters: { QueueUrl: queueUrl, MessageBody: { 'taskToken.$': '$$.Task.Token', 'input.$': '$' } },
  TimeoutSeconds: 60,
  ...rest,
});

/** How the execution ended. */
export const ending = async (
  workflow: Pick<Workflow, 'describe'>,
  execution: string,
): Promise<ExecutionDescription> => {
  for (;;) {
    const description = await workflow.describe(execution);
    if (description.status !== 'RUNNING') return description;
    await sleep(50);
  }
};
