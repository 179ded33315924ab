import { judgeBatchHandler } from '../../shared/adapters/aws/stage-environment.ts';
import { createSubmitJudgeBatch } from './submit-judge-batch.ts';

export const handler = judgeBatchHandler('submit-judge-batch', createSubmitJudgeBatch);
