import { benchmarkForms } from '../../domain/media.ts';
import { createChatProvider } from '../chat-completions/chat-provider.ts';
import type { ChatProfile } from '../chat-completions/profile.ts';
import { readUsage } from '../chat-completions/usage.ts';
import { dashscopeCapabilities } from './capabilities.ts';
import { dashscopeRules } from './errors.ts';
import { dashscopeBody, dashscopeClip, dashscopeInlineBytesAtMost } from './request.ts';

export const dashscopeProfile = (model: string): ChatProfile => ({
  body: dashscopeBody,
  clip: (clip) => dashscopeClip(model, clip),
  partOrder: 'frozen',
  rules: dashscopeRules,
  readUsage,
  inlineBytesAtMost: dashscopeInlineBytesAtMost,
});

/**
 * Alibaba Cloud Model Studio (DashScope) in its OpenAI-compatible mode. A key belongs to a region and is refused by
 * the others, so the sweep file names the address, for example
 * `https://dashscope-intl.aliyuncs.com/compatible-mode/v1`.
 */
export const dashscope = createChatProvider({
  profile: dashscopeProfile,
  capabilities: dashscopeCapabilities,
  clipForms: ({ model, settings }) =>
    // A video file's own sound is heard where two media in one message are refused.
    benchmarkForms(settings, { mux: dashscopeCapabilities(model).mixesMedia === 'one-kind' }),
  usualBaseUrl: null,
});
