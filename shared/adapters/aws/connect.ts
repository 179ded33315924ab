import { CloudFormationClient } from '@aws-sdk/client-cloudformation';
import { LambdaClient } from '@aws-sdk/client-lambda';
import { S3Client } from '@aws-sdk/client-s3';
import { SFNClient } from '@aws-sdk/client-sfn';
import type { ObjectStore } from '../../ports/object-store.ts';
import type { Workflow } from '../../ports/workflow.ts';
import { type Deployment, findDeployment, switchQueues } from './deployment.ts';
import { createS3ObjectStore } from './s3-object-store.ts';
import { createStepFunctionsWorkflow } from './step-functions-workflow.ts';

/** A deployment as the command line works with it. Region and credentials are those of the environment. */
export interface ConnectedDeployment {
  deployment: Deployment;
  store: ObjectStore;
  workflow: Workflow;
  /** Queues of the deployment on or off; gives the number of queues switched. */
  switchQueues(isOn: boolean): Promise<number>;
}

export const connectDeployment = async (name: string): Promise<ConnectedDeployment> => {
  const deployment = await findDeployment(new CloudFormationClient(), name);
  const lambda = new LambdaClient();
  return {
    deployment,
    store: createS3ObjectStore({
      // An endpoint of one's own (an emulator, a private link) has no names for single buckets.
      client: new S3Client({ forcePathStyle: process.env.AWS_ENDPOINT_URL !== undefined }),
      bucket: deployment.bucket,
    }),
    workflow: createStepFunctionsWorkflow({ client: new SFNClient() }),
    switchQueues: (isOn) => switchQueues(lambda, deployment, isOn),
  };
};
