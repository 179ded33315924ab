import { inputAudio, pictures } from '../chat-completions/clip-parts.ts';
import type { ChatProfile } from '../chat-completions/profile.ts';
import { commonProfile } from '../openai-compatible/provider.ts';
import { familyOf } from './capabilities.ts';
import { openAiRules } from './errors.ts';

/**
 * developers.openai.com, chat completions, and openai npm 7.59.0. Reasoning models refuse `max_tokens`; the effort is
 * always named, so that a default of the provider never counts in silence. Audio models speak unless told not to.
 */
export const openAiProfile: ChatProfile = {
  ...commonProfile,
  body: (model, settings, call) => {
    const {
      max_tokens: maxTokens,
      reasoning_effort: effort,
      ...members
    } = commonProfile.body(model, settings, call);
    const family = familyOf(model);
    return {
      ...members,
      max_completion_tokens: maxTokens,
      reasoning_effort: effort ?? (family === 'reasoning' ? 'medium' : undefined),
      modalities: family === 'audio' ? ['text'] : undefined,
    };
  },
  // Else every chunk carries a random text, and no two recordings of one stream are equal.
  streamOptions: { include_obfuscation: false },
  clip: ({ medium, files }) => (medium === 'audio' ? inputAudio(files[0]!) : pictures(files)),
  rules: openAiRules,
};
