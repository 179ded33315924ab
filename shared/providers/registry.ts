import { errorNames, TurnsweepError } from '../errors.ts';
import type { ChatBatch } from '../ports/chat-batch.ts';
import type { ChatCaller } from '../ports/chat-caller.ts';
import type { ModelClient } from '../ports/model-client.ts';
import { ark } from './ark/provider.ts';
import { bedrock } from './bedrock/provider.ts';
import { dashscope } from './dashscope/provider.ts';
import { fixedReply } from './fixed-reply/provider.ts';
import { gemini } from './gemini/provider.ts';
import { llamacpp } from './llamacpp/provider.ts';
import { openAi } from './openai/provider.ts';
import { openAiCompatible } from './openai-compatible/provider.ts';
import type { ClientPorts, JudgeConnection, LaneConnection, Provider } from './provider.ts';
import { recorded } from './recorded/provider.ts';
import { sglang } from './sglang/provider.ts';
import { stepfun } from './stepfun/provider.ts';
import { vllm } from './vllm/provider.ts';

/** Every provider by its name in a sweep file. */
const byName: Readonly<Record<string, Provider>> = {
  openai: openAi,
  'openai-compatible': openAiCompatible,
  vllm,
  sglang,
  llamacpp,
  dashscope,
  ark,
  stepfun,
  gemini,
  bedrock,
  recorded,
  'fixed-reply': fixedReply,
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

/** The batch interface of a judge's provider, or null where the provider has none for this model. */
const batchMakerOf = (name: string, model: string): Provider['createBatch'] | null => {
  const found = byName[name];
  return (found?.capabilities(model).batch && found.createBatch) || null;
};

/** Whether a judge may work through its provider's batch interface. */
export const judgesInBatches = (name: string, model: string): boolean => batchMakerOf(name, model) !== null;

/** Providers with a batch interface for some model of theirs. */
export const batchProviders = providers.filter((name) => byName[name]!.createBatch !== undefined);

/** The batch interface for a judge. Throws `UsageWrong` where its provider has none for its model. */
export const createChatBatchFor = (
  judge: Omit<JudgeConnection, 'maxInFlight'>,
  apiKey: string | null,
): ChatBatch => {
  const create = batchMakerOf(judge.provider, judge.model);
  if (create) return create(judge, apiKey);
  throw new TurnsweepError(
    errorNames.usage,
    `provider ${judge.provider} has no batch interface for this model`,
    {
      where: judge.model,
      remedy: 'take "batch" out of the judge',
    },
  );
};

/** The provider's own address; null where it has none, or is not known. */
export const usualBaseUrlOf = (name: string): string | null => byName[name]?.usualBaseUrl ?? null;
