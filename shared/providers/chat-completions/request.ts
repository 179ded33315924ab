import { type ClipForms, sentParts } from '../../domain/media.ts';
import type { ClipCounts, ResolvedMessage, ResolvedPart } from '../../domain/request.ts';
import { errorNames, TurnsweepError } from '../../errors.ts';
import type { ClipSource } from '../../ports/model-client.ts';
import type { LaneSettings } from '../provider.ts';
import type { BodyInPieces } from '../transport.ts';
import type { CallShape, ChatProfile, JsonPiece } from './profile.ts';

export interface TextMessage {
  role: 'system' | 'user' | 'assistant';
  content: string;
}

/** Everything of the body before the messages; the body ends with `]}`. */
export const bodyHead = (
  profile: Pick<ChatProfile, 'body' | 'streamOptions'>,
  model: string,
  settings: LaneSettings,
  call: CallShape,
): string => {
  const stream = settings.stream ?? true;
  const members = {
    stream: stream || undefined,
    stream_options: stream ? { include_usage: true, ...profile.streamOptions } : undefined,
    ...profile.body(model, settings, call),
    model,
  };
  return `${JSON.stringify(members).slice(0, -1)},"messages":[`;
};

/** Messages of text alone, as they go into a body. */
export const textMessages = (messages: readonly TextMessage[]): string =>
  messages.map(({ role, content }) => JSON.stringify({ role, content })).join(',');

/** Messages of a frozen request: parts in their order, a system turn and earlier replies as plain text. */
export const mediaMessages = async (
  messages: readonly ResolvedMessage[],
  loading: {
    clips: ClipSource;
    forms: ClipForms;
    fps: number | null;
    profile: Pick<ChatProfile, 'clip' | 'partOrder' | 'inlineBytesAtMost'>;
  },
): Promise<{ pieces: JsonPiece[]; sent: ClipCounts }> => {
  const written = await Promise.all(messages.map((message) => writeMessage(message, loading)));
  const pieces: JsonPiece[] = [];
  const sent: ClipCounts = { audio: 0, video: 0 };
  for (const [index, message] of messages.entries()) {
    if (index > 0) pieces.push(',');
    pieces.push(...written[index]!);
    if (message.role !== 'user') continue;
    for (const part of message.content) if (part.type !== 'text') sent[part.type] += 1;
  }
  return { pieces: joined(pieces), sent };
};

type Loading = Parameters<typeof mediaMessages>[1];

const writeMessage = async (message: ResolvedMessage, loading: Loading): Promise<JsonPiece[]> => {
  if (message.role !== 'user') {
    return [`{"role":"${message.role}","content":${JSON.stringify(message.text)}}`];
  }
  const parts = await Promise.all(
    orderedParts(message.content, loading).map((part) => writePart(part, loading)),
  );
  return [
    '{"role":"user","content":[',
    ...parts.flatMap((part, position) => (position === 0 ? part : [',', ...part])),
    ']}',
  ];
};

type SentPart = ReturnType<typeof sentParts>[number];

const orderedParts = (content: readonly ResolvedPart[], { forms, profile }: Loading): SentPart[] => {
  const sent = sentParts(content, forms);
  if (profile.partOrder === 'frozen') return sent;
  return [...sent.filter((part) => part.type === 'text'), ...sent.filter((part) => part.type !== 'text')];
};

const writePart = async (part: SentPart, { clips, fps, profile }: Loading): Promise<JsonPiece[]> => {
  if (part.type === 'text') return [`{"type":"text","text":${JSON.stringify(part.text)}}`];
  const files = await clips.load(part.clip, {
    form: part.form,
    inlineBytesAtMost: profile.inlineBytesAtMost,
  });
  for (const file of files) {
    if (file.type === 'inline' && (file.base64.length % 4 !== 0 || file.base64.startsWith('data:'))) {
      throw new TurnsweepError(errorNames.contractViolated, 'clip is not bare base64', {
        where: part.clip.path,
      });
    }
  }
  return profile.clip({ medium: part.type, files, fps: part.type === 'video' ? fps : null });
};

/** Neighbouring texts as one: fewer pieces to copy. */
const joined = (pieces: readonly JsonPiece[]): JsonPiece[] => {
  const result: JsonPiece[] = [];
  for (const piece of pieces) {
    const last = result.at(-1);
    if (typeof piece === 'string' && typeof last === 'string') result[result.length - 1] = last + piece;
    else result.push(piece);
  }
  return result;
};

const bytesOf = (pieces: readonly JsonPiece[]): number =>
  pieces.reduce(
    (total, piece) => total + (typeof piece === 'string' ? Buffer.byteLength(piece) : piece.base64.length),
    0,
  );

export const encodeBody = (head: string, messages: readonly JsonPiece[]): Buffer => {
  const pieces: readonly JsonPiece[] = [head, ...messages, ']}'];
  const body = Buffer.allocUnsafe(bytesOf(pieces));
  let offset = 0;
  for (const piece of pieces) {
    offset +=
      typeof piece === 'string' ? body.write(piece, offset) : body.write(piece.base64, offset, 'latin1');
  }
  return body;
};

/** Larger bodies are written piece by piece: a lane has many calls in flight, each of them waiting for minutes. */
const wholeBytesAtMost = 1_000_000;

/** The body of a request: as a whole, or where it is large in pieces that are let go as they are written. */
export const requestBody = (head: string, messages: readonly JsonPiece[]): Buffer | BodyInPieces => {
  const pieces: JsonPiece[] = [head, ...messages, ']}'];
  const bytes = bytesOf(pieces);
  return bytes > wholeBytesAtMost ? { bytes, pieces: lettingGo(pieces) } : encodeBody(head, messages);
};

async function* lettingGo(pieces: JsonPiece[]): AsyncGenerator<Buffer> {
  pieces.reverse();
  for (let piece = pieces.pop(); piece !== undefined; piece = pieces.pop()) {
    yield typeof piece === 'string' ? Buffer.from(piece) : Buffer.from(piece.base64, 'latin1');
  }
}
