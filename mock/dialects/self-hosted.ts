import { chatEvents, messageOf, totals } from './chat.ts';
import type { Dialect, Json, Profile, ReplyPlan, StreamEvent, Usage } from './dialect.ts';
import { created, samplePieces, sse } from './dialect.ts';

/** No split by kind, in the order of vLLM's own model. */
export const plainUsage = (usage: Usage): Json => {
  const { prompt, completion, total } = totals(usage);
  return { prompt_tokens: prompt, total_tokens: total, completion_tokens: completion };
};

/** Chunks of vLLM; SGLang and llama.cpp add members of their own to the choice, the last chunk and the usage. */
export const selfHostedEvents = (
  plan: ReplyPlan,
  profile: Profile,
  more: { choice?: (finish: string | null) => Json; usage?: Json } = {},
): StreamEvent[] => {
  const head = { id: plan.id, object: 'chat.completion.chunk', created, model: plan.model };
  const key = profile.reasoningKey ?? 'reasoning_content';
  return chatEvents(plan, {
    open: { role: 'assistant', content: '' },
    reasoning: (text) => ({ [key]: text }),
    text: (text) => ({ content: text }),
    last: { content: '' },
    chunk: (delta, finish) =>
      sse({
        ...head,
        choices: [
          {
            index: 0,
            delta,
            logprobs: null,
            finish_reason: finish,
            ...(more.choice?.(finish) ?? { token_ids: null }),
          },
        ],
      }),
    usage: (usage) => sse({ ...head, choices: [], usage: plainUsage(usage), ...more.usage }),
  });
};

export const selfHostedDocument = (plan: ReplyPlan, more: { choice?: Json; document?: Json } = {}): string =>
  JSON.stringify({
    id: plan.id,
    object: 'chat.completion',
    created,
    model: plan.model,
    choices: [
      {
        index: 0,
        message: messageOf(plan, 'reasoning_content'),
        logprobs: null,
        finish_reason: plan.finish,
        ...more.choice,
      },
    ],
    ...(plan.usage && { usage: plainUsage(plan.usage) }),
    ...more.document,
  });

export const selfHostedSample = (id: string): Dialect['sample'] => ({
  id,
  model: 'local',
  reasoning: [],
  pieces: samplePieces(4, 9),
  usage: {
    prompt: { text: 12, audio: 25, image: null, video: 1268 },
    promptTotal: null,
    output: 9,
    reasoning: 0,
    cached: null,
    split: false,
  },
});

/** Names that a local server of the fake has. */
export const isLocalModel = (model: string): boolean => /^(local|default|Qwen\/Qwen[\w.-]+)$/.test(model);

/** Qwen models with a thinking variant think unless the template is told not to. */
export const templateThinks = (body: Json, model: string): boolean => {
  const kwargs = body.chat_template_kwargs as Json | undefined;
  return /thinking/i.test(model) && kwargs?.enable_thinking !== false;
};
