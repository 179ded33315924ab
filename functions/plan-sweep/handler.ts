import { planSweepHandler } from '../../shared/adapters/aws/stage-environment.ts';
import { createPlanSweep } from './plan-sweep.ts';

export const handler = planSweepHandler(createPlanSweep);
