import { taskHandler } from '../../shared/adapters/aws/stage-environment.ts';
import { createExcludeRequest } from './exclude-request.ts';

export const handler = taskHandler('exclude-request', createExcludeRequest);
