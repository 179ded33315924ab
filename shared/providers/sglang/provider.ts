import { benchmarkForms } from '../../domain/media.ts';
import { createChatProvider } from '../chat-completions/chat-provider.ts';
import { selfHostedCapabilities } from '../openai-compatible/self-hosted.ts';
import { sglangProfile } from './request.ts';

/** SGLang's OpenAI-compatible server. */
export const sglang = createChatProvider({
  profile: () => sglangProfile,
  capabilities: () => ({ ...selfHostedCapabilities, takesUrls: true }),
  // No request can name a rate of frames: the file itself is given the lane's.
  clipForms: ({ settings }) => benchmarkForms(settings),
  usualBaseUrl: null,
});
