import type { Capabilities } from '../../domain/capabilities.ts';

/**
 * Sources: ai.google.dev/gemini-api/docs (generate-content, thinking, video-understanding, audio, files), read in
 * Nov 2026, where nothing else is named.
 */

/** Models of the 2.5 series take a budget of tokens for thinking, later ones a level. */
export const thinksByBudget = (model: string): boolean => /^gemini-2\.5/.test(model);

/** 2.5 Pro cannot stop thinking: its smallest budget is 128 tokens. */
export const smallestBudget = (model: string): number => (/^gemini-2\.5-pro/.test(model) ? 128 : 0);

/**
 * Efforts of a model. 2.5: the budgets that Google's OpenAI interface gives these words
 * (ai.google.dev/gemini-api/docs/openai). Pro models have no `minimal`, and 3.7 and 3.8 Flash refuse it with 400
 * (ai.google.dev whats-new-gemini-3.7: "low, medium, high"; github.com/dzivkovi/video-intel release v2.7.1).
 */
export const reasoningEfforts = (model: string): readonly string[] => {
  if (thinksByBudget(model)) {
    return smallestBudget(model) === 0 ? ['none', 'low', 'medium', 'high'] : ['low', 'medium', 'high'];
  }
  return /^gemini-3(\.\d+)?-pro|^gemini-3\.[78]-flash/.test(model)
    ? ['low', 'medium', 'high']
    : ['minimal', 'low', 'medium', 'high'];
};

/**
 * Older pages say 20 MB for a whole request with inline media, the newer video page below 100 MB (not confirmed):
 * the lower figure. Larger clips would need the Files API, which is not used here.
 */
export const bodyBytesAtMost = 20_000_000;

export const geminiCapabilities = (model: string): Capabilities => ({
  channels: ['V', 'A'],
  mixesMedia: 'any',
  videoAs: 'file',
  clipsPerRequest: { audio: null, video: 10 },
  // 9.5 hours in one prompt.
  audioSecondsAtMost: 34_200,
  // Above 0 up to 24; left out, the provider samples one frame a second.
  fps: { min: 0, max: 24 },
  inlineAtMost: null,
  takesUrls: false,
  takesInlineVideo: true,
  bodyBytesAtMost,
  partOrder: 'frozen',
  takesSystemTurn: true,
  settings: [
    'temperature',
    'topP',
    'seed',
    'fps',
    'reasoningEffort',
    ...(thinksByBudget(model) ? (['thinking'] as const) : []),
  ],
  reasoningEfforts: reasoningEfforts(model),
  thinking: thinksByBudget(model) ? 'switch' : 'effort',
  streamRequired: false,
  batch: false,
  countsTokensOf: ['audio', 'video', 'image'],
});
