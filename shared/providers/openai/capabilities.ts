import type { Capabilities } from '../../domain/capabilities.ts';

/** Sources: developers.openai.com (audio, images and reasoning guides) and the types of openai npm 7.59.0, Nov 2026. */
type Family = 'audio' | 'reasoning' | 'chat' | 'unknown';

/** Kind of a model by its name on the wire; fine-tuned ones are `ft:<base>:…`. */
export const familyOf = (model: string): Family => {
  const base = model.replace(/^ft:/, '');
  if (/^gpt-(audio|4o(-mini)?-audio)/.test(base)) return 'audio';
  if (/^(gpt-4o|gpt-4\.1|gpt-4\.5|chatgpt-4o|gpt-5(\.\d+)?-chat)/.test(base)) return 'chat';
  return /^(gpt-5|o\d)/.test(base) ? 'reasoning' : 'unknown';
};

/** The types name them all and say that not every model takes each. */
const allEfforts = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const;

/**
 * Efforts that are known to be taken: gpt-5.1 names its own in the error of openai/openai-agents-python#2089, gpt-5 those
 * of its introduction for developers (Aug 2025), the o models those of enricoros/big-AGI#940. Of later models
 * it is not confirmed which they lack.
 */
const effortsOf = (model: string): readonly string[] => {
  if (/^o\d/.test(model)) return ['low', 'medium', 'high'];
  if (/^gpt-5(-mini|-nano)?(-\d|$)/.test(model)) return ['minimal', 'low', 'medium', 'high'];
  return /^gpt-5\.1(-|$)/.test(model) ? ['none', 'low', 'medium', 'high'] : allEfforts;
};

const common: Capabilities = {
  channels: ['V', 'A'],
  // Pictures beside sound on an audio model: not confirmed.
  mixesMedia: 'one-kind',
  videoAs: 'pictures',
  clipsPerRequest: { audio: null, video: null },
  fps: null,
  inlineAtMost: null,
  takesUrls: false,
  takesInlineVideo: true,
  bodyBytesAtMost: null,
  partOrder: 'frozen',
  takesSystemTurn: true,
  settings: ['temperature', 'topP', 'seed', 'reasoningEffort', 'fps'],
  reasoningEfforts: allEfforts,
  thinking: 'effort',
  streamRequired: false,
  batch: true,
  countsTokensOf: [],
};

const byFamily: Readonly<Record<Family, (model: string) => Capabilities>> = {
  // They must hear or speak, and read no frames. Whether the batch interface takes them is not confirmed.
  audio: () => ({
    ...common,
    channels: ['A'],
    mixesMedia: 'any',
    videoAs: null,
    needsAudio: true,
    settings: ['temperature', 'topP', 'seed'],
    reasoningEfforts: null,
    thinking: 'none',
    batch: false,
    countsTokensOf: ['audio'],
  }),
  // `temperature` and `top_p` answer 400 `unsupported_value`; that `seed` is taken is not confirmed.
  reasoning: (model) => ({
    ...common,
    channels: ['V'],
    settings: ['reasoningEffort', 'fps'],
    reasoningEfforts: effortsOf(model),
  }),
  chat: () => ({
    ...common,
    channels: ['V'],
    settings: ['temperature', 'topP', 'seed', 'fps'],
    reasoningEfforts: null,
    thinking: 'none',
  }),
  unknown: () => common,
};

export const openAiCapabilities = (model: string): Capabilities =>
  byFamily[familyOf(model)](model.replace(/^ft:/, ''));
