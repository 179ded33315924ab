import { Validations } from 'aws-cdk-lib';
import type { IConstruct } from 'constructs';
import { deployedName, jobDefinitionName } from '../../shared/naming.ts';
import { type StageName, scopes } from '../../shared/scopes.ts';
import { foundationModel, isGpu, isHosted, type LanesConfig } from '../config/lanes.ts';
import { pattern } from '../constructs/scope-statements.ts';
import { constructId } from '../constructs/stage-function.ts';

export interface Acknowledgement {
  /** Path of the construct, from the app; what lies below is meant too. A star stands within one part. */
  path: string;
  id: string;
  reason: string;
  /** True where a configuration may have no such construct. */
  isOptional?: boolean;
}

const wildcard = (resource: string): string => `AwsSolutions::AwsSolutions-IAM5[Resource::${resource}]`;
const managedPolicy = (name: string): string =>
  `AwsSolutions::AwsSolutions-IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/${name}]`;

/** Every finding that we live with, and why. A finding that is not here fails the synthesis. */
export const acknowledgements = (deployment: string, lanes: LanesConfig): Acknowledgement[] => {
  const bucket = `${deployedName(deployment, 'data')}:ExportsOutputFnGetAttRunBucketCA76775AArn03AC3018`;
  const states = (rest: string) =>
    wildcard(`arn:<AWS::Partition>:states:<AWS::Region>:<AWS::AccountId>:${rest}`);
  const execution = (machine: string, rest: string) =>
    states(`execution:${deployedName(deployment, machine)}${rest}`);
  const keysOf = (
    path: string,
    prefixes: readonly string[],
    reason: string,
    isOptional = false,
  ): Acknowledgement[] =>
    [...new Set(prefixes)].map((prefix) => ({
      path,
      id: wildcard(`${bucket}/${prefix}`),
      reason,
      isOptional,
    }));
  const scopeOf = (stage: StageName) => [...scopes[stage].read, ...scopes[stage].write].map(pattern);

  return [
    ...(Object.keys(scopes) as StageName[]).flatMap((stage) =>
      keysOf(
        `Sweep/${constructId(stage)}Role`,
        scopeOf(stage),
        'Keys have run, lane and hash in them, which are not known at deployment; the prefixes are those of shared/scopes.ts.',
      ),
    ),
    ...keysOf(
      'Gpu/*JobRole',
      scopeOf('generate-turns'),
      'A worker on a GPU is the generating stage in another house.',
      true,
    ),
    {
      path: 'Sweep/*Role',
      id: wildcard('*'),
      reason: 'X-Ray and the delivery of state machine logs take no resource in a policy.',
    },
    {
      path: 'Gpu/*/ExecutionRole',
      id: wildcard('*'),
      reason: 'ecr:GetAuthorizationToken takes no resource in a policy.',
      isOptional: true,
    },
    ...['sweep', 'judging'].flatMap((machine): Acknowledgement[] =>
      [':*', '/*'].map((rest) => ({
        path: `Sweep/${constructId(machine)}MachineRole`,
        id: execution(machine, rest),
        reason: 'Children of a Distributed Map are named by Step Functions.',
      })),
    ),
    ...['view-group', 'judging'].map(
      (machine): Acknowledgement => ({
        path: 'Sweep/SweepMachineRole',
        id: execution(machine, ':*'),
        reason: 'Executions that the sweep starts and waits for are named by Step Functions.',
      }),
    ),
    ...keysOf(
      'Sweep/SweepMachineRole',
      [
        'runs/*/plan/*/pending.jsonl',
        'runs/*/plan/pending-clips.jsonl',
        'runs/*/lanes/*/map/*',
        'runs/*/media/map/*',
      ],
      'Items and results of the Distributed Maps, by run and lane.',
    ),
    ...keysOf(
      'Sweep/JudgingMachineRole',
      ['runs/*/judging/chunks.jsonl', 'runs/*/judging/map/*'],
      'Items and results of the Distributed Map, by run.',
    ),
    ...lanes.lanes.filter(isGpu).map(
      ({ id }): Acknowledgement => ({
        path: 'Sweep/SweepMachineRole',
        id: wildcard(
          `arn:<AWS::Partition>:batch:<AWS::Region>:<AWS::AccountId>:job-definition/${jobDefinitionName(deployment, id)}:*`,
        ),
        reason: 'Each change of a job definition is a new revision of it.',
      }),
    ),
    ...[
      { role: 'GenerateTurns', models: lanes.lanes.filter(isHosted).map((lane) => lane.bedrockModel) },
      { role: 'JudgeAnswers', models: [lanes.judge.bedrockModel] },
    ].flatMap(({ role, models }) =>
      models.flatMap((id): Acknowledgement[] =>
        id === undefined
          ? []
          : [
              {
                path: `Sweep/${role}Role`,
                id: wildcard(`arn:<AWS::Partition>:bedrock:*::foundation-model/${foundationModel(id)}`),
                reason: 'An inference profile sends the call on to its model in any of its regions.',
              },
            ],
      ),
    ),
    {
      path: 'Sweep/StartSweepRole',
      id: execution('sweep', ':*'),
      reason: 'Asks after the execution of a tick, which is named by the run.',
    },
    {
      path: 'Sweep/JudgeAnswersRole',
      id: states(`stateMachine:${deployedName(deployment, 'judging')}/*`),
      reason: 'Children of a Distributed Map belong to a machine below the one that it is written in.',
    },
    {
      path: 'Sweep/*Dead',
      id: 'Serverless::Serverless-SQSRedrivePolicy',
      reason: 'It is the dead-letter queue.',
    },
    {
      path: 'Sweep/*/SqsEventSource:*',
      id: 'Serverless::Serverless-LambdaEventSourceMappingDestination',
      reason: 'Failures of an SQS source go to the dead letters of its queue; destinations are for streams.',
    },
    {
      path: 'Sweep/*/Resource',
      id: 'Serverless::Serverless-LambdaDLQ',
      reason:
        'Stages are invoked synchronously by Step Functions or from a queue that has dead letters; the scheduler has its own.',
    },
    {
      path: 'Schedule/MissedTicks',
      id: 'Serverless::Serverless-SQSRedrivePolicy',
      reason: 'It is the dead-letter queue of the schedules.',
    },
    {
      path: 'Schedule/MissedTicks',
      id: 'AwsSolutions::AwsSolutions-SQS3',
      reason: 'It is the dead-letter queue of the schedules, which are no queue that refers to it.',
    },
    {
      path: 'Observability/GpuJobsBlocked',
      id: 'Serverless::Serverless-EventBusDLQ',
      reason:
        'The event only notifies; the alarm on the rule itself fires whether or not the notice arrives.',
      isOptional: true,
    },
    {
      path: 'Gpu/InstanceRole',
      id: managedPolicy('service-role/AmazonEC2ContainerServiceforEC2Role'),
      reason: 'What the ECS agent needs is defined by AWS and changes with the agent.',
      isOptional: true,
    },
    {
      path: 'Data/RunBucket',
      id: 'AwsSolutions::AwsSolutions-S1',
      reason:
        'Only the roles of this app and the account read the bucket; a log line for each of a million requests a sweep would cost more than it tells. CloudTrail data events can be switched on for an audit.',
    },
    {
      path: 'Data/ProviderKey*',
      id: 'AwsSolutions::AwsSolutions-SMG4',
      reason: 'Keys of providers are changed at the provider; no function of ours can make a new one.',
      isOptional: true,
    },
  ];
};

const matches = (path: string, wanted: string): boolean =>
  new RegExp(
    `^${wanted
      .split('*')
      .map((part) => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&'))
      .join('[^/]*')}$`,
  ).test(path);

/** Records the acknowledgements. Throws for one that fits no construct: it would only hide a later fault. */
export const acknowledge = (app: IConstruct, deployment: string, lanes: LanesConfig): void => {
  const constructs = app.node.findAll();
  for (const { path, id, reason, isOptional } of acknowledgements(deployment, lanes)) {
    const targets = constructs.filter((construct) => matches(construct.node.path, path));
    if (targets.length === 0 && !isOptional) throw new Error(`acknowledgement of ${id}: nothing at ${path}`);
    for (const target of targets) Validations.of(target).acknowledge({ id, reason });
  }
};
