import type { FingerprintMessage, FingerprintPart } from '../fingerprint.ts';
import type {
  Dialect,
  ErrorFacts,
  Json,
  Operation,
  Profile,
  PromptTokens,
  ReadContext,
  ReadRequest,
  ReplyPlan,
  StreamEvent,
  Usage,
} from './dialect.ts';
import { characters, isObject, pieceText, promptSum, Refused, sseDone, textTokens } from './dialect.ts';
import type { FetchedMedium, Medium, MediumKind } from './media.ts';
import {
  audioSeconds,
  bytesOfUrl,
  checkBytes,
  decodeBase64,
  MediaProblem,
  mediumSha256,
  soundtrackSeconds,
} from './media.ts';

/** What a part is read with. */
export interface PartReader {
  body: Json;
  model: string;
  profile: Profile;
  headers: ReadContext['headers'];
  fetched: ReadonlyMap<string, FetchedMedium | null>;
  /** Refuses the request as malformed. */
  bad: (message: string, param?: string | null) => never;
}

type ReadPart = { text: string } | Medium;

/** Rules of one chat-completions dialect. */
export interface ChatRules {
  /** Documented members of the body, separated by spaces. */
  members: string;
  /** Reads a part of a user message. Throws `Refused` or `MediaProblem`. */
  readPart: (part: Json, at: string, reader: PartReader) => ReadPart;
  /** Checks before media are read; body and model are known. */
  before?: (reader: PartReader) => void;
  /** Checks of the whole; `media` by message, user messages only. */
  after?: (reader: PartReader, media: readonly (readonly Medium[])[], texts: readonly string[]) => void;
  thinks?: (body: Json, model: string) => boolean;
  /** Assistant messages may have no text. */
  nullAssistant?: boolean;
  /** Takes the role `developer`. */
  developer?: boolean;
}

export const onlyMembers = (value: Json, allowed: string, at: string, bad: PartReader['bad']): void => {
  const known = allowed.split(/\s+/);
  const extra = Object.keys(value).find((key) => !known.includes(key));
  if (extra !== undefined) bad(`unknown member ${extra}`, at);
};

export const numberIn = (
  body: Json,
  key: string,
  [from, to]: readonly [number, number],
  bad: PartReader['bad'],
  whole = false,
): void => {
  const value = body[key];
  if (value === undefined) return;
  if (typeof value !== 'number' || value < from || value > to || (whole && !Number.isInteger(value))) {
    bad(`${key} is not ${whole ? 'a whole number' : 'a number'} from ${from} to ${to}`, key);
  }
};

export const oneOf = (body: Json, key: string, values: string, bad: PartReader['bad']): void => {
  const value = body[key];
  if (value !== undefined && !(typeof value === 'string' && values.split(' ').includes(value))) {
    bad(`${key} is none of ${values}`, key);
  }
};

export const memberObject = (value: Json, key: string, at: string, bad: PartReader['bad']): Json => {
  const found = value[key];
  return isObject(found) ? found : bad(`${key} is not an object`, at);
};

/** An image of the fake's price. */
export const image = (bytes: Buffer): Medium => ({ kind: 'image', pieces: [bytes], tokens: 66 });
export const frames = (pieces: readonly Buffer[]): Medium => ({
  kind: 'frames',
  pieces,
  tokens: 33 * pieces.length,
});
/** `soundTokensPerSecond` is 0 for models that do not hear the sound of a video. */
export const video = (bytes: Buffer, fps: number, soundTokensPerSecond = 0): Medium => {
  const soundTokens = soundTokensPerSecond === 0 ? 0 : soundTokensPerSecond * soundtrackSeconds(bytes);
  return {
    kind: 'video',
    pieces: [bytes],
    tokens: Math.ceil(640 * fps),
    ...(soundTokens > 0 && { soundTokens }),
  };
};
export const audio = (bytes: Buffer, tokensPerSecond: number, seen = true): Medium => ({
  kind: 'audio',
  pieces: [bytes],
  tokens: tokensPerSecond * (seen ? audioSeconds(bytes) : 1),
});

/** Medium behind a URL, checked where its bytes can be had. */
export const fromUrl = (
  url: string,
  kind: 'image' | 'video' | 'audio',
  reader: Pick<PartReader, 'fetched'>,
  publicOnly = true,
): { bytes: Buffer; seen: boolean } => {
  const found = bytesOfUrl(url, reader.fetched, { publicOnly });
  if (found.seen) checkBytes(found.bytes, kind);
  return found;
};

export const fromBase64 = (data: string, kind: 'image' | 'video' | 'audio', mime = ''): Buffer => {
  const bytes = decodeBase64(data);
  checkBytes(bytes, kind, mime);
  return bytes;
};

const kindOfTokens: Record<MediumKind, 'image' | 'video' | 'audio'> = {
  image: 'image',
  frames: 'video',
  video: 'video',
  audio: 'audio',
};

export const promptTokensOf = (textCharacters: number, media: readonly Medium[]): PromptTokens => {
  const tokens: PromptTokens = { text: textTokens(textCharacters), image: null, video: null, audio: null };
  for (const medium of media) {
    const kind = kindOfTokens[medium.kind];
    tokens[kind] = (tokens[kind] ?? 0) + medium.tokens;
    if (medium.soundTokens !== undefined) tokens.audio = (tokens.audio ?? 0) + medium.soundTokens;
  }
  return tokens;
};

export const fingerprintPart = (part: ReadPart): FingerprintPart =>
  'text' in part ? { type: 'text', text: part.text } : { type: part.kind, sha256: mediumSha256(part) };

const parseBody = (text: string, bad: PartReader['bad']): Json => {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    bad('the body is not JSON');
  }
  return isObject(body) ? body : bad('the body is not a JSON object');
};

/** Refuses with the dialect's own error for a malformed request. */
export const refuser =
  (errors: Dialect['errors']): PartReader['bad'] =>
  (message, param = null) => {
    throw new Refused(errors.badRequest(`fake: ${message}`, param));
  };

/** Turns a problem with a medium into the dialect's own refusal. */
export const orRefusedMedium = <Value>(errors: Dialect['errors'], at: string, read: () => Value): Value => {
  try {
    return read();
  } catch (problem) {
    if (!(problem instanceof MediaProblem)) throw problem;
    throw new Refused(errors.media(problem.fault, `fake: ${problem.message}`, at));
  }
};

const answerSchemaOf = (body: Json, bad: PartReader['bad']): Json | 'any' | null => {
  const format = body.response_format;
  if (format === undefined) return null;
  if (!isObject(format)) return bad('response_format is not an object', 'response_format');
  if (format.type === 'text') return null;
  if (format.type === 'json_object') return 'any';
  if (format.type !== 'json_schema') return bad('response_format has an unknown type', 'response_format');
  const named = format.json_schema;
  if (!isObject(named) || typeof named.name !== 'string' || !isObject(named.schema)) {
    return bad('response_format.json_schema has no name or no schema', 'response_format');
  }
  return named.schema;
};

/** Reads bodies of `POST …/chat/completions` by a dialect's rules. */
export const chatReader =
  (rules: ChatRules, errors: Dialect['errors']) =>
  (text: string, context: ReadContext): ReadRequest => {
    const bad: PartReader['bad'] = refuser(errors);
    const body = parseBody(text, bad);
    const { model, messages, stream = false, stream_options: streamOptions } = body;
    if (typeof model !== 'string' || model === '') bad('model is missing', 'model');
    if (!context.hasModel(model as string)) throw new Refused(errors.unknownModel(model as string));
    const allowed = `model messages ${rules.members} ${(context.profile.extraMembers ?? []).join(' ')}`;
    onlyMembers(body, allowed.trim(), '', (message) => bad(message, null));
    if (typeof stream !== 'boolean') bad('stream is not a boolean', 'stream');
    if (streamOptions !== undefined && (!stream || !isObject(streamOptions))) {
      bad('stream_options is only allowed with stream: true', 'stream_options');
    }
    numberIn(body, 'max_tokens', [1, 2 ** 31], bad, true);
    numberIn(body, 'max_completion_tokens', [1, 2 ** 31], bad, true);
    numberIn(body, 'temperature', [0, 2], bad);
    numberIn(body, 'top_p', [0, 1], bad);
    numberIn(body, 'n', [1, 1], bad, true);
    const reader: PartReader = {
      body,
      model: model as string,
      profile: context.profile,
      headers: context.headers,
      fetched: context.fetched,
      bad,
    };
    rules.before?.(reader);
    if (!Array.isArray(messages) || messages.length === 0) return bad('messages is empty', 'messages');

    const media: Medium[][] = [];
    const texts: string[] = [];
    const read: FingerprintMessage[] = [];
    let lastTexts: string[] = [];
    for (const [index, message] of messages.entries()) {
      const at = `messages[${index}]`;
      if (!isObject(message)) return bad('a message is not an object', at);
      onlyMembers(message, 'role content', at, bad);
      const { role, content } = message;
      if (role === 'system' || role === 'assistant' || (role === 'developer' && rules.developer)) {
        const mayBeNull = role === 'assistant' && rules.nullAssistant && content === null;
        if (!mayBeNull && (typeof content !== 'string' || content === '')) {
          bad(`content of a ${role} message is not a text`, at);
        }
        if (role === 'assistant') {
          read.push({ role });
          if (typeof content === 'string') texts.push(content);
          continue;
        }
        // OpenAI takes them anywhere; Alibaba's pages and the usual templates of open models want one, and first.
        if (index > 0 && !rules.developer) bad('a system message is not the first', at);
        const { systemTurn = 'taken' } = context.profile;
        if (systemTurn === 'refused') bad('System role not supported', at);
        if (systemTurn === 'dropped') continue;
        texts.push(content as string);
        read.push({ role: 'system', text: content as string });
        continue;
      }
      if (role !== 'user') bad('unknown role', at);
      if (typeof content === 'string' && content !== '') {
        texts.push(content);
        lastTexts = [content];
        media.push([]);
        read.push({ role: 'user', content });
        continue;
      }
      if (!Array.isArray(content) || content.length === 0) return bad('content is empty', at);
      const parts = content.map((part: unknown, position): ReadPart => {
        const place = `${at}.content[${position}]`;
        if (!isObject(part)) return bad('a part is not an object', place);
        if (part.type === 'text') {
          onlyMembers(part, 'type text', place, bad);
          return typeof part.text === 'string' && part.text !== ''
            ? { text: part.text }
            : bad('a text part has no text', place);
        }
        return orRefusedMedium(errors, place, () => rules.readPart(part, place, reader));
      });
      lastTexts = parts.flatMap((part) => ('text' in part ? [part.text] : []));
      texts.push(...lastTexts);
      media.push(parts.filter((part): part is Medium => 'kind' in part));
      read.push({ role: 'user', content: parts.map(fingerprintPart) });
    }
    if (read.at(-1)?.role !== 'user') bad('the last message is not a user message', 'messages');
    rules.after?.(reader, media, texts);

    const all = media.flat();
    return {
      model: model as string,
      stream: stream as boolean,
      includeUsage: isObject(streamOptions) && streamOptions.include_usage === true,
      maxTokens: (body.max_tokens ?? body.max_completion_tokens ?? null) as number | null,
      messages: read,
      userTurns: media.length,
      lastText: lastTexts.join('\n'),
      lastPart: lastTexts.at(-1) ?? '',
      prompt: promptTokensOf(
        texts.reduce((sum, part) => sum + characters(part), 0),
        all,
      ),
      media: all,
      thinks: rules.thinks?.(body, model as string) ?? false,
      answerSchema: answerSchemaOf(body, bad),
      obfuscates: !(isObject(streamOptions) && streamOptions.include_obfuscation === false),
      operation: 'chat' as Operation,
    };
  };

/** The one address of most dialects. */
export const chatRoute: Dialect['route'] = (method, path) =>
  method === 'POST' && path === '/chat/completions' ? { operation: 'chat' } : null;

/** Bearer key; `names` are the keys that it takes. */
export const bearerKey =
  (names: readonly string[], wrong: ErrorFacts): Dialect['checkKey'] =>
  (headers) =>
    names.some((name) => headers.authorization === `Bearer ${name}`) ? null : wrong;

/** The answer's text and its reasoning as members of a message. */
export const messageOf = (plan: ReplyPlan, reasoningKey: string): Json => {
  const reasoning = pieceText(plan.reasoning);
  return {
    role: 'assistant',
    content: plan.refusal === null ? pieceText(plan.pieces) : null,
    ...(reasoning !== '' && { [reasoningKey]: reasoning }),
    ...(plan.refusal !== null && { refusal: plan.refusal }),
  };
};

/** Prompt, completion and total, as most servers count. */
export const totals = (usage: NonNullable<ReplyPlan['usage']>) => {
  const prompt = promptSum(usage);
  return { prompt, completion: usage.output, total: prompt + usage.output };
};

/** How a dialect writes the chunks of a stream. */
export interface ChunkForm {
  /** Delta of a chunk before everything else; null: none. */
  open: Json | null;
  /** A reasoning delta; the first one goes into the opening chunk where `opens` is set. */
  reasoning: (text: string) => Json;
  opensWithReasoning?: boolean;
  text: (text: string) => Json;
  last: Json;
  chunk: (delta: Json, finish: string | null, outputSoFar: number) => Buffer;
  /** Chunk of its own for the usage; null: the dialect has none. */
  usage: ((usage: Usage) => Buffer) | null;
}

/** Events of a reply in a dialect's chunks. */
export const chatEvents = (plan: ReplyPlan, form: ChunkForm): StreamEvent[] => {
  const found: StreamEvent[] = [];
  const add = (kind: StreamEvent['kind'], bytes: Buffer) => found.push({ kind, bytes });
  let reasoning = plan.reasoning;
  let soFar = 0;
  if (form.opensWithReasoning && reasoning.length > 0) {
    add('open', form.chunk({ role: 'assistant', ...form.reasoning(reasoning[0]!.text) }, null, 0));
    reasoning = reasoning.slice(1);
  } else if (form.open !== null) add('open', form.chunk(form.open, null, 0));
  for (const { text, outputSoFar } of reasoning) {
    if (text === '') continue;
    soFar = outputSoFar;
    add('reasoning', form.chunk(form.reasoning(text), null, soFar));
  }
  if (plan.refusal !== null) add('text', form.chunk({ refusal: plan.refusal }, null, soFar));
  for (const { text, outputSoFar } of plan.pieces) {
    soFar = outputSoFar;
    add('text', form.chunk(form.text(text), null, soFar));
  }
  if (plan.finish !== null) add('finish', form.chunk(form.last, plan.finish, plan.usage?.output ?? soFar));
  if (form.usage !== null && plan.usage !== null && plan.includeUsage) add('usage', form.usage(plan.usage));
  add('end', sseDone);
  return found;
};
