import type { Capabilities } from '../../domain/capabilities.ts';
import type { ClipForms } from '../../domain/media.ts';
import { errorNames, TurnsweepError } from '../../errors.ts';
import type { JudgeConnection, LaneConnection, Provider } from '../provider.ts';
import { createChatCaller, createChatClient } from './client.ts';
import type { ChatProfile } from './profile.ts';

export interface ChatProviderOptions {
  /** How a model's calls look on the wire. */
  profile: (model: string) => ChatProfile;
  capabilities: (model: string) => Capabilities;
  clipForms: (lane: Pick<LaneConnection, 'model' | 'settings'>) => ClipForms;
  usualBaseUrl: string | null;
}

/** A provider that speaks `chat/completions`: its own part is the profile and what its models take. */
export const createChatProvider = (options: ChatProviderOptions): Provider => {
  const { profile, usualBaseUrl } = options;
  const address = ({ baseUrl, provider, model }: LaneConnection | JudgeConnection): string => {
    const found = baseUrl ?? usualBaseUrl;
    if (found !== null) return found;
    throw new TurnsweepError(errorNames.usage, `provider ${provider} needs baseUrl`, { where: model });
  };
  return {
    capabilities: options.capabilities,
    clipForms: options.clipForms,
    usualBaseUrl,
    createClient: (lane, { apiKey, clips }) =>
      createChatClient({
        baseUrl: address(lane),
        apiKey,
        model: lane.model,
        settings: lane.settings,
        profile: profile(lane.model),
        forms: options.clipForms(lane),
        maxInFlight: lane.maxInFlight,
        clips,
        inlineLimits:
          profile(lane.model).inlineBytesAtMost === null ? undefined : options.capabilities(lane.model),
      }),
    createCaller: (judge, apiKey) =>
      createChatCaller({
        baseUrl: address(judge),
        apiKey,
        model: judge.model,
        profile: profile(judge.model),
        maxInFlight: judge.maxInFlight,
      }),
  };
};
