import { type CfnResource, Stack } from 'aws-cdk-lib';
import { CfnFunction } from 'aws-cdk-lib/aws-lambda';
import { CfnLogGroup } from 'aws-cdk-lib/aws-logs';
import { CfnQueue } from 'aws-cdk-lib/aws-sqs';
import { CfnStateMachine } from 'aws-cdk-lib/aws-stepfunctions';
import { NagMessageLevel, NagPack, NagRuleCompliance, type NagRuleResult, rules } from 'cdk-nag';
import type { IConstruct } from 'constructs';

const verdict = (isGood: boolean): NagRuleResult =>
  isGood ? NagRuleCompliance.COMPLIANT : NagRuleCompliance.NON_COMPLIANT;

const about =
  <Resource extends CfnResource>(
    isKind: (node: CfnResource) => node is Resource,
    isGood: (resolved: (value: unknown) => unknown, resource: Resource) => boolean,
  ) =>
  (node: CfnResource): NagRuleResult =>
    isKind(node)
      ? verdict(isGood((value) => Stack.of(node).resolve(value), node))
      : NagRuleCompliance.NOT_APPLICABLE;

const isFunction = (node: CfnResource): node is CfnFunction => node instanceof CfnFunction;
const isLogGroup = (node: CfnResource): node is CfnLogGroup => node instanceof CfnLogGroup;
const isQueue = (node: CfnResource): node is CfnQueue => node instanceof CfnQueue;
const isMachine = (node: CfnResource): node is CfnStateMachine => node instanceof CfnStateMachine;

/** What this system in particular must never do; ids `Evaluator-…`. A class, since that is how packs are made. */
export class EvaluatorChecks extends NagPack {
  override readonly name = 'Evaluator';

  constructor(scope?: IConstruct) {
    super(scope);
    this.packName = 'Evaluator';
  }

  protected override checkResource(node: CfnResource): void {
    const check = (ruleSuffixOverride: string, info: string, rule: (node: CfnResource) => NagRuleResult) =>
      this.applyRule({
        ruleSuffixOverride,
        info,
        explanation: info,
        level: NagMessageLevel.ERROR,
        rule,
        node,
      });
    check(
      'Visibility',
      "A queue's visibility is at least six times the time limit of the function that it feeds.",
      rules.lambda.LambdaEventSourceSQSVisibilityTimeout,
    );
    check(
      'Arm64',
      'Functions run on arm64: a fifth cheaper.',
      about(
        isFunction,
        (resolve, { architectures }) => JSON.stringify(resolve(architectures)) === '["arm64"]',
      ),
    );
    check(
      'NoKeyInEnvironment',
      'No key or token in the environment of a function: they come from Secrets Manager.',
      about(
        isFunction,
        (resolve, { environment }) =>
          !Object.keys((resolve(environment) as { variables?: object } | undefined)?.variables ?? {}).some(
            (name) => /(_KEY|_TOKEN|PASSWORD)$/.test(name),
          ),
      ),
    );
    check(
      'LogRetention',
      'Every log group says how long it keeps its lines.',
      about(isLogGroup, (resolve, { retentionInDays }) => typeof resolve(retentionInDays) === 'number'),
    );
    check(
      'QueueRetention',
      'Queues keep messages for 14 days: a paused lane loses none.',
      about(isQueue, (resolve, { messageRetentionPeriod }) => resolve(messageRetentionPeriod) === 1_209_600),
    );
    check(
      'NoDataInMachineLog',
      'The log of a state machine holds no data: task tokens are credentials.',
      about(
        isMachine,
        (resolve, { loggingConfiguration }) =>
          (resolve(loggingConfiguration) as { includeExecutionData?: boolean } | undefined)
            ?.includeExecutionData === false,
      ),
    );
    check(
      'DefinitionInlined',
      'Definitions are inlined, so that the template rules see them.',
      about(isMachine, (_resolve, { definitionS3Location }) => definitionS3Location === undefined),
    );
  }
}
