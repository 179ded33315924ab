import type { Usage } from '../../domain/outcome.ts';

const members = (value: unknown): Record<string, unknown> =>
  value !== null && typeof value === 'object' ? (value as Record<string, unknown>) : {};

const count = (value: unknown): number | null =>
  Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : null;

/**
 * Token counts of a reply. What the provider did not say, or said as anything but a count, is null, never 0.
 * Some servers put `cached_tokens` beside `prompt_tokens` instead of into the details.
 */
export const readUsage = (value: unknown): Usage => {
  const usage = members(value);
  const prompt = members(usage.prompt_tokens_details);
  const completion = members(usage.completion_tokens_details);
  return {
    inputTokens: count(usage.prompt_tokens),
    outputTokens: count(usage.completion_tokens),
    cachedInputTokens: count(prompt.cached_tokens) ?? count(usage.cached_tokens),
    reasoningTokens: count(completion.reasoning_tokens),
    audioInputTokens: count(prompt.audio_tokens),
    videoInputTokens: count(prompt.video_tokens),
    imageInputTokens: count(prompt.image_tokens),
    textInputTokens: count(prompt.text_tokens),
  };
};
