import type { ClipCounts, ResolvedMessage } from '../../domain/request.ts';
import { errorNames, TurnsweepError } from '../../errors.ts';
import type { ClipSource } from '../../ports/model-client.ts';

export interface ChatSettings {
  temperature?: number;
  topP?: number;
  seed?: number;
  reasoningEffort?: string;
  /** Default true: a stream shows that it is alive while a model thinks. */
  stream?: boolean;
  /** OpenAI's own reasoning models refuse `max_tokens`. Default `max_tokens`, which every other server knows. */
  maxTokensField?: 'max_tokens' | 'max_completion_tokens';
  /** Further members of the body, for servers that know them (vLLM's `mm_processor_kwargs`). */
  extraBody?: Readonly<Record<string, unknown>>;
}

export interface TextMessage {
  role: 'system' | 'user' | 'assistant';
  content: string;
}

/** JSON text, alternating with base64 that needs no escaping and is copied as it is. */
export type JsonPiece = string | { base64: string };

/** Everything of the body before the messages; the body ends with `]}`. */
export const bodyHead = (
  model: string,
  settings: ChatSettings,
  call: { maxTokens: number; reasoningEffort?: string; responseFormat?: unknown },
): string => {
  const stream = settings.stream ?? true;
  const members = {
    ...settings.extraBody,
    model,
    [settings.maxTokensField ?? 'max_tokens']: call.maxTokens,
    temperature: settings.temperature,
    top_p: settings.topP,
    seed: settings.seed,
    reasoning_effort: call.reasoningEffort ?? settings.reasoningEffort,
    response_format: call.responseFormat,
    stream: stream || undefined,
    stream_options: stream ? { include_usage: true } : undefined,
  };
  return `${JSON.stringify(members).slice(0, -1)},"messages":[`;
};

/** Messages of a frozen request: parts in their order, media inline, earlier replies as plain text. */
export const mediaMessages = async (
  messages: readonly ResolvedMessage[],
  clips: ClipSource,
): Promise<{ pieces: JsonPiece[]; sent: ClipCounts }> => {
  const contents = messages.map((message) =>
    message.role === 'user'
      ? message.content.map((part) => (part.type === 'text' ? null : clips.base64(part)))
      : [],
  );
  const base64 = await Promise.all(contents.flat().filter((content) => content !== null));
  const pieces: JsonPiece[] = [];
  const sent: ClipCounts = { audio: 0, video: 0 };
  let next = 0;
  let json = '';
  messages.forEach((message, index) => {
    if (index > 0) json += ',';
    if (message.role === 'assistant') {
      json += `{"role":"assistant","content":${JSON.stringify(message.text)}}`;
      return;
    }
    json += '{"role":"user","content":[';
    message.content.forEach((part, position) => {
      if (position > 0) json += ',';
      if (part.type === 'text') {
        json += `{"type":"text","text":${JSON.stringify(part.text)}}`;
        return;
      }
      const content = base64[next++]!;
      if (content.length % 4 !== 0 || content.startsWith('data:')) {
        throw new TurnsweepError(errorNames.contractViolated, 'clip is not bare base64', {
          where: part.path,
        });
      }
      sent[part.type] += 1;
      const [before, after] =
        part.type === 'audio'
          ? ['{"type":"input_audio","input_audio":{"data":"', '","format":"wav"}}']
          : ['{"type":"video_url","video_url":{"url":"data:video/mp4;base64,', '"}}'];
      pieces.push(json + before, { base64: content });
      json = after;
    });
    json += ']}';
  });
  pieces.push(json);
  return { pieces, sent };
};

export const encodeBody = (head: string, messages: readonly JsonPiece[]): Buffer => {
  const pieces: readonly JsonPiece[] = [head, ...messages, ']}'];
  const sizeOf = (piece: JsonPiece) =>
    typeof piece === 'string' ? Buffer.byteLength(piece) : piece.base64.length;
  const body = Buffer.allocUnsafe(pieces.reduce((total, piece) => total + sizeOf(piece), 0));
  let offset = 0;
  for (const piece of pieces) {
    offset +=
      typeof piece === 'string' ? body.write(piece, offset) : body.write(piece.base64, offset, 'latin1');
  }
  return body;
};
