import type { Capabilities } from '../../domain/capabilities.ts';
import { asTheyAre } from '../../domain/media.ts';
import { createChatProvider } from '../chat-completions/chat-provider.ts';
import { bareBase64, type ChatProfile, clipUrl } from '../chat-completions/profile.ts';
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
  clip: ({ medium, files }) =>
    medium === 'audio'
      ? ['{"type":"input_audio","input_audio":{"data":"', bareBase64(files[0]!), '","format":"wav"}}']
      : ['{"type":"video_url","video_url":{"url":"', ...clipUrl(files[0]!), '"}}'],
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
