import { errorNames, TurnsweepError } from '../errors.ts';
import type { ChatCaller } from '../ports/chat-caller.ts';
import type { ModelClient } from '../ports/model-client.ts';
import { openAi } from './openai/provider.ts';
import { openAiCompatible } from './openai-compatible/provider.ts';
import type { ClientPorts, JudgeConnection, LaneConnection, Provider } from './provider.ts';
import { recorded } from './recorded/provider.ts';
import { vllm } from './vllm/provider.ts';

/** Every provider by its name in a sweep file. */
const byName: Readonly<Record<string, Provider>> = {
  openai: openAi,
  'openai-compatible': openAiCompatible,
  vllm,
  recorded,
};

/** Providers that can be called today. */
export const providers = Object.keys(byName);

/** Those of them that can be a judge. */
export const judgeProviders = providers.filter((name) => byName[name]!.createCaller !== null);

/** Throws `UsageWrong` for a provider that is not known. */
export const providerOf = (name: string, where: string): Provider => {
  const found = byName[name];
  if (found !== undefined) return found;
  throw new TurnsweepError(errorNames.usage, `provider ${name} is not supported`, {
    where,
    remedy: `use one of ${providers.join(', ')}`,
  });
};

/** Client of a lane. Throws `UsageWrong` for a provider that is not known or lacks what it needs. */
export const createModelClient = (lane: LaneConnection, ports: ClientPorts): ModelClient =>
  providerOf(lane.provider, lane.model).createClient(lane, ports);

/** Caller of a judge: text only. Throws `UsageWrong` for a provider that is not known or cannot judge. */
export const createChatCallerFor = (judge: JudgeConnection, apiKey: string | null): ChatCaller => {
  const { createCaller } = providerOf(judge.provider, judge.model);
  if (createCaller !== null) return createCaller(judge, apiKey);
  throw new TurnsweepError(errorNames.usage, `provider ${judge.provider} cannot judge`, {
    where: judge.model,
    remedy: `use one of ${judgeProviders.join(', ')}`,
  });
};
