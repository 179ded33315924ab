import type { PartReader } from './chat.ts';
import {
  audio,
  bearerKey,
  chatEvents,
  chatReader,
  chatRoute,
  frames,
  fromBase64,
  fromUrl,
  image,
  memberObject,
  messageOf,
  numberIn,
  oneOf,
  onlyMembers,
  totals,
  video,
} from './chat.ts';
import type { Dialect, ErrorFacts, Json, ReplyPlan, StreamEvent, Usage } from './dialect.ts';
import { created, eventStreamType, Refused, samplePieces, sse, sseDone } from './dialect.ts';
import type { Medium } from './media.ts';
import { MediaProblem, splitDataUri } from './media.ts';

type Family = 'omni-3' | 'omni-3.5' | 'omni-3.8' | 'turbo' | 'vl' | 'plus';

const dated = '(-\\d{4}-\\d{2}-\\d{2})?$';
const families: readonly (readonly [RegExp, Family])[] = [
  [new RegExp(`^qwen3-omni-flash${dated}`), 'omni-3'],
  [new RegExp(`^qwen3\\.5-omni-(plus|flash)${dated}`), 'omni-3.5'],
  [new RegExp(`^qwen3\\.8-omni-flash${dated}`), 'omni-3.8'],
  [new RegExp(`^qwen-omni-turbo${dated}`), 'turbo'],
  [new RegExp(`^qwen3-vl-(plus|flash)${dated}`), 'vl'],
  [new RegExp(`^qwen3\\.7-plus${dated}`), 'plus'],
];
const familyOf = (model: string): Family | null =>
  families.find(([pattern]) => pattern.test(model))?.[1] ?? null;

/** help.aliyun.com model-studio, qwen-omni and visual understanding, Jan-Feb 2026. */
const frameCounts: Record<Family, readonly [number, number]> = {
  'omni-3': [2, 128],
  'omni-3.5': [2, 2048],
  'omni-3.8': [2, 2048],
  turbo: [4, 80],
  vl: [4, 2000],
  plus: [4, 2000],
};
const longestDataUri = 10_485_760;
const mostDataUris = 250;

const error = (
  status: number,
  message: string,
  code: string,
  type = 'invalid_request_error',
): ErrorFacts => ({
  status,
  message,
  code,
  type,
});

const errors: Dialect['errors'] = {
  badRequest: (message) => error(400, message, 'invalid_parameter_error'),
  unknownModel: (model) => error(404, `fake: the model ${model} does not exist`, 'model_not_found'),
  limit: error(429, 'fake: requests rate limit exceeded', 'limit_requests', 'limit_requests'),
  server: (status) => {
    const code = status === 503 ? 'ModelServingError' : 'internal_error';
    return error(status, 'fake: server error', code, code);
  },
  quota: error(429, 'fake: the account is overdue', 'PrepaidBillOverdue', 'PrepaidBillOverdue'),
  burst: [error(429, 'fake: requests grow too fast', 'limit_burst_rate', 'limit_burst_rate')],
  inputSafety: error(
    400,
    'fake: Input data may contain inappropriate content.',
    'data_inspection_failed',
    'data_inspection_failed',
  ),
  outputSafety: {
    ...error(400, 'fake: Output data refused', 'data_inspection_failed', 'data_inspection_failed'),
    requestId: 'fx-ds-16',
  },
  media: (fault, message) =>
    error(
      400,
      message,
      {
        url: 'InvalidURL',
        format: 'InvalidFile.Format',
        size: 'invalid_parameter_error',
        encoding: 'invalid_parameter_error',
      }[fault],
    ),
};

/** URL, data URI, or `oss://` with the header that resolves it. Bare base64 is not a valid URL. */
const reference = (
  value: unknown,
  kind: 'image' | 'video' | 'audio',
  reader: PartReader,
): { bytes: Buffer; seen: boolean } => {
  if (typeof value !== 'string') throw new MediaProblem('encoding', 'media reference is missing');
  if (value.startsWith('oss://')) {
    if (reader.headers['x-dashscope-ossresourceresolve'] !== 'enable') {
      throw new MediaProblem('url', 'oss:// needs the header X-DashScope-OssResourceResolve');
    }
    return { bytes: Buffer.from(value), seen: false };
  }
  if (value.startsWith('data:')) {
    if (value.length > longestDataUri) {
      throw new MediaProblem('size', `a data URI is longer than ${longestDataUri} characters`);
    }
    const uri = splitDataUri(value) ?? { mime: '', data: value };
    return { bytes: fromBase64(uri.data, kind, uri.mime), seen: true };
  }
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(value)) {
    throw new MediaProblem('encoding', 'the media reference is not a valid URL');
  }
  return fromUrl(value, kind, reader);
};

const audioTokens = 13;

const readPart = (part: Json, at: string, reader: PartReader): Medium => {
  const { bad } = reader;
  const family = familyOf(reader.model) ?? 'omni-3.8';
  const fps = (): number => {
    numberIn(part, 'fps', [0.1, 10], bad);
    return (part.fps as number | undefined) ?? 2;
  };
  if (part.type === 'image_url') {
    onlyMembers(part, 'type image_url min_pixels max_pixels', at, bad);
    const { url } = memberObject(part, 'image_url', at, bad);
    return image(reference(url, 'image', reader).bytes);
  }
  if (part.type === 'video') {
    onlyMembers(part, 'type video fps min_pixels max_pixels', at, bad);
    if (!Array.isArray(part.video)) return bad('video is not a list of frames', at);
    const [least, most] = frameCounts[family];
    if (part.video.length < least || part.video.length > most) {
      bad(`${part.video.length} frames, ${reader.model} takes ${least} to ${most}`, at);
    }
    fps();
    return frames(part.video.map((frame: unknown) => reference(frame, 'image', reader).bytes));
  }
  if (part.type === 'video_url') {
    onlyMembers(part, 'type video_url fps min_pixels max_pixels', at, bad);
    // An fps inside video_url is passed over in silence, as by the real one.
    const { url } = memberObject(part, 'video_url', at, bad);
    const rate = fps();
    const heard = family === 'vl' || family === 'plus' ? 0 : audioTokens;
    return video(reference(url, 'video', reader).bytes, rate, heard);
  }
  if (part.type === 'input_audio') {
    if (family === 'vl' || family === 'plus') bad(`${reader.model} takes no audio`, at);
    onlyMembers(part, 'type input_audio', at, bad);
    const sound = memberObject(part, 'input_audio', at, bad);
    onlyMembers(sound, 'data format', at, bad);
    const { bytes, seen } = reference(sound.data, 'audio', reader);
    return audio(bytes, audioTokens, seen);
  }
  return bad(`unknown part type ${String(part.type)}`, at);
};

const dataUris = (messages: unknown): number => {
  if (!Array.isArray(messages)) return 0;
  const isUri = (value: unknown) => typeof value === 'string' && value.startsWith('data:');
  const inPart = (part: Json): unknown[] =>
    Array.isArray(part?.video)
      ? part.video
      : [part?.image_url, part?.video_url, part?.input_audio].flatMap((holder) =>
          holder !== null && typeof holder === 'object' ? Object.values(holder) : [],
        );
  return messages
    .flatMap((message: Json) => (Array.isArray(message?.content) ? message.content : []))
    .flatMap(inPart)
    .filter(isUri).length;
};

const hybridThinks = (body: Json, family: Family | null): boolean => {
  if (family === 'omni-3') return body.enable_thinking === true;
  if (family === 'omni-3.8') return body.reasoning_effort !== 'none' && body.enable_thinking !== false;
  // Hybrids think by default.
  return family === 'vl' || family === 'plus' ? body.enable_thinking !== false : false;
};

const usageJson = (usage: Usage): Json => {
  const { prompt, completion, total } = totals(usage);
  const { text, audio: sound, image: pictures, video: moving } = usage.prompt;
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: total,
    ...(usage.split && {
      prompt_tokens_details: {
        text_tokens: text,
        ...(sound !== null && { audio_tokens: sound }),
        ...(pictures !== null && { image_tokens: pictures }),
        ...(moving !== null && { video_tokens: moving }),
        ...(usage.cached !== null && { cached_tokens: usage.cached }),
      },
    }),
    ...((usage.split || usage.reasoning > 0) && {
      completion_tokens_details: {
        ...(usage.reasoning > 0 && { reasoning_tokens: usage.reasoning }),
        ...(usage.split && { text_tokens: usage.output - usage.reasoning }),
      },
    }),
  };
};

const events = (plan: ReplyPlan): StreamEvent[] => {
  const noThought = plan.reasoning.length > 0 ? { reasoning_content: null } : {};
  const head = {
    id: plan.id,
    object: 'chat.completion.chunk',
    created,
    model: plan.model,
    system_fingerprint: null,
  };
  return chatEvents(plan, {
    open: { role: 'assistant', content: '' },
    reasoning: (text) => ({ content: null, reasoning_content: text }),
    opensWithReasoning: true,
    text: (text) => ({ content: text, ...noThought }),
    last: { content: '', ...noThought },
    chunk: (delta, finish) =>
      sse({ ...head, choices: [{ index: 0, delta, finish_reason: finish, logprobs: null }], usage: null }),
    usage: (usage) => sse({ ...head, choices: [], usage: usageJson(usage) }),
  });
};

const body = ({ message, type, param, code, requestId }: ErrorFacts): Json => ({
  error: { message, type: type ?? 'invalid_request_error', param: param ?? null, code: code ?? null },
  request_id: requestId ?? 'fx-ds-err-1',
});

/** Alibaba Cloud Model Studio, `compatible-mode`. */
export const dashscope: Dialect = {
  name: 'dashscope',
  prefix: '/dashscope/compatible-mode/v1',
  key: 'test-dashscope',
  route: chatRoute,
  checkKey: bearerKey(['test-dashscope'], error(401, 'fake: incorrect API key provided', 'invalid_api_key')),
  knows: (model) => familyOf(model) !== null,
  read: (text, context) => {
    const limit = context.profile.maxBodyBytes;
    return chatReader(
      {
        members: `stream stream_options modalities audio temperature top_p top_k seed max_tokens max_completion_tokens n
          stop presence_penalty frequency_penalty enable_thinking thinking_budget reasoning_effort response_format
          vl_high_resolution_images use_multichannel`,
        readPart,
        before: ({ body: request, model, bad }) => {
          if (limit !== undefined && context.bodyBytes > limit) bad(`the body is larger than ${limit} bytes`);
          const family = familyOf(model);
          numberIn(request, 'seed', [0, 2 ** 31 - 1], bad, true);
          const streamOnly = family === 'omni-3' || family === 'omni-3.5' || family === 'turbo';
          if (streamOnly && request.stream !== true) bad(`${model} supports stream mode only`, 'stream');
          const { modalities = ['text'], enable_thinking: thinking } = request;
          if (!Array.isArray(modalities)) return bad('modalities is not a list', 'modalities');
          const speaks = modalities.includes('audio');
          if (thinking === true && speaks) bad('no audio output while thinking', 'modalities');
          if (speaks && !['omni-3', 'omni-3.5', 'turbo'].includes(family ?? ''))
            bad(`${model} gives text only`, 'modalities');
          if (thinking !== undefined) {
            if (typeof thinking !== 'boolean') bad('enable_thinking is not a boolean', 'enable_thinking');
            if (family === 'omni-3.5' || family === 'turbo') {
              throw new Refused(
                error(
                  400,
                  `fake: ${model} has no enable_thinking`,
                  'InvalidParameter.NotSupportEnableThinking',
                ),
              );
            }
          }
          if (request.reasoning_effort !== undefined) {
            if (family !== 'omni-3.8' && family !== null)
              bad(`${model} has no reasoning_effort`, 'reasoning_effort');
            oneOf(request, 'reasoning_effort', 'none low medium high xhigh max', bad);
            if (request.thinking_budget !== undefined) {
              bad('reasoning_effort and thinking_budget exclude each other', 'thinking_budget');
            }
          }
          if (dataUris(request.messages) > mostDataUris)
            bad(`more than ${mostDataUris} data URIs`, 'messages');
        },
        after: ({ body: request, model, bad }, media, texts) => {
          const family = familyOf(model);
          if (family === 'omni-3' || family === 'turbo') {
            for (const ofMessage of media) {
              const kinds = new Set(ofMessage.map(({ kind }) => (kind === 'frames' ? 'video' : kind)));
              if (kinds.size > 1) bad(`${model} takes one kind of media in a message`, 'messages');
              if (ofMessage.length > 1 && !kinds.has('image')) {
                bad(`${model} takes one ${[...kinds][0]} in a message`, 'messages');
              }
            }
          }
          const format = request.response_format as Json | undefined;
          if (format?.type === 'json_object') {
            if (!texts.some((part) => /json/i.test(part)))
              bad("'messages' must contain the word 'json' in some form", 'messages');
            if (hybridThinks(request, family)) bad('JSON mode needs thinking off', 'response_format');
          }
        },
        thinks: (request, model) => hybridThinks(request, familyOf(model)),
      },
      errors,
    )(text, context);
  },
  document: (plan) =>
    JSON.stringify({
      id: plan.id,
      object: 'chat.completion',
      created,
      model: plan.model,
      system_fingerprint: null,
      choices: [
        {
          index: 0,
          message: messageOf(plan, 'reasoning_content'),
          finish_reason: plan.finish,
          logprobs: null,
        },
      ],
      ...(plan.usage && { usage: usageJson(plan.usage) }),
    }),
  events,
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
    id: 'fx-ds-1',
    model: 'qwen3.8-omni-flash',
    reasoning: [],
    pieces: samplePieces(4, 9),
    usage: {
      prompt: { text: 12, audio: 13, image: null, video: 1280 },
      promptTotal: null,
      output: 9,
      reasoning: 0,
      cached: 0,
      split: true,
    },
  },
};
