import {
  DescribeExecutionCommand,
  SendTaskFailureCommand,
  SendTaskHeartbeatCommand,
  SendTaskSuccessCommand,
  type SFNClient,
  StartExecutionCommand,
  StopExecutionCommand,
} from '@aws-sdk/client-sfn';
import { errorNames, TurnsweepError } from '../../errors.ts';
import { canonicalJson } from '../../naming.ts';
import type { ExecutionStatus, Workflow } from '../../ports/workflow.ts';
import { serviceErrorName, serviceFailed } from './service-errors.ts';

/** https://docs.aws.amazon.com/step-functions/latest/apireference/API_SendTaskFailure.html */
const longestErrorCharacters = 256;
const longestCauseCharacters = 32_768;

/** What Step Functions takes as a name and CloudWatch Logs as well. */
const executionName = /^[\w-]{1,80}$/;

/** Answers that mean: nobody waits for this token any more. */
const over: ReadonlySet<string> = new Set(['TaskTimedOut', 'TaskDoesNotExist', 'InvalidToken']);

/**
 * Step Functions. Machines are named by ARN, or by what `machineArn` turns into one; execution ids are ARNs.
 *
 * `start` throws `ContractDiffers` where the name stands for an execution with another input (names are kept
 * for 90 days after the end), `UsageWrong` for a bad name; `describe` and `stop` throw `ObjectMissing` for an
 * unknown execution. Tokens never enter errors.
 */
export const createStepFunctionsWorkflow = (options: {
  client: SFNClient;
  machineArn?: (machine: string) => string;
}): Workflow => {
  const { client, machineArn = (machine: string) => machine } = options;

  const describe = async (executionArn: string) => {
    try {
      return await client.send(new DescribeExecutionCommand({ executionArn }));
    } catch (error) {
      throw executionFailed(error, 'describe', executionArn);
    }
  };

  /** True if somebody waited for the token. */
  const answer = async (doing: string, request: Promise<unknown>): Promise<boolean> => {
    try {
      await request;
      return true;
    } catch (error) {
      if (over.has(serviceErrorName(error))) return false;
      throw serviceFailed(error, doing, 'a task token');
    }
  };

  return {
    async start(machine, name, input) {
      if (!executionName.test(name)) {
        throw new TurnsweepError(errorNames.usage, 'not a name for an execution', {
          where: name,
          remedy: 'use up to 80 letters, digits, dashes and underscores',
        });
      }
      const stateMachineArn = machineArn(machine);
      try {
        const request = new StartExecutionCommand({ stateMachineArn, name, input: JSON.stringify(input) });
        return (await client.send(request)).executionArn!;
      } catch (error) {
        if (serviceErrorName(error) !== 'ExecutionAlreadyExists') {
          throw serviceFailed(error, 'start', stateMachineArn);
        }
      }
      const executionArn = `${stateMachineArn.replace(':stateMachine:', ':execution:')}:${name}`;
      const first = await describe(executionArn);
      if (canonicalJson(JSON.parse(first.input ?? 'null')) === canonicalJson(input)) return executionArn;
      throw new TurnsweepError(errorNames.contractDiffers, 'an execution of this name has another input', {
        where: name,
        remedy: 'start under another name',
      });
    },
    async describe(executionId) {
      const { name, status, output, error, cause } = await describe(executionId);
      return {
        name: name!,
        // Between a redrive and its start.
        status: status === 'PENDING_REDRIVE' ? 'RUNNING' : (status as ExecutionStatus),
        output: output === undefined ? null : JSON.parse(output),
        error: error ?? null,
        cause: cause ?? null,
      };
    },
    async stop(executionId, cause) {
      try {
        await client.send(
          new StopExecutionCommand({
            executionArn: executionId,
            cause: cause.slice(0, longestCauseCharacters),
          }),
        );
      } catch (error) {
        // What has ended needs no stopping.
        if ((await describe(executionId)).status === 'RUNNING')
          throw executionFailed(error, 'stop', executionId);
      }
    },
    succeed: (taskToken, output) =>
      answer(
        'answer',
        client.send(new SendTaskSuccessCommand({ taskToken, output: JSON.stringify(output ?? null) })),
      ),
    fail: (taskToken, error, cause) =>
      answer(
        'fail',
        client.send(
          new SendTaskFailureCommand({
            taskToken,
            error: error.slice(0, longestErrorCharacters),
            cause: cause.slice(0, longestCauseCharacters),
          }),
        ),
      ),
    heartbeat: (taskToken) => answer('prolong', client.send(new SendTaskHeartbeatCommand({ taskToken }))),
  };
};

const executionFailed = (error: unknown, doing: string, executionArn: string): TurnsweepError =>
  serviceErrorName(error) === 'ExecutionDoesNotExist' || serviceErrorName(error) === 'InvalidArn'
    ? new TurnsweepError(errorNames.objectMissing, 'there is no such execution', {
        where: executionArn,
        cause: error,
      })
    : serviceFailed(error, doing, executionArn);
