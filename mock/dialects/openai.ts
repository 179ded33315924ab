import {
  audio,
  bearerKey,
  chatEvents,
  chatReader,
  fromBase64,
  fromUrl,
  image,
  memberObject,
  messageOf,
  oneOf,
  onlyMembers,
  orRefusedMedium,
  type PartReader,
  promptTokensOf,
  refuser,
  totals,
} from './chat.ts';
import type { Dialect, ErrorFacts, Json, ReadContext, ReadRequest, ReplyPlan, Usage } from './dialect.ts';
import {
  characters,
  created,
  eventStreamType,
  isObject,
  pieceText,
  Refused,
  samplePieces,
  sse,
  sseDone,
} from './dialect.ts';
import type { Medium } from './media.ts';
import { splitDataUri } from './media.ts';

const types: Record<number, string> = { 429: 'requests', 500: 'server_error', 503: 'service_unavailable' };
const error = (
  status: number,
  message: string,
  code: string | undefined,
  param: string | null = null,
  type = types[status] ?? (status >= 500 ? 'server_error' : 'invalid_request_error'),
): ErrorFacts => ({ status, message, code, param, type });

const unknownModel = (model: string): ErrorFacts =>
  error(404, `fake: the model ${model} does not exist`, 'model_not_found', 'model');

const errors: Dialect['errors'] = {
  badRequest: (message, param) => error(400, message, 'invalid_value', param),
  unknownModel,
  limit: error(429, 'fake: rate limit reached for requests', 'rate_limit_exceeded'),
  server: (status) => error(status, 'fake: the server had an error', undefined),
  quota: error(
    429,
    'fake: you exceeded your current quota, please check your plan and billing details',
    'insufficient_quota',
    null,
    'insufficient_quota',
  ),
  burst: [],
  inputSafety: error(400, 'fake: the input was refused', 'content_policy_violation'),
  outputSafety: error(400, 'fake: the output was refused', 'content_filter'),
  media: (fault, message, param) =>
    error(400, message, fault === 'url' ? 'invalid_image_url' : 'invalid_value', param),
};

const isAudioModel = (model: string): boolean => /^(gpt-audio|gpt-4o(-mini)?-audio)/.test(model);
const isReasoning = (model: string): boolean => /^gpt-5/.test(model);
const known =
  /^(gpt-audio(-mini)?(-\d{4}-\d{2}-\d{2})?|gpt-4o(-mini)?-audio-preview|gpt-4o(-mini)?|gpt-4\.1(-mini|-nano)?|gpt-5(\.\d)?(-mini|-nano|-pro)?(-\d{4}-\d{2}-\d{2})?)$/;

const pictureOf = (url: unknown, reader: Pick<PartReader, 'fetched'>, bad: () => never): Medium => {
  if (typeof url !== 'string') return bad();
  const uri = splitDataUri(url);
  return image(uri === null ? fromUrl(url, 'image', reader).bytes : fromBase64(uri.data, 'image', uri.mime));
};

const readPart = (part: Json, at: string, reader: PartReader): Medium => {
  const { bad } = reader;
  if (part.type === 'image_url') {
    onlyMembers(part, 'type image_url', at, bad);
    const holder = memberObject(part, 'image_url', at, bad);
    onlyMembers(holder, 'url detail', at, bad);
    oneOf(holder, 'detail', 'auto low high original', bad);
    return pictureOf(holder.url, reader, () => bad('url is missing', at));
  }
  if (part.type === 'input_audio') {
    if (!isAudioModel(reader.model) && known.test(reader.model)) bad(`${reader.model} takes no audio`, at);
    onlyMembers(part, 'type input_audio', at, bad);
    const holder = memberObject(part, 'input_audio', at, bad);
    onlyMembers(holder, 'data format', at, bad);
    oneOf(holder, 'format', 'wav mp3', bad);
    if (holder.format === undefined) bad('format is missing', at);
    return audio(fromBase64(holder.data as string, 'audio', `audio/${holder.format}`), 25);
  }
  return bad(`unknown part type ${String(part.type)}`, at);
};

const efforts = 'none minimal low medium high xhigh max';

const chat = chatReader(
  {
    members: `stream stream_options modalities audio max_completion_tokens max_tokens temperature top_p seed n stop
      frequency_penalty presence_penalty reasoning_effort response_format logprobs top_logprobs logit_bias metadata
      store user safety_identifier prompt_cache_key service_tier verbosity`,
    developer: true,
    readPart,
    before: ({ body, model, bad }) => {
      oneOf(body, 'reasoning_effort', efforts, bad);
      if (isReasoning(model)) {
        if (body.max_tokens !== undefined) {
          throw new Refused(
            error(
              400,
              'fake: max_tokens is not supported, use max_completion_tokens',
              'unsupported_parameter',
              'max_tokens',
            ),
          );
        }
        if (body.temperature !== undefined && body.temperature !== 1) {
          throw new Refused(
            error(400, 'fake: only the default temperature is supported', 'unsupported_value', 'temperature'),
          );
        }
      }
      if (isAudioModel(model) && body.reasoning_effort !== undefined) {
        throw new Refused(
          error(400, 'fake: reasoning_effort is not supported', 'unsupported_parameter', 'reasoning_effort'),
        );
      }
      const format = body.response_format;
      if (isObject(format) && isObject(format.json_schema) && format.json_schema.strict === true) {
        checkStrict(format.json_schema.schema, bad);
      }
    },
    after: ({ body, model, bad }, media) => {
      if (!isAudioModel(model)) return;
      const heard = media.flat().some(({ kind }) => kind === 'audio');
      const spoken = Array.isArray(body.modalities) && body.modalities.includes('audio');
      if (!heard && !spoken) bad(`${model} needs audio in or out`, 'messages');
    },
    thinks: (body, model) => isReasoning(model) && body.reasoning_effort !== 'none',
  },
  errors,
);

/** Strict schemas close every object and require every member. */
const checkStrict = (schema: unknown, bad: PartReader['bad']): void => {
  if (!isObject(schema)) return;
  if (schema.type === 'object') {
    const properties = isObject(schema.properties) ? schema.properties : {};
    const required = Array.isArray(schema.required) ? schema.required : [];
    if (
      schema.additionalProperties !== false ||
      Object.keys(properties).some((key) => !required.includes(key))
    ) {
      bad('a strict schema closes its objects and requires all members', 'response_format');
    }
    for (const property of Object.values(properties)) checkStrict(property, bad);
  }
  checkStrict(schema.items, bad);
};

/** The part of the Responses API that judges need: text and images in, one message out, no stream. */
const responses = (text: string, context: ReadContext): ReadRequest => {
  const bad: PartReader['bad'] = refuser(errors);
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    bad('the body is not JSON');
  }
  if (!isObject(body)) return bad('the body is not a JSON object');
  const { model, input } = body;
  if (typeof model !== 'string') return bad('model is missing', 'model');
  if (!context.hasModel(model)) throw new Refused(unknownModel(model));
  onlyMembers(
    body,
    'model input instructions max_output_tokens reasoning text store metadata stream',
    '',
    bad,
  );
  if (body.stream === true) bad('the fake does not stream responses', 'stream');
  const items = typeof input === 'string' ? [{ role: 'user', content: input }] : input;
  if (!Array.isArray(items) || items.length === 0) return bad('input is empty', 'input');
  const media: Medium[] = [];
  const texts: string[] = typeof body.instructions === 'string' ? [body.instructions] : [];
  let turns = 0;
  let last: string[] = [];
  for (const [index, item] of items.entries()) {
    const at = `input[${index}]`;
    if (!isObject(item)) return bad('an item is not an object', at);
    if (item.role === 'user') turns += 1;
    const parts =
      typeof item.content === 'string' ? [{ type: 'input_text', text: item.content }] : item.content;
    if (!Array.isArray(parts)) return bad('content is empty', at);
    last = [];
    for (const part of parts as Json[]) {
      const isText = part.type === 'input_text' || part.type === 'output_text';
      if (isText && typeof part.text === 'string') last.push(part.text);
      else if (part.type === 'input_image') {
        media.push(
          orRefusedMedium(errors, at, () =>
            pictureOf(part.image_url, context, () => bad('image_url is missing', at)),
          ),
        );
      } else bad(`unknown part type ${String(part.type)}`, at);
    }
    texts.push(...last);
  }
  const format = isObject(body.text) && isObject(body.text.format) ? body.text.format : {};
  return {
    model,
    stream: false,
    includeUsage: true,
    maxTokens: (body.max_output_tokens as number | undefined) ?? null,
    messages: [{ role: 'user', content: last.join('\n') }],
    userTurns: turns,
    lastText: last.join('\n'),
    lastPart: last.at(-1) ?? '',
    prompt: promptTokensOf(characters(texts.join('')), media),
    media,
    thinks: isReasoning(model) && !(isObject(body.reasoning) && body.reasoning.effort === 'none'),
    answerSchema: isObject(format.schema) ? format.schema : null,
    obfuscates: false,
    operation: 'responses',
  };
};

const usageJson = (usage: Usage): Json => {
  const { prompt, completion, total } = totals(usage);
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: total,
    ...(usage.split && {
      prompt_tokens_details: {
        cached_tokens: usage.cached ?? 0,
        ...(usage.prompt.audio !== null && { audio_tokens: usage.prompt.audio }),
        text_tokens: prompt - (usage.prompt.audio ?? 0),
      },
      completion_tokens_details: {
        reasoning_tokens: usage.reasoning,
        audio_tokens: 0,
        accepted_prediction_tokens: 0,
        rejected_prediction_tokens: 0,
      },
    }),
  };
};

const responsesDocument = (plan: ReplyPlan): string => {
  const isCut = plan.finish === 'length' || plan.finish === 'content_filter';
  const status = isCut ? 'incomplete' : 'completed';
  return JSON.stringify({
    id: plan.id,
    object: 'response',
    created_at: created,
    status,
    incomplete_details: isCut
      ? { reason: plan.finish === 'length' ? 'max_output_tokens' : 'content_filter' }
      : null,
    error: null,
    model: plan.model,
    output: [
      {
        type: 'message',
        id: plan.id.replace(/^resp_/, 'msg_'),
        role: 'assistant',
        status,
        content: [
          plan.refusal === null
            ? { type: 'output_text', text: pieceText(plan.pieces), annotations: [] }
            : { type: 'refusal', refusal: plan.refusal },
        ],
      },
    ],
    ...(plan.usage && {
      usage: {
        input_tokens: totals(plan.usage).prompt,
        input_tokens_details: { cached_tokens: plan.usage.cached ?? 0, cache_write_tokens: 0 },
        output_tokens: plan.usage.output,
        output_tokens_details: { reasoning_tokens: plan.usage.reasoning },
        total_tokens: totals(plan.usage).total,
      },
    }),
  });
};

/** Random in the real one; here a fixed round, so that bytes can be compared. */
const padding = ['kQ', 'z8Lm', 'p', 'y1'];

const body = ({ message, type, param, code }: ErrorFacts): Json => ({
  error: { message, type: type ?? 'invalid_request_error', param: param ?? null, code: code ?? null },
});

/** OpenAI: Chat Completions, and Responses without streams. */
export const openai: Dialect = {
  name: 'openai',
  prefix: '/openai/v1',
  key: 'test-openai',
  route: (method, path) => {
    if (method !== 'POST') return null;
    if (path === '/chat/completions') return { operation: 'chat' };
    return path === '/responses' ? { operation: 'responses' } : null;
  },
  checkKey: bearerKey(['test-openai'], error(401, 'fake: incorrect API key provided', 'invalid_api_key')),
  knows: (model) => known.test(model),
  read: (text, context) => (context.route.operation === 'responses' ? responses : chat)(text, context),
  document: (plan) =>
    plan.operation === 'responses'
      ? responsesDocument(plan)
      : JSON.stringify({
          id: plan.id,
          object: 'chat.completion',
          created,
          model: plan.model,
          choices: [
            {
              index: 0,
              // Reasoning is never told, only counted.
              message: { ...messageOf({ ...plan, reasoning: [] }, ''), refusal: plan.refusal },
              logprobs: null,
              finish_reason: plan.finish,
            },
          ],
          ...(plan.usage && { usage: usageJson(plan.usage) }),
        }),
  events: (plan) => {
    let chunks = 0;
    const head = {
      id: plan.id,
      object: 'chat.completion.chunk',
      created,
      model: plan.model,
      service_tier: 'default',
      system_fingerprint: 'fp_fake',
    };
    return chatEvents(
      { ...plan, reasoning: [] },
      {
        open: { role: 'assistant', content: '', refusal: null },
        reasoning: () => ({}),
        text: (text) => ({ content: text }),
        last: {},
        chunk: (delta, finish) => {
          chunks += 1;
          return sse({
            ...head,
            choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
            ...(plan.includeUsage && { usage: null }),
            ...(plan.obfuscates && { obfuscation: padding[(chunks - 1) % padding.length] }),
          });
        },
        usage: (usage) => sse({ ...head, choices: [], usage: usageJson(usage) }),
      },
    );
  },
  contentType: { document: 'application/json', stream: eventStreamType },
  replyHeaders: {
    'x-request-id': 'fx-oai-1',
    'x-ratelimit-remaining-requests': '59',
    'x-ratelimit-reset-requests': '1s',
  },
  error: (facts) => ({
    status: facts.status,
    headers: { 'x-request-id': 'fx-oai-err-1', ...facts.headers },
    body: JSON.stringify(body(facts)),
  }),
  streamError: (facts) => sse(body(facts)),
  streamEnd: sseDone,
  errors,
  sample: {
    id: 'fx-oai-1',
    model: 'gpt-audio-mini-2026-01-01',
    reasoning: [],
    pieces: samplePieces(4, 9),
    usage: {
      prompt: { text: 12, audio: 25, image: null, video: null },
      promptTotal: null,
      output: 9,
      reasoning: 0,
      cached: 0,
      split: true,
    },
  },
};
