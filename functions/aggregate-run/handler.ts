import { planningPorts, taskHandler } from '../../shared/adapters/aws/stage-environment.ts';
import { createAggregateRun } from './aggregate-run.ts';

export const handler = taskHandler('aggregate-run', createAggregateRun, planningPorts);
