import type { Capabilities } from '../domain/capabilities.ts';
import type { ClipForms } from '../domain/media.ts';
import type { SystemPromptDelivery } from '../domain/system-turn.ts';
import type { ChatBatch } from '../ports/chat-batch.ts';
import type { ChatCaller } from '../ports/chat-caller.ts';
import type { ClipSource, ModelClient } from '../ports/model-client.ts';

/** Settings of a lane as the sweep file has them. */
export interface LaneSettings {
  temperature?: number;
  topP?: number;
  seed?: number;
  reasoningEffort?: string;
  /** On or off; left out, each provider's profile says what it sends: never the provider's own default in silence. */
  thinking?: boolean;
  /** Default true: a stream shows that it is alive while a model thinks. */
  stream?: boolean;
  /** Sampling rate of video in frames a second. */
  fps?: number;
  /** Longest side of video in px. */
  videoMaxSide?: number;
  /** How a system prompt is sent; the messages of a call have it already where it belongs. */
  systemPrompt?: SystemPromptDelivery;
}

export interface LaneConnection {
  provider: string;
  /** Name on the wire. */
  model: string;
  /** Null for lanes that call nobody, and where the provider has one address. */
  baseUrl: string | null;
  settings: LaneSettings;
  maxInFlight: number;
  /** What every request is answered with; left out where replies come from elsewhere. */
  reply?: string;
}

export interface ClientPorts {
  apiKey: string | null;
  clips: ClipSource;
  /** Lines of the lane's recording; null for lanes that call a server. */
  recording: { lines: () => AsyncIterable<string>; origin: string } | null;
}

export interface JudgeConnection {
  provider: string;
  model: string;
  baseUrl: string | null;
  maxInFlight: number;
}

/** One kind of endpoint. A folder beside this file has its request, response, errors and usage. */
export interface Provider {
  /** What a model takes; a model that is not known gets the provider's common values. */
  capabilities(model: string): Capabilities;
  /** How a lane's clips are sent. */
  clipForms(lane: Pick<LaneConnection, 'model' | 'settings'>): ClipForms;
  /** The provider's own address; null where the sweep file must name one. */
  usualBaseUrl: string | null;
  createClient(lane: LaneConnection, ports: ClientPorts): ModelClient;
  /** Null where the provider cannot judge. */
  createCaller: ((judge: JudgeConnection, apiKey: string | null) => ChatCaller) | null;
  /** Left out where judges cannot work through the provider's batch interface. */
  createBatch?: (judge: Omit<JudgeConnection, 'maxInFlight'>, apiKey: string | null) => ChatBatch;
}
