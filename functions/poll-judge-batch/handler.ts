import { judgeBatchHandler } from '../../shared/adapters/aws/stage-environment.ts';
import { createPollJudgeBatch } from './poll-judge-batch.ts';

export const handler = judgeBatchHandler('poll-judge-batch', createPollJudgeBatch);
