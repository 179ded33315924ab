import { taskHandler } from '../../shared/adapters/aws/stage-environment.ts';
import { createPublishReport } from './publish-report.ts';

export const handler = taskHandler('publish-report', createPublishReport);
