import path from 'node:path';
import { Duration, RemovalPolicy, Size } from 'aws-cdk-lib';
import { PolicyStatement, Role, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import { Architecture, type ILayerVersion, Runtime, Tracing } from 'aws-cdk-lib/aws-lambda';
import { NodejsFunction, OutputFormat, SourceMapMode } from 'aws-cdk-lib/aws-lambda-nodejs';
import { LogGroup, RetentionDays } from 'aws-cdk-lib/aws-logs';
import type { Construct } from 'constructs';
import type { StageVariables } from '../../shared/contracts/stage-environment.ts';
import { deployedName } from '../../shared/naming.ts';
import type { StageName } from '../../shared/scopes.ts';
import { stageSizes } from '../config/stages.ts';

const root = path.join(import.meta.dirname, '..', '..');

/** esbuild needs it for CommonJS parts of an ESM bundle. */
const requireBanner =
  "import { createRequire as makeRequire } from 'node:module'; const require = makeRequire(import.meta.url);";

export interface StageFunctionProps {
  deployment: string;
  stage: StageName;
  timeoutSeconds: number;
  /** In place of the stage's usual size. */
  memoryMb?: number;
  variables: StageVariables;
  /** All that the role may do besides writing its log and traces. */
  statements: readonly PolicyStatement[];
  layers?: ILayerVersion[];
}

/** `plan-sweep` → `PlanSweep`: one name for one thing everywhere. */
export const constructId = (name: string): string =>
  name.replace(/(^|[^A-Za-z0-9]+)([a-z0-9])/g, (_, __, letter: string) => letter.toUpperCase());

/** One stage's function with its own role and log, bundled by esbuild without Docker. */
export const createStageFunction = (scope: Construct, props: StageFunctionProps): NodejsFunction => {
  const { stage } = props;
  const id = constructId(stage);
  const functionName = deployedName(props.deployment, stage);
  const logGroup = new LogGroup(scope, `${id}Log`, {
    logGroupName: `/aws/lambda/${functionName}`,
    retention: RetentionDays.ONE_MONTH,
    removalPolicy: RemovalPolicy.DESTROY,
  });
  const role = new Role(scope, `${id}Role`, {
    assumedBy: new ServicePrincipal('lambda.amazonaws.com'),
    description: `Stage ${stage} of ${props.deployment}`,
  });
  const statements = [
    new PolicyStatement({
      sid: 'OwnLog',
      actions: ['logs:CreateLogStream', 'logs:PutLogEvents'],
      resources: [logGroup.logGroupArn],
    }),
    ...props.statements,
  ];
  for (const statement of statements) role.addToPolicy(statement);
  return new NodejsFunction(scope, id, {
    functionName,
    entry: path.join(root, 'functions', stage, 'handler.ts'),
    handler: 'handler',
    projectRoot: root,
    depsLockFilePath: path.join(root, 'package-lock.json'),
    runtime: Runtime.NODEJS_24_X,
    architecture: Architecture.ARM_64,
    memorySize: props.memoryMb ?? stageSizes[stage].memoryMb,
    ephemeralStorageSize: Size.mebibytes(stageSizes[stage].diskMb ?? 512),
    layers: props.layers,
    timeout: Duration.seconds(props.timeoutSeconds),
    environment: { ...props.variables, NODE_OPTIONS: '--enable-source-maps' },
    awsSdkConnectionReuse: false,
    role,
    logGroup,
    tracing: Tracing.ACTIVE,
    bundling: {
      format: OutputFormat.ESM,
      target: 'node24',
      mainFields: ['module', 'main'],
      minify: true,
      keepNames: true,
      sourceMap: true,
      sourceMapMode: SourceMapMode.DEFAULT,
      sourcesContent: false,
      // The SDK goes into the bundle: the version that was tested, and a shorter start than the runtime's.
      externalModules: [],
      forceDockerBundling: false,
      banner: requireBanner,
    },
  });
};
