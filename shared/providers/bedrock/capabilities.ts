import type { Capabilities } from '../../domain/capabilities.ts';
import type { Channel } from '../../domain/request.ts';

/**
 * Sources: docs.aws.amazon.com/nova/latest userguide (modalities) and nova2-userguide (request-response-schema,
 * reasoning-capabilities), read in Nov 2026, where nothing else is named.
 */

interface ModelFacts {
  model: RegExp;
  channels: readonly Channel[];
  /** Null: no limit is known. */
  videosPerRequest: number | null;
}

/** By the model's id or inference profile (`us.amazon.nova-…`). The first that fits counts. */
const knownModels: readonly ModelFacts[] = [
  { model: /\bnova-2-omni\b/, channels: ['V', 'A'], videosPerRequest: null },
  // The schema page lists audio for it; that Converse serves it is not confirmed.
  { model: /\bnova-2-sonic\b/, channels: ['A'], videosPerRequest: null },
  { model: /\bnova-(micro|sonic)\b/, channels: [], videosPerRequest: null },
  // Nova 1 sees the picture of a video only, one a request (that part of the page is not confirmed).
  { model: /\bnova-(lite|pro|premier)\b/, channels: ['V'], videosPerRequest: 1 },
  { model: /\bnova-2\b/, channels: ['V'], videosPerRequest: null },
  // Text and pictures only.
  { model: /\banthropic\./, channels: [], videosPerRequest: null },
];

/** A model that is not known (an ARN of one's own): the service itself refuses what it does not take. */
const unknownModel: Omit<ModelFacts, 'model'> = { channels: ['V', 'A'], videosPerRequest: null };

/** Models whose thinking is off unless `reasoningConfig` switches it on. */
export const takesEffort = (model: string): boolean => /\bnova-2-(lite|pro|omni)\b/.test(model);

/** `high` is left out: it is said to allow no `maxTokens` (not confirmed), and every call of ours has one. */
export const reasoningEfforts = ['low', 'medium'] as const;

/** About 25 MB of inline media. */
export const bodyBytesAtMost = 25_000_000;

export const bedrockCapabilities = (model: string): Capabilities => {
  const { channels, videosPerRequest } = knownModels.find((known) => known.model.test(model)) ?? unknownModel;
  return {
    channels,
    mixesMedia: 'any',
    videoAs: channels.includes('V') ? 'file' : null,
    clipsPerRequest: { audio: null, video: videosPerRequest },
    fps: null,
    inlineAtMost: null,
    // It fetches from S3 with the caller's own rights, never from an address.
    takesUrls: false,
    takesInlineVideo: true,
    bodyBytesAtMost,
    partOrder: 'frozen',
    takesSystemTurn: true,
    settings: ['temperature', 'topP', ...(takesEffort(model) ? (['reasoningEffort'] as const) : [])],
    reasoningEfforts: takesEffort(model) ? reasoningEfforts : null,
    thinking: takesEffort(model) ? 'effort' : 'none',
    streamRequired: false,
    batch: false,
    countsTokensOf: [],
  };
};
