import {
  audio,
  bearerKey,
  chatReader,
  chatRoute,
  fromBase64,
  fromUrl,
  image,
  memberObject,
  oneOf,
  onlyMembers,
  type PartReader,
  video,
} from './chat.ts';
import type { Dialect, ErrorFacts, Json } from './dialect.ts';
import { eventStreamType, sse, sseDone } from './dialect.ts';
import type { Medium } from './media.ts';
import { splitDataUri } from './media.ts';
import {
  isLocalModel,
  selfHostedDocument,
  selfHostedEvents,
  selfHostedSample,
  templateThinks,
} from './self-hosted.ts';

const types: Record<number, string> = {
  400: 'BadRequestError',
  404: 'NotFoundError',
  429: 'TooManyRequestsError',
};
const error = (status: number, message: string): ErrorFacts => ({
  status,
  message,
  code: status,
  type: types[status] ?? 'InternalServerError',
});

const errors: Dialect['errors'] = {
  badRequest: (message) => error(400, message),
  unknownModel: (model) => error(404, `fake: the model ${model} does not exist`),
  limit: error(429, 'fake: the request queue is full'),
  server: (status) => error(status, 'fake: internal error'),
  quota: null,
  burst: [],
  inputSafety: null,
  outputSafety: null,
  media: (_fault, message) => error(400, message),
};

const readPart = (part: Json, at: string, reader: PartReader): Medium => {
  const { bad } = reader;
  const kind = String(part.type);
  if (kind === 'input_audio' && reader.profile.inputAudio) {
    onlyMembers(part, 'type input_audio', at, bad);
    const holder = memberObject(part, kind, at, bad);
    if (typeof holder.format !== 'string') bad('format is missing', at);
    return audio(fromBase64(holder.data as string, 'audio', `audio/${holder.format}`), 25);
  }
  if (!['image_url', 'video_url', 'audio_url'].includes(kind)) return bad(`unknown part type ${kind}`, at);
  onlyMembers(part, kind === 'image_url' ? `type ${kind} modalities` : `type ${kind}`, at, bad);
  const holder = memberObject(part, kind, at, bad);
  onlyMembers(holder, kind === 'video_url' ? 'url max_dynamic_patch' : 'url detail', at, bad);
  if (typeof holder.url !== 'string') return bad('url is missing', at);
  const uri = splitDataUri(holder.url);
  const medium = kind.slice(0, -'_url'.length) as 'image' | 'video' | 'audio';
  const { bytes, seen } = uri
    ? { bytes: fromBase64(uri.data, medium, uri.mime), seen: true }
    : fromUrl(holder.url, medium, reader, false);
  if (medium === 'audio') return audio(bytes, 25, seen);
  // No rate of frames can be asked for in a request.
  return medium === 'image' ? image(bytes) : video(bytes, 1);
};

/** Members lie at the top, not in `error`. */
const body = ({ message, type, code, status, param }: ErrorFacts): Json => ({
  object: 'error',
  message,
  type: type ?? 'BadRequestError',
  param: param ?? null,
  code: code ?? status,
});

/** SGLang's OpenAI-compatible server. */
export const sglang: Dialect = {
  name: 'sglang',
  prefix: '/sglang/v1',
  key: 'test-sglang',
  route: chatRoute,
  checkKey: bearerKey(['test-sglang'], error(401, 'Unauthorized')),
  knows: isLocalModel,
  read: chatReader(
    {
      members: `stream stream_options temperature top_p top_k min_p repetition_penalty presence_penalty
        frequency_penalty seed max_tokens max_completion_tokens min_tokens n stop stop_token_ids ignore_eos
        reasoning_effort response_format chat_template_kwargs use_audio_in_video separate_reasoning
        stream_reasoning skip_special_tokens logprobs top_logprobs logit_bias user`,
      readPart,
      before: ({ body: request, bad }) => oneOf(request, 'reasoning_effort', 'none low medium high', bad),
      thinks: (request, model) => request.reasoning_effort !== 'none' && templateThinks(request, model),
    },
    errors,
  ),
  document: (plan) => selfHostedDocument(plan, { choice: { matched_stop: null } }),
  events: (plan, profile) =>
    selfHostedEvents(plan, profile, {
      choice: (finish) => ({ matched_stop: finish === 'stop' ? 151_645 : null }),
    }),
  contentType: { document: 'application/json', stream: eventStreamType },
  replyHeaders: {},
  error: (facts) => ({
    status: facts.status,
    headers: { ...facts.headers },
    body: JSON.stringify(facts.status === 401 ? { error: 'Unauthorized' } : body(facts)),
  }),
  streamError: ({ status, message, type, code }) =>
    sse({ error: { message, type: type ?? 'InternalServerError', param: null, code: code ?? status } }),
  streamEnd: sseDone,
  errors,
  sample: selfHostedSample('chatcmpl-fx-sglang-1'),
};
