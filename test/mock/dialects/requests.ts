import { onTestFinished } from 'vitest';
import type { ProviderName } from '../../../mock/dialects/dialect.ts';
import type { MockProvider } from '../../../mock/server.ts';
import { startMockProvider } from '../../../mock/server.ts';

type Json = Record<string, unknown>;

/** 16 kHz mono WAV of 8 samples. */
export const wav = 'UklGRjQAAABXQVZFZm10IBAAAAABAAEAgD4AAAB9AAACABAAZGF0YRAAAAAAAAAAAAAAAAAAAAAAAAAA';
export const red =
  'iVBORw0KGgoAAAANSUhEUgAAABAAAAAQCAIAAACQkWg2AAAAFklEQVR42mM4ISdHEmIY1TCqYfhqAADkYgQQ6ZuA8QAAAABJRU5ErkJggg==';
export const blue =
  'iVBORw0KGgoAAAANSUhEUgAAABAAAAAQCAIAAACQkWg2AAAAFklEQVR42mOQkztBEmIY1TCqYfhqAACQUwQQlNl6vgAAAABJRU5ErkJggg==';
/** A `ftyp` box only. */
export const mp4 = 'AAAAGGZ0eXBpc29tAAAAAGlzb21tcDQy';
/** The first bytes of two JPEGs. */
export const jpegs = ['/9j/4AAB', '/9j/4AAC'] as const;
export const videoUrl = 'https://media.test/v/a.mp4';
export const audioUrl = 'https://media.test/a/a.wav';

/** A request of one provider. Requests are built by functions, since tests change them. */
export interface Request {
  provider: ProviderName;
  body: Json;
  path?: string;
  headers?: Record<string, string>;
}

export const startedMock = async (
  options: Parameters<typeof startMockProvider>[0] = {},
): Promise<MockProvider> => {
  const server = await startMockProvider({ timeScale: 0.01, ...options });
  onTestFinished(() => server.close());
  return server;
};

const keyOf = (provider: ProviderName): Record<string, string> => {
  if (provider === 'gemini') return { 'x-goog-api-key': 'test-gemini' };
  return { authorization: `Bearer test-${provider === 'stepfun' ? 'step' : provider}` };
};

export const geminiPath = (stream = true) =>
  `/models/gemini-3.8-flash:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`;
export const bedrockPath = (what = 'converse', model = 'us.amazon.nova-2-omni-v1:0') =>
  `/model/${encodeURIComponent(model)}/${what}`;

export const send = (server: MockProvider, request: Request, init: RequestInit = {}): Promise<Response> =>
  fetch(`${server.urlOf(request.provider)}${request.path ?? '/chat/completions'}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...keyOf(request.provider), ...request.headers },
    body: JSON.stringify(request.body),
    redirect: 'manual',
    ...init,
  });

export const text = (words: string): Json => ({ type: 'text', text: words });
export const user = (...content: Json[]): Json => ({ role: 'user', content });
const streamed = { stream: true, stream_options: { include_usage: true } };

/** A request of each provider that it takes, streamed. */
export const accepted = {
  dashscope: (more: Json = {}): Request => ({
    provider: 'dashscope',
    body: {
      model: 'qwen3.8-omni-flash',
      ...streamed,
      modalities: ['text'],
      reasoning_effort: 'none',
      temperature: 0,
      seed: 7,
      max_tokens: 256,
      messages: [
        { role: 'system', content: 'Be brief.' },
        user(
          { type: 'video_url', video_url: { url: videoUrl }, fps: 2 },
          { type: 'input_audio', input_audio: { data: `data:audio/wav;base64,${wav}`, format: 'wav' } },
          text('What now?'),
        ),
      ],
      ...more,
    },
  }),
  ark: (more: Json = {}): Request => ({
    provider: 'ark',
    body: {
      model: 'doubao-seed-2-0-lite-260428',
      ...streamed,
      thinking: { type: 'disabled' },
      max_tokens: 256,
      messages: [
        user(
          { type: 'video_url', video_url: { url: videoUrl, fps: 2 } },
          { type: 'input_audio', input_audio: { url: audioUrl, format: 'wav' } },
          text('What now?'),
        ),
      ],
      ...more,
    },
  }),
  stepfun: (more: Json = {}): Request => ({
    provider: 'stepfun',
    body: {
      model: 'stepaudio-2.5-chat',
      stream: true,
      modalities: ['text'],
      messages: [
        user(
          { type: 'input_audio', input_audio: { data: `data:audio/wav;base64,${wav}` } },
          text('What now?'),
        ),
      ],
      ...more,
    },
  }),
  openai: (more: Json = {}): Request => ({
    provider: 'openai',
    body: {
      model: 'gpt-audio-mini',
      stream: true,
      stream_options: { include_usage: true, include_obfuscation: false },
      modalities: ['text'],
      max_completion_tokens: 256,
      messages: [user({ type: 'input_audio', input_audio: { data: wav, format: 'wav' } }, text('What now?'))],
      ...more,
    },
  }),
  vllm: (more: Json = {}): Request => ({
    provider: 'vllm',
    body: {
      model: 'Qwen/Qwen3-Omni-30B-A3B-Instruct',
      ...streamed,
      temperature: 0,
      seed: 7,
      max_tokens: 256,
      mm_processor_kwargs: { fps: 2, do_sample_frames: true },
      chat_template_kwargs: { enable_thinking: false },
      messages: [
        user(
          { type: 'video_url', video_url: { url: `data:video/mp4;base64,${mp4}` }, uuid: 'v-1' },
          { type: 'audio_url', audio_url: { url: `data:audio/wav;base64,${wav}` }, uuid: 'a-1' },
          text('What now?'),
        ),
      ],
      ...more,
    },
  }),
  sglang: (more: Json = {}): Request => ({
    provider: 'sglang',
    body: {
      model: 'default',
      ...streamed,
      messages: [
        user({ type: 'audio_url', audio_url: { url: `data:audio/wav;base64,${wav}` } }, text('What now?')),
      ],
      ...more,
    },
  }),
  llamacpp: (more: Json = {}): Request => ({
    provider: 'llamacpp',
    body: {
      model: 'local',
      ...streamed,
      messages: [user({ type: 'input_audio', input_audio: { data: wav, format: 'wav' } }, text('What now?'))],
      ...more,
    },
  }),
  gemini: (more: Json = {}): Request => ({
    provider: 'gemini',
    path: geminiPath(),
    body: {
      systemInstruction: { parts: [{ text: 'Be brief.' }] },
      contents: [
        {
          role: 'user',
          parts: [
            { inlineData: { mimeType: 'video/mp4', data: mp4 }, videoMetadata: { fps: 2 } },
            { inlineData: { mimeType: 'audio/wav', data: wav } },
            { text: 'What now?' },
          ],
        },
      ],
      generationConfig: {
        temperature: 0,
        seed: 7,
        maxOutputTokens: 256,
        thinkingConfig: { thinkingLevel: 'MINIMAL' },
      },
      safetySettings: [{ category: 'HARM_CATEGORY_HARASSMENT', threshold: 'BLOCK_NONE' }],
      ...more,
    },
  }),
  bedrock: (more: Json = {}): Request => ({
    provider: 'bedrock',
    path: bedrockPath(),
    body: {
      messages: [
        {
          role: 'user',
          content: [
            { video: { format: 'mp4', source: { s3Location: { uri: 's3://test-media/a.mp4' } } } },
            { audio: { format: 'wav', source: { bytes: wav } } },
            { text: 'What now?' },
          ],
        },
      ],
      system: [{ text: 'Be brief.' }],
      inferenceConfig: { maxTokens: 256, temperature: 0 },
      ...more,
    },
  }),
} as const;

/** The same request without a stream. */
export const whole = (request: Request): Request => {
  if (request.provider === 'gemini') return { ...request, path: geminiPath(false) };
  const { stream: _stream, stream_options: _options, ...body } = request.body;
  return { ...request, body };
};

/** The last part of a DashScope request's user message instead of its own parts. */
export const withParts = (request: Request, ...parts: Json[]): Request => ({
  ...request,
  body: { ...request.body, messages: [user(...parts)] },
});

/** What tests read of an answer, whatever the dialect. */
export interface AnswerJson {
  error?: { code?: unknown; type?: string; status?: string; message?: string };
  choices?: {
    message?: { content?: string | null; reasoning_content?: string };
    delta?: { content?: string | null };
    finish_reason?: string | null;
  }[];
  candidates?: { content: { parts: { text: string }[] } }[];
  output?: { message?: { content: { text: string }[] } };
  usage?: { prompt_tokens: number; completion_tokens: number; completion_tokens_details?: object };
  usageMetadata?: object;
}

export const jsonOf = async (response: Response): Promise<AnswerJson> =>
  (await response.json()) as AnswerJson;

/** JSON of the events of a stream, `[DONE]` left out. */
export const eventsOf = (body: string): AnswerJson[] =>
  body
    .split('\n\n')
    .filter((line) => line.startsWith('data: {'))
    .map((line) => JSON.parse(line.slice(6)) as AnswerJson);

/** The answer's text, from a stream or a document of any dialect. */
export const answerOf = async (response: Response): Promise<string> => {
  const body = await response.text();
  const values = body.startsWith('data: ') ? eventsOf(body) : [JSON.parse(body) as AnswerJson];
  return values
    .flatMap((value) => [
      ...(value.choices ?? []).map(({ delta, message }) => (delta ?? message)?.content ?? ''),
      ...(value.candidates ?? []).flatMap(({ content }) => content.parts.map((part) => part.text)),
      ...(value.output?.message?.content ?? []).map((block) => block.text),
    ])
    .join('');
};
