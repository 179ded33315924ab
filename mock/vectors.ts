import type { Step } from './byte-script.ts';
import type { ProviderName, ReplyPlan } from './dialects/dialect.ts';
import { pieceText } from './dialects/dialect.ts';
import { dialects } from './dialects/registry.ts';

interface Vector {
  provider: ProviderName;
  usable: boolean;
  steps: () => Step[];
}

const samplePlan = (provider: ProviderName, more: Partial<ReplyPlan> = {}): ReplyPlan => ({
  ...dialects[provider].sample,
  finish: 'stop',
  refusal: null,
  blocked: false,
  includeUsage: true,
  obfuscates: true,
  operation: 'chat',
  ...more,
});

const stream = (provider: ProviderName, more: Partial<ReplyPlan> = {}, withEnd = true): Vector => ({
  provider,
  usable: true,
  steps: () => {
    const dialect = dialects[provider];
    const events = dialect.events(samplePlan(provider, more), {});
    const bytes = events.filter(({ kind }) => withEnd || kind !== 'end').map((event) => event.bytes);
    const headers = { 'content-type': dialect.contentType.stream, ...dialect.replyHeaders };
    return [{ head: { status: 200, headers } }, { send: Buffer.concat(bytes) }, 'end'];
  },
});

const document = (provider: ProviderName, more: Partial<ReplyPlan>, usable = false): Vector => ({
  provider,
  usable,
  steps: () => {
    const dialect = dialects[provider];
    const body = Buffer.from(dialect.document(samplePlan(provider, more)));
    const headers = {
      'content-type': dialect.contentType.document,
      'content-length': String(body.length),
      ...dialect.replyHeaders,
    };
    return [{ head: { status: 200, headers } }, { send: body }, 'end'];
  },
});

const judgeUsage = (output: number): ReplyPlan['usage'] => ({
  prompt: { text: 20, image: null, video: null, audio: null },
  promptTotal: null,
  output,
  reasoning: 0,
  cached: 0,
  split: false,
});
const cutVerdict = { text: '{"verdict":"pa', outputSoFar: 5 };

/** Fixed replies by id; text and counts are the same whatever was asked. */
export const vectorSteps: Readonly<Record<string, Vector>> = {
  'S-DS-OK': stream('dashscope'),
  // Complete without [DONE]: finish reason and usage were seen.
  'S-DS-THINK': stream(
    'dashscope',
    {
      reasoning: [
        { text: '', outputSoFar: 0 },
        { text: 'I look first.', outputSoFar: 16 },
      ],
      usage: { ...dialects.dashscope.sample.usage, output: 25, reasoning: 16, cached: null },
    },
    false,
  ),
  'S-ARK-OK': stream('ark'),
  'S-STEP-OK': stream('stepfun'),
  'S-OAI-OK': stream('openai'),
  'S-VLLM-OK': stream('vllm'),
  'S-SGL-OK': stream('sglang'),
  'S-LCP-OK': stream('llamacpp'),
  'S-GEM-OK': stream('gemini'),
  'S-GEM-BLOCK': document('gemini', {
    id: 'fx-gem-2',
    blocked: true,
    usage: { ...dialects.gemini.sample.usage, reasoning: 0 },
  }),
  'S-OAI-RESP': document('openai', {
    id: 'resp_fx1',
    model: 'gpt-5.4-mini',
    operation: 'responses',
    pieces: [cutVerdict],
    finish: 'length',
    usage: judgeUsage(5),
  }),
  'S-OAI-REFUSAL': document('openai', {
    id: 'fx-oai-2',
    model: 'gpt-5.4-mini',
    pieces: [],
    refusal: 'fake: I will not answer.',
    usage: judgeUsage(6),
  }),
  'S-BED-OK': document('bedrock', {}, true),
  'S-BED-STREAM': stream('bedrock'),
};

/** Text of every good vector. */
export const sampleText = pieceText(dialects.dashscope.sample.pieces);
