import { errorNames, TurnsweepError } from '../errors.ts';
import type { ChatCaller } from '../ports/chat-caller.ts';
import type { ClipSource, ModelClient } from '../ports/model-client.ts';
import { createChatCaller, createOpenAiCompatibleClient } from './openai-compatible/client.ts';
import type { ChatSettings } from './openai-compatible/request.ts';
import { createRecordedClient } from './recorded/client.ts';

/** Providers that can be called today. */
export const providers = ['openai', 'openai-compatible', 'vllm', 'recorded'] as const;

/** Those of them that can be a judge. */
export const judgeProviders = ['openai', 'openai-compatible', 'vllm'] as const;

export interface LaneConnection {
  provider: string;
  /** Name on the wire. */
  model: string;
  /** Null for recorded lanes. */
  baseUrl: string | null;
  settings: ChatSettings;
  maxInFlight: number;
}

export interface ClientPorts {
  apiKey: string | null;
  clips: ClipSource;
  /** Lines of the lane's recording; null for lanes that call a server. */
  recording: { lines: () => AsyncIterable<string>; origin: string } | null;
}

const needed = <T>(value: T | null, what: string, lane: LaneConnection): T => {
  if (value !== null) return value;
  throw new TurnsweepError(errorNames.usage, `provider ${lane.provider} needs ${what}`, {
    where: lane.model,
  });
};

/** `max_tokens` or what the provider wants in its place, unless the lane says otherwise. */
export const chatSettings = (provider: string, settings: ChatSettings): ChatSettings => ({
  maxTokensField: provider === 'openai' ? 'max_completion_tokens' : 'max_tokens',
  ...settings,
});

/** Client of a lane. Throws `UsageWrong` for a provider that is not known or lacks what it needs. */
export const createModelClient = (lane: LaneConnection, ports: ClientPorts): ModelClient => {
  switch (lane.provider) {
    case 'openai':
    case 'openai-compatible':
    case 'vllm':
      return createOpenAiCompatibleClient({
        baseUrl: needed(lane.baseUrl, 'baseUrl', lane),
        apiKey: ports.apiKey,
        model: lane.model,
        settings: chatSettings(lane.provider, lane.settings),
        maxInFlight: lane.maxInFlight,
        clips: ports.clips,
      });
    case 'recorded':
      return createRecordedClient(needed(ports.recording, 'a recording', lane));
    default:
      throw new TurnsweepError(errorNames.usage, `provider ${lane.provider} is not supported`, {
        where: lane.model,
        remedy: `use one of ${providers.join(', ')}`,
      });
  }
};

/** Caller of a judge: text only. Throws `UsageWrong` for a provider that is not known. */
export const createChatCallerFor = (
  judge: { provider: string; model: string; baseUrl: string | null; maxInFlight: number },
  apiKey: string | null,
): ChatCaller => {
  switch (judge.provider) {
    case 'openai':
    case 'openai-compatible':
    case 'vllm':
      return createChatCaller({
        baseUrl: needed(judge.baseUrl, 'baseUrl', { ...judge, settings: {} }),
        apiKey,
        model: judge.model,
        settings: chatSettings(judge.provider, {}),
        maxInFlight: judge.maxInFlight,
      });
    default:
      throw new TurnsweepError(errorNames.usage, `provider ${judge.provider} cannot judge`, {
        where: judge.model,
        remedy: `use one of ${judgeProviders.join(', ')}`,
      });
  }
};
