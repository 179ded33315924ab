import { Duration, RemovalPolicy, Size, Stack, type StackProps } from 'aws-cdk-lib';
import {
  Action,
  AllocationStrategy,
  EcsEc2ContainerDefinition,
  EcsJobDefinition,
  EcsMachineImageType,
  JobQueue,
  JobStateTimeLimitActionsAction,
  JobStateTimeLimitActionsReason,
  JobStateTimeLimitActionsState,
  ManagedEc2EcsComputeEnvironment,
  Reason,
  RetryStrategy,
} from 'aws-cdk-lib/aws-batch';
import {
  FlowLogDestination,
  FlowLogTrafficType,
  GatewayVpcEndpointAwsService,
  InstanceType,
  SecurityGroup,
  SubnetType,
  Vpc,
} from 'aws-cdk-lib/aws-ec2';
import { Repository, TagMutability } from 'aws-cdk-lib/aws-ecr';
import { ContainerImage, LogDriver } from 'aws-cdk-lib/aws-ecs';
import { ManagedPolicy, PolicyStatement, Role, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import { LogGroup, RetentionDays } from 'aws-cdk-lib/aws-logs';
import type { Construct } from 'constructs';
import type { WorkerVariables } from '../../shared/contracts/stage-environment.ts';
import {
  deployedName,
  gpuJobQueueName,
  jobDefinitionName,
  laneQueue,
  queueResourceName,
} from '../../shared/naming.ts';
import type { GpuLane, GpuMemoryClass } from '../config/lanes.ts';
import { serverCommand, serverHealthUrl } from '../config/model-server.ts';
import { constructId } from '../constructs/stage-function.ts';
import type { SweepStack } from './sweep.ts';

export interface GpuStackProps extends StackProps {
  deployment: string;
  lanes: readonly GpuLane[];
  sweep: SweepStack;
}

export interface GpuStack {
  stack: Stack;
  jobQueues: readonly JobQueue[];
}

/** Instance types by the memory of one GPU: a job of a class fits on any of them. */
const instanceTypes: Record<GpuMemoryClass, readonly string[]> = {
  '24GB': ['g6.2xlarge', 'g6.4xlarge', 'g6.12xlarge', 'g5.2xlarge', 'g5.4xlarge', 'g5.12xlarge'],
  '48GB': ['g6e.2xlarge', 'g6e.4xlarge', 'g6e.12xlarge'],
  '80GB': ['p4de.24xlarge', 'p5.4xlarge', 'p5.48xlarge'],
};
/** What a job asks for beside one GPU; the smallest instance of each class has it to spare. */
const perGpu = { cpus: 6, memoryMb: 24_000 };
/** At most this many virtual CPUs at once in each environment: what a mistake can cost is bounded. */
const maxCpus = 96;
const dayHours = 24;
/** Longer than the longest wait before a retry: while one lasts, the queue may be empty. */
const idleSeconds = 600;
const hiddenSeconds = 30;

/** Batch for lanes whose model runs on our own GPUs. Nothing runs, and nothing costs, while no job waits. */
export const createGpuStack = (scope: Construct, id: string, props: GpuStackProps): GpuStack => {
  const stack = new Stack(scope, id, props);
  const { deployment, sweep } = props;
  const network = createNetwork(stack, deployment);
  const repository = new Repository(stack, 'WorkerImages', {
    repositoryName: deployedName(deployment, 'worker'),
    imageScanOnPush: true,
    imageTagMutability: TagMutability.IMMUTABLE,
    lifecycleRules: [{ maxImageCount: 10 }],
    removalPolicy: RemovalPolicy.RETAIN,
  });
  const instanceRole = new Role(stack, 'InstanceRole', {
    assumedBy: new ServicePrincipal('ec2.amazonaws.com'),
    managedPolicies: [
      ManagedPolicy.fromAwsManagedPolicyName('service-role/AmazonEC2ContainerServiceforEC2Role'),
    ],
  });

  const jobQueues = new Map<GpuMemoryClass, JobQueue>();
  for (const memory of new Set(props.lanes.map((lane) => lane.gpuMemory))) {
    const environment = (kind: 'Spot' | 'OnDemand') =>
      new ManagedEc2EcsComputeEnvironment(stack, `Gpu${memory}${kind}`, {
        ...network,
        vpcSubnets: { subnetType: SubnetType.PUBLIC },
        instanceTypes: instanceTypes[memory].map((name) => new InstanceType(name)),
        useOptimalInstanceClasses: false,
        images: [{ imageType: EcsMachineImageType.ECS_AL2023_NVIDIA }],
        instanceRole,
        minvCpus: 0,
        maxvCpus: maxCpus,
        spot: kind === 'Spot',
        allocationStrategy:
          kind === 'Spot'
            ? AllocationStrategy.SPOT_PRICE_CAPACITY_OPTIMIZED
            : AllocationStrategy.BEST_FIT_PROGRESSIVE,
        updateToLatestImageVersion: true,
        // Otherwise a changed limit or instance list is not taken over.
        replaceComputeEnvironment: false,
      });
    const queue = new JobQueue(stack, `Gpu${memory}Jobs`, {
      jobQueueName: gpuJobQueueName(deployment, memory),
      jobStateTimeLimitActions: [
        JobStateTimeLimitActionsReason.INSUFFICIENT_INSTANCE_CAPACITY,
        JobStateTimeLimitActionsReason.COMPUTE_ENVIRONMENT_MAX_RESOURCE,
        JobStateTimeLimitActionsReason.JOB_RESOURCE_REQUIREMENT,
      ].map((reason) => ({
        reason,
        action: JobStateTimeLimitActionsAction.CANCEL,
        state: JobStateTimeLimitActionsState.RUNNABLE,
        maxTime: Duration.hours(6),
      })),
    });
    queue.addComputeEnvironment(environment('Spot'), 1);
    queue.addComputeEnvironment(environment('OnDemand'), 2);
    jobQueues.set(memory, queue);
  }

  for (const lane of props.lanes) {
    const { queue } = sweep.laneQueues.get(lane.id)!;
    const name = queueResourceName(laneQueue(lane.id));
    const constructName = constructId(name);
    const jobRole = new Role(stack, `${constructName}JobRole`, {
      assumedBy: new ServicePrincipal('ecs-tasks.amazonaws.com'),
      description: `Worker of lane ${lane.id} of ${deployment}`,
    });
    const statements = [
      ...sweep.turnsStatements(),
      new PolicyStatement({
        sid: 'OwnQueue',
        actions: [
          'sqs:ReceiveMessage',
          'sqs:DeleteMessage',
          'sqs:ChangeMessageVisibility',
          'sqs:GetQueueAttributes',
          'sqs:GetQueueUrl',
        ],
        resources: [queue.queueArn],
      }),
    ];
    for (const statement of statements) jobRole.addToPolicy(statement);
    const logGroup = new LogGroup(stack, `${constructName}Log`, {
      logGroupName: `/aws/batch/${deployedName(deployment, name)}`,
      retention: RetentionDays.ONE_MONTH,
      removalPolicy: RemovalPolicy.DESTROY,
    });
    new EcsJobDefinition(stack, `${constructName}Job`, {
      jobDefinitionName: jobDefinitionName(deployment, lane.id),
      timeout: Duration.hours(dayHours),
      retryAttempts: 5,
      // Without the second rule an exit that matches none is retried.
      retryStrategies: [
        RetryStrategy.of(Action.RETRY, Reason.SPOT_INSTANCE_RECLAIMED),
        RetryStrategy.of(Action.EXIT, Reason.custom({ onReason: '*' })),
      ],
      propagateTags: true,
      container: new EcsEc2ContainerDefinition(stack, `${constructName}Container`, {
        image: ContainerImage.fromEcrRepository(repository, lane.server.imageTag),
        gpu: lane.gpus,
        cpu: perGpu.cpus * lane.gpus,
        memory: Size.mebibytes(perGpu.memoryMb * lane.gpus),
        environment: {
          ...sweep.variables(lane.timeoutSeconds),
          ...workerVariables(lane, queue.queueUrl),
          AWS_REGION: stack.region,
        },
        jobRole,
        logging: LogDriver.awsLogs({ logGroup, streamPrefix: name }),
      }),
    });
  }
  return { stack, jobQueues: [...jobQueues.values()] };
};

const workerVariables = (lane: GpuLane, queueUrl: string): WorkerVariables => ({
  TURNSWEEP_LANE: lane.id,
  TURNSWEEP_QUEUE_URL: queueUrl,
  TURNSWEEP_MAX_IN_FLIGHT: String(lane.maxInFlight),
  TURNSWEEP_SERVER_COMMAND: JSON.stringify(serverCommand(lane)),
  TURNSWEEP_SERVER_HEALTH_URL: serverHealthUrl(lane),
  TURNSWEEP_SERVER_START_SECONDS: String(lane.server.startSeconds),
  TURNSWEEP_IDLE_SECONDS: String(idleSeconds),
  TURNSWEEP_HIDDEN_SECONDS: String(hiddenSeconds),
});

/** Public subnets without a way in: a NAT gateway costs more in a month than a sweep. */
const createNetwork = (stack: Stack, deployment: string) => {
  const vpc = new Vpc(stack, 'GpuNetwork', {
    vpcName: deployedName(deployment, 'gpu'),
    maxAzs: 2,
    natGateways: 0,
    subnetConfiguration: [{ name: 'gpu', subnetType: SubnetType.PUBLIC, mapPublicIpOnLaunch: true }],
    gatewayEndpoints: { S3: { service: GatewayVpcEndpointAwsService.S3 } },
    flowLogs: {
      Rejected: {
        trafficType: FlowLogTrafficType.REJECT,
        destination: FlowLogDestination.toCloudWatchLogs(
          new LogGroup(stack, 'GpuNetworkLog', {
            retention: RetentionDays.ONE_MONTH,
            removalPolicy: RemovalPolicy.DESTROY,
          }),
        ),
      },
    },
  });
  const securityGroup = new SecurityGroup(stack, 'GpuSecurityGroup', {
    vpc,
    description: 'GPU workers: calls out, nothing in',
    allowAllOutbound: true,
  });
  return { vpc, securityGroups: [securityGroup] };
};
