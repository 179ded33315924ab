import { urlPart } from '../chat-completions/clip-parts.ts';
import type { ChatProfile } from '../chat-completions/profile.ts';
import { selfHostedProfile } from '../openai-compatible/self-hosted.ts';

/**
 * SGLang python/sglang/srt/entrypoints/openai/protocol.py. Sound goes as `audio_url`, which every version takes;
 * `input_audio` came in August 2026 (sgl-project/sglang#33606).
 */
export const sglangProfile: ChatProfile = {
  ...selfHostedProfile,
  clip: ({ medium, files }) => urlPart(medium === 'audio' ? 'audio_url' : 'video_url', files[0]!),
};
