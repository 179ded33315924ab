import type { Usage } from '../../domain/outcome.ts';

const members = (value: unknown): Record<string, unknown> =>
  value !== null && typeof value === 'object' ? (value as Record<string, unknown>) : {};

const count = (value: unknown): number | null =>
  Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : null;

/** Sum of the counts that are there; null where none is. */
const sumOf = (counts: readonly (number | null)[]): number | null => {
  const known = counts.filter((each) => each !== null);
  return known.length === 0 ? null : known.reduce((sum, each) => sum + each, 0);
};

/**
 * Token counts of `usageMetadata`. Thoughts are billed as output but stand beside `candidatesTokenCount`: here
 * `outputTokens` has both, and `reasoningTokens` says how many of them were thoughts. A blocked prompt names neither;
 * then the total beyond the prompt is the output. What the provider did not say is null, never 0.
 */
export const readUsage = (value: unknown): Usage => {
  const usage = members(value);
  const details = Array.isArray(usage.promptTokensDetails) ? usage.promptTokensDetails.map(members) : [];
  const ofModality = (name: string) =>
    sumOf(details.filter(({ modality }) => modality === name).map(({ tokenCount }) => count(tokenCount)));
  const inputTokens = count(usage.promptTokenCount);
  const total = count(usage.totalTokenCount);
  const beyondPrompt =
    inputTokens === null || total === null || total < inputTokens ? null : total - inputTokens;
  return {
    inputTokens,
    outputTokens: sumOf([count(usage.candidatesTokenCount), count(usage.thoughtsTokenCount)]) ?? beyondPrompt,
    cachedInputTokens: count(usage.cachedContentTokenCount),
    reasoningTokens: count(usage.thoughtsTokenCount),
    audioInputTokens: ofModality('AUDIO'),
    videoInputTokens: ofModality('VIDEO'),
    imageInputTokens: ofModality('IMAGE'),
    textInputTokens: ofModality('TEXT'),
  };
};
