import { createHash } from 'node:crypto';
import type { FingerprintMessage, FingerprintPart } from './fingerprint.ts';

type Json = Record<string, unknown>;

/** A request that the server accepts, as far as replies and counts need it. */
export interface ChatRequest {
  model: string;
  stream: boolean;
  includeUsage: boolean;
  maxTokens: number | null;
  messages: FingerprintMessage[];
  /** Text parts of the last user turn, joined by newlines. */
  lastText: string;
  textChars: number;
  audioBytes: number;
  audioParts: number;
  videoParts: number;
}

/** A refusal of a malformed request: goes back as HTTP 400 in OpenAI's format. */
export class BadRequest extends Error {
  readonly param: string | null;
  constructor(message: string, param: string | null = null) {
    super(message);
    this.param = param;
  }
}

const allowed = new Set(
  `model messages stream stream_options max_tokens max_completion_tokens temperature top_p seed reasoning_effort
  response_format modalities stop n user mm_processor_kwargs media_io_kwargs chat_template_kwargs`.split(
    /\s+/,
  ),
);

const isObject = (value: unknown): value is Json =>
  value !== null && typeof value === 'object' && !Array.isArray(value);

const onlyKeys = (value: Json, keys: readonly string[], param: string): void => {
  const unknown = Object.keys(value).find((key) => !keys.includes(key));
  if (unknown !== undefined) throw new BadRequest(`unknown member ${unknown}`, param);
};

const numberIn = (body: Json, key: string, from: number, to: number, whole: boolean): number | null => {
  const value = body[key];
  if (value === undefined) return null;
  if (typeof value !== 'number' || value < from || value > to || (whole && !Number.isInteger(value))) {
    throw new BadRequest(`${key} is out of range`, key);
  }
  return value;
};

interface Clip {
  sha256: string;
  bytes: number;
}

const keptClips = 256;
const keptClipChars = 200_000;

/** Hashes clips; the last few that are not too long are kept by their base64, since histories repeat them. */
export const createClipReader = (): ((base64: unknown, param: string) => Clip) => {
  const known = new Map<string, Clip>();
  return (base64, param) => {
    if (typeof base64 !== 'string' || base64 === '') throw new BadRequest('media data is missing', param);
    const kept = known.get(base64);
    if (kept) return kept;
    if (base64.startsWith('data:')) throw new BadRequest('media data has a data: prefix', param);
    const padding = base64.endsWith('==') ? 2 : base64.endsWith('=') ? 1 : 0;
    const bytes = Buffer.from(base64, 'base64');
    if (base64.length % 4 !== 0 || bytes.length !== (base64.length / 4) * 3 - padding) {
      throw new BadRequest('media data is not base64', param);
    }
    const clip = { sha256: createHash('sha256').update(bytes).digest('hex'), bytes: bytes.length };
    if (base64.length <= keptClipChars) {
      if (known.size >= keptClips) known.delete(known.keys().next().value!);
      known.set(base64, clip);
    }
    return clip;
  };
};

const videoPrefix = 'data:video/mp4;base64,';

/** Checks a request body as OpenAI's and vLLM's servers do, or more strictly. Throws `BadRequest`. */
export const readChatRequest = (text: string, readClip: ReturnType<typeof createClipReader>): ChatRequest => {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    throw new BadRequest('the body is not JSON');
  }
  if (!isObject(body)) throw new BadRequest('the body is not a JSON object');
  const extra = Object.keys(body).find((key) => !allowed.has(key));
  if (extra !== undefined) throw new BadRequest(`Unrecognized request argument supplied: ${extra}`, extra);

  const { model, stream = false, stream_options: streamOptions, messages } = body;
  if (typeof model !== 'string' || model === '')
    throw new BadRequest('you must provide a model parameter', 'model');
  if (typeof stream !== 'boolean') throw new BadRequest('stream is not a boolean', 'stream');
  if (streamOptions !== undefined && (!stream || !isObject(streamOptions))) {
    throw new BadRequest('stream_options is only allowed when stream is true', 'stream_options');
  }
  const completionTokens = numberIn(body, 'max_completion_tokens', 1, 2 ** 31, true);
  const tokens = numberIn(body, 'max_tokens', 1, 2 ** 31, true);
  if (tokens !== null && completionTokens !== null) {
    throw new BadRequest('max_tokens and max_completion_tokens exclude each other', 'max_tokens');
  }
  numberIn(body, 'temperature', 0, 2, false);
  numberIn(body, 'top_p', 0, 1, false);
  numberIn(body, 'seed', -(2 ** 53), 2 ** 53, true);
  numberIn(body, 'n', 1, 1, true);
  if (body.reasoning_effort !== undefined && typeof body.reasoning_effort !== 'string') {
    throw new BadRequest('reasoning_effort is not a string', 'reasoning_effort');
  }
  if (!Array.isArray(messages) || messages.length === 0)
    throw new BadRequest('messages is empty', 'messages');

  const request: ChatRequest = {
    model,
    stream,
    includeUsage: isObject(streamOptions) && streamOptions.include_usage === true,
    maxTokens: tokens ?? completionTokens,
    messages: [],
    lastText: '',
    textChars: 0,
    audioBytes: 0,
    audioParts: 0,
    videoParts: 0,
  };

  const readPart = (part: unknown, param: string): FingerprintPart => {
    if (!isObject(part)) throw new BadRequest('a part is not an object', param);
    if (part.type === 'text') {
      onlyKeys(part, ['type', 'text'], param);
      if (typeof part.text !== 'string') throw new BadRequest('a text part has no text', param);
      request.textChars += part.text.length;
      return { type: 'text', text: part.text };
    }
    if (part.type === 'input_audio') {
      onlyKeys(part, ['type', 'input_audio'], param);
      const audio = isObject(part.input_audio) ? part.input_audio : {};
      onlyKeys(audio, ['data', 'format'], param);
      if (audio.format !== 'wav' && audio.format !== 'mp3') {
        throw new BadRequest('audio format is neither wav nor mp3', param);
      }
      const clip = readClip(audio.data, param);
      request.audioParts += 1;
      request.audioBytes += clip.bytes;
      return { type: 'audio', sha256: clip.sha256 };
    }
    if (part.type === 'video_url') {
      onlyKeys(part, ['type', 'video_url'], param);
      const video = isObject(part.video_url) ? part.video_url : {};
      onlyKeys(video, ['url'], param);
      if (typeof video.url !== 'string' || !video.url.startsWith(videoPrefix)) {
        throw new BadRequest(`video url does not begin with ${videoPrefix}`, param);
      }
      request.videoParts += 1;
      return { type: 'video', sha256: readClip(video.url.slice(videoPrefix.length), param).sha256 };
    }
    throw new BadRequest('a part is none of text, input_audio and video_url', param);
  };

  messages.forEach((message: unknown, index) => {
    const param = `messages[${index}]`;
    if (!isObject(message)) throw new BadRequest('a message is not an object', param);
    onlyKeys(message, ['role', 'content'], param);
    const { role, content } = message;
    if (role !== 'user') {
      if (role !== 'assistant' && role !== 'system') throw new BadRequest('unknown role', param);
      if (typeof content !== 'string' || content === '') throw new BadRequest('content is not a text', param);
      request.textChars += content.length;
      if (role === 'system' && index > 0) throw new BadRequest('a system message is not the first', param);
      request.messages.push(role === 'system' ? { role, text: content } : { role });
      return;
    }
    if (typeof content === 'string' && content !== '') {
      request.textChars += content.length;
      request.lastText = content;
      request.messages.push({ role, content });
      return;
    }
    if (!Array.isArray(content) || content.length === 0) throw new BadRequest('content is empty', param);
    const parts = content.map((part, position) => readPart(part, `${param}.content[${position}]`));
    request.lastText = parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n');
    request.messages.push({ role, content: parts });
  });
  if (request.messages.at(-1)?.role !== 'user')
    throw new BadRequest('the last message is not a user message', 'messages');
  return request;
};
