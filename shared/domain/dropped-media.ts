import type { Capabilities } from './capabilities.ts';
import type { Usage } from './outcome.ts';
import type { ClipCounts } from './request.ts';

/**
 * The medium that was sent and that the provider's own count of prompt tokens does not show: servers leave out parts
 * that they do not know without a word. Null where all was counted, and where nothing can be told: the provider does
 * not count that medium, or the reply came without token counts or without any split of them. In a split an absent count
 * stands for none: providers leave out the media that a prompt does not have.
 */
export const droppedMedium = (
  sent: ClipCounts,
  usage: Usage,
  { countsTokensOf, videoAs }: Pick<Capabilities, 'countsTokensOf' | 'videoAs'>,
): 'audio' | 'video' | null => {
  const { audioInputTokens, videoInputTokens, imageInputTokens, textInputTokens, cachedInputTokens } = usage;
  const split = [audioInputTokens, videoInputTokens, imageInputTokens, textInputTokens, cachedInputTokens];
  if (usage.inputTokens === null || split.every((count) => count === null)) return null;
  if (sent.audio > 0 && countsTokensOf.includes('audio') && !usage.audioInputTokens) return 'audio';
  const pictures = (usage.videoInputTokens ?? 0) + (usage.imageInputTokens ?? 0);
  const countsPictures = countsTokensOf.includes(videoAs === 'pictures' ? 'image' : 'video');
  if (sent.video > 0 && countsPictures && pictures === 0) return 'video';
  return null;
};
