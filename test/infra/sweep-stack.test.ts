import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { checkSubstitutions, openNames } from '../../infra/constructs/asl-state-machine.ts';
import { errorNames } from '../../shared/errors.ts';
import { asText, type Resource, type Synthesized, synthesize } from './synthesized.ts';

const lanesFile = path.join(import.meta.dirname, '..', '..', 'infra', 'config', 'lanes.json');
const config = JSON.parse(readFileSync(lanesFile, 'utf8'));
const hosted = config.lanes.filter((lane: { kind: string }) => lane.kind === 'hosted');
const longestLaneSeconds = Math.max(...hosted.map((lane: { timeoutSeconds: number }) => lane.timeoutSeconds));

let app: Synthesized;
beforeAll(() => {
  app = synthesize();
});

const queue = (name: string) => app.named('Sweep', 'AWS::SQS::Queue', 'QueueName', `turnsweep-${name}`);
const stageFunction = (stage: string) =>
  app.named('Sweep', 'AWS::Lambda::Function', 'FunctionName', `turnsweep-${stage}`);
const mappingOf = (queueId: string): Resource | undefined =>
  Object.values(app.resources('Sweep', 'AWS::Lambda::EventSourceMapping')).find(
    (mapping) => asText(mapping.Properties.EventSourceArn) === `<${queueId}.Arn>`,
  );

describe('queues', () => {
  it('are one for each lane and one for judging, each with its own dead letters', () => {
    const names = Object.values(app.resources('Sweep', 'AWS::SQS::Queue')).map(
      (resource) => resource.Properties.QueueName as string,
    );

    expect(names.toSorted()).toEqual(
      [...config.lanes.map((lane: { id: string }) => `lane-${lane.id}`), 'judge']
        .flatMap((name) => [`turnsweep-${name}`, `turnsweep-${name}--dead`])
        .toSorted(),
    );
    for (const name of [...config.lanes.map((lane: { id: string }) => `lane-${lane.id}`), 'judge']) {
      const [deadId] = queue(`${name}--dead`);
      expect(asText(queue(name)[1].Properties.RedrivePolicy.deadLetterTargetArn)).toBe(`<${deadId}.Arn>`);
      expect(queue(name)[1].Properties.RedrivePolicy.maxReceiveCount).toBe(5);
    }
  });

  it('hide a message for six times as long as the function that they feed may work', () => {
    for (const [name, stage] of [
      ...hosted.map((lane: { id: string }) => [`lane-${lane.id}`, 'generate-turns']),
      ['judge', 'judge-answers'],
    ]) {
      const visibility = queue(name)[1].Properties.VisibilityTimeout;
      expect(visibility).toBeGreaterThanOrEqual(6 * stageFunction(stage)[1].Properties.Timeout);
      expect(visibility).toBeLessThanOrEqual(43_200);
    }
  });

  it('feed their function one message at a time, up to the limit of the lane', () => {
    for (const lane of hosted) {
      const mapping = mappingOf(queue(`lane-${lane.id}`)[0])!.Properties;
      expect(mapping.BatchSize).toBe(1);
      expect(mapping.FunctionResponseTypes).toEqual(['ReportBatchItemFailures']);
      expect(mapping.ScalingConfig).toEqual({ MaximumConcurrency: lane.maxInFlight });
      expect(asText(mapping.FunctionName)).toBe(`<${stageFunction('generate-turns')[0]}>`);
    }
    expect(mappingOf(queue('judge')[0])!.Properties.ScalingConfig).toEqual({
      MaximumConcurrency: config.judge.maxInFlight,
    });
  });

  it('of lanes with their own GPUs feed no function', () => {
    for (const lane of config.lanes.filter((candidate: { kind: string }) => candidate.kind === 'gpu')) {
      expect(mappingOf(queue(`lane-${lane.id}`)[0])).toBeUndefined();
    }
  });
});

describe('functions', () => {
  it('are one a stage, arm64, Node 24, with a log that forgets and a role of their own', () => {
    const functions = Object.values(app.resources('Sweep', 'AWS::Lambda::Function'));
    const roles = functions.map((resource) => asText(resource.Properties.Role));

    expect(functions.map((resource) => resource.Properties.FunctionName).toSorted()).toEqual([
      'turnsweep-aggregate-run',
      'turnsweep-exclude-request',
      'turnsweep-generate-turns',
      'turnsweep-judge-answers',
      'turnsweep-plan-judging',
      'turnsweep-plan-sweep',
      'turnsweep-poll-judge-batch',
      'turnsweep-prepare-media',
      'turnsweep-publish-report',
      'turnsweep-start-sweep',
      'turnsweep-stop-lane',
      'turnsweep-submit-judge-batch',
    ]);
    expect(new Set(roles).size).toBe(functions.length);
    for (const { Properties } of functions) {
      expect(Properties.Runtime).toBe('nodejs24.x');
      expect(Properties.Architectures).toEqual(['arm64']);
      const logId = Properties.LoggingConfig.LogGroup.Ref;
      expect(app.resources('Sweep', 'AWS::Logs::LogGroup')[logId]!.Properties.RetentionInDays).toBe(30);
    }
  });

  it('that makes clips has room for them, and ffmpeg where its layer was built', () => {
    const layer = path.join(import.meta.dirname, '..', '..', 'infra', 'layers', 'media', 'bin', 'ffmpeg');
    const { Properties } = stageFunction('prepare-media')[1];

    expect(Properties.EphemeralStorage).toEqual({ Size: 2048 });
    expect(Properties.MemorySize).toBeGreaterThanOrEqual(1769);
    expect(Properties.Layers?.length ?? 0).toBe(existsSync(layer) ? 1 : 0);
    expect(Object.keys(app.resources('Sweep', 'AWS::Lambda::LayerVersion'))).toHaveLength(
      existsSync(layer) ? 1 : 0,
    );
  });

  it('that talk to models live as long as their longest lane', () => {
    expect(stageFunction('generate-turns')[1].Properties.Timeout).toBe(longestLaneSeconds);
    expect(stageFunction('judge-answers')[1].Properties.Timeout).toBe(config.judge.timeoutSeconds);
  });

  it('that call hosted lanes get the memory that the lanes file says, others their own', () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'turnsweep-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const lanes = path.join(folder, 'lanes.json');
    writeFileSync(lanes, JSON.stringify({ ...config, memoryMb: 512 }));
    const memoryOf = (of: Synthesized) =>
      ['generate-turns', 'judge-answers'].map(
        (stage) =>
          of.named('Sweep', 'AWS::Lambda::Function', 'FunctionName', `turnsweep-${stage}`)[1].Properties
            .MemorySize,
      );

    expect(memoryOf(app)).toEqual([256, 256]);
    expect(memoryOf(synthesize({ lanes }))).toEqual([512, 256]);
  });

  it.each(['generate-turns', 'judge-answers'])(
    '%s hands failed messages back after 1, 5 and 15 minutes',
    (name) => {
      const { Variables } = stageFunction(name)[1].Properties.Environment;
      expect(Variables.TURNSWEEP_RETURN_SECONDS).toBe('60,300,900');
    },
  );
});

const definitions = ['sweep', 'view-group', 'judging'].map(
  (name) =>
    [
      name,
      readFileSync(path.join(import.meta.dirname, '..', '..', 'state-machines', `${name}.asl.json`), 'utf8'),
    ] as const,
);

describe('state machines', () => {
  it.each(definitions)(
    '%s is inlined as it stands in its file, with every open name supplied',
    (name, text) => {
      const [, { Properties }] = app.named(
        'Sweep',
        'AWS::StepFunctions::StateMachine',
        'StateMachineName',
        `turnsweep-${name}`,
      );

      expect(Properties.DefinitionS3Location).toBeUndefined();
      expect(JSON.parse(Properties.DefinitionString)).toEqual(JSON.parse(text));
      expect(Object.keys(Properties.DefinitionSubstitutions).toSorted()).toEqual(
        [...new Set([...text.matchAll(/\$\{(\w+)\}/g)].map((match) => match[1]))].toSorted(),
      );
    },
  );

  it('log every step but no data', () => {
    for (const { Properties } of Object.values(app.resources('Sweep', 'AWS::StepFunctions::StateMachine'))) {
      expect(Properties.LoggingConfiguration).toMatchObject({ Level: 'ALL', IncludeExecutionData: false });
      expect(Properties.TracingConfiguration).toEqual({ Enabled: true });
    }
  });

  it('name only errors that exist', () => {
    const named = new Set(
      definitions.flatMap(([, text]) =>
        [...text.matchAll(/"ErrorEquals":\s*\[([^\]]*)\]/g)].flatMap((match) =>
          [...match[1]!.matchAll(/"([^"]+)"/g)].map((word) => word[1]!),
        ),
      ),
    );
    const ours = [...named].filter((name) => !/^(States|Lambda|SQS)\./.test(name));

    expect(ours.length).toBeGreaterThan(0);
    expect(ours.filter((name) => !(Object.values(errorNames) as string[]).includes(name))).toEqual([]);
  });

  it('refuse a missing and an unused substitution', () => {
    const open = (name: string) => `$\{${name}}`;
    const definition = `{"A":"${open('Bucket')}","B":"${open('Function')}"}`;

    expect(openNames(definition)).toEqual(['Bucket', 'Function']);
    expect(() => checkSubstitutions('x', definition, ['Bucket'])).toThrow(/missing \[Function\]/);
    expect(() => checkSubstitutions('x', definition, ['Bucket', 'Function', 'Old'])).toThrow(
      /unused \[Old\]/,
    );
  });
});
