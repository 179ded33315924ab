import type { Usage } from './outcome.ts';

/** US dollars for a million tokens. */
export interface Price {
  inputPerMTok: number;
  outputPerMTok: number;
  cachedInputPerMTok?: number | undefined;
}

/**
 * Cost of one call in millionths of a dollar (a price per million tokens is a price in micro-dollars per
 * token). Null where price or token counts are unknown: unknown is never zero.
 */
export const callCostMicroUsd = (usage: Usage, price: Price | null): number | null => {
  if (price === null || usage.inputTokens === null || usage.outputTokens === null) return null;
  const cached = price.cachedInputPerMTok === undefined ? 0 : (usage.cachedInputTokens ?? 0);
  return (
    (usage.inputTokens - cached) * price.inputPerMTok +
    cached * (price.cachedInputPerMTok ?? 0) +
    usage.outputTokens * price.outputPerMTok
  );
};

/** False for calls that were surely not charged: no connection, or an HTTP status that refuses. */
export const mayBeCharged = (call: { httpStatus: number | null; kind: string | null }): boolean =>
  call.kind !== 'connect_failed' && (call.httpStatus === null || call.httpStatus === 200);

/** The most that a call can cost whose prompt has about `inputTokens`: what a budget reserves. */
export const reservationMicroUsd = (inputTokens: number, maxTokens: number, price: Price): number =>
  Math.ceil(inputTokens * price.inputPerMTok + maxTokens * price.outputPerMTok);
