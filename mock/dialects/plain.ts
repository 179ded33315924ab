import { BadRequest, createClipReader, readChatRequest } from '../wire.ts';
import { chatEvents, chatRoute } from './chat.ts';
import type { Dialect, ErrorFacts, Json, ReplyPlan, Usage } from './dialect.ts';
import {
  created,
  eventStreamType,
  pieceText,
  promptSum,
  Refused,
  samplePieces,
  sse,
  sseDone,
} from './dialect.ts';

const types: Record<number, string> = {
  401: 'authentication_error',
  403: 'permission_error',
  429: 'rate_limit_error',
};

const body = ({ status, message, type, code, param }: ErrorFacts): Json => ({
  error: {
    message,
    type: type ?? types[status] ?? (status >= 500 ? 'server_error' : 'invalid_request_error'),
    param: param ?? null,
    code: code ?? null,
  },
});

const badRequest = (message: string, param: string | null): ErrorFacts => ({
  status: 400,
  message,
  code: 'invalid_value',
  param,
});

const usageJson = (usage: Usage): Json => {
  const prompt = promptSum(usage);
  const { text, audio, video } = usage.prompt;
  return {
    prompt_tokens: prompt,
    completion_tokens: usage.output,
    total_tokens: prompt + usage.output,
    prompt_tokens_details: {
      text_tokens: text,
      ...(audio !== null && { audio_tokens: audio }),
      ...(video !== null && { video_tokens: video }),
      cached_tokens: 0,
    },
  };
};

/**
 * OpenAI's format with the media parts of vLLM, without a key and with any model: for the demo, benchmarks and
 * tests that are not about a provider. Clips are remembered by their base64, since histories repeat them.
 */
export const createPlainDialect = (): Dialect => {
  const readClip = createClipReader();
  return {
    name: 'plain',
    prefix: '/v1',
    key: null,
    route: chatRoute,
    checkKey: () => null,
    knows: () => false,
    read: (text, context) => {
      let request: ReturnType<typeof readChatRequest>;
      try {
        request = readChatRequest(text, readClip);
      } catch (error) {
        if (!(error instanceof BadRequest)) throw error;
        throw new Refused(badRequest(error.message, error.param));
      }
      const { model, audioParts, audioBytes, videoParts } = request;
      if (!context.hasModel(model)) {
        throw new Refused({
          status: 404,
          message: `the model ${model} does not exist`,
          code: 'model_not_found',
          param: 'model',
        });
      }
      return {
        ...request,
        userTurns: request.messages.filter(({ role }) => role === 'user').length,
        lastPart: request.lastText,
        prompt: {
          text: Math.ceil(request.textChars / 4),
          // 16 kHz mono WAV: 32,000 bytes and 25 tokens a second.
          audio: audioParts > 0 ? Math.ceil(audioBytes / 1280) : null,
          video: videoParts > 0 ? 640 * videoParts : null,
          image: null,
        },
        media: null,
        thinks: false,
        answerSchema: null,
        obfuscates: false,
        operation: 'chat',
      };
    },
    document: (plan) =>
      JSON.stringify({
        id: plan.id,
        object: 'chat.completion',
        created,
        model: plan.model,
        choices: [
          {
            index: 0,
            message: {
              role: 'assistant',
              content: plan.refusal === null ? pieceText(plan.pieces) : null,
              refusal: plan.refusal,
            },
            logprobs: null,
            finish_reason: plan.finish,
          },
        ],
        ...(plan.usage && { usage: usageJson(plan.usage) }),
      }),
    events: (plan: ReplyPlan) => {
      const head = { id: plan.id, object: 'chat.completion.chunk', created, model: plan.model };
      return chatEvents(plan, {
        open: { role: 'assistant', content: '' },
        reasoning: (text) => ({ reasoning_content: text }),
        text: (text) => ({ content: text }),
        last: {},
        chunk: (delta, finish) =>
          sse({
            ...head,
            choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
            usage: null,
          }),
        usage: (usage) => sse({ ...head, choices: [], usage: usageJson(usage) }),
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
    errors: {
      badRequest,
      unknownModel: (model) => ({ status: 404, message: `the model ${model} does not exist` }),
      limit: { status: 429, message: 'too many requests at once', code: 'rate_limit_exceeded' },
      server: (status) => ({ status, message: 'server error' }),
      quota: { status: 429, message: 'the quota is used up', code: 'insufficient_quota' },
      burst: [],
      inputSafety: { status: 400, message: 'the input was refused', code: 'content_policy_violation' },
      outputSafety: { status: 400, message: 'the output was refused', code: 'content_filter' },
      media: (_fault, message, param) => badRequest(message, param),
    },
    sample: {
      id: 'mock-1',
      model: 'm',
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
};
