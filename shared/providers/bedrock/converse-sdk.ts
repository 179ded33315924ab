import { pipeline } from 'node:stream';
import { createGunzip } from 'node:zlib';
import {
  BedrockRuntimeClient,
  ConverseCommand,
  type ConverseCommandInput,
  type ConverseCommandOutput,
  ConverseStreamCommand,
  type ConverseStreamCommandOutput,
} from '@aws-sdk/client-bedrock-runtime';
import { NodeHttpHandler } from '@smithy/node-http-handler';

/**
 * The one file beside `shared/adapters/aws` that imports the AWS SDK: signing and the binary event stream of this
 * provider are the SDK's. It is only loaded (`import()`) by a lane or judge that calls Bedrock.
 */

export type {
  ContentBlock,
  ConverseCommandInput,
  ConverseStreamOutput,
  Message,
  TokenUsage,
} from '@aws-sdk/client-bedrock-runtime';

export interface RuntimeOptions {
  endpoint: string;
  /** Undefined: that of the environment. */
  region: string | undefined;
  /** A Bedrock API key; null: the credentials of the environment sign. */
  apiKey: string | null;
  connections: number;
}

export interface Runtime {
  converse(input: ConverseCommandInput, abortSignal: AbortSignal): Promise<ConverseCommandOutput>;
  converseStream(input: ConverseCommandInput, abortSignal: AbortSignal): Promise<ConverseStreamCommandOutput>;
  close(): void;
}

/** The SDK asks for no compression and reads none, but may not rely on that: whoever stands in between may compress. */
const createHandler = (connections: number): NodeHttpHandler => {
  const agent = { keepAlive: true, maxSockets: connections };
  const handler = new NodeHttpHandler({
    requestTimeout: 0,
    socketTimeout: 0,
    httpAgent: agent,
    httpsAgent: agent,
  });
  const handle = handler.handle.bind(handler);
  handler.handle = async (request, options) => {
    const { response } = await handle(request, options);
    if (/^(x-)?gzip$/i.test(response.headers['content-encoding'] ?? '')) {
      // A fault of either stream is one of the other, which the SDK reads.
      response.body = pipeline(response.body, createGunzip(), () => {});
    }
    return { response };
  };
  return handler;
};

/** One attempt a call, and no time-outs but the caller's signal: the SDK's own minute is too short for Nova. */
export const openRuntime = ({ endpoint, region, apiKey, connections }: RuntimeOptions): Runtime => {
  const client = new BedrockRuntimeClient({
    endpoint,
    ...(region === undefined ? {} : { region }),
    ...(apiKey === null ? {} : { token: { token: apiKey }, authSchemePreference: ['httpBearerAuth'] }),
    maxAttempts: 1,
    // HTTP/1.1: a connection that breaks takes one call with it, not all that share it.
    requestHandler: createHandler(connections),
  });
  return {
    converse: (input, abortSignal) => client.send(new ConverseCommand(input), { abortSignal }),
    converseStream: (input, abortSignal) => client.send(new ConverseStreamCommand(input), { abortSignal }),
    close: () => client.destroy(),
  };
};
