import { planningPorts, taskHandler } from '../../shared/adapters/aws/stage-environment.ts';
import { createPlanJudging } from './plan-judging.ts';

export const handler = taskHandler('plan-judging', createPlanJudging, planningPorts);
