/** The service integrations a Task may name, with the parameters each takes. */
export interface Resource {
  readonly needed: readonly string[];
  readonly optional: readonly string[];
  /** The task ends when somebody answers its token. */
  readonly token: boolean;
  /** The task waits for a job or another execution: not possible in an EXPRESS child (Step Functions guide). */
  readonly sync: boolean;
}

const sendMessage = { needed: ['QueueUrl', 'MessageBody'], optional: ['DelaySeconds', 'MessageGroupId'] };
const startExecution = { needed: ['StateMachineArn'], optional: ['Input', 'Name'] };

export const resources: Readonly<Record<string, Resource>> = {
  'arn:aws:states:::batch:submitJob.sync': {
    needed: ['JobName', 'JobQueue', 'JobDefinition'],
    optional: ['ContainerOverrides', 'Parameters', 'RetryStrategy', 'Timeout', 'Tags', 'PropagateTags'],
    token: false,
    sync: true,
  },
  'arn:aws:states:::lambda:invoke': {
    needed: ['FunctionName', 'Payload'],
    optional: [],
    token: false,
    sync: false,
  },
  'arn:aws:states:::sqs:sendMessage': { ...sendMessage, token: false, sync: false },
  'arn:aws:states:::sqs:sendMessage.waitForTaskToken': { ...sendMessage, token: true, sync: false },
  'arn:aws:states:::states:startExecution': { ...startExecution, token: false, sync: false },
  'arn:aws:states:::states:startExecution.sync:2': { ...startExecution, token: false, sync: true },
};
