import { eventStreamFrame } from '../event-stream-frame.ts';
import type { FingerprintMessage } from '../fingerprint.ts';
import {
  audio,
  fingerprintPart,
  fromBase64,
  image,
  memberObject,
  numberIn,
  onlyMembers,
  orRefusedMedium,
  type PartReader,
  promptTokensOf,
  refuser,
  totals,
  video,
} from './chat.ts';
import type {
  Dialect,
  ErrorFacts,
  Json,
  ReadContext,
  ReadRequest,
  ReplyPlan,
  StreamEvent,
  Usage,
} from './dialect.ts';
import { characters, isObject, pieceText, Refused, samplePieces } from './dialect.ts';
import type { Medium } from './media.ts';
import { MediaProblem } from './media.ts';

/** `code` is the exception's name, in the header x-amzn-errortype. */
const error = (status: number, message: string, code: string): ErrorFacts => ({ status, message, code });
const invalid = (message: string): ErrorFacts => error(400, message, 'ValidationException');

const serverNames: Record<number, string> = {
  503: 'ServiceUnavailableException',
  408: 'ModelTimeoutException',
  424: 'ModelErrorException',
};

const errors: Dialect['errors'] = {
  badRequest: invalid,
  unknownModel: (model) =>
    error(404, `fake: could not resolve the model ${model}`, 'ResourceNotFoundException'),
  limit: error(429, 'fake: too many requests', 'ThrottlingException'),
  server: (status) => error(status, 'fake: server error', serverNames[status] ?? 'InternalServerException'),
  quota: error(400, 'fake: service quota exceeded', 'ServiceQuotaExceededException'),
  burst: [error(429, 'fake: the model is not ready', 'ModelNotReadyException')],
  inputSafety: 'blocked',
  outputSafety: 'finish',
  media: (_fault, message) => invalid(message),
};

const finishWords: Record<string, string> = {
  stop: 'end_turn',
  length: 'max_tokens',
  content_filter: 'content_filtered',
};

/** docs.aws.amazon.com, Converse content blocks; audio of Nova 2 Omni. */
const formats = {
  image: 'png jpeg gif webp',
  video: 'mp4 mov mkv webm flv mpeg mpg wmv three_gp',
  audio: 'mp3 opus wav aac flac mp4 ogg mkv',
};
const sniffable: Record<string, string> = {
  png: 'image/png',
  jpeg: 'image/jpeg',
  gif: 'image/gif',
  webp: 'image/webp',
  mov: 'video/quicktime',
  webm: 'video/webm',
  flv: 'video/x-flv',
  mp3: 'audio/mpeg',
  wav: 'audio/wav',
  flac: 'audio/flac',
  ogg: 'audio/ogg',
};
/** Inline payloads stay below about 25 MB. */
const largestBody = 25 * 1024 * 1024;

const isOmni = (model: string): boolean => /nova-2-omni/.test(model);
const isClaude = (model: string): boolean => /anthropic\.claude/.test(model);
const known =
  /^([a-z]{2,6}\.)?(amazon\.nova-(2-)?(omni|lite|pro|micro|premier)(-preview)?(-v\d+)?(:\d+)?|anthropic\.claude-[\w.:-]+)$/;

type Block = { text: string } | Medium;

const readBlock = (block: unknown, at: string, model: string, bad: PartReader['bad']): Block => {
  if (!isObject(block)) return bad('a block is not an object', at);
  const members = Object.keys(block);
  const kind = members[0];
  if (members.length !== 1) return bad('a block has exactly one member', at);
  if (kind === 'text') {
    return typeof block.text === 'string' && block.text !== ''
      ? { text: block.text }
      : bad('text is blank', at);
  }
  if (kind !== 'image' && kind !== 'video' && kind !== 'audio') return bad(`unknown block ${kind}`, at);
  const isForeign = !known.test(model);
  if (kind === 'audio' && !isOmni(model) && !isForeign) bad(`${model} does not support audio input`, at);
  if (kind === 'video' && isClaude(model)) bad(`${model} does not support video input`, at);
  const holder = memberObject(block, kind, at, bad);
  onlyMembers(holder, 'format source', at, bad);
  const format = String(holder.format);
  if (!formats[kind].split(' ').includes(format)) bad(`${kind} format ${format}`, at);
  const source = memberObject(holder, 'source', at, bad);
  if (Object.keys(source).length !== 1) bad('source has exactly one member', at);
  return orRefusedMedium(errors, at, () => {
    let bytes: Buffer;
    let seen = true;
    if (source.s3Location !== undefined) {
      const { uri } = memberObject(source, 's3Location', at, bad);
      if (typeof uri !== 'string' || !/^s3:\/\/[^/]+\/./.test(uri)) {
        throw new MediaProblem('url', 'uri is no S3 address');
      }
      bytes = Buffer.from(uri);
      seen = false;
    } else bytes = fromBase64(source.bytes as string, kind, sniffable[format] ?? '');
    if (kind === 'image') return image(bytes);
    return kind === 'video' ? video(bytes, 1) : audio(bytes, 25, seen);
  });
};

const read = (text: string, context: ReadContext): ReadRequest => {
  const bad: PartReader['bad'] = refuser(errors);
  const model = context.route.model!;
  if (!context.hasModel(model)) throw new Refused(errors.unknownModel(model));
  if (context.bodyBytes > largestBody) bad('the request is larger than 25 MB');
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    bad('malformed input request');
  }
  if (!isObject(body)) return bad('malformed input request');
  onlyMembers(
    body,
    `messages system inferenceConfig additionalModelRequestFields additionalModelResponseFieldPaths toolConfig
      guardrailConfig outputConfig performanceConfig requestMetadata promptVariables serviceTier ${(context.profile.extraMembers ?? []).join(' ')}`.trim(),
    '',
    bad,
  );
  const config = isObject(body.inferenceConfig) ? body.inferenceConfig : {};
  onlyMembers(config, 'maxTokens temperature topP stopSequences', 'inferenceConfig', bad);
  numberIn(config, 'maxTokens', [1, 2 ** 31 - 1], bad, true);
  numberIn(config, 'temperature', [0, 1], bad);
  numberIn(config, 'topP', [0, 1], bad);
  const texts: string[] = [];
  if (body.system !== undefined && !Array.isArray(body.system)) bad('system is not a list', 'system');
  for (const block of (body.system ?? []) as Json[]) {
    if (isObject(block)) onlyMembers(block, 'text', 'system', bad);
    if (typeof block?.text !== 'string' || block.text === '') bad('system takes text only', 'system');
    texts.push(block.text as string);
  }
  const { messages } = body;
  if (!Array.isArray(messages) || messages.length === 0) return bad('messages is empty', 'messages');
  const media: Medium[] = [];
  const read: FingerprintMessage[] = texts.length === 0 ? [] : [{ role: 'system', text: texts.join('\n') }];
  let last: string[] = [];
  for (const [index, message] of messages.entries()) {
    const at = `messages[${index}]`;
    if (!isObject(message)) return bad('a message is not an object', at);
    onlyMembers(message, 'role content', at, bad);
    const { role, content } = message;
    if (role !== 'user' && role !== 'assistant') bad('role is neither user nor assistant', at);
    if (index === 0 && role !== 'user') bad('a conversation must start with a user message', at);
    if (read.at(-1)?.role === role) bad('roles must alternate between user and assistant', at);
    if (!Array.isArray(content) || content.length === 0) return bad('content is empty', at);
    const blocks = content.map((block, place) => readBlock(block, `${at}.content[${place}]`, model, bad));
    const said = blocks.flatMap((block) => ('text' in block ? [block.text] : []));
    texts.push(...said);
    if (role === 'assistant') {
      if (said.length < blocks.length) bad('an assistant message holds media', at);
      read.push({ role: 'assistant' });
      continue;
    }
    last = said;
    media.push(...blocks.filter((block): block is Medium => 'kind' in block));
    read.push({ role: 'user', content: blocks.map(fingerprintPart) });
  }
  if (read.at(-1)?.role !== 'user') bad('a conversation must end with a user message', 'messages');
  const isNova1 = /amazon\.nova-(?!2)/.test(model);
  if (isNova1 && media.filter(({ kind }) => kind === 'video').length > 1)
    bad('more than one video', 'messages');
  return {
    model,
    stream: context.route.stream === true,
    includeUsage: true,
    maxTokens: (config.maxTokens as number | undefined) ?? null,
    messages: read,
    userTurns: read.filter(({ role }) => role === 'user').length,
    lastText: last.join('\n'),
    lastPart: last.at(-1) ?? '',
    prompt: promptTokensOf(
      texts.reduce((sum, part) => sum + characters(part), 0),
      media,
    ),
    media,
    thinks: false,
    answerSchema: null,
    obfuscates: false,
    operation: 'chat',
  };
};

const usageJson = (usage: Usage): Json => {
  const { prompt, completion, total } = totals(usage);
  return {
    inputTokens: prompt,
    outputTokens: completion,
    totalTokens: total,
    cacheReadInputTokens: usage.cached ?? 0,
    cacheWriteInputTokens: 0,
  };
};

const stopReason = (plan: ReplyPlan): string | null => {
  if (plan.blocked) return 'guardrail_intervened';
  return plan.finish === null ? null : (finishWords[plan.finish] ?? plan.finish);
};
const blockedText = 'fake: the guardrail does not allow this.';
const metrics = { metrics: { latencyMs: 12 } };

const frame = (type: string, payload: Json): Buffer =>
  eventStreamFrame(
    { ':event-type': type, ':content-type': 'application/json', ':message-type': 'event' },
    JSON.stringify(payload),
  );

const events = (plan: ReplyPlan): StreamEvent[] => {
  const pieces =
    plan.blocked || plan.refusal !== null ? [{ text: plan.refusal ?? blockedText }] : plan.pieces;
  const stop = stopReason(plan);
  return [
    { kind: 'open', bytes: frame('messageStart', { role: 'assistant' }) },
    ...pieces.map(
      ({ text }): StreamEvent => ({
        kind: 'text',
        bytes: frame('contentBlockDelta', { contentBlockIndex: 0, delta: { text } }),
      }),
    ),
    ...(stop === null
      ? []
      : ([
          { kind: 'finish', bytes: frame('contentBlockStop', { contentBlockIndex: 0 }) },
          { kind: 'finish', bytes: frame('messageStop', { stopReason: stop }) },
        ] as const)),
    ...(plan.usage === null
      ? []
      : ([
          { kind: 'usage', bytes: frame('metadata', { usage: usageJson(plan.usage), ...metrics }) },
        ] as const)),
  ];
};

/** Amazon Bedrock Runtime: Converse and ConverseStream. */
export const bedrock: Dialect = {
  name: 'bedrock',
  prefix: '/bedrock',
  key: 'test-bedrock',
  route: (method, path) => {
    const match = /^\/model\/([^/]+)\/(converse|converse-stream)$/.exec(path);
    if (method !== 'POST' || match === null) return null;
    return {
      operation: 'chat',
      model: decodeURIComponent(match[1]!),
      stream: match[2] === 'converse-stream',
    };
  },
  checkKey: (headers) => {
    const { authorization } = headers;
    if (typeof authorization === 'string' && /^(AWS4-HMAC-SHA256|Bearer) ./.test(authorization)) return null;
    return error(403, 'fake: missing authentication token', 'AccessDeniedException');
  },
  knows: (model) => known.test(model),
  read,
  document: (plan) =>
    JSON.stringify({
      output: {
        message: {
          role: 'assistant',
          content: [{ text: plan.refusal ?? (plan.blocked ? blockedText : pieceText(plan.pieces)) }],
        },
      },
      ...(stopReason(plan) !== null && { stopReason: stopReason(plan) }),
      ...(plan.usage && { usage: usageJson(plan.usage) }),
      ...metrics,
    }),
  events,
  contentType: { document: 'application/json', stream: 'application/vnd.amazon.eventstream' },
  replyHeaders: { 'x-amzn-requestid': 'fx-bed-1' },
  error: (facts) => ({
    status: facts.status,
    headers: {
      'x-amzn-requestid': 'fx-bed-err-1',
      'x-amzn-errortype': String(facts.code ?? 'InternalServerException'),
      ...facts.headers,
    },
    body: JSON.stringify({ message: facts.message }),
  }),
  streamError: ({ code, message }) => {
    const name = String(code ?? 'InternalServerException');
    return eventStreamFrame(
      {
        ':exception-type': name.charAt(0).toLowerCase() + name.slice(1),
        ':content-type': 'application/json',
        ':message-type': 'exception',
      },
      JSON.stringify({ message }),
    );
  },
  streamEnd: Buffer.alloc(0),
  errors,
  sample: {
    id: 'fx-bed-1',
    model: 'us.amazon.nova-2-omni-v1:0',
    reasoning: [],
    pieces: samplePieces(4, 9),
    usage: {
      prompt: { text: 12, audio: 25, image: null, video: 1268 },
      promptTotal: null,
      output: 9,
      reasoning: 0,
      cached: 0,
      split: false,
    },
  },
};
