import { type CloudFormationClient, DescribeStacksCommand } from '@aws-sdk/client-cloudformation';
import {
  type LambdaClient,
  paginateListEventSourceMappings,
  UpdateEventSourceMappingCommand,
} from '@aws-sdk/client-lambda';
import { errorNames, TurnsweepError } from '../../errors.ts';
import { deploymentOutputs, sweepStackName } from '../../naming.ts';
import { asked, serviceErrorName, serviceFailed } from './service-errors.ts';

/** Where a deployment has its things. */
export interface Deployment {
  name: string;
  bucket: string;
  /** ARNs of the state machines. */
  sweepMachine: string;
  judgingMachine: string;
  /** Lanes that have a queue; a sweep may use these only. */
  lanes: readonly string[];
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
    lanes: output(deploymentOutputs.lanes).split(','),
    queueFunctions: [
      output(deploymentOutputs.generateTurnsFunction),
      output(deploymentOutputs.judgeAnswersFunction),
    ],
  };
};

/** Lets the stages take messages from their queues, or stops them doing so; gives the number of mappings. */
export const switchQueues = async (
  client: LambdaClient,
  deployment: Deployment,
  isOn: boolean,
): Promise<number> => {
  let switched = 0;
  for (const FunctionName of deployment.queueFunctions) {
    const pages = paginateListEventSourceMappings({ client }, { FunctionName });
    for await (const { EventSourceMappings } of pages) {
      for (const { UUID } of EventSourceMappings ?? []) {
        const update = client.send(new UpdateEventSourceMappingCommand({ UUID, Enabled: isOn }));
        await asked(isOn ? 'resume' : 'pause', FunctionName, update);
        switched += 1;
      }
    }
  }
  return switched;
};
