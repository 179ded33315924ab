import { readFileSync } from 'node:fs';
import path from 'node:path';
import * as batch from '@aws-sdk/client-batch';
import * as lambda from '@aws-sdk/client-lambda';
import * as stepfunctions from '@aws-sdk/client-sfn';
import * as sqs from '@aws-sdk/client-sqs';
import { describe, expect, it } from 'vitest';
import { scopes } from '../../shared/scopes.ts';
import { commandLinesIn } from '../support/command-lines-in-docs.ts';
import { synthesize } from './synthesized.ts';

const file = path.join(import.meta.dirname, '..', '..', 'docs', 'runbook.md');

/** Things that a deployment gives a name that people see. */
const named: readonly [stack: string, type: string, property: string][] = [
  ['Sweep', 'AWS::Lambda::Function', 'FunctionName'],
  ['Sweep', 'AWS::Logs::LogGroup', 'LogGroupName'],
  ['Sweep', 'AWS::SQS::Queue', 'QueueName'],
  ['Sweep', 'AWS::StepFunctions::StateMachine', 'StateMachineName'],
  ['Schedule', 'AWS::SQS::Queue', 'QueueName'],
  ['Gpu', 'AWS::Batch::JobQueue', 'JobQueueName'],
  ['Gpu', 'AWS::ECR::Repository', 'RepositoryName'],
  ['Observability', 'AWS::CloudWatch::Alarm', 'AlarmName'],
];

/** What people put their own words for, and a word that fits. */
const placeholders: readonly [string, string][] = [
  ['$stage', 'generate-turns'],
  ['STAGE', 'plan-sweep'],
  ['LANE', 'openai'],
];

const services: Record<string, object> = { batch, lambda, sqs, stepfunctions };

describe('the runbook', () => {
  it('names things that are deployed', () => {
    const app = synthesize();
    const deployed = named.flatMap(([stack, type, property]) =>
      Object.values(app.resources(stack, type)).map(({ Properties }) => String(Properties[property])),
    );
    const names = [...readFileSync(file, 'utf8').matchAll(/turnsweep-[\w$*-]+/g)].map(([name]) =>
      placeholders.reduce((text, [from, to]) => text.replace(from, to), name),
    );
    const isDeployed = (name: string) => {
      const pattern = new RegExp(`^(/aws/lambda/)?${name.replaceAll('*', '.+')}$`);
      return deployed.some((candidate) => pattern.test(candidate));
    };

    expect(names.length).toBeGreaterThan(20);
    expect(names.filter((name) => !isDeployed(name))).toEqual([]);
  });

  it('names stages of this system', () => {
    const [loop] = [...readFileSync(file, 'utf8').matchAll(/for stage in ([\w -]+); do/g)];

    expect(loop![1]!.split(' ').filter((stage) => !(stage in scopes))).toEqual([]);
  });

  it('gives requests that the services have', () => {
    const lines = commandLinesIn(file, 'aws').map((line) => line.split(' ') as [string, string, string]);
    const unknown = lines.filter(([, service, request]) => {
      if (service === 's3') return !['cp', 'ls'].includes(request);
      if (service === 'logs') return request !== 'filter-log-events';
      const name = request.replace(/(^|-)([a-z])/g, (_, __, letter: string) => letter.toUpperCase());
      return !(`${name}Command` in (services[service] ?? {}));
    });

    expect(lines.length).toBeGreaterThan(12);
    expect(unknown).toEqual([]);
  });
});
