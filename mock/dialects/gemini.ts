import type { FingerprintMessage } from '../fingerprint.ts';
import {
  audio,
  fingerprintPart,
  fromBase64,
  image,
  memberObject,
  numberIn,
  oneOf,
  onlyMembers,
  orRefusedMedium,
  type PartReader,
  promptTokensOf,
  refuser,
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
import {
  characters,
  eventStreamType,
  isObject,
  pieceText,
  promptSum,
  Refused,
  samplePieces,
  sse,
} from './dialect.ts';
import type { Medium } from './media.ts';
import { MediaProblem } from './media.ts';

const statuses: Record<number, string> = {
  400: 'INVALID_ARGUMENT',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  429: 'RESOURCE_EXHAUSTED',
  500: 'INTERNAL',
  502: 'INTERNAL',
  503: 'UNAVAILABLE',
  504: 'DEADLINE_EXCEEDED',
};
const error = (status: number, message: string, type?: string, details?: readonly unknown[]): ErrorFacts => ({
  status,
  message,
  type: type ?? statuses[status] ?? 'UNKNOWN',
  details,
});

const retryInfo = { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '2s' };
const errors: Dialect['errors'] = {
  badRequest: (message) => error(400, message),
  unknownModel: (model) => error(404, `fake: models/${model} is not found for API version v1beta`),
  limit: error(429, 'fake: limit', undefined, [retryInfo]),
  server: (status) => error(status, 'fake: server error'),
  quota: error(429, 'fake: limit of the day', undefined, [
    {
      '@type': 'type.googleapis.com/google.rpc.QuotaFailure',
      violations: [{ quotaId: 'GenerateRequestsPerDayPerProjectPerModel-FreeTier' }],
    },
    retryInfo,
  ]),
  burst: [],
  inputSafety: 'blocked',
  outputSafety: 'finish',
  media: (_fault, message) => error(400, message),
};

const finishWords: Record<string, string> = { stop: 'STOP', length: 'MAX_TOKENS', content_filter: 'SAFETY' };

/** ai.google.dev, generate-content: inline requests stay below 20 MB by the older pages. */
const largestBody = 20 * 1024 * 1024;
const mostVideos = 10;
const audioTokens = 32;

const mediumOf = (mime: string, bytes: Buffer, fps: number): Medium => {
  const kind = mime.split('/')[0];
  if (kind === 'image') return image(bytes);
  if (kind === 'audio') return audio(bytes, audioTokens);
  if (kind === 'video') return video(bytes, fps, audioTokens);
  throw new MediaProblem('format', `mimeType ${mime} is not supported`);
};

type GeminiPart = { text: string } | Medium;

const readPart = (part: unknown, at: string, bad: PartReader['bad'], context: ReadContext): GeminiPart => {
  if (!isObject(part)) return bad('a part is not an object', at);
  if (typeof part.text === 'string') {
    onlyMembers(part, 'text thought thoughtSignature', at, bad);
    return { text: part.text };
  }
  onlyMembers(part, 'inlineData fileData videoMetadata mediaResolution', at, bad);
  let fps = 1;
  if (part.videoMetadata !== undefined) {
    const clip = memberObject(part, 'videoMetadata', at, bad);
    onlyMembers(clip, 'fps startOffset endOffset', at, bad);
    numberIn(clip, 'fps', [Number.MIN_VALUE, 24], bad);
    fps = (clip.fps as number | undefined) ?? 1;
  }
  return orRefusedMedium(errors, at, () => {
    if (part.inlineData !== undefined) {
      const { mimeType, data, ...extra } = memberObject(part, 'inlineData', at, bad);
      onlyMembers(extra, 'displayName', at, bad);
      if (typeof mimeType !== 'string') return bad('mimeType is missing', at);
      const kind = mimeType.split('/')[0];
      if (kind !== 'image' && kind !== 'audio' && kind !== 'video') return bad(`mimeType ${mimeType}`, at);
      return mediumOf(mimeType, fromBase64(data as string, kind, mimeType), fps);
    }
    const { mimeType, fileUri } = memberObject(part, 'fileData', at, bad);
    if (typeof fileUri !== 'string') return bad('fileUri is missing', at);
    const file = context.file(fileUri);
    if (file === null) {
      throw new Refused(
        error(403, 'fake: you do not have permission to access the File or it may not exist.'),
      );
    }
    if (file.state !== 'ACTIVE') {
      throw new Refused(
        error(400, `fake: the File is not in an ACTIVE state: ${file.state}`, 'FAILED_PRECONDITION'),
      );
    }
    if (typeof mimeType === 'string' && mimeType !== file.mimeType)
      bad('mimeType is not that of the File', at);
    return mediumOf(file.mimeType, file.bytes, fps);
  });
};

const checkConfig = (config: Json, model: string, bad: PartReader['bad']): void => {
  onlyMembers(
    config,
    `temperature topP topK seed maxOutputTokens candidateCount stopSequences responseMimeType responseSchema
      responseJsonSchema thinkingConfig mediaResolution presencePenalty frequencyPenalty responseModalities`,
    'generationConfig',
    bad,
  );
  numberIn(config, 'temperature', [0, 2], bad);
  numberIn(config, 'topP', [0, 1], bad);
  numberIn(config, 'seed', [-(2 ** 31), 2 ** 31 - 1], bad, true);
  numberIn(config, 'maxOutputTokens', [1, 2 ** 31 - 1], bad, true);
  numberIn(config, 'candidateCount', [1, 1], bad, true);
  oneOf(config, 'mediaResolution', 'MEDIA_RESOLUTION_LOW MEDIA_RESOLUTION_MEDIUM MEDIA_RESOLUTION_HIGH', bad);
  if (
    (config.responseSchema ?? config.responseJsonSchema) !== undefined &&
    config.responseMimeType !== 'application/json'
  ) {
    bad('a schema needs responseMimeType application/json', 'generationConfig');
  }
  const thinking = config.thinkingConfig;
  if (thinking === undefined) return;
  if (!isObject(thinking)) bad('thinkingConfig is not an object', 'generationConfig');
  onlyMembers(thinking, 'thinkingLevel thinkingBudget includeThoughts', 'thinkingConfig', bad);
  oneOf(thinking, 'thinkingLevel', 'MINIMAL LOW MEDIUM HIGH minimal low medium high', bad);
  if (thinking.thinkingLevel !== undefined && thinking.thinkingBudget !== undefined) {
    bad('thinkingLevel and thinkingBudget exclude each other', 'thinkingConfig');
  }
  if (/^gemini-2\.5/.test(model) && thinking.thinkingLevel !== undefined) {
    bad(`${model} has no thinkingLevel`, 'thinkingConfig');
  }
};

const checkSafety = (settings: unknown, bad: PartReader['bad']): void => {
  if (!Array.isArray(settings)) bad('safetySettings is not a list', 'safetySettings');
  for (const setting of settings) {
    if (!isObject(setting)) bad('a safety setting is not an object', 'safetySettings');
    onlyMembers(setting, 'category threshold', 'safetySettings', bad);
    if (!/^HARM_CATEGORY_[A-Z_]+$/.test(String(setting.category)))
      bad('unknown harm category', 'safetySettings');
    oneOf(
      setting,
      'threshold',
      'BLOCK_NONE OFF BLOCK_ONLY_HIGH BLOCK_MEDIUM_AND_ABOVE BLOCK_LOW_AND_ABOVE',
      bad,
    );
  }
};

const read = (text: string, context: ReadContext): ReadRequest => {
  const bad: PartReader['bad'] = refuser(errors);
  const model = context.route.model!;
  if (!context.hasModel(model)) throw new Refused(errors.unknownModel(model));
  if (context.bodyBytes > largestBody) bad('request payload size exceeds the limit: 20971520 bytes');
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    bad('invalid JSON payload received');
  }
  if (!isObject(body)) return bad('the body is not a JSON object');
  onlyMembers(
    body,
    `contents systemInstruction generationConfig safetySettings cachedContent ${(context.profile.extraMembers ?? []).join(' ')}`.trim(),
    '',
    bad,
  );
  const texts: string[] = [];
  const messages: FingerprintMessage[] = [];
  if (body.systemInstruction !== undefined) {
    const instruction = memberObject(body, 'systemInstruction', '', bad);
    onlyMembers(instruction, 'role parts', 'systemInstruction', bad);
    const { parts } = instruction;
    if (!Array.isArray(parts) || parts.length === 0) return bad('systemInstruction has no parts');
    for (const part of parts as Json[]) {
      if (typeof part?.text !== 'string') bad('systemInstruction takes text only');
      texts.push(part.text as string);
    }
    messages.push({ role: 'system', text: texts.join('\n') });
  }
  const config = isObject(body.generationConfig) ? body.generationConfig : {};
  checkConfig(config, model, bad);
  if (body.safetySettings !== undefined) checkSafety(body.safetySettings, bad);
  const { contents } = body;
  if (!Array.isArray(contents) || contents.length === 0) return bad('contents is empty', 'contents');
  const media: Medium[] = [];
  let last: string[] = [];
  let turns = 0;
  for (const [index, content] of contents.entries()) {
    const at = `contents[${index}]`;
    if (!isObject(content)) return bad('a content is not an object', at);
    onlyMembers(content, 'role parts', at, bad);
    const { role, parts } = content;
    if (role !== 'user' && role !== 'model') bad('please use a valid role: user, model.', at);
    if (!Array.isArray(parts) || parts.length === 0) return bad('parts is empty', at);
    const found = parts.map((part, place) => readPart(part, `${at}.parts[${place}]`, bad, context));
    const said = found.flatMap((part) => ('text' in part ? [part.text] : []));
    texts.push(...said);
    if (role === 'model') {
      if (said.length < found.length) bad('a model turn holds media', at);
      messages.push({ role: 'assistant' });
      continue;
    }
    turns += 1;
    last = said;
    media.push(...found.filter((part): part is Medium => 'kind' in part));
    messages.push({ role: 'user', content: found.map(fingerprintPart) });
  }
  if (messages.at(-1)?.role !== 'user') bad('the last content is not a user turn', 'contents');
  if (media.filter(({ kind }) => kind === 'video').length > mostVideos)
    bad('more than 10 videos', 'contents');
  const thinking = isObject(config.thinkingConfig) ? config.thinkingConfig : {};
  const schema = config.responseJsonSchema ?? config.responseSchema;
  return {
    model,
    stream: context.route.stream === true,
    includeUsage: true,
    maxTokens: (config.maxOutputTokens as number | undefined) ?? null,
    messages,
    userTurns: turns,
    lastText: last.join('\n'),
    lastPart: last.at(-1) ?? '',
    prompt: promptTokensOf(
      texts.reduce((sum, part) => sum + characters(part), 0),
      media,
    ),
    media,
    thinks: !(thinking.thinkingBudget === 0 || /^minimal$/i.test(String(thinking.thinkingLevel))),
    answerSchema: isObject(schema) ? schema : config.responseMimeType === 'application/json' ? 'any' : null,
    obfuscates: false,
    operation: context.route.operation,
  };
};

const usageJson = (usage: Usage, outputSoFar: number): Json => {
  const { text, image: pictures, video: moving, audio: sound } = usage.prompt;
  const thoughts = Math.min(usage.reasoning, outputSoFar);
  const answered = outputSoFar - thoughts;
  const prompt = promptSum(usage);
  const modality = (name: string, count: number | null) =>
    count === null ? [] : [{ modality: name, tokenCount: count }];
  return {
    promptTokenCount: prompt,
    totalTokenCount: prompt + outputSoFar,
    ...(usage.split && {
      promptTokensDetails: [
        ...modality('TEXT', text),
        ...modality('IMAGE', pictures),
        ...modality('VIDEO', moving),
        ...modality('AUDIO', sound),
      ],
    }),
    ...(answered > 0 && { candidatesTokenCount: answered }),
    ...(thoughts > 0 && { thoughtsTokenCount: thoughts }),
  };
};

const answer = (plan: ReplyPlan, parts: Json[], finish: string | null, outputSoFar: number): Json => ({
  candidates: [
    {
      content: { role: 'model', parts },
      index: 0,
      ...(finish !== null && { finishReason: finishWords[finish] ?? finish }),
    },
  ],
  ...(plan.usage && { usageMetadata: usageJson(plan.usage, outputSoFar) }),
  modelVersion: plan.model,
  responseId: plan.id,
});

const blockedAnswer = (plan: ReplyPlan): Json => ({
  promptFeedback: { blockReason: 'PROHIBITED_CONTENT' },
  ...(plan.usage && { usageMetadata: usageJson({ ...plan.usage, split: false }, 0) }),
  modelVersion: plan.model,
  responseId: plan.id,
});

const events = (plan: ReplyPlan): StreamEvent[] => {
  const found: { kind: StreamEvent['kind']; value: Json }[] = [];
  if (plan.blocked) found.push({ kind: 'finish', value: blockedAnswer(plan) });
  for (const { text, outputSoFar } of plan.blocked ? [] : plan.reasoning) {
    if (text === '') continue;
    found.push({ kind: 'reasoning', value: answer(plan, [{ text, thought: true }], null, outputSoFar) });
  }
  const pieces = plan.blocked ? [] : plan.pieces;
  pieces.forEach(({ text, outputSoFar }, index) => {
    // The last text brings the finish reason; there is no event of its own and no [DONE].
    const finish = index === pieces.length - 1 ? plan.finish : null;
    found.push({ kind: 'text', value: answer(plan, [{ text }], finish, outputSoFar) });
  });
  if (pieces.length === 0 && !plan.blocked && plan.finish !== null) {
    const output = plan.usage?.output ?? 0;
    found.push({ kind: 'finish', value: answer(plan, [{ text: '' }], plan.finish, output) });
  }
  if (plan.operation === 'chat') return found.map(({ kind, value }) => ({ kind, bytes: sse(value) }));
  const inArray = found.map(({ kind, value }, index): StreamEvent => {
    return { kind, bytes: Buffer.from(`${index === 0 ? '[' : ',\n'}${JSON.stringify(value)}`) };
  });
  return [...inArray, { kind: 'end', bytes: Buffer.from(']') }];
};

const body = ({ status, message, type, details }: ErrorFacts): Json => ({
  error: {
    code: status,
    message,
    status: type ?? statuses[status] ?? 'UNKNOWN',
    ...(details && { details }),
  },
});

const known = /^gemini-(\d(\.\d)?)-(flash|pro)(-lite)?(-preview)?$/;

/** Google's Gemini API. */
export const gemini: Dialect = {
  name: 'gemini',
  prefix: '/gemini/v1beta',
  key: 'test-gemini',
  route: (method, path, query) => {
    const match = /^\/models\/([^/:]+):(generateContent|streamGenerateContent)$/.exec(path);
    if (method !== 'POST' || match === null) return null;
    const stream = match[2] === 'streamGenerateContent';
    const operation = stream && query.get('alt') !== 'sse' ? 'json_array' : 'chat';
    return { operation, model: decodeURIComponent(match[1]!), stream };
  },
  checkKey: (headers) => {
    const key = headers['x-goog-api-key'];
    if (key === 'test-gemini') return null;
    if (key === undefined) {
      return error(403, 'fake: method does not allow unregistered callers, use an API key');
    }
    return error(400, 'fake: API key not valid. Please pass a valid API key.', 'INVALID_ARGUMENT', [
      {
        '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
        reason: 'API_KEY_INVALID',
        domain: 'googleapis.com',
      },
    ]);
  },
  knows: (model) => known.test(model),
  read,
  document: (plan) => {
    if (plan.blocked) return JSON.stringify(blockedAnswer(plan));
    const thoughts = plan.reasoning
      .filter(({ text }) => text !== '')
      .map(({ text }) => ({ text, thought: true }));
    const parts = [...thoughts, { text: pieceText(plan.pieces) }];
    return JSON.stringify(answer(plan, parts, plan.finish, plan.usage?.output ?? 0));
  },
  events,
  contentType: { document: 'application/json; charset=UTF-8', stream: eventStreamType },
  replyHeaders: {},
  error: (facts) => ({
    status: facts.status,
    headers: { ...facts.headers },
    body: JSON.stringify(body(facts)),
  }),
  streamError: (facts) => sse(body(facts)),
  streamEnd: Buffer.alloc(0),
  errors,
  sample: {
    id: 'fx-gem-1',
    model: 'gemini-3.8-flash',
    reasoning: [{ text: 'weigh it', outputSoFar: 4 }],
    pieces: samplePieces(8, 13),
    usage: {
      prompt: { text: 12, image: null, video: 1261, audio: 32 },
      promptTotal: null,
      output: 13,
      reasoning: 4,
      cached: null,
      split: true,
    },
  },
};
