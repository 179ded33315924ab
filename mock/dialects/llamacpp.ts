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
import { eventStreamType, Refused, sse, sseDone } from './dialect.ts';
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
  400: 'invalid_request_error',
  401: 'authentication_error',
  404: 'not_found_error',
  429: 'rate_limit_error',
  503: 'unavailable_error',
};
const error = (status: number, message: string): ErrorFacts => ({
  status,
  message,
  code: status,
  type: types[status] ?? 'server_error',
});

const errors: Dialect['errors'] = {
  badRequest: (message) => error(400, message),
  unknownModel: (model) => error(404, `fake: the model ${model} does not exist`),
  limit: error(429, 'fake: no slot is free'),
  server: (status) => error(status, 'fake: server error'),
  quota: null,
  burst: [],
  inputSafety: null,
  outputSafety: null,
  media: (_fault, message) => error(400, message),
};

const readPart = (part: Json, at: string, reader: PartReader): Medium => {
  const { bad, profile } = reader;
  const kind = String(part.type);
  const takes = ['image_url', 'input_audio', ...(profile.inputVideo === false ? [] : ['input_video'])];
  if (!takes.includes(kind)) return bad('unsupported content[].type', at);
  if (profile.mmproj === false) {
    throw new Refused(
      error(
        500,
        `fake: ${kind === 'input_audio' ? 'audio' : 'image'} input is not supported - provide the mmproj`,
      ),
    );
  }
  onlyMembers(part, `type ${kind}`, at, bad);
  const holder = memberObject(part, kind, at, bad);
  if (kind === 'input_audio') {
    oneOf(holder, 'format', 'wav mp3', bad);
    if (holder.format === undefined) bad('format is missing', at);
    return audio(fromBase64(holder.data as string, 'audio', `audio/${holder.format}`), 25);
  }
  if (kind === 'input_video') return video(fromBase64(holder.data as string, 'video'), 1);
  if (typeof holder.url !== 'string') return bad('url is missing', at);
  const uri = splitDataUri(holder.url);
  return image(
    uri ? fromBase64(uri.data, 'image', uri.mime) : fromUrl(holder.url, 'image', reader, false).bytes,
  );
};

const timings = { prompt_n: 1305, prompt_ms: 12.5, predicted_n: 9, predicted_ms: 45.0 };

const body = ({ message, type, code, status }: ErrorFacts): Json => ({
  error: { code: code ?? status, message, type: type ?? 'server_error' },
});

/** llama.cpp's server. */
export const llamacpp: Dialect = {
  name: 'llamacpp',
  prefix: '/llamacpp/v1',
  key: 'test-llamacpp',
  route: chatRoute,
  checkKey: bearerKey(['test-llamacpp'], error(401, 'Invalid API Key')),
  knows: isLocalModel,
  read: chatReader(
    {
      members: `stream stream_options temperature top_p top_k min_p repeat_penalty presence_penalty frequency_penalty
        seed max_tokens max_completion_tokens n_predict n stop ignore_eos response_format json_schema grammar
        chat_template_kwargs reasoning_format reasoning_budget thinking_budget_tokens cache_prompt id_slot
        timings_per_token logprobs top_logprobs logit_bias user`,
      readPart,
      thinks: templateThinks,
    },
    errors,
  ),
  document: (plan) => selfHostedDocument(plan, { document: { timings } }),
  events: (plan, profile) => selfHostedEvents(plan, profile, { choice: () => ({}), usage: { timings } }),
  contentType: { document: 'application/json; charset=utf-8', stream: eventStreamType },
  replyHeaders: {},
  error: (facts) => ({
    status: facts.status,
    headers: { ...facts.headers },
    body: JSON.stringify(body(facts)),
  }),
  streamError: (facts) => sse(body(facts)),
  streamEnd: sseDone,
  errors,
  sample: selfHostedSample('chatcmpl-fx-llamacpp-1'),
};
