import { startSweepHandler } from '../../shared/adapters/aws/stage-environment.ts';
import { createStartSweep } from './start-sweep.ts';

export const handler = startSweepHandler(createStartSweep);
