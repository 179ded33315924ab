import {
  audio,
  bearerKey,
  chatReader,
  chatRoute,
  frames,
  fromBase64,
  fromUrl,
  image,
  memberObject,
  onlyMembers,
  type PartReader,
  video,
} from './chat.ts';
import type { Dialect, ErrorFacts, Json, Profile } from './dialect.ts';
import { eventStreamType, isObject, sse, sseDone } from './dialect.ts';
import type { Medium } from './media.ts';
import { MediaProblem, splitDataUri } from './media.ts';
import {
  isLocalModel,
  selfHostedDocument,
  selfHostedEvents,
  selfHostedSample,
  templateThinks,
} from './self-hosted.ts';

const types: Record<number, string> = {
  400: 'BadRequestError',
  401: 'Unauthorized',
  404: 'NotFoundError',
  429: 'TooManyRequestsError',
  503: 'ServiceUnavailableError',
};
const error = (status: number, message: string, param: string | null = null): ErrorFacts => ({
  status,
  message,
  code: status,
  param,
  type: types[status] ?? 'InternalServerError',
});

const errors: Dialect['errors'] = {
  badRequest: (message) => error(400, message),
  unknownModel: (model) => error(404, `fake: the model \`${model}\` does not exist.`, 'model'),
  limit: error(429, 'fake: too many requests'),
  server: (status) => error(status, 'fake: internal server error'),
  quota: null,
  burst: [],
  inputSafety: null,
  outputSafety: null,
  media: (_fault, message) => error(400, message),
};

const urlOf = (part: Json, kind: string, at: string, { bad }: PartReader): string => {
  onlyMembers(part, `type ${kind} uuid`, at, bad);
  const { url } = memberObject(part, kind, at, bad);
  return typeof url === 'string' ? url : bad('url is missing', at);
};

const fpsOf = (body: Json): number => {
  const kwargs = isObject(body.mm_processor_kwargs) ? body.mm_processor_kwargs : {};
  return typeof kwargs.fps === 'number' ? kwargs.fps : 1;
};

const readPart = (part: Json, at: string, reader: PartReader): Medium => {
  const { bad } = reader;
  const kind = String(part.type);
  if (kind === 'input_audio') {
    onlyMembers(part, 'type input_audio uuid', at, bad);
    const holder = memberObject(part, kind, at, bad);
    if (typeof holder.format !== 'string') bad('format is missing', at);
    return audio(fromBase64(holder.data as string, 'audio', `audio/${holder.format}`), 25);
  }
  if (!['image_url', 'video_url', 'audio_url'].includes(kind)) {
    return bad(
      `unknown part type: ${kind}; supported are text, image_url, video_url, audio_url, input_audio`,
      at,
    );
  }
  const url = urlOf(part, kind, at, reader);
  const uri = splitDataUri(url);
  if (url.startsWith('data:') && (uri === null || uri.mime === '')) {
    throw new MediaProblem('encoding', 'not a data URL with type and base64');
  }
  const local = (medium: 'image' | 'video' | 'audio') => fromUrl(url, medium, reader, false);
  if (kind === 'image_url')
    return image(uri ? fromBase64(uri.data, 'image', uri.mime) : local('image').bytes);
  if (kind === 'audio_url') {
    const found = uri ? { bytes: fromBase64(uri.data, 'audio', uri.mime), seen: true } : local('audio');
    return audio(found.bytes, 25, found.seen);
  }
  if (uri?.mime === 'video/jpeg') {
    return frames(uri.data.split(',').map((frame) => fromBase64(frame, 'image', 'image/jpeg')));
  }
  return video(uri ? fromBase64(uri.data, 'video', uri.mime) : local('video').bytes, fpsOf(reader.body));
};

const body = (facts: ErrorFacts, profile?: Profile): Json => {
  const { message, type, param, code, status } = facts;
  const members = { message, type: type ?? 'BadRequestError', param: param ?? null, code: code ?? status };
  return profile?.errorShape === 'old' ? { object: 'error', ...members } : { error: members };
};

/** Media of the whole history that one request may hold unless the profile says otherwise. */
const usualLimit = 8;

/** vLLM's OpenAI-compatible server. */
export const vllm: Dialect = {
  name: 'vllm',
  prefix: '/vllm/v1',
  key: 'test-vllm',
  route: chatRoute,
  checkKey: bearerKey(['test-vllm'], error(401, 'Unauthorized')),
  knows: isLocalModel,
  read: chatReader(
    {
      members: `stream stream_options temperature top_p top_k min_p repetition_penalty presence_penalty
        frequency_penalty seed max_tokens max_completion_tokens min_tokens n stop stop_token_ids ignore_eos
        reasoning_effort response_format structured_outputs guided_json guided_choice guided_regex
        mm_processor_kwargs media_io_kwargs chat_template_kwargs chat_template add_generation_prompt
        continue_final_message skip_special_tokens include_reasoning logprobs top_logprobs logit_bias priority
        request_id modalities user`,
      readPart,
      after: ({ profile, bad }, media) => {
        const counts = { image: 0, video: 0, audio: 0 };
        for (const { kind } of media.flat()) counts[kind === 'frames' ? 'video' : kind] += 1;
        for (const kind of ['image', 'video', 'audio'] as const) {
          const limit = profile.limitPerPrompt?.[kind] ?? usualLimit;
          if (counts[kind] > limit) bad(`At most ${limit} ${kind}(s) may be provided in one prompt.`, null);
        }
      },
      thinks: templateThinks,
    },
    errors,
  ),
  document: (plan) => selfHostedDocument(plan, { choice: { stop_reason: null } }),
  events: selfHostedEvents,
  contentType: { document: 'application/json', stream: eventStreamType },
  replyHeaders: {},
  error: (facts, profile) => ({
    status: facts.status,
    headers: { ...facts.headers },
    // The check of the key is a layer of its own in front of the server.
    body: JSON.stringify(facts.status === 401 ? { error: 'Unauthorized' } : body(facts, profile)),
  }),
  streamError: (facts) => sse(body(facts)),
  streamEnd: sseDone,
  errors,
  sample: selfHostedSample('chatcmpl-fx-vllm-1'),
};
