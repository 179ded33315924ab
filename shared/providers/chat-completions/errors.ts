import type { CallFacts, CallOutcome, ErrorKind } from '../../domain/outcome.ts';

/** What a failed call says of itself. `status` is null for an error inside a 200 that names no status. */
export interface Fault {
  status: number | null;
  /** The provider's `code` and `type`, lower case. */
  codes: readonly string[];
  message: string;
}

export type Verdict = 'retry' | 'refused' | 'failed' | 'stop_lane';

/** The first rule that fits a fault decides. */
export interface OutcomeRule {
  /** Of the provider's `code` and `type`, lower case. */
  codes?: RegExp;
  /** Of the provider's message, where code and status alone do not tell, or where there are none. */
  message?: RegExp;
  statuses?: readonly [from: number, to: number];
  /** HTTP status that the codes come with: it names the fault where an error inside a 200 has none. */
  status?: number;
  verdict: Verdict;
  kind?: ErrorKind;
  /** Seconds to wait at least where the provider does not say. */
  waitSeconds?: number;
}

/**
 * What errors mean wherever a provider has no rule of its own (return-protocol §4); a fault that fits none (an error
 * without status or known code) is retried.
 */
export const commonRules: readonly OutcomeRule[] = [
  {
    codes:
      /^(content_policy_violation|content_filter|invalid_prompt|cyber_policy|data_?inspection_?failed|responsibleaipolicyviolation|moderation_blocked|.*sensitivecontentdetected.*|.*riskdetection.*)$/,
    verdict: 'refused',
    kind: 'provider_refusal',
  },
  // Nothing that is asked with this key, wallet or model name can succeed.
  { codes: /^insufficient_quota$/, status: 429, verdict: 'stop_lane' },
  {
    codes:
      /^(arrearage|billing_hard_limit_reached|billing_not_active|account_deactivated|invalid_api_key|model_not_found|model_not_supported)$/,
    verdict: 'stop_lane',
  },
  { statuses: [401, 404], verdict: 'stop_lane' },
  { statuses: [408, 409], verdict: 'retry' },
  { statuses: [425, 425], verdict: 'retry' },
  { statuses: [429, 429], verdict: 'retry' },
  { statuses: [451, 451], verdict: 'refused' },
  { statuses: [300, 499], verdict: 'failed' },
  { statuses: [500, 599], verdict: 'retry' },
  // Inside a 200 the code may be all that there is.
  { codes: /^(rate_limit_(error|exceeded)|too_?many_?requests)$/, status: 429, verdict: 'retry' },
  { codes: /^(server_error|internal_?(server_?)?error)$/, status: 500, verdict: 'retry' },
  { codes: /^(overloaded(_error)?|service_?unavailable(_?error)?)$/, status: 503, verdict: 'retry' },
];

export interface Judged {
  verdict: Verdict;
  kind: ErrorKind;
  /** Seconds to wait at least where the provider does not say; null: as the lane's back-off has it. */
  waitSeconds: number | null;
}

const fits = (rule: OutcomeRule, { status, codes, message }: Fault): boolean => {
  if (rule.message !== undefined && !rule.message.test(message)) return false;
  const { codes: wanted, statuses } = rule;
  if (wanted === undefined && statuses === undefined) return true;
  if (wanted !== undefined && codes.some((code) => wanted.test(code))) return true;
  return statuses !== undefined && status !== null && status >= statuses[0] && status <= statuses[1];
};

/** What a fault means to a provider whose own `rules` go before those that all share. */
export const verdictOf = (fault: Fault, rules: readonly OutcomeRule[] = []): Judged => {
  const rule = [...rules, ...commonRules].find((candidate) => fits(candidate, fault));
  const status = fault.status ?? rule?.status ?? null;
  const kind: ErrorKind = rule?.kind ?? (status === null ? 'invalid_response' : `http_${status}`);
  return { verdict: rule?.verdict ?? 'retry', kind, waitSeconds: rule?.waitSeconds ?? null };
};

/** The outcome of a fault, with the provider's wish to wait where asking again makes sense. */
export const failedOutcome = (
  { verdict, kind, waitSeconds = null }: Pick<Judged, 'verdict' | 'kind'> & Partial<Judged>,
  message: string,
  facts: CallFacts,
  retryAfterSeconds: number | null = null,
): CallOutcome =>
  verdict === 'retry'
    ? { status: 'retry', kind, message, retryAfterSeconds: retryAfterSeconds ?? waitSeconds, ...facts }
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
