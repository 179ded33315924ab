import type { OutcomeRule } from '../chat-completions/errors.ts';

/**
 * What DashScope's error codes mean (help.aliyun.com/zh/model-studio/error-code, 2026). They also come without a
 * status, in the middle of a stream. What no rule here names has the common meaning: 401, 403, 404 and `Arrearage`
 * stop the lane, `data_inspection_failed` is a refusal of the prompt or of the reply, 500 and 503 pass.
 */
export const dashscopeRules: readonly OutcomeRule[] = [
  {
    codes: /^(arrearage|.*overdue|commoditynotpurchased|allocationquota\.freetieronly)$/,
    verdict: 'stop_lane',
  },
  // The cap on tokens a minute, not an empty wallet as elsewhere: it frees itself within about a minute
  // (can1357/oh-my-pi#8476).
  {
    codes: /^(insufficient_quota|throttling\.allocationquota)$/,
    status: 429,
    verdict: 'retry',
    waitSeconds: 60,
  },
  { codes: /^(limit_requests|limit_burst_rate|throttling(\..*)?)$/, status: 429, verdict: 'retry' },
  { codes: /^requesttimeout$/, status: 500, verdict: 'retry' },
  { codes: /^(modelservingerror|modelunavailable)$/, status: 503, verdict: 'retry' },
  // The provider could not fetch a clip in time.
  { codes: /^(invalidparameter\.datainspection|.*\.timeout)$/, status: 400, verdict: 'retry' },
  {
    codes:
      /^(invalidurl(\..*)?|invalidfile\..*|badrequest\..*|invalidparameter(\..*)?|invalid_parameter_error)$/,
    status: 400,
    verdict: 'failed',
  },
];
