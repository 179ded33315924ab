import path from 'node:path';
import { App, type AppProps, Validations } from 'aws-cdk-lib';
import { AwsSolutionsChecks, ServerlessChecks } from 'cdk-nag';
import { acknowledge } from './checks/acknowledgements.ts';
import { EvaluatorChecks } from './checks/evaluator-checks.ts';
import { isGpu, readLanes, secretNames } from './config/lanes.ts';
import { readSchedules } from './config/schedules.ts';
import { createDataStack } from './stacks/data.ts';
import { createGpuStack } from './stacks/gpu.ts';
import { createObservabilityStack } from './stacks/observability.ts';
import { createScheduleStack } from './stacks/schedule.ts';
import { createSweepStack } from './stacks/sweep.ts';

const configFolder = path.join(import.meta.dirname, 'config');

/**
 * The whole system as CDK stacks. Context: `deployment` names it (several fit in one account), `lanes` and
 * `schedules` are paths of other configuration files.
 */
export const createEvaluatorApp = (props?: AppProps): App => {
  const app = new App(props);
  const context = (name: string, fallback: string): string =>
    String(app.node.tryGetContext(name) ?? fallback);
  const deployment = context('deployment', 'turnsweep');
  const lanes = readLanes(context('lanes', path.join(configFolder, 'lanes.json')));
  const schedules = readSchedules(context('schedules', path.join(configFolder, 'schedules.json')));
  const common = (part: string) => ({
    stackName: `${deployment}-${part}`,
    deployment,
    tags: { deployment, system: 'turnsweep' },
  });

  const data = createDataStack(app, 'Data', {
    ...common('data'),
    description: 'turnsweep: bucket, ledger, provider keys',
    secretNames: secretNames(lanes),
  });
  const sweep = createSweepStack(app, 'Sweep', {
    ...common('sweep'),
    description: 'turnsweep: state machines, queues, stages',
    lanes,
    data,
  });
  const gpuLanes = lanes.lanes.filter(isGpu);
  const gpu =
    gpuLanes.length === 0
      ? null
      : createGpuStack(app, 'Gpu', {
          ...common('gpu'),
          description: 'turnsweep: Batch for lanes with their own GPUs',
          lanes: gpuLanes,
          sweep,
        });
  const schedule = createScheduleStack(app, 'Schedule', {
    ...common('schedule'),
    description: 'turnsweep: sweeps started by the clock',
    schedules,
    sweep,
  });
  createObservabilityStack(app, 'Observability', {
    ...common('observability'),
    description: 'turnsweep: dashboard and alarms',
    lanes,
    sweep,
    schedule,
    gpu,
  });
  Validations.of(app).addPlugins(
    new AwsSolutionsChecks(app),
    new ServerlessChecks(app),
    new EvaluatorChecks(app),
  );
  acknowledge(app, deployment, lanes);
  return app;
};
