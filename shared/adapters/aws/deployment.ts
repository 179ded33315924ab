import { type CloudFormationClient, DescribeStacksCommand } from '@aws-sdk/client-cloudformation';
import {
  type LambdaClient,
  paginateListEventSourceMappings,
  UpdateEventSourceMappingCommand,
} from '@aws-sdk/client-lambda';
import { paginateListObjectsV2, type S3Client } from '@aws-sdk/client-s3';
import { ListExecutionsCommand, type SFNClient } from '@aws-sdk/client-sfn';
import { errorNames, TurnsweepError } from '../../errors.ts';
import { deploymentOutputs, parseLanesOutput, parseStartName, sweepStackName } from '../../naming.ts';
import type { ExecutionStatus } from '../../ports/workflow.ts';
import { asked, serviceErrorName, serviceFailed } from './service-errors.ts';

/** Where a deployment has its things. */
export interface Deployment {
  name: string;
  bucket: string;
  /** ARNs of the state machines. */
  sweepMachine: string;
  judgingMachine: string;
  /** Lanes that have a queue; a sweep may use these only. */
  lanes: readonly { id: string; serverPort: number | null }[];
  /** Functions that take messages from queues. */
  queueFunctions: readonly string[];
}

/** Reads the outputs of the deployment's stack. Throws `UsageWrong` where nothing of that name is deployed. */
export const findDeployment = async (client: CloudFormationClient, name: string): Promise<Deployment> => {
  const StackName = sweepStackName(name);
  const missing = (cause?: unknown) =>
    new TurnsweepError(errorNames.usage, 'no such deployment in this account and region', {
      where: StackName,
      remedy: 'deploy it with `npx cdk deploy --all`, or name another one with --deployment',
      cause,
    });
  let outputs: Map<string, string>;
  try {
    const { Stacks } = await client.send(new DescribeStacksCommand({ StackName }));
    outputs = new Map((Stacks?.[0]?.Outputs ?? []).map((output) => [output.OutputKey!, output.OutputValue!]));
  } catch (error) {
    if (serviceErrorName(error) === 'ValidationError') throw missing(error);
    throw serviceFailed(error, 'look at the deployment', StackName);
  }
  const output = (key: string): string => {
    const value = outputs.get(key);
    if (value === undefined) throw missing();
    return value;
  };
  return {
    name,
    bucket: output(deploymentOutputs.bucket),
    sweepMachine: output(deploymentOutputs.sweepMachine),
    judgingMachine: output(deploymentOutputs.judgingMachine),
    lanes: parseLanesOutput(output(deploymentOutputs.lanes)),
    queueFunctions: [
      output(deploymentOutputs.generateTurnsFunction),
      output(deploymentOutputs.judgeAnswersFunction),
    ],
  };
};

/** What brings the messages of one queue to its stage. */
export interface QueueSwitch {
  id: string;
  stage: string;
  /** Also while it is being switched on; one that is being switched off takes no more messages. */
  isOn: boolean;
}

const onStates: ReadonlySet<string | undefined> = new Set(['Enabled', 'Enabling', 'Creating', 'Updating']);

/** One for each queue that a function empties. */
export const listQueueSwitches = async (
  client: LambdaClient,
  deployment: Deployment,
): Promise<QueueSwitch[]> => {
  const switches: QueueSwitch[] = [];
  for (const stage of deployment.queueFunctions) {
    const listed = Array.fromAsync(paginateListEventSourceMappings({ client }, { FunctionName: stage }));
    for (const { EventSourceMappings } of await asked('look at the queues of', stage, listed)) {
      for (const { UUID, State } of EventSourceMappings ?? [])
        switches.push({ id: UUID!, stage, isOn: onStates.has(State) });
    }
  }
  return switches;
};

/** Lets the stages take messages from their queues, or stops them doing so; gives the number of queues. */
export const switchQueues = async (
  client: LambdaClient,
  deployment: Deployment,
  isOn: boolean,
): Promise<number> => {
  const switches = await listQueueSwitches(client, deployment);
  for (const { id, stage } of switches) {
    const update = client.send(new UpdateEventSourceMappingCommand({ UUID: id, Enabled: isOn }));
    await asked(isOn ? 'resume' : 'pause', stage, update);
  }
  return switches.length;
};

/**
 * How fast objects under a prefix have come to be lately, a second; 0 where none has within the time given, null where
 * that is too few to tell.
 */
export const recentRate = async (
  client: S3Client,
  { bucket }: Deployment,
  prefix: string,
  withinSeconds: number,
): Promise<number | null> => {
  const now = Date.now();
  const ages: number[] = [];
  const listed = Array.fromAsync(paginateListObjectsV2({ client }, { Bucket: bucket, Prefix: prefix }));
  for (const { Contents } of await asked('look at', prefix, listed)) {
    for (const { LastModified } of Contents ?? []) {
      const age = (now - LastModified!.getTime()) / 1000;
      if (age <= withinSeconds) ages.push(age);
    }
  }
  if (ages.length === 1) return null;
  // The bucket tells whole seconds.
  return ages.length === 0 ? 0 : ages.length / Math.max(1, ...ages);
};

/** A start of some run, as a list of them shows it. */
export interface ListedStart {
  run: string;
  start: number;
  status: ExecutionStatus;
  startedAt: Date;
}

/** The latest starts of all runs, newest first. Step Functions forgets those that ended 90 days ago. */
export const listStarts = async (
  client: SFNClient,
  { sweepMachine }: Deployment,
  atMost: number,
): Promise<ListedStart[]> => {
  const command = new ListExecutionsCommand({ stateMachineArn: sweepMachine, maxResults: atMost });
  const { executions } = await asked('list the runs of', sweepMachine, client.send(command));
  return (executions ?? []).flatMap(({ name, status, startDate }) => {
    const parsed = parseStartName(name!);
    return parsed === null ? [] : [{ ...parsed, status: status as ExecutionStatus, startedAt: startDate! }];
  });
};
