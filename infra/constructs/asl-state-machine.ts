import { readFileSync } from 'node:fs';
import path from 'node:path';
import { RemovalPolicy } from 'aws-cdk-lib';
import { type PolicyStatement, Role, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import { LogGroup, RetentionDays } from 'aws-cdk-lib/aws-logs';
import { DefinitionBody, LogLevel, StateMachine, StateMachineType } from 'aws-cdk-lib/aws-stepfunctions';
import type { Construct } from 'constructs';
import { deployedName } from '../../shared/naming.ts';
import { constructId } from './stage-function.ts';

const machines = path.join(import.meta.dirname, '..', '..', 'state-machines');

/** What each definition leaves open. */
export interface Substitutions {
  sweep:
    | 'PlanSweepFunction'
    | 'PrepareMediaFunction'
    | 'StopLaneFunction'
    | 'Bucket'
    | 'ViewGroupStateMachine'
    | 'JudgingStateMachine';
  'view-group': 'ExcludeRequestFunction';
  judging:
    | 'PlanJudgingFunction'
    | 'SubmitJudgeBatchFunction'
    | 'PollJudgeBatchFunction'
    | 'AggregateRunFunction'
    | 'PublishReportFunction'
    | 'Bucket';
}
export type MachineName = keyof Substitutions;

export const readDefinition = (machine: MachineName): string =>
  readFileSync(path.join(machines, `${machine}.asl.json`), 'utf8');

export const openNames = (definition: string): string[] =>
  [...new Set([...definition.matchAll(/\$\{([^}]*)\}/g)].map((match) => match[1]!))].sort();

/** Throws unless exactly the names that the definition leaves open are supplied. */
export const checkSubstitutions = (
  machine: string,
  definition: string,
  supplied: readonly string[],
): void => {
  const wanted = openNames(definition);
  const missing = wanted.filter((name) => !supplied.includes(name));
  const unused = supplied.filter((name) => !wanted.includes(name));
  if (missing.length === 0 && unused.length === 0) return;
  throw new Error(
    `${machine}.asl.json: substitutions missing [${missing.join(', ')}], supplied but unused [${unused.join(', ')}]`,
  );
};

export interface StateMachineProps<Machine extends MachineName> {
  deployment: string;
  machine: Machine;
  substitutions: Record<Substitutions[Machine], string>;
  statements: readonly PolicyStatement[];
}

/**
 * A machine from `state-machines/`, inlined so that CDK's own rules see it. Its log has every step but no
 * data: task tokens are credentials.
 */
export const createStateMachine = <Machine extends MachineName>(
  scope: Construct,
  props: StateMachineProps<Machine>,
): StateMachine => {
  const { machine, substitutions } = props;
  const definition = readDefinition(machine);
  checkSubstitutions(machine, definition, Object.keys(substitutions));
  const id = constructId(machine);
  const name = deployedName(props.deployment, machine);
  const role = new Role(scope, `${id}MachineRole`, {
    assumedBy: new ServicePrincipal('states.amazonaws.com'),
    description: `State machine ${machine} of ${props.deployment}`,
  });
  for (const statement of props.statements) role.addToPolicy(statement);
  return new StateMachine(scope, `${id}Machine`, {
    stateMachineName: name,
    stateMachineType: StateMachineType.STANDARD,
    definitionBody: DefinitionBody.fromString(compactJson(definition)),
    definitionSubstitutions: substitutions,
    role,
    tracingEnabled: true,
    logs: {
      destination: new LogGroup(scope, `${id}MachineLog`, {
        // This prefix keeps the account's resource policy for log delivery from outgrowing its limit.
        logGroupName: `/aws/vendedlogs/states/${name}`,
        retention: RetentionDays.ONE_MONTH,
        removalPolicy: RemovalPolicy.DESTROY,
      }),
      level: LogLevel.ALL,
      includeExecutionData: false,
    },
  });
};

const compactJson = (text: string): string => JSON.stringify(JSON.parse(text));
