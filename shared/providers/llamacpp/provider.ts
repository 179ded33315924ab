import { createChatProvider } from '../chat-completions/chat-provider.ts';
import { asPictures } from '../chat-completions/clip-parts.ts';
import { selfHostedCapabilities } from '../openai-compatible/self-hosted.ts';
import { llamacppProfile } from './request.ts';

/** llama.cpp's server. */
export const llamacpp = createChatProvider({
  profile: () => llamacppProfile,
  capabilities: () => ({ ...selfHostedCapabilities, videoAs: 'pictures' }),
  clipForms: asPictures,
  usualBaseUrl: null,
});
