import type { OutcomeRule } from '../chat-completions/errors.ts';

/**
 * What StepFun's errors mean where the common meaning (401, 402, 404 stop the lane, 451 is a refusal of the prompt or
 * the reply, 429, 500 and 503 pass) does not tell: a model that does not exist is a 400 here, and its type is that of
 * any bad request (platform.stepfun.com/docs, 2026; the wording is not documented).
 */
export const stepfunRules: readonly OutcomeRule[] = [
  {
    statuses: [400, 400],
    message:
      /\b(unknown|invalid|no such) model\b|\bmodel\b\W+(\S{1,80}\W+)?((is|was|does|has|could) )?(not found|not exist|not be found|unknown|doesn't exist)/i,
    verdict: 'stop_lane',
  },
  // Inside a stream that had begun there is no 451 to tell.
  { message: /content check failed/i, status: 451, verdict: 'refused' },
];
