import { benchmarkForms } from '../../domain/media.ts';
import { errorNames, TurnsweepError } from '../../errors.ts';
import type { JudgeConnection, LaneConnection, Provider } from '../provider.ts';
import { bedrockCapabilities } from './capabilities.ts';
import { createBedrockCaller, createBedrockClient } from './client.ts';

/** The region is part of what is measured: the sweep file names it with the endpoint. */
const address = ({ baseUrl, model }: LaneConnection | JudgeConnection): string => {
  if (baseUrl !== null) return baseUrl;
  throw new TurnsweepError(errorNames.usage, 'provider bedrock needs baseUrl', {
    where: model,
    remedy: 'name a regional endpoint such as https://bedrock-runtime.us-east-1.amazonaws.com',
  });
};

/** Amazon Bedrock's Converse. With a Bedrock API key, or with the AWS credentials of the environment. */
export const bedrock: Provider = {
  capabilities: bedrockCapabilities,
  clipForms: ({ settings }) => benchmarkForms(settings),
  usualBaseUrl: null,
  createClient: (lane, { apiKey, clips }) =>
    createBedrockClient({
      ...lane,
      baseUrl: address(lane),
      apiKey,
      clips,
      forms: benchmarkForms(lane.settings),
    }),
  createCaller: (judge, apiKey) => createBedrockCaller({ ...judge, baseUrl: address(judge), apiKey }),
};
