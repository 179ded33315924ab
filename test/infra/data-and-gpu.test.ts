import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { readLanes } from '../../infra/config/lanes.ts';
import { asText, type Synthesized, synthesize } from './synthesized.ts';

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
