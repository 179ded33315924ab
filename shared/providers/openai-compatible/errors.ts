import type { CallFacts, CallOutcome, ErrorKind } from '../../domain/outcome.ts';

/** What a failed call says of itself. `status` is null for an error inside a 200 that names no status. */
export interface Fault {
  status: number | null;
  /** The provider's `code` and `type`, lower case. */
  codes: readonly string[];
}

export type Verdict = 'retry' | 'refused' | 'failed' | 'stop_lane';

interface Rule {
  codes?: RegExp;
  statuses?: readonly [from: number, to: number];
  verdict: Verdict;
  kind?: ErrorKind;
}

/**
 * The outcome of every error that a server reports; the first rule that fits decides, and a fault that fits none
 * (an error without status or known code) is retried. Rules of return-protocol §4; codes as the providers name them.
 */
export const outcomeRules: readonly Rule[] = [
  {
    codes:
      /^(content_policy_violation|content_filter|invalid_prompt|cyber_policy|data_?inspection_?failed|responsibleaipolicyviolation|moderation_blocked|.*sensitivecontentdetected.*|.*riskdetection.*)$/,
    verdict: 'refused',
    kind: 'provider_refusal',
  },
  // Nothing that is asked with this key, wallet or model name can succeed.
  {
    codes:
      /^(insufficient_quota|arrearage|billing_hard_limit_reached|billing_not_active|account_deactivated|invalid_api_key|model_not_found|model_not_supported)$/,
    verdict: 'stop_lane',
  },
  { statuses: [401, 404], verdict: 'stop_lane' },
  { statuses: [408, 409], verdict: 'retry' },
  { statuses: [425, 425], verdict: 'retry' },
  { statuses: [429, 429], verdict: 'retry' },
  { statuses: [451, 451], verdict: 'refused' },
  { statuses: [300, 499], verdict: 'failed' },
  { statuses: [500, 599], verdict: 'retry' },
];

export const verdictOf = (fault: Fault): { verdict: Verdict; kind: ErrorKind } => {
  const { status, codes } = fault;
  const rule = outcomeRules.find(
    (candidate) =>
      codes.some((code) => candidate.codes?.test(code)) ||
      (candidate.statuses !== undefined &&
        status !== null &&
        status >= candidate.statuses[0] &&
        status <= candidate.statuses[1]),
  );
  const kind: ErrorKind = rule?.kind ?? (status === null ? 'invalid_response' : `http_${status}`);
  return { verdict: rule?.verdict ?? 'retry', kind };
};

/** The outcome of a fault, with the provider's wish to wait where asking again makes sense. */
export const failedOutcome = (
  { verdict, kind }: { verdict: Verdict; kind: ErrorKind },
  message: string,
  facts: CallFacts,
  retryAfterSeconds: number | null = null,
): CallOutcome =>
  verdict === 'retry'
    ? { status: 'retry', kind, message, retryAfterSeconds, ...facts }
    : { status: verdict, kind, message, ...facts };

const longestMessage = 300;

/** Error text for records and people: one line, at most 300 characters, the key taken out before the cut. */
export const cleanMessage = (text: string, apiKey: string | null): string => {
  const safe = apiKey ? text.replaceAll(apiKey, '[key]') : text;
  const line = safe
    .slice(0, 4 * longestMessage)
    .replace(/[\s\p{Cc}\p{Cf}]+/gu, ' ')
    .trim();
  return line.length <= longestMessage
    ? line
    : `${line.slice(0, longestMessage - 1).replace(/[\ud800-\udbff]$/, '')}…`;
};

const record = (value: unknown): Record<string, unknown> | null =>
  value !== null && typeof value === 'object' && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : null;

/** The error that a JSON body reports, or null where it reports none. Servers use four shapes of it. */
export const readErrorBody = (
  body: Record<string, unknown>,
): { codes: string[]; statusInBody: number | null; message: string } | null => {
  const named = body.error ?? null;
  const error =
    record(named) ?? (named !== null ? { message: named } : body.object === 'error' ? body : null);
  if (!error) return null;
  const inBody = Number(error.code);
  return {
    codes: [error.code, error.type]
      .filter((code) => typeof code === 'string')
      .map((code) => code.toLowerCase()),
    statusInBody: Number.isInteger(inBody) && inBody >= 400 && inBody <= 599 ? inBody : null,
    message: [typeof error.code === 'string' ? error.code : null, error.message]
      .filter((text) => typeof text === 'string' && text !== '')
      .join(': '),
  };
};
