import type { Capabilities } from '../../domain/capabilities.ts';

/**
 * Sources: platform.stepfun.com/docs, chat-completion-create, guide/audio_chat and stepaudio-2.5-chat (2026);
 * api-evangelist/stepfun a11cb134 (Aug 2026). No model is known to take both sound and pictures.
 */
const common: Capabilities = {
  channels: ['V'],
  mixesMedia: 'one-kind',
  videoAs: 'file',
  clipsPerRequest: { audio: null, video: null },
  // The provider has no such control: `settings.fps` is the rate of the clip that is sent.
  fps: null,
  inlineAtMost: null,
  takesUrls: true,
  // Video comes by http or https alone: MP4 below 128 MB, advised below five minutes.
  takesInlineVideo: false,
  bodyBytesAtMost: null,
  partOrder: 'frozen',
  takesSystemTurn: true,
  // `seed` is not documented.
  settings: ['temperature', 'topP', 'fps'],
  reasoningEfforts: null,
  thinking: 'none',
  streamRequired: false,
  batch: false,
  countsTokensOf: [],
};

const audio: Capabilities = {
  ...common,
  channels: ['A'],
  videoAs: null,
  // Sound comes as a data URI alone. How long or how many there may be is not documented.
  takesUrls: false,
  partOrder: 'text-first',
  settings: ['temperature', 'topP'],
};

const families: readonly [model: RegExp, Capabilities][] = [
  // Reasons before each answer, without a switch.
  [/^step-audio-r1/, { ...audio, thinking: 'always' }],
  // Of `stepaudio-3` a realtime interface is documented; that this one takes it too is not confirmed.
  [/^(step-?audio|step-1o-audio)/, audio],
  [
    /^step-3\.7/,
    {
      ...common,
      settings: [...common.settings, 'reasoningEffort'],
      reasoningEfforts: ['low', 'medium', 'high'],
      thinking: 'effort',
    },
  ],
];

/** What a StepFun model takes; one that is not known has the common values of those with a picture. */
export const stepfunCapabilities = (model: string): Capabilities =>
  families.find(([pattern]) => pattern.test(model))?.[1] ?? common;
