import type { OutcomeRule } from '../chat-completions/errors.ts';

/**
 * What Ark's error codes mean (volcengine.com/docs/82379/1299023, May 2026). What no rule here names has the common
 * meaning: 401, 403 and 404 stop the lane, the other 429 and 500 pass, `…SensitiveContentDetected` and
 * `…RiskDetection` are refusals of the prompt or, with `Output…`, of the reply.
 */
export const arkRules: readonly OutcomeRule[] = [
  // A trial or a spending cap is used up; the other 429 are rates.
  { codes: /^(quotaexceeded|setlimitexceeded)(\..*)?$/, status: 429, verdict: 'stop_lane' },
  {
    codes: /^(.*ratelimitexceeded(\..*)?|serveroverloaded|requestbursttoofast|inflightbatchsizeexceeded)$/,
    status: 429,
    verdict: 'retry',
  },
  { codes: /^internalserviceerror$/, status: 500, verdict: 'retry' },
  { codes: /^contentsecuritydetectionerror$/, verdict: 'refused', kind: 'provider_refusal' },
  // Also without a status, in the middle of a stream.
  {
    codes: /^(invalidparameter|missingparameter|invalidimageurl|outofcontexterror)(\..*)?$/,
    status: 400,
    verdict: 'failed',
  },
];
