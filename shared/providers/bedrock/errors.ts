import type { OutcomeRule } from '../chat-completions/errors.ts';

/** HTTP status of an exception that comes inside a stream, where it has none (the service's API model). */
export const statusOfException: Readonly<Record<string, number>> = {
  ThrottlingException: 429,
  ModelNotReadyException: 429,
  ModelTimeoutException: 408,
  ModelErrorException: 424,
  ModelStreamErrorException: 424,
  InternalServerException: 500,
  ServiceUnavailableException: 503,
  ValidationException: 400,
  AccessDeniedException: 403,
  ResourceNotFoundException: 404,
};

/**
 * Go before the rules that all share (401, 404: stop; 408, 429, 5xx: retry; 400 and the rest: failed). Source:
 * docs.aws.amazon.com/bedrock troubleshooting-api-error-codes. Throttling names no time to wait.
 */
export const rules: readonly OutcomeRule[] = [
  // The quota of a day, in the words of github.com/minorun365/agent-book#29: too long to wait.
  { codes: /^throttlingexception$/, message: /tokens per day/i, verdict: 'stop_lane' },
  { codes: /^servicequotaexceededexception$/, verdict: 'stop_lane' },
  // Model, inference profile or region do not fit together, in the words of
  // github.com/strands-agents/harness-sdk#38 and github.com/mlcommons/modelbench#1654.
  {
    codes: /^validationexception$/,
    message: /model identifier is invalid|on-demand throughput|doesn.t support the model/i,
    verdict: 'stop_lane',
  },
  { statuses: [403, 403], verdict: 'stop_lane' },
  { statuses: [424, 424], verdict: 'retry' },
];
