import type { Capabilities } from '../../domain/capabilities.ts';
import { asTheyAre } from '../../domain/media.ts';
import { createChatProvider } from '../chat-completions/chat-provider.ts';
import { inputAudio, urlPart } from '../chat-completions/clip-parts.ts';
import type { ChatProfile } from '../chat-completions/profile.ts';
import { readUsage } from '../chat-completions/usage.ts';

/** What every server that copies OpenAI's `chat/completions` is expected to take. */
export const commonProfile: ChatProfile = {
  body: (_model, settings, call) => ({
    max_tokens: call.maxTokens,
    temperature: settings.temperature,
    top_p: settings.topP,
    seed: settings.seed,
    reasoning_effort: call.reasoningEffort ?? settings.reasoningEffort,
    response_format: call.responseFormat,
  }),
  clip: ({ medium, files }) => (medium === 'audio' ? inputAudio(files[0]!) : urlPart('video_url', files[0]!)),
  partOrder: 'frozen',
  rules: [],
  readUsage,
  inlineBytesAtMost: null,
};

export const commonCapabilities: Capabilities = {
  channels: ['V', 'A'],
  mixesMedia: 'any',
  videoAs: 'file',
  clipsPerRequest: { audio: null, video: null },
  fps: null,
  inlineAtMost: null,
  takesUrls: false,
  takesInlineVideo: true,
  bodyBytesAtMost: null,
  partOrder: 'frozen',
  takesSystemTurn: true,
  settings: ['temperature', 'topP', 'seed', 'reasoningEffort'],
  reasoningEfforts: null,
  thinking: 'effort',
  streamRequired: false,
  batch: false,
  countsTokensOf: [],
};

/** A server that nothing more is known about: clips go as the benchmark has them. */
export const openAiCompatible = createChatProvider({
  profile: () => commonProfile,
  capabilities: () => commonCapabilities,
  clipForms: () => asTheyAre,
  usualBaseUrl: null,
});
