import { CloudFormationClient } from '@aws-sdk/client-cloudformation';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { LambdaClient } from '@aws-sdk/client-lambda';
import { S3Client } from '@aws-sdk/client-s3';
import { SFNClient } from '@aws-sdk/client-sfn';
import { deployedName, ledgerTable } from '../../naming.ts';
import type { Ledger } from '../../ports/ledger.ts';
import type { ObjectStore } from '../../ports/object-store.ts';
import type { Workflow } from '../../ports/workflow.ts';
import { createSystemClock } from '../local/system-clock.ts';
import {
  type Deployment,
  findDeployment,
  type ListedStart,
  listQueueSwitches,
  listStarts,
  type QueueSwitch,
  recentRate,
  switchQueues,
} from './deployment.ts';
import { createDynamodbLedger } from './dynamodb-ledger.ts';
import { createS3ObjectStore } from './s3-object-store.ts';
import { createStepFunctionsWorkflow } from './step-functions-workflow.ts';

/** A deployment as the command line works with it. Region and credentials are those of the environment. */
export interface ConnectedDeployment {
  deployment: Deployment;
  store: ObjectStore;
  workflow: Workflow;
  ledger: Pick<Ledger, 'balance'>;
  /** Objects a second that have come to be under a prefix lately; null where that cannot be told yet. */
  recentRate(prefix: string, withinSeconds: number): Promise<number | null>;
  /** The latest starts of all runs, newest first. */
  listStarts(atMost: number): Promise<ListedStart[]>;
  listQueueSwitches(): Promise<QueueSwitch[]>;
  /** Queues of the deployment on or off; gives the number of queues switched. */
  switchQueues(isOn: boolean): Promise<number>;
}

export const connectDeployment = async (name: string): Promise<ConnectedDeployment> => {
  const deployment = await findDeployment(new CloudFormationClient(), name);
  const lambda = new LambdaClient();
  const stepFunctions = new SFNClient();
  // An endpoint of one's own (an emulator, a private link) has no names for single buckets.
  const s3 = new S3Client({ forcePathStyle: process.env.AWS_ENDPOINT_URL !== undefined });
  return {
    deployment,
    store: createS3ObjectStore({ client: s3, bucket: deployment.bucket }),
    workflow: createStepFunctionsWorkflow({ client: stepFunctions }),
    ledger: createDynamodbLedger({
      client: new DynamoDBClient(),
      table: deployedName(name, ledgerTable),
      clock: createSystemClock(),
    }),
    recentRate: (prefix, withinSeconds) => recentRate(s3, deployment, prefix, withinSeconds),
    listStarts: (atMost) => listStarts(stepFunctions, deployment, atMost),
    listQueueSwitches: () => listQueueSwitches(lambda, deployment),
    switchQueues: (isOn) => switchQueues(lambda, deployment, isOn),
  };
};
