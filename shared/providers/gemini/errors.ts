import type { Fault, OutcomeRule } from '../chat-completions/errors.ts';

/**
 * Go before the rules that all share (401, 404: stop; 429, 5xx: retry; 400 and the rest: failed). Sources:
 * ai.google.dev/gemini-api/docs/troubleshooting and rate-limits; shapes of `details` as seen in
 * github.com/google-gemini/gemini-cli#8437 and github.com/langgenius/dify#19838.
 */
export const rules: readonly OutcomeRule[] = [
  // A key that is not valid is answered with 400, its reason in the details.
  { codes: /^(api_key_.*|.*_disabled|consumer_.*)$/, verdict: 'stop_lane' },
  // Limits of a minute and of a day share one status; a day is too long to wait.
  { codes: /per_?day/, verdict: 'stop_lane' },
  // Billing or region of the account: of all requests, as no request of ours names an uploaded file.
  { codes: /^failed_precondition$/, verdict: 'stop_lane' },
  { statuses: [403, 403], verdict: 'stop_lane' },
];

export interface GeminiError extends Fault {
  /** `RetryInfo.retryDelay` of the details; null where there is none. */
  waitSeconds: number | null;
}

const record = (value: unknown): Record<string, unknown> | null =>
  value !== null && typeof value === 'object' && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : null;

const records = (value: unknown): Record<string, unknown>[] =>
  Array.isArray(value) ? value.map(record).filter((each) => each !== null) : [];

const durationSeconds = (value: unknown): number | null => {
  const seconds = typeof value === 'string' ? /^(\d{1,9}(?:\.\d+)?)s$/.exec(value) : null;
  return seconds === null ? null : Number(seconds[1]);
};

/**
 * The error that a JSON body reports, or null where it reports none. Some replies wrap it in a list. `codes` has the
 * status, the reasons and the names of the quotas that were hit, lower case.
 */
export const readErrorBody = (body: unknown): GeminiError | null => {
  const error = record(record(Array.isArray(body) ? body[0] : body)?.error);
  if (error === null) return null;
  const details = records(error.details);
  const violations = details.flatMap((detail) => records(detail.violations));
  const names = [
    error.status,
    ...details.map(({ reason }) => reason),
    ...violations.flatMap(({ quotaId, quotaMetric }) => [quotaId, quotaMetric]),
  ];
  const code = Number(error.code);
  return {
    status: Number.isInteger(code) && code >= 400 && code <= 599 ? code : null,
    codes: names.filter((name) => typeof name === 'string').map((name) => name.toLowerCase()),
    message: [error.status, error.message]
      .filter((text) => typeof text === 'string' && text !== '')
      .join(': '),
    waitSeconds:
      details.map(({ retryDelay }) => durationSeconds(retryDelay)).find((wait) => wait !== null) ?? null,
  };
};
