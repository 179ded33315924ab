import { benchmarkForms } from '../../domain/media.ts';
import { createChatProvider } from '../chat-completions/chat-provider.ts';
import { selfHostedCapabilities } from '../openai-compatible/self-hosted.ts';
import { vllmProfile } from './request.ts';

/** vLLM's OpenAI-compatible server. `--limit-mm-per-prompt` counts the clips of the whole history. */
export const vllm = createChatProvider({
  profile: () => vllmProfile,
  capabilities: () => ({ ...selfHostedCapabilities, takesUrls: true }),
  // The server samples the frames: the file keeps its own rate.
  clipForms: ({ settings: { videoMaxSide } }) => benchmarkForms({ videoMaxSide }),
  usualBaseUrl: null,
});
