import { type Usage, unknownUsage } from '../../domain/outcome.ts';
import type { TokenUsage } from './converse-sdk.ts';

const count = (value: unknown): number | null =>
  Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : null;

/**
 * Token counts of a reply. There is no split by modality and none of thinking, which is part of the output: null, never
 * 0. Some models count what came from the cache beside `inputTokens`; `totalTokens` has it, and so has our input, whose
 * part the cached tokens are.
 */
export const readUsage = (usage: Partial<TokenUsage> | undefined): Usage => {
  const told = count(usage?.inputTokens);
  const outputTokens = count(usage?.outputTokens);
  const total = count(usage?.totalTokens);
  const inputTokens =
    told === null || outputTokens === null || total === null ? told : Math.max(told, total - outputTokens);
  const cached = count(usage?.cacheReadInputTokens);
  return {
    ...unknownUsage,
    inputTokens,
    outputTokens,
    cachedInputTokens: cached !== null && inputTokens !== null && cached <= inputTokens ? cached : null,
  };
};
