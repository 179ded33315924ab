import {
  audio,
  bearerKey,
  chatEvents,
  chatReader,
  chatRoute,
  fromBase64,
  fromUrl,
  image,
  memberObject,
  messageOf,
  numberIn,
  oneOf,
  onlyMembers,
  type PartReader,
  totals,
  video,
} from './chat.ts';
import type { Dialect, ErrorFacts, Json, ReplyPlan, Usage } from './dialect.ts';
import { created, eventStreamType, isObject, samplePieces, sse, sseDone } from './dialect.ts';
import type { Medium } from './media.ts';
import { MediaProblem, splitDataUri } from './media.ts';

const types: Record<number, string> = {
  400: 'BadRequest',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  429: 'TooManyRequests',
};
const error = (status: number, message: string, code: string, param: string | null = ''): ErrorFacts => ({
  status,
  message,
  code,
  param,
});

/** Video as base64 stays below 50 MB, the body at 64 MB; Ark's video page, Dec 2025. */
const largestVideo = 50 * 1024 * 1024;
const audioTokens = 25;

const errors: Dialect['errors'] = {
  badRequest: (message, param) => error(400, message, 'InvalidParameter', param ?? ''),
  unknownModel: (model) =>
    error(404, `fake: the model or endpoint ${model} does not exist.`, 'InvalidEndpointOrModel.NotFound'),
  limit: error(429, 'fake: requests per minute exceeded.', 'ModelAccountRpmRateLimitExceeded'),
  server: (status) => error(status, 'fake: internal error.', 'InternalServiceError'),
  quota: error(429, 'fake: the spending limit is reached.', 'SetLimitExceeded'),
  burst: [
    error(429, 'fake: requests grow too fast.', 'RequestBurstTooFast'),
    error(429, 'fake: the service is overloaded.', 'ServerOverloaded'),
  ],
  inputSafety: error(400, 'fake: the input video is sensitive.', 'InputVideoSensitiveContentDetected'),
  outputSafety: error(400, 'fake: the output text is sensitive.', 'OutputTextSensitiveContentDetected'),
  media: (_fault, message, param) => error(400, message, 'InvalidParameter', param),
};

const reference = (
  value: unknown,
  kind: 'image' | 'video' | 'audio',
  reader: PartReader,
): { bytes: Buffer; seen: boolean } => {
  if (typeof value !== 'string') throw new MediaProblem('encoding', 'url is missing');
  if (!value.startsWith('data:')) return fromUrl(value, kind, reader);
  const uri = splitDataUri(value);
  if (uri === null || uri.mime === '')
    throw new MediaProblem('encoding', 'url is no data URI with type and base64');
  return { bytes: fromBase64(uri.data, kind, uri.mime), seen: true };
};

const readPart = (part: Json, at: string, reader: PartReader): Medium => {
  const { bad } = reader;
  const kind = String(part.type);
  if (kind === 'image_url') {
    onlyMembers(part, 'type image_url', at, bad);
    const holder = memberObject(part, kind, at, bad);
    onlyMembers(holder, 'url detail min_pixels max_pixels', at, bad);
    oneOf(holder, 'detail', 'auto low high', bad);
    return image(reference(holder.url, 'image', reader).bytes);
  }
  if (kind === 'video_url') {
    // The fps belongs inside; a sibling is passed over in silence.
    onlyMembers(part, 'type video_url fps', at, bad);
    const holder = memberObject(part, kind, at, bad);
    onlyMembers(holder, 'url fps', at, bad);
    numberIn(holder, 'fps', [0.2, 5], bad);
    const { bytes } = reference(holder.url, 'video', reader);
    if (bytes.length > largestVideo) throw new MediaProblem('size', 'the video is larger than 50 MB');
    return video(bytes, (holder.fps as number | undefined) ?? 1);
  }
  if (kind === 'audio_url' && reader.profile.audioUrl) {
    const { bytes, seen } = reference(memberObject(part, kind, at, bad).url, 'audio', reader);
    return audio(bytes, audioTokens, seen);
  }
  if (kind === 'input_audio') {
    onlyMembers(part, 'type input_audio', at, bad);
    const holder = memberObject(part, kind, at, bad);
    onlyMembers(holder, 'url data format', at, bad);
    if ((holder.url === undefined) === (holder.data === undefined)) bad('give either url or data', at);
    if (holder.data === undefined) {
      const { bytes, seen } = reference(holder.url, 'audio', reader);
      return audio(bytes, audioTokens, seen);
    }
    if (typeof holder.format !== 'string') bad('data needs a format', at);
    return audio(fromBase64(holder.data as string, 'audio', `audio/${holder.format}`), audioTokens);
  }
  return bad(`invalid value ${kind} of type`, at);
};

const known = /^(doubao-seed-2-0-(lite|mini|pro)-\d{6}|doubao-seed-2-1-[a-z]+-\d{6}|ep-[\w-]+)$/;

const thinkingOf = (body: Json): unknown => (isObject(body.thinking) ? body.thinking.type : undefined);

const usageJson = (usage: Usage): Json => {
  const { prompt, completion, total } = totals(usage);
  return {
    completion_tokens: completion,
    prompt_tokens: prompt,
    total_tokens: total,
    ...(usage.split && {
      prompt_tokens_details: {
        cached_tokens: usage.cached ?? 0,
        ...(usage.prompt.audio !== null && { audio_tokens: usage.prompt.audio }),
      },
    }),
    ...((usage.split || usage.reasoning > 0) && {
      completion_tokens_details: { reasoning_tokens: usage.reasoning },
    }),
  };
};

/** The finish reason's key is missing until the end; a filtered answer tells how bad it was. */
const choiceEnd = (finish: string | null): Json => ({
  ...(finish !== null && { finish_reason: finish }),
  ...(finish === 'content_filter' && { moderation_hit_type: 'severe_violation' }),
});

const body = ({ status, message, code, param, type }: ErrorFacts): Json => ({
  error: {
    code: code ?? 'InternalServiceError',
    message: `${message} Request id: fx-ark-err-1`,
    param: param ?? '',
    type: type ?? types[status] ?? 'InternalServerError',
  },
});

const read = chatReader(
  {
    members: `thinking reasoning_effort stream stream_options max_tokens max_completion_tokens service_tier stop
      response_format frequency_penalty presence_penalty temperature top_p logprobs top_logprobs logit_bias`,
    readPart,
    before: ({ body: request, model, bad }) => {
      if (request.max_tokens !== undefined && request.max_completion_tokens !== undefined) {
        bad('max_tokens and max_completion_tokens exclude each other', 'max_tokens');
      }
      numberIn(request, 'max_completion_tokens', [1, 65_536], bad, true);
      if (request.thinking !== undefined) {
        if (!isObject(request.thinking)) bad('thinking is not an object', 'thinking');
        oneOf(request.thinking as Json, 'type', 'enabled disabled auto', bad);
        if (thinkingOf(request) === 'auto' && /-lite-260428$/.test(model)) {
          bad(`${model} does not take auto`, 'thinking.type');
        }
      }
      oneOf(request, 'reasoning_effort', 'minimal low medium high', bad);
    },
    thinks: (request) => thinkingOf(request) !== 'disabled' && request.reasoning_effort !== 'minimal',
  },
  errors,
);

/** Volcengine Ark, Doubao Seed. */
export const ark: Dialect = {
  name: 'ark',
  prefix: '/ark/api/v3',
  key: 'test-ark',
  route: chatRoute,
  checkKey: bearerKey(
    ['test-ark'],
    error(401, 'fake: the API key or AK/SK in the request is missing or invalid.', 'AuthenticationError'),
  ),
  knows: (model) => known.test(model),
  read,
  document: (plan) =>
    JSON.stringify({
      choices: [
        {
          index: 0,
          message: messageOf(plan, 'reasoning_content'),
          logprobs: null,
          ...choiceEnd(plan.finish),
        },
      ],
      created,
      id: plan.id,
      model: plan.model,
      service_tier: 'default',
      object: 'chat.completion',
      ...(plan.usage && { usage: usageJson(plan.usage) }),
    }),
  events: (plan: ReplyPlan) => {
    const foot = {
      created,
      id: plan.id,
      model: plan.model,
      service_tier: 'default',
      object: 'chat.completion.chunk',
    };
    return chatEvents(plan, {
      open: null,
      reasoning: (text) => ({ content: '', reasoning_content: text, role: 'assistant' }),
      text: (text) => ({ content: text, role: 'assistant' }),
      last: { content: '', role: 'assistant' },
      chunk: (delta, finish) =>
        sse({ choices: [{ delta, index: 0, ...choiceEnd(finish) }], ...foot, usage: null }),
      usage: (usage) => sse({ choices: [], ...foot, usage: usageJson(usage) }),
    });
  },
  contentType: { document: 'application/json', stream: eventStreamType },
  replyHeaders: {},
  error: (facts) => ({
    status: facts.status,
    headers: { ...facts.headers },
    body: JSON.stringify(body(facts)),
  }),
  streamError: (facts) => sse(body(facts)),
  streamEnd: sseDone,
  errors,
  sample: {
    id: 'fx-ark-1',
    model: 'doubao-seed-2-0-lite-260428',
    reasoning: [],
    pieces: samplePieces(4, 9),
    usage: {
      prompt: { text: 12, audio: 25, image: null, video: 1268 },
      promptTotal: null,
      output: 9,
      reasoning: 0,
      cached: 0,
      split: true,
    },
  },
};
