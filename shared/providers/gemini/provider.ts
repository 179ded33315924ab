import { benchmarkForms } from '../../domain/media.ts';
import type { Provider } from '../provider.ts';
import { geminiCapabilities } from './capabilities.ts';
import { createGeminiCaller, createGeminiClient } from './client.ts';

const usualBaseUrl = 'https://generativelanguage.googleapis.com/v1beta';

/** Google's Gemini API with a key of its own; not Vertex AI. */
export const gemini: Provider = {
  capabilities: geminiCapabilities,
  clipForms: ({ settings }) => benchmarkForms(settings),
  usualBaseUrl,
  createClient: (lane, { apiKey, clips }) =>
    createGeminiClient({
      ...lane,
      baseUrl: lane.baseUrl ?? usualBaseUrl,
      apiKey,
      clips,
      forms: benchmarkForms(lane.settings),
    }),
  createCaller: (judge, apiKey) =>
    createGeminiCaller({ ...judge, baseUrl: judge.baseUrl ?? usualBaseUrl, apiKey }),
};
