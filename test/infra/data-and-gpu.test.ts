import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { readLanes } from '../../infra/config/lanes.ts';
import { actionsOf, asText, resourcesOf, type Synthesized, statementsOf, synthesize } from './synthesized.ts';

let app: Synthesized;
beforeAll(() => {
  app = synthesize();
});

const only = (stack: string, type: string) => {
  const found = Object.values(app.resources(stack, type));
  expect(found).toHaveLength(1);
  return found[0]!;
};

const fileWith = (content: unknown): string => {
  const file = path.join(mkdtempSync(path.join(tmpdir(), 'lanes-')), 'lanes.json');
  writeFileSync(file, JSON.stringify(content));
  return file;
};

describe('data', () => {
  it('lie in a versioned, encrypted bucket that nobody outside and nothing without TLS reaches, and that outlives its stack', () => {
    const bucket = only('Data', 'AWS::S3::Bucket');

    expect(bucket.DeletionPolicy).toBe('Retain');
    expect(bucket.Properties.VersioningConfiguration).toEqual({ Status: 'Enabled' });
    expect(bucket.Properties.PublicAccessBlockConfiguration).toEqual({
      BlockPublicAcls: true,
      BlockPublicPolicy: true,
      IgnorePublicAcls: true,
      RestrictPublicBuckets: true,
    });
    const [encryption] = bucket.Properties.BucketEncryption.ServerSideEncryptionConfiguration;
    expect(encryption.BucketKeyEnabled).toBe(true);
    expect(encryption.ServerSideEncryptionByDefault.SSEAlgorithm).toBe('aws:kms');
    const [denial] = only('Data', 'AWS::S3::BucketPolicy').Properties.PolicyDocument.Statement;
    expect(denial).toMatchObject({ Effect: 'Deny', Condition: { Bool: { 'aws:SecureTransport': 'false' } } });
    const expiring = bucket.Properties.LifecycleConfiguration.Rules.filter(
      (rule: { ExpirationInDays?: number }) => rule.ExpirationInDays !== undefined,
    );
    expect(expiring.map((rule: { Prefix: string }) => rule.Prefix)).toEqual(['derived/']);
  });

  it('of money lie in a table that is paid by use, can be put back in time and forgets old leases', () => {
    const { Properties, DeletionPolicy } = only('Data', 'AWS::DynamoDB::Table');

    expect(DeletionPolicy).toBe('Retain');
    expect(Properties.BillingMode).toBe('PAY_PER_REQUEST');
    expect(Properties.PointInTimeRecoverySpecification).toEqual({ PointInTimeRecoveryEnabled: true });
    expect(Properties.TimeToLiveSpecification.Enabled).toBe(true);
  });

  it('have one secret for each provider key, under the deployment', () => {
    const names = Object.values(app.resources('Data', 'AWS::SecretsManager::Secret')).map(
      (secret) => secret.Properties.Name,
    );

    expect(names.toSorted()).toEqual(['turnsweep/HOSTED_API_KEY', 'turnsweep/OPENAI_API_KEY']);
  });
});

describe('GPU lanes', () => {
  it('use Spot first, then On-Demand, and nothing while no job waits', () => {
    const environments = app.resources('Gpu', 'AWS::Batch::ComputeEnvironment');
    const order = only('Gpu', 'AWS::Batch::JobQueue').Properties.ComputeEnvironmentOrder.toSorted(
      (a: { Order: number }, b: { Order: number }) => a.Order - b.Order,
    );
    const types = order.map(
      ({ ComputeEnvironment }: { ComputeEnvironment: unknown }) =>
        environments[/^<([^.]+)\./.exec(asText(ComputeEnvironment))![1]!]!.Properties.ComputeResources.Type,
    );

    expect(types).toEqual(['SPOT', 'EC2']);
    for (const { Properties } of Object.values(environments)) {
      expect(Properties.ComputeResources.MinvCpus).toBe(0);
      expect(Properties.ComputeResources.InstanceTypes.every((name: string) => name.startsWith('g6e.'))).toBe(
        true,
      );
    }
  });

  it('try again when the host is reclaimed and never otherwise', () => {
    const { Properties } = only('Gpu', 'AWS::Batch::JobDefinition');

    expect(Properties.RetryStrategy.EvaluateOnExit).toEqual([
      { Action: 'RETRY', OnStatusReason: 'Host EC2*' },
      { Action: 'EXIT', OnReason: '*' },
    ]);
  });

  it('start the model server and the worker as the lane says', () => {
    const { JobDefinitionName, ContainerProperties } = only('Gpu', 'AWS::Batch::JobDefinition').Properties;
    const variables = Object.fromEntries(
      ContainerProperties.Environment.map(({ Name, Value }: { Name: string; Value: unknown }) => [
        Name,
        asText(Value),
      ]),
    );

    expect(JobDefinitionName).toBe('turnsweep-lane-local-omni');
    expect(asText(ContainerProperties.Image)).toMatch(/:vllm-1$/);
    expect(variables).toMatchObject({
      TURNSWEEP_LANE: 'local-omni',
      TURNSWEEP_MAX_IN_FLIGHT: '64',
      TURNSWEEP_SERVER_HEALTH_URL: 'http://127.0.0.1:8000/health',
    });
    expect(JSON.parse(variables.TURNSWEEP_SERVER_COMMAND)).toEqual(
      'vllm serve Qwen/Qwen2.5-Omni-7B --host 127.0.0.1 --port 8000 --tensor-parallel-size 1'.split(' '),
    );
  });

  it('are started by the sweep, which finds the job by the names that the GPU stack gives', () => {
    const [, planner] = app.named('Sweep', 'AWS::Lambda::Function', 'FunctionName', 'turnsweep-plan-sweep');
    const lanes = JSON.parse(planner.Properties.Environment.Variables.TURNSWEEP_GPU_LANES);
    const [roleId] = Object.entries(app.resources('Sweep', 'AWS::IAM::Role')).find(([id]) =>
      id.startsWith('SweepMachineRole'),
    )!;
    const submits = statementsOf(app, 'Sweep', roleId).filter((statement) =>
      actionsOf(statement).includes('batch:SubmitJob'),
    );

    expect(lanes).toEqual({ 'local-omni': 'turnsweep-gpu-48gb' });
    expect(only('Gpu', 'AWS::Batch::JobQueue').Properties.JobQueueName).toBe('turnsweep-gpu-48gb');
    expect(
      submits
        .flatMap(resourcesOf)
        .map((arn) => arn.split('<AWS::AccountId>:')[1])
        .toSorted(),
    ).toEqual([
      'job-definition/turnsweep-lane-local-omni',
      'job-definition/turnsweep-lane-local-omni:*',
      'job-queue/turnsweep-gpu-48gb',
    ]);
  });

  it('do not wait for ever for a machine', () => {
    const actions = only('Gpu', 'AWS::Batch::JobQueue').Properties.JobStateTimeLimitActions;

    expect(actions).toHaveLength(3);
    for (const action of actions)
      expect(action).toMatchObject({ Action: 'CANCEL', State: 'RUNNABLE', MaxTimeSeconds: 21_600 });
  });

  it('have a network without NAT gateway and without a way in', () => {
    expect(app.resources('Gpu', 'AWS::EC2::NatGateway')).toEqual({});
    expect(only('Gpu', 'AWS::EC2::SecurityGroup').Properties.SecurityGroupIngress).toBeUndefined();
    expect(only('Gpu', 'AWS::EC2::VPCEndpoint').Properties.VpcEndpointType).toBe('Gateway');
  });
});

describe('lanes from configuration', () => {
  const judge = { maxInFlight: 2, timeoutSeconds: 60 };

  it('add a model without code, and no GPU stack where none is needed', () => {
    const lanes = fileWith({
      judge,
      lanes: [{ id: 'My Model/2', kind: 'hosted', maxInFlight: 7, timeoutSeconds: 300, secret: 'MY_KEY' }],
    });

    const small = synthesize({ lanes, deployment: 'other' });

    const [queueId] = small.named('Sweep', 'AWS::SQS::Queue', 'QueueName', 'other-lane-my-model-2');
    const mapping = Object.values(small.resources('Sweep', 'AWS::Lambda::EventSourceMapping')).find(
      ({ Properties }) => asText(Properties.EventSourceArn) === `<${queueId}.Arn>`,
    )!;
    expect(mapping.Properties.ScalingConfig).toEqual({ MaximumConcurrency: 7 });
    small.named('Data', 'AWS::SecretsManager::Secret', 'Name', 'other/MY_KEY');
    expect(small.resources('Gpu', 'AWS::Batch::JobQueue')).toEqual({});
  });

  it('may call the Bedrock models that they name, and no others', () => {
    const lane = { kind: 'hosted', maxInFlight: 2, timeoutSeconds: 60 };
    const lanes = fileWith({
      judge,
      lanes: [
        { id: 'a', ...lane, bedrockModel: 'us.amazon.nova-2-omni-v1:0' },
        { id: 'b', ...lane },
      ],
    });

    const small = synthesize({ lanes });

    const [roleId] = Object.keys(small.resources('Sweep', 'AWS::IAM::Role')).filter((id) =>
      id.startsWith('GenerateTurnsRole'),
    );
    const calls = statementsOf(small, 'Sweep', roleId!).filter((statement) =>
      actionsOf(statement).some((action) => action.startsWith('bedrock:')),
    );
    expect(calls.flatMap(resourcesOf)).toEqual([
      'arn:<AWS::Partition>:bedrock:<AWS::Region>:<AWS::AccountId>:inference-profile/us.amazon.nova-2-omni-v1:0',
      'arn:<AWS::Partition>:bedrock:*::foundation-model/amazon.nova-2-omni-v1:0',
    ]);
  });

  it.each([
    ['two lanes that would share a queue', [{ id: 'a_b' }, { id: 'a-b' }], /would share the queue lane-a-b/],
    ['a lane named like a folder of every run', [{ id: 'judging' }], /the name of a folder of every run/],
    ['a limit that a mapping cannot have', [{ id: 'a', maxInFlight: 1 }], /maxInFlight/],
    ['a function that lives too long', [{ id: 'a', timeoutSeconds: 901 }], /timeoutSeconds/],
  ])('refuse %s', (_, lanes, message) => {
    const file = fileWith({
      judge,
      lanes: lanes.map((lane) => ({ kind: 'hosted', maxInFlight: 2, timeoutSeconds: 60, ...lane })),
    });

    expect(() => readLanes(file)).toThrow(message);
  });
});
