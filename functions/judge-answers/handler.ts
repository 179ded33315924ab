import { judgeAnswersHandler } from '../../shared/adapters/aws/stage-environment.ts';
import { createJudgeAnswers } from './judge-answers.ts';

export const handler = judgeAnswersHandler(createJudgeAnswers);
