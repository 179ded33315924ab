import { inputAudio, pictures } from '../chat-completions/clip-parts.ts';
import type { ChatProfile } from '../chat-completions/profile.ts';
import { selfHostedProfile } from '../openai-compatible/self-hosted.ts';
import { llamacppRules } from './errors.ts';

/**
 * llama.cpp tools/server/README.md. Only the newest builds take video files: frames go as pictures everywhere. An effort
 * is a matter of the chat template (ggml-org/llama.cpp#15396); beside it, it would be ignored in silence.
 */
export const llamacppProfile: ChatProfile = {
  ...selfHostedProfile,
  body: (model, settings, call) => {
    const {
      reasoning_effort: effort,
      chat_template_kwargs: template,
      ...members
    } = selfHostedProfile.body(model, settings, call);
    return { ...members, chat_template_kwargs: { ...(template as object), reasoning_effort: effort } };
  },
  clip: ({ medium, files }) => (medium === 'audio' ? inputAudio(files[0]!) : pictures(files)),
  rules: llamacppRules,
};
