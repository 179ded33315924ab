import type { Capabilities } from '../../domain/capabilities.ts';

/**
 * Sources: volcengine/volcengine-python-sdk b5be43b5 (Jul 2026), types/chat; Ark's pages on chat and video (Dec 2025);
 * volcengine.com/docs/82379/1299023 on errors (May 2026). What has another source says so.
 */
const common: Capabilities = {
  // Sound is confirmed for Seed 2.0 lite and mini of 260428 alone.
  channels: ['V'],
  // Video and sound as two parts of one message: not confirmed. The sound of a video file is not understood (Dec
  // 2025), so there is no other way.
  mixesMedia: 'any',
  videoAs: 'file',
  clipsPerRequest: { audio: null, video: null },
  fps: { min: 0.2, max: 5 },
  // Base64 below 50 MB, by URL 50 MB at most. No limit for sound was found.
  inlineAtMost: 49_999_999,
  takesUrls: true,
  takesInlineVideo: true,
  bodyBytesAtMost: 64_000_000,
  partOrder: 'frozen',
  takesSystemTurn: true,
  // There is no `seed`.
  settings: ['temperature', 'topP', 'fps', 'reasoningEffort', 'thinking'],
  reasoningEfforts: ['minimal', 'low', 'medium', 'high'],
  thinking: 'switch',
  streamRequired: false,
  // Batch jobs exist, but not in OpenAI's form.
  batch: false,
  // A reply tells no split of image and video tokens.
  countsTokensOf: [],
};

const hearing: Capabilities = { ...common, channels: ['V', 'A'], countsTokensOf: ['audio'] };

/** An endpoint id (`ep-…`) does not tell its model: it is taken to hear. */
const hears = /^ep-|(^|-)seed-2-0-(lite|mini)(-260428)?$/;

/** What a Doubao Seed model takes; one that is not known has the common values, without sound. */
export const arkCapabilities = (model: string): Capabilities => (hears.test(model) ? hearing : common);
