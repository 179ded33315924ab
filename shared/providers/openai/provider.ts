import { errorNames, TurnsweepError } from '../../errors.ts';
import { createChatProvider } from '../chat-completions/chat-provider.ts';
import { asPictures } from '../chat-completions/clip-parts.ts';
import type { Provider } from '../provider.ts';
import { createOpenAiBatch } from './batch.ts';
import { familyOf, openAiCapabilities } from './capabilities.ts';
import { openAiProfile } from './request.ts';

const usualBaseUrl = 'https://api.openai.com/v1';

const chat = createChatProvider({
  profile: () => openAiProfile,
  capabilities: openAiCapabilities,
  clipForms: asPictures,
  usualBaseUrl,
});

/** OpenAI's own servers. Its audio models refuse a request without sound, so they cannot judge. */
export const openAi: Provider = {
  ...chat,
  createCaller: (judge, apiKey) => {
    if (familyOf(judge.model) !== 'audio') return chat.createCaller!(judge, apiKey);
    throw new TurnsweepError(errorNames.usage, 'an audio model cannot judge texts', {
      where: judge.model,
      remedy: 'name a text model as judge',
    });
  },
  createBatch: ({ baseUrl, model }, apiKey) =>
    createOpenAiBatch({ baseUrl: baseUrl ?? usualBaseUrl, apiKey, model, profile: openAiProfile }),
};
