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
  oneOf,
  onlyMembers,
  type PartReader,
  totals,
  video,
} from './chat.ts';
import type { Dialect, ErrorFacts, Json, ReplyPlan, Usage } from './dialect.ts';
import { created, eventStreamType, samplePieces, sse, sseDone } from './dialect.ts';
import type { Medium } from './media.ts';
import { MediaProblem, splitDataUri } from './media.ts';

const error = (status: number, message: string, type: string): ErrorFacts => ({ status, message, type });
const wrong = (message: string): ErrorFacts => error(400, message, 'invalid_request_error');

/** Types other than `invalid_request_error` are not documented: assumed. */
const errors: Dialect['errors'] = {
  badRequest: wrong,
  unknownModel: (model) => wrong(`fake: the model ${model} does not exist`),
  limit: error(429, 'fake: rate limit reached', 'rate_limit_error'),
  server: (status) => error(status, 'fake: server error', 'server_error'),
  quota: error(402, 'fake: the account has no balance', 'insufficient_balance'),
  burst: [],
  inputSafety: error(451, 'fake: content check failed', 'censorship_blocked'),
  outputSafety: error(451, 'fake: content check failed', 'censorship_blocked'),
  media: (_fault, message) => wrong(message),
};

const hears = (model: string): boolean => /audio/.test(model);
const sees = (model: string): boolean => /^step-(3\.7-flash|1o-turbo-vision)$/.test(model);
const known =
  /^(step-audio-2(-mini)?|step-1o-audio|step-audio-r1\.[15]|stepaudio-2\.5-chat|step-3\.7-flash|step-1o-turbo-vision)$/;

const readPart = (part: Json, at: string, reader: PartReader): Medium => {
  const { bad, model } = reader;
  const kind = String(part.type);
  onlyMembers(part, `type ${kind}`, at, bad);
  if (kind === 'input_audio') {
    if (sees(model)) bad(`${model} takes no audio`, at);
    const holder = memberObject(part, kind, at, bad);
    onlyMembers(holder, 'data', at, bad);
    const uri = typeof holder.data === 'string' ? splitDataUri(holder.data) : null;
    if (uri === null) throw new MediaProblem('encoding', 'audio is no data URI with base64');
    if (!['audio/mpeg', 'audio/mp3', 'audio/wav'].includes(uri.mime)) {
      throw new MediaProblem('format', 'audio is neither mp3 nor wav');
    }
    return audio(fromBase64(uri.data, 'audio', uri.mime), 25);
  }
  if (kind !== 'image_url' && kind !== 'video_url') return bad(`unknown part type ${kind}`, at);
  if (hears(model)) bad(`${model} takes audio and text only`, at);
  const holder = memberObject(part, kind, at, bad);
  if (typeof holder.url !== 'string') return bad('url is missing', at);
  if (kind === 'video_url') {
    onlyMembers(holder, 'url', at, bad);
    return video(fromUrl(holder.url, 'video', reader).bytes, 1);
  }
  onlyMembers(holder, 'url detail', at, bad);
  oneOf(holder, 'detail', 'low high', bad);
  const uri = splitDataUri(holder.url);
  return image(
    uri === null ? fromUrl(holder.url, 'image', reader).bytes : fromBase64(uri.data, 'image', uri.mime),
  );
};

const usageJson = (usage: Usage, outputSoFar = usage.output): Json => {
  const { prompt } = totals(usage);
  return {
    prompt_tokens: prompt,
    cached_tokens: usage.cached ?? 0,
    completion_tokens: outputSoFar,
    total_tokens: prompt + outputSoFar,
  };
};

const body = ({ message, type }: ErrorFacts): Json => ({
  error: { message, type: type ?? 'invalid_request_error' },
});

/** StepFun. */
export const stepfun: Dialect = {
  name: 'stepfun',
  prefix: '/step/v1',
  key: 'test-step',
  route: chatRoute,
  checkKey: bearerKey(
    ['test-step', 'test-stepfun'],
    error(401, 'fake: incorrect API key provided', 'invalid_api_key'),
  ),
  knows: (model) => known.test(model),
  read: chatReader(
    {
      // Neither seed nor stream_options is documented; the usage comes in every chunk.
      members:
        'stream temperature top_p max_tokens n stop frequency_penalty response_format reasoning_effort modalities audio',
      readPart,
      nullAssistant: true,
      before: ({ body: request, model, bad }) => {
        oneOf(request, 'reasoning_effort', 'low medium high', bad);
        if (request.reasoning_effort !== undefined && hears(model)) {
          bad(`${model} has no reasoning_effort`, 'reasoning_effort');
        }
      },
      thinks: (_request, model) => /^step-(audio-r1|3\.7)/.test(model),
    },
    errors,
  ),
  document: (plan) =>
    JSON.stringify({
      id: plan.id,
      object: 'chat.completion',
      created,
      model: plan.model,
      choices: [{ index: 0, message: messageOf(plan, 'reasoning'), finish_reason: plan.finish ?? '' }],
      ...(plan.usage && { usage: usageJson(plan.usage) }),
    }),
  events: (plan: ReplyPlan) =>
    chatEvents(plan, {
      open: { role: 'assistant', content: '' },
      reasoning: (text) => ({ role: '', reasoning: text }),
      text: (text) => ({ role: '', content: text }),
      last: { role: '', content: '' },
      chunk: (delta, finish, outputSoFar) =>
        sse({
          id: plan.id,
          object: 'chat.completion.chunk',
          created,
          model: plan.model,
          choices: [{ index: 0, delta, finish_reason: finish ?? '' }],
          ...(plan.usage && { usage: usageJson(plan.usage, outputSoFar) }),
        }),
      usage: null,
    }),
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
    id: 'fx-step-1',
    model: 'stepaudio-2.5-chat',
    reasoning: [{ text: 'short thought', outputSoFar: 3 }],
    pieces: samplePieces(6, 12),
    usage: {
      prompt: { text: 15, audio: 25, image: null, video: null },
      promptTotal: null,
      output: 12,
      reasoning: 3,
      cached: 0,
      split: true,
    },
  },
};
