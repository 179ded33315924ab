import { asTheyAre } from '../../domain/media.ts';
import { createChatProvider } from '../chat-completions/chat-provider.ts';
import { commonCapabilities, commonProfile } from '../openai-compatible/provider.ts';

/** OpenAI's own servers: reasoning models refuse `max_tokens`. */
export const openAi = createChatProvider({
  profile: () => ({
    ...commonProfile,
    body: (model, settings, call) => {
      const { max_tokens: maxTokens, ...members } = commonProfile.body(model, settings, call);
      return { ...members, max_completion_tokens: maxTokens };
    },
  }),
  capabilities: () => commonCapabilities,
  clipForms: () => asTheyAre,
  usualBaseUrl: 'https://api.openai.com/v1',
});
