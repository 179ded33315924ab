import type { Capabilities } from '../../domain/capabilities.ts';

/**
 * Sources, all of Alibaba Cloud Model Studio: help.aliyun.com model-studio/qwen-omni (Jan and Mar 2026),
 * model-studio visual understanding (Jan 2026), alibabacloud.com/help/en/model-studio/qwen3-8-omni-flash and
 * qwen-api-via-openai-chat-completions (Oct 2026). What has another source says so.
 */
const common: Capabilities = {
  // Sound in `input_audio` or in a video file is confirmed for the omni models only.
  channels: ['V'],
  mixesMedia: 'any',
  videoAs: 'file',
  // A request holds 250 data URIs at most (infiniflow/ragflow#9244); by URL 512 videos and 2,048 sounds.
  clipsPerRequest: { audio: 250, video: 250 },
  clipsByAddress: { audio: 2048, video: 512 },
  fps: { min: 0.1, max: 10 },
  // A longer data URI is refused (QwenLM/qwen-code#1880).
  inlineAtMost: 10_485_760,
  takesUrls: true,
  takesInlineVideo: true,
  // Seen on some routes (langgenius/dify#35311), not confirmed for all: the safe side.
  bodyBytesAtMost: 6_291_456,
  partOrder: 'frozen',
  takesSystemTurn: true,
  settings: ['temperature', 'topP', 'seed', 'fps', 'thinking'],
  reasoningEfforts: null,
  thinking: 'switch',
  streamRequired: false,
  batch: true,
  countsTokensOf: ['video', 'image'],
};

const omni: Capabilities = {
  ...common,
  channels: ['V', 'A'],
  // Required by all omni models before qwen3.8; for that one the page only advises it.
  streamRequired: true,
  // The batch page of Jan 2026 lists qwen-omni-turbo as the only omni model.
  batch: false,
  countsTokensOf: ['audio', 'video', 'image'],
};

const families: readonly [model: RegExp, Capabilities][] = [
  [
    /^qwen3\.8-omni/,
    {
      ...omni,
      // `high` and `max` mean `xhigh`, which is also the default (BerriAI/litellm discussion 41845, Sept 2026).
      settings: ['temperature', 'topP', 'seed', 'fps', 'reasoningEffort', 'thinking'],
      reasoningEfforts: ['none', 'low', 'medium', 'high', 'xhigh', 'max'],
      thinking: 'effort',
    },
  ],
  [
    /^qwen3\.5-omni/,
    {
      ...omni,
      framesPerVideo: { min: 2, max: 2048 },
      settings: ['temperature', 'topP', 'seed', 'fps'],
      thinking: 'none',
    },
  ],
  // Text and one other medium in a user message, one file of it. How many files a whole request may have is not
  // confirmed.
  [/^qwen3-omni-flash/, { ...omni, mixesMedia: 'one-kind', framesPerVideo: { min: 2, max: 128 } }],
  [
    /^qwen-omni-turbo/,
    {
      ...omni,
      mixesMedia: 'one-kind',
      framesPerVideo: { min: 4, max: 80 },
      settings: ['temperature', 'topP', 'seed', 'fps'],
      thinking: 'none',
      batch: true,
    },
  ],
  [/^qwen3-vl/, { ...common, framesPerVideo: { min: 4, max: 2000 } }],
];

/** What a model of Model Studio takes; a model that is not known has the common values of those with a picture. */
export const dashscopeCapabilities = (model: string): Capabilities =>
  families.find(([pattern]) => pattern.test(model))?.[1] ?? common;
