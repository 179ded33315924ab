import { clockPort, taskHandler } from '../../shared/adapters/aws/stage-environment.ts';
import { createStopLane } from './stop-lane.ts';

export const handler = taskHandler('stop-lane', createStopLane, clockPort);
