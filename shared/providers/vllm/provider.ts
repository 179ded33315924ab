import { asTheyAre } from '../../domain/media.ts';
import { createChatProvider } from '../chat-completions/chat-provider.ts';
import { commonCapabilities, commonProfile } from '../openai-compatible/provider.ts';

/** vLLM's OpenAI-compatible server. */
export const vllm = createChatProvider({
  profile: () => commonProfile,
  capabilities: () => commonCapabilities,
  clipForms: () => asTheyAre,
  usualBaseUrl: null,
});
