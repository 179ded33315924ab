import { Aws, CfnOutput, Duration, Fn, Stack, type StackProps } from 'aws-cdk-lib';
import { Effect, PolicyStatement } from 'aws-cdk-lib/aws-iam';
import type { IFunction } from 'aws-cdk-lib/aws-lambda';
import { SqsEventSource } from 'aws-cdk-lib/aws-lambda-event-sources';
import type { NodejsFunction } from 'aws-cdk-lib/aws-lambda-nodejs';
import type { StateMachine } from 'aws-cdk-lib/aws-stepfunctions';
import type { Construct } from 'constructs';
import type { StageVariables } from '../../shared/contracts/stage-environment.ts';
import {
  deployedName,
  deploymentOutputs,
  gpuJobQueueName,
  jobDefinitionName,
  judgeQueue,
  laneQueue,
  lanesOutput,
  queueResourceName,
} from '../../shared/naming.ts';
import { type StageName, scopes } from '../../shared/scopes.ts';
import { foundationModel, isGpu, isHosted, type LanesConfig } from '../config/lanes.ts';
import { maxReceiveCount, returnSeconds, stageSizes, visibilityPerTimeout } from '../config/stages.ts';
import { createStateMachine, type MachineName } from '../constructs/asl-state-machine.ts';
import { createMediaLayer } from '../constructs/media-layer.ts';
import { keyStatement, scopeStatements } from '../constructs/scope-statements.ts';
import { createStageFunction } from '../constructs/stage-function.ts';
import { createStageQueue, type StageQueue } from '../constructs/stage-queue.ts';
import type { DataStack } from './data.ts';

export interface SweepStackProps extends StackProps {
  deployment: string;
  lanes: LanesConfig;
  data: DataStack;
}

export interface SweepStack {
  stack: Stack;
  functions: Record<StageName, NodejsFunction>;
  laneQueues: ReadonlyMap<string, StageQueue>;
  judgeQueue: StageQueue;
  machines: Record<MachineName, StateMachine>;
  /** Environment of a worker outside Lambda, with the time that it may take. */
  variables: (timeoutSeconds: number) => StageVariables;
  /** Permissions of the generating stage, for a worker outside Lambda. */
  turnsStatements: () => PolicyStatement[];
}

/** Planners clear what an earlier start left: stop marks, and errors that are to be asked again. */
const deletingStages: readonly StageName[] = ['plan-sweep', 'plan-judging'];

/** Actions of the DynamoDB ledger; a transaction needs those of its parts. */
const ledgerActions = ['dynamodb:GetItem', 'dynamodb:PutItem', 'dynamodb:UpdateItem', 'dynamodb:DeleteItem'];

/** Queues, stages and state machines: everything between a plan and a report. */
export const createSweepStack = (scope: Construct, id: string, props: SweepStackProps): SweepStack => {
  const stack = new Stack(scope, id, props);
  const { deployment, data, lanes } = props;
  const { bucket, key } = data;

  // Written out instead of referred to: a machine's role names the machine, which names the role.
  const statesArn = (kind: 'stateMachine' | 'execution', machine: MachineName, suffix = '') =>
    `arn:${Aws.PARTITION}:states:${Aws.REGION}:${Aws.ACCOUNT_ID}:${kind}:${deployedName(deployment, machine)}${suffix}`;

  const longestLaneSeconds = Math.max(60, ...lanes.lanes.filter(isHosted).map((lane) => lane.timeoutSeconds));
  const timeoutOf = (stage: StageName): number =>
    stageSizes[stage].timeoutSeconds ??
    (stage === 'judge-answers' ? lanes.judge.timeoutSeconds : longestLaneSeconds);

  const judge = createStageQueue(stack, deployment, judgeQueue, timeoutOf('judge-answers'));
  const laneQueues = new Map(
    lanes.lanes.map((lane) => [
      lane.id,
      createStageQueue(
        stack,
        deployment,
        laneQueue(lane.id),
        isGpu(lane) ? lane.timeoutSeconds : longestLaneSeconds,
      ),
    ]),
  );

  const gpuLanes = lanes.lanes.filter(isGpu);
  const gpuQueues = Object.fromEntries(
    gpuLanes.map((lane) => [lane.id, gpuJobQueueName(deployment, lane.gpuMemory)]),
  );

  // What the URLs of all queues share, whatever the partition or emulator makes of them.
  const judgeName = deployedName(deployment, queueResourceName(judgeQueue));
  const queueUrlPrefix = Fn.join('', [
    Fn.select(0, Fn.split(judgeName, judge.queue.queueUrl)),
    deployedName(deployment, ''),
  ]);
  const variables = (timeoutSeconds: number): StageVariables => ({
    TURNSWEEP_BUCKET: bucket.bucketName,
    TURNSWEEP_LEDGER_TABLE: data.ledger.tableName,
    TURNSWEEP_QUEUE_URL_PREFIX: queueUrlPrefix,
    TURNSWEEP_DEPLOYMENT: deployment,
    TURNSWEEP_TIMEOUT_SECONDS: String(timeoutSeconds),
    TURNSWEEP_VISIBILITY_SECONDS: String(timeoutSeconds * visibilityPerTimeout),
    TURNSWEEP_MAX_RECEIVE_COUNT: String(maxReceiveCount),
    TURNSWEEP_RETURN_SECONDS: returnSeconds.join(','),
  });

  const ledger = () =>
    new PolicyStatement({ sid: 'Ledger', actions: ledgerActions, resources: [data.ledger.tableArn] });
  const secretsOf = (names: readonly (string | undefined)[]) => {
    const arns = [...new Set(names)].flatMap((name) =>
      name === undefined ? [] : data.secrets.get(name)!.secretArn,
    );
    return arns.length === 0
      ? []
      : [
          new PolicyStatement({
            sid: 'ProviderKeys',
            actions: ['secretsmanager:GetSecretValue'],
            resources: arns,
          }),
        ];
  };
  const bedrockModels = (ids: readonly (string | undefined)[]) => {
    const named = [...new Set(ids)].filter((id) => id !== undefined);
    if (named.length === 0) return [];
    return [
      new PolicyStatement({
        sid: 'CallModels',
        actions: ['bedrock:InvokeModel', 'bedrock:InvokeModelWithResponseStream'],
        // A profile sends the call on to its model in any of its regions.
        resources: named.flatMap((id) => [
          stack.formatArn({ service: 'bedrock', resource: 'inference-profile', resourceName: id }),
          `arn:${Aws.PARTITION}:bedrock:*::foundation-model/${foundationModel(id)}`,
        ]),
      }),
    ];
  };
  const answers = (resources: string[]) =>
    new PolicyStatement({
      sid: 'AnswerTokens',
      actions: ['states:SendTaskSuccess', 'states:SendTaskFailure', 'states:SendTaskHeartbeat'],
      resources,
    });

  const turnsStatements = () => [ledger(), answers([statesArn('stateMachine', 'view-group')])];
  const judgeStatements = () => [
    ledger(),
    // Accounts of lanes name models.
    new PolicyStatement({
      sid: 'NoLaneAccounts',
      effect: Effect.DENY,
      actions: ledgerActions,
      resources: [data.ledger.tableArn],
      conditions: { 'ForAnyValue:StringLike': { 'dynamodb:LeadingKeys': ['*run/*/lane/*'] } },
    }),
    ...secretsOf([lanes.judge.secret]),
  ];
  const extraStatements: Partial<Record<StageName, PolicyStatement[]>> = {
    // It sets the limits of a run's accounts.
    'plan-sweep': [ledger()],
    'generate-turns': [
      ...turnsStatements(),
      ...secretsOf(lanes.lanes.filter(isHosted).map((lane) => lane.secret)),
      ...bedrockModels(lanes.lanes.filter(isHosted).map((lane) => lane.bedrockModel)),
    ],
    'judge-answers': [
      ...judgeStatements(),
      // A child of a Distributed Map belongs to a machine below the one that it is written in.
      answers([statesArn('stateMachine', 'judging'), statesArn('stateMachine', 'judging', '/*')]),
    ],
    'submit-judge-batch': judgeStatements(),
    'poll-judge-batch': judgeStatements(),
    'start-sweep': [
      new PolicyStatement({
        sid: 'StartSweep',
        actions: ['states:StartExecution'],
        resources: [statesArn('stateMachine', 'sweep')],
      }),
      new PolicyStatement({
        sid: 'LookAtSweep',
        actions: ['states:DescribeExecution'],
        resources: [statesArn('execution', 'sweep', ':*')],
      }),
    ],
  };
  const mediaLayer = createMediaLayer(stack, deployment);
  const functions = Object.fromEntries(
    (Object.keys(scopes) as StageName[]).map((stage) => [
      stage,
      createStageFunction(stack, {
        deployment,
        stage,
        timeoutSeconds: timeoutOf(stage),
        memoryMb: stage === 'generate-turns' ? lanes.memoryMb : undefined,
        variables: {
          ...variables(timeoutOf(stage)),
          ...(stage === 'start-sweep' ? { TURNSWEEP_SWEEP_MACHINE: statesArn('stateMachine', 'sweep') } : {}),
          ...(stage === 'plan-sweep' ? { TURNSWEEP_GPU_LANES: JSON.stringify(gpuQueues) } : {}),
        },
        statements: [
          ...scopeStatements(data, scopes[stage], deletingStages.includes(stage)),
          ...(extraStatements[stage] ?? []),
        ],
        layers: stage === 'prepare-media' && mediaLayer !== null ? [mediaLayer] : [],
      }),
    ]),
  ) as Record<StageName, NodejsFunction>;

  for (const lane of lanes.lanes.filter(isHosted)) {
    functions['generate-turns'].addEventSource(stageSource(laneQueues.get(lane.id)!, lane.maxInFlight));
  }
  functions['judge-answers'].addEventSource(stageSource(judge, lanes.judge.maxInFlight));

  const invoke = (...targets: IFunction[]) =>
    new PolicyStatement({
      sid: 'InvokeStages',
      actions: ['lambda:InvokeFunction'],
      resources: targets.map((target) => target.functionArn),
    });
  const send = (...queues: StageQueue[]) =>
    new PolicyStatement({
      sid: 'SendToQueues',
      actions: ['sqs:SendMessage'],
      resources: queues.map(({ queue }) => queue.queueArn),
    });
  /** What a Distributed Map needs: its children, its items and its results. */
  const distributedMap = (machine: MachineName, items: string[], results: string[]) => [
    new PolicyStatement({
      sid: 'StartMapChildren',
      actions: ['states:StartExecution'],
      resources: [statesArn('stateMachine', machine)],
    }),
    new PolicyStatement({
      sid: 'FollowMapChildren',
      actions: ['states:DescribeExecution', 'states:StopExecution', 'states:RedriveExecution'],
      resources: [statesArn('execution', machine, ':*'), statesArn('execution', machine, '/*')],
    }),
    new PolicyStatement({
      sid: 'ReadItems',
      actions: ['s3:GetObject'],
      resources: items.map((pattern) => bucket.arnForObjects(pattern)),
    }),
    new PolicyStatement({
      sid: 'WriteResults',
      actions: ['s3:PutObject', 's3:GetObject', 's3:ListMultipartUploadParts', 's3:AbortMultipartUpload'],
      resources: results.map((pattern) => bucket.arnForObjects(pattern)),
    }),
    keyStatement(key),
  ];
  const runMachines = (...started: MachineName[]) => [
    new PolicyStatement({
      sid: 'StartMachines',
      actions: ['states:StartExecution'],
      resources: started.map((machine) => statesArn('stateMachine', machine)),
    }),
    new PolicyStatement({
      sid: 'FollowMachines',
      actions: ['states:DescribeExecution', 'states:StopExecution'],
      resources: started.map((machine) => statesArn('execution', machine, ':*')),
    }),
    new PolicyStatement({
      sid: 'WaitForMachines',
      actions: ['events:PutTargets', 'events:PutRule', 'events:DescribeRule'],
      resources: [
        stack.formatArn({
          service: 'events',
          resource: 'rule',
          resourceName: 'StepFunctionsGetEventsForStepFunctionsExecutionRule',
        }),
      ],
    }),
  ];

  /** Jobs of the GPU stack, by their names: that stack knows this one and not the other way round. */
  const runJobs = () => {
    if (gpuLanes.length === 0) return [];
    const batchArn = (resource: string, name: string) =>
      stack.formatArn({ service: 'batch', resource, resourceName: name });
    return [
      new PolicyStatement({
        sid: 'SubmitJobs',
        actions: ['batch:SubmitJob'],
        resources: [
          ...new Set(Object.values(gpuQueues).map((name) => batchArn('job-queue', name))),
          ...gpuLanes
            .map(({ id: lane }) => jobDefinitionName(deployment, lane))
            .flatMap((name) => [name, `${name}:*`].map((revision) => batchArn('job-definition', revision))),
        ],
      }),
      // A job's id is made when it is submitted, and looking at jobs cannot be narrowed at all.
      new PolicyStatement({
        sid: 'FollowJobs',
        actions: ['batch:DescribeJobs', 'batch:TerminateJob'],
        resources: ['*'],
      }),
      new PolicyStatement({
        sid: 'WaitForJobs',
        actions: ['events:PutTargets', 'events:PutRule', 'events:DescribeRule'],
        resources: [
          stack.formatArn({
            service: 'events',
            resource: 'rule',
            resourceName: 'StepFunctionsGetEventsForBatchJobsRule',
          }),
        ],
      }),
    ];
  };

  const viewGroup = createStateMachine(stack, {
    deployment,
    machine: 'view-group',
    substitutions: { ExcludeRequestFunction: functions['exclude-request'].functionArn },
    statements: [invoke(functions['exclude-request']), send(...laneQueues.values())],
  });
  const judging = createStateMachine(stack, {
    deployment,
    machine: 'judging',
    substitutions: {
      PlanJudgingFunction: functions['plan-judging'].functionArn,
      SubmitJudgeBatchFunction: functions['submit-judge-batch'].functionArn,
      PollJudgeBatchFunction: functions['poll-judge-batch'].functionArn,
      AggregateRunFunction: functions['aggregate-run'].functionArn,
      PublishReportFunction: functions['publish-report'].functionArn,
      Bucket: bucket.bucketName,
    },
    statements: [
      invoke(
        functions['plan-judging'],
        functions['submit-judge-batch'],
        functions['poll-judge-batch'],
        functions['aggregate-run'],
        functions['publish-report'],
      ),
      send(judge),
      ...distributedMap('judging', ['runs/*/judging/chunks.jsonl'], ['runs/*/judging/map/*']),
    ],
  });
  const sweep = createStateMachine(stack, {
    deployment,
    machine: 'sweep',
    substitutions: {
      PlanSweepFunction: functions['plan-sweep'].functionArn,
      PrepareMediaFunction: functions['prepare-media'].functionArn,
      StopLaneFunction: functions['stop-lane'].functionArn,
      Bucket: bucket.bucketName,
      ViewGroupStateMachine: viewGroup.stateMachineArn,
      JudgingStateMachine: judging.stateMachineArn,
    },
    statements: [
      invoke(functions['plan-sweep'], functions['prepare-media'], functions['stop-lane']),
      ...runJobs(),
      ...distributedMap(
        'sweep',
        ['runs/*/plan/*/pending.jsonl', 'runs/*/plan/pending-clips.jsonl'],
        ['runs/*/lanes/*/map/*', 'runs/*/media/map/*'],
      ),
      ...runMachines('view-group', 'judging'),
    ],
  });
  // What the command line needs to know of a deployment.
  const outputs = {
    [deploymentOutputs.bucket]: bucket.bucketName,
    [deploymentOutputs.sweepMachine]: sweep.stateMachineArn,
    [deploymentOutputs.judgingMachine]: judging.stateMachineArn,
    [deploymentOutputs.lanes]: lanesOutput(
      lanes.lanes.map((lane) => ({ id: lane.id, serverPort: isGpu(lane) ? lane.server.port : null })),
    ),
    [deploymentOutputs.generateTurnsFunction]: functions['generate-turns'].functionName,
    [deploymentOutputs.judgeAnswersFunction]: functions['judge-answers'].functionName,
  };
  for (const [name, value] of Object.entries(outputs)) new CfnOutput(stack, name, { value });
  return {
    stack,
    functions,
    laneQueues,
    judgeQueue: judge,
    machines: { sweep, 'view-group': viewGroup, judging },
    variables,
    turnsStatements: () => [...scopeStatements(data, scopes['generate-turns'], false), ...turnsStatements()],
  };
};

const stageSource = ({ queue }: StageQueue, maxConcurrency: number): SqsEventSource =>
  new SqsEventSource(queue, {
    batchSize: 1,
    maxBatchingWindow: Duration.seconds(0),
    maxConcurrency,
    reportBatchItemFailures: true,
  });
