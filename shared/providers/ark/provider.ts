import { benchmarkForms } from '../../domain/media.ts';
import { createChatProvider } from '../chat-completions/chat-provider.ts';
import type { ChatProfile } from '../chat-completions/profile.ts';
import { readUsage } from '../chat-completions/usage.ts';
import { arkCapabilities } from './capabilities.ts';
import { arkRules } from './errors.ts';
import { arkBody, arkClip, arkInlineBytesAtMost } from './request.ts';

export const arkProfile: ChatProfile = {
  body: arkBody,
  clip: arkClip,
  partOrder: 'frozen',
  rules: arkRules,
  readUsage,
  inlineBytesAtMost: arkInlineBytesAtMost,
};

/** Volcengine Ark: Doubao Seed. */
export const ark = createChatProvider({
  profile: () => arkProfile,
  capabilities: arkCapabilities,
  clipForms: ({ settings }) => benchmarkForms(settings),
  usualBaseUrl: 'https://ark.cn-beijing.volces.com/api/v3',
});
