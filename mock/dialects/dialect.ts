import type { FingerprintMessage } from '../fingerprint.ts';
import type { FetchedMedium, Medium } from './media.ts';

export type Json = Record<string, unknown>;

export const providerNames = [
  'dashscope',
  'ark',
  'stepfun',
  'openai',
  'vllm',
  'sglang',
  'llamacpp',
  'gemini',
  'bedrock',
] as const;
export type ProviderName = (typeof providerNames)[number];

/** What an error says; each dialect writes it in its provider's own form. */
export interface ErrorFacts {
  status: number;
  message: string;
  code?: string | number;
  type?: string;
  param?: string | null;
  headers?: Record<string, string>;
  /** Gemini's `details`. */
  details?: readonly unknown[];
  requestId?: string;
}

/** A request that the provider would not serve. */
export class Refused extends Error {
  readonly facts: ErrorFacts;
  constructor(facts: ErrorFacts) {
    super(facts.message);
    this.facts = facts;
  }
}

/** Tokens of a prompt by kind; null where it has nothing of the kind. */
export interface PromptTokens {
  text: number;
  image: number | null;
  video: number | null;
  audio: number | null;
}

export interface Usage {
  prompt: PromptTokens;
  /** Sum that is reported; null adds the kinds up. */
  promptTotal: number | null;
  /** Reasoning included. */
  output: number;
  reasoning: number;
  cached: number | null;
  /** Whether the kinds are reported, where the provider reports them at all. */
  split: boolean;
}

export const promptSum = ({ prompt, promptTotal }: Usage): number =>
  promptTotal ?? prompt.text + (prompt.image ?? 0) + (prompt.video ?? 0) + (prompt.audio ?? 0);

/** What the server knows of a request that it accepts. */
export interface ReadRequest {
  model: string;
  stream: boolean;
  includeUsage: boolean;
  maxTokens: number | null;
  messages: FingerprintMessage[];
  userTurns: number;
  /** Text parts of the last user turn, joined by newlines. */
  lastText: string;
  /** The last of these parts. */
  lastPart: string;
  prompt: PromptTokens;
  /** Media of all turns in order; null where the address does not keep their bytes. */
  media: readonly Medium[] | null;
  /** Whether the model thinks before it answers. */
  thinks: boolean;
  /** A JSON schema that the answer must keep, or `any` for any JSON object. */
  answerSchema: Json | 'any' | null;
  /** OpenAI: random padding in the chunks. */
  obfuscates: boolean;
  /** OpenAI's Responses, Gemini's JSON array; `chat` everywhere else. */
  operation: Operation;
}

export type Operation = 'chat' | 'responses' | 'json_array';

export interface Piece {
  text: string;
  /** Output tokens up to and with this piece, reasoning included. */
  outputSoFar: number;
}

/** A reply before it is written in a provider's form. */
export interface ReplyPlan {
  id: string;
  model: string;
  reasoning: readonly Piece[];
  pieces: readonly Piece[];
  /** `stop`, `length` or `content_filter` in the provider's word, any other word as it is; null: none is sent. */
  finish: string | null;
  refusal: string | null;
  /** The prompt is blocked: Gemini's `promptFeedback`, Bedrock's guardrail. */
  blocked: boolean;
  usage: Usage | null;
  includeUsage: boolean;
  obfuscates: boolean;
  operation: Operation;
}

export interface StreamEvent {
  kind: 'open' | 'reasoning' | 'text' | 'finish' | 'usage' | 'end';
  bytes: Buffer;
}

export interface Route {
  operation: Operation;
  /** Model and streaming where the address names them. */
  model?: string;
  stream?: boolean;
}

/** A server's settings that its operator chooses, and versions of it that differ. */
export interface Profile {
  /** Members of the body to take besides the documented ones. */
  extraMembers?: readonly string[];
  /** dashscope: some routes refuse bodies above 6 MB. */
  maxBodyBytes?: number;
  /** ark: endpoints that take `audio_url` parts. */
  audioUrl?: boolean;
  /** vllm: media of the whole history, as `--limit-mm-per-prompt`. */
  limitPerPrompt?: { image?: number; video?: number; audio?: number };
  /** vllm: `old` has the error's members at the top. */
  errorShape?: 'new' | 'old';
  /** vllm, sglang: `reasoning` in newer versions. */
  reasoningKey?: 'reasoning_content' | 'reasoning';
  /** sglang: takes `input_audio` since August 2026. */
  inputAudio?: boolean;
  /** Self-hosted: what the model's chat template does with a system message; `taken` by default. */
  systemTurn?: 'taken' | 'dropped' | 'refused';
  /** llamacpp: false for a server without a projector, which takes no media. */
  mmproj?: boolean;
  /** llamacpp: newest builds take `input_video`. */
  inputVideo?: boolean;
}

export interface ReadContext {
  route: Route;
  headers: Readonly<Record<string, string | string[] | undefined>>;
  bodyBytes: number;
  profile: Profile;
  /** Whether the server has this model; a scenario may name others than the provider does. */
  hasModel: (name: string) => boolean;
  /** Media that lie at mapped hosts, by URL. */
  fetched: ReadonlyMap<string, FetchedMedium | null>;
  /** Gemini: state of an uploaded file. */
  file: (uri: string) => UploadedFile | null;
}

export interface UploadedFile {
  mimeType: string;
  state: 'PROCESSING' | 'ACTIVE' | 'FAILED';
  bytes: Buffer;
}

export interface Answer {
  status: number;
  headers: Record<string, string>;
  body: string;
}

/** How a provider speaks: what it takes, and how it writes replies and errors. */
export interface Dialect {
  name: ProviderName | 'plain';
  /** Path that its base URL ends with. */
  prefix: string;
  /** Key it takes; null: none asked. */
  key: string | null;
  /** Null for an address that is none of its chat addresses. */
  route: (method: string, path: string, query: URLSearchParams) => Route | null;
  /** Error for a wrong or missing key; null where it is right. */
  checkKey: (headers: ReadContext['headers']) => ErrorFacts | null;
  /** Models that the real one has, as far as they matter here. */
  knows: (model: string) => boolean;
  /** Throws `Refused`. */
  read: (text: string, context: ReadContext) => ReadRequest;
  document: (plan: ReplyPlan) => string;
  events: (plan: ReplyPlan, profile: Profile) => StreamEvent[];
  contentType: { document: string; stream: string };
  /** Headers of every good reply. */
  replyHeaders: Record<string, string>;
  error: (facts: ErrorFacts, profile?: Profile) => Answer;
  /** An error in the middle of a stream. */
  streamError: (facts: ErrorFacts) => Buffer;
  /** What ends a stream after its last event. */
  streamEnd: Buffer;
  errors: {
    badRequest: (message: string, param: string | null) => ErrorFacts;
    unknownModel: (model: string) => ErrorFacts;
    limit: ErrorFacts;
    server: (status: number) => ErrorFacts;
    /** Account used up, after which nothing is to be sent. */
    quota: ErrorFacts | null;
    /** 429s of bursts and overload. */
    burst: readonly ErrorFacts[];
    /** Input refused before inference; `blocked` is a reply of its own kind. */
    inputSafety: ErrorFacts | 'blocked' | null;
    /** Output refused in the middle of a stream; `finish` says it as finish reason. */
    outputSafety: ErrorFacts | 'finish' | null;
    /** A media part that cannot be used. */
    media: (problem: MediaFault, message: string, param: string | null) => ErrorFacts;
  };
  /** Fixed reply of the test vectors. */
  sample: { id: string; model: string; reasoning: readonly Piece[]; pieces: readonly Piece[]; usage: Usage };
}

export type MediaFault = 'encoding' | 'format' | 'url' | 'size';

/** When every fake reply was made, in epoch seconds. */
export const created = 1_790_000_000;

export const isObject = (value: unknown): value is Json =>
  value !== null && typeof value === 'object' && !Array.isArray(value);

export const sse = (value: unknown): Buffer => Buffer.from(`data: ${JSON.stringify(value)}\n\n`);

export const sseDone = Buffer.from('data: [DONE]\n\n');

export const eventStreamType = 'text/event-stream; charset=utf-8';

/** Tokens of a text by the rule of the fake: a quarter of its characters. */
export const textTokens = (characters: number): number => Math.ceil(characters / 4);

export const characters = (text: string): number => {
  let count = 0;
  for (const _ of text) count += 1;
  return count;
};

export const pieceText = (pieces: readonly Piece[]): string => pieces.map(({ text }) => text).join('');

/** The fixed text in the fixed pieces of all test vectors. */
export const samplePieces = (first: number, second: number): Piece[] => [
  { text: 'A red light, ', outputSoFar: first },
  { text: 'then 蓝 🔵.', outputSoFar: second },
];
