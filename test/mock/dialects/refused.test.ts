import { createServer } from 'node:http';
import { describe, expect, it } from 'vitest';
import type { ControlInput } from '../../../mock/control.ts';
import { providerNames } from '../../../mock/dialects/dialect.ts';
import {
  accepted,
  bedrockPath,
  jsonOf,
  mp4,
  type Request,
  red,
  send,
  startedMock,
  text,
  user,
  videoUrl,
  wav,
  whole,
  withParts,
} from './requests.ts';

const frame = (data: string) => `data:image/png;base64,${data}`;
const dsAudio = (data: string) => ({ type: 'input_audio', input_audio: { data, format: 'wav' } });
const dsVideo = { type: 'video_url', video_url: { url: `data:video/mp4;base64,${mp4}` } };
const dsFlash = (...parts: object[]): Request =>
  withParts(
    accepted.dashscope({ model: 'qwen3-omni-flash', reasoning_effort: undefined }),
    ...(parts as Record<string, unknown>[]),
  );
const dsFrames = (model: string, count: number): Request =>
  withParts(
    accepted.dashscope({ model, reasoning_effort: undefined }),
    { type: 'video', video: Array.from({ length: count }, () => frame(red)) },
    text('x'),
  );
const dsMedia = (url: string): Request =>
  withParts(accepted.dashscope(), { type: 'video_url', video_url: { url } }, text('x'));
const stepPart = (model: string, part: Record<string, unknown>): Request =>
  withParts(accepted.stepfun({ model, modalities: undefined }), part, text('x'));
const gpt = (more: object): Request => ({
  provider: 'openai',
  body: { model: 'gpt-5.4-mini', messages: [{ role: 'user', content: 'x' }], ...more },
});
const bedrock = (messages: object[], model?: string): Request => ({
  ...accepted.bedrock({ messages }),
  path: bedrockPath('converse', model),
});
const said = (role: string) => ({ role, content: [{ text: 'x' }] });
const geminiParts = (...parts: object[]): Request =>
  accepted.gemini({ contents: [{ role: 'user', parts: [...parts, { text: 'x' }] }] });

const ds = (code: string) => ({
  error: { message: expect.any(String), type: expect.any(String), param: null, code },
  request_id: expect.any(String),
});
const dsParameter = ds('invalid_parameter_error');
const arkParameter = {
  error: {
    code: 'InvalidParameter',
    message: expect.stringContaining('Request id: '),
    param: expect.any(String),
    type: 'BadRequest',
  },
};
const step = { error: { message: expect.any(String), type: 'invalid_request_error' } };
const openai = (code: string) => ({
  error: { message: expect.any(String), type: 'invalid_request_error', param: expect.anything(), code },
});
const vllm = { error: { message: expect.any(String), type: 'BadRequestError', param: null, code: 400 } };
const gemini = (status: string) => ({ error: expect.objectContaining({ code: 400, status }) });
const converse = { message: expect.any(String) };

const refusals: [string, Request, number, object, ControlInput?][] = [
  ['R-01 stream false', { ...whole(dsFlash(text('x'))) }, 400, dsParameter],
  [
    'R-01 stream absent on qwen3.5-omni',
    whole(
      withParts(accepted.dashscope({ model: 'qwen3.5-omni-plus', reasoning_effort: undefined }), text('x')),
    ),
    400,
    dsParameter,
  ],
  ['R-02 bare base64', withParts(accepted.dashscope(), dsAudio(wav), text('x')), 400, dsParameter],
  [
    'R-03 two kinds in a message',
    dsFlash(dsVideo, dsAudio(`data:;base64,${wav}`), text('x')),
    400,
    dsParameter,
  ],
  [
    'R-04 thinking with audio out',
    {
      provider: 'dashscope',
      body: {
        model: 'qwen3-omni-flash',
        stream: true,
        enable_thinking: true,
        modalities: ['text', 'audio'],
        messages: [user(text('x'))],
      },
    },
    400,
    dsParameter,
  ],
  [
    'R-05 a thinking switch on qwen3.5-omni',
    accepted.dashscope({ model: 'qwen3.5-omni-flash', reasoning_effort: undefined, enable_thinking: false }),
    400,
    ds('InvalidParameter.NotSupportEnableThinking'),
  ],
  [
    'R-06 a data URI above 10 MiB',
    dsMedia(`data:video/mp4;base64,${'A'.repeat(10_485_739)}`),
    400,
    dsParameter,
  ],
  ['R-07 251 data URIs', dsFrames('qwen3.8-omni-flash', 251), 400, dsParameter],
  ['R-08 this machine', dsMedia('http://127.0.0.1:9/a.mp4'), 400, ds('InvalidURL')],
  ['R-08 a bucket', dsMedia('s3://bucket/a.mp4'), 400, ds('InvalidURL')],
  ['R-08 oss without its header', dsMedia('oss://bucket/a.mp4'), 400, ds('InvalidURL')],
  [
    'R-09 JSON mode without the word',
    {
      provider: 'dashscope',
      body: {
        model: 'qwen3.7-plus',
        enable_thinking: false,
        response_format: { type: 'json_object' },
        messages: [{ role: 'user', content: 'Judge it.' }],
      },
    },
    400,
    dsParameter,
  ],
  ['R-10 129 frames', dsFrames('qwen3-omni-flash', 129), 400, dsParameter],
  ['R-10 one frame', dsFrames('qwen3-omni-flash', 1), 400, dsParameter],
  ['R-10 three frames', dsFrames('qwen3-vl-plus', 3), 400, dsParameter],
  [
    'R-11 media in the history',
    accepted.dashscope({
      messages: [user(text('x')), { role: 'assistant', content: [dsVideo] }, user(text('y'))],
    }),
    400,
    dsParameter,
  ],
  ['R-12 two thinking switches', accepted.dashscope({ thinking_budget: 100 }), 400, dsParameter],
  ['R-13 two caps', accepted.ark({ max_completion_tokens: 512 }), 400, arkParameter],
  [
    'R-14 a frame list',
    withParts(accepted.ark(), { type: 'video', video: [frame(red)] }, text('x')),
    400,
    arkParameter,
  ],
  ['R-15 auto', accepted.ark({ thinking: { type: 'auto' } }), 400, arkParameter],
  ...[0.1, 6].map((fps): [string, Request, number, object] => [
    `R-16 fps ${fps}`,
    withParts(accepted.ark(), { type: 'video_url', video_url: { url: videoUrl, fps } }, text('x')),
    400,
    arkParameter,
  ]),
  [
    'R-18 bare base64',
    stepPart('stepaudio-2.5-chat', { type: 'input_audio', input_audio: { data: wav } }),
    400,
    step,
  ],
  [
    'R-18 ogg',
    stepPart('stepaudio-2.5-chat', {
      type: 'input_audio',
      input_audio: { data: 'data:audio/ogg;base64,T2dnUwAA' },
    }),
    400,
    step,
  ],
  [
    'R-18 a format',
    stepPart('stepaudio-2.5-chat', {
      type: 'input_audio',
      input_audio: { data: `data:audio/wav;base64,${wav}`, format: 'wav' },
    }),
    400,
    step,
  ],
  ['R-19 video as data', stepPart('step-3.7-flash', dsVideo), 400, step],
  [
    'R-20 video to ears',
    stepPart('step-audio-2', { type: 'video_url', video_url: { url: videoUrl } }),
    400,
    step,
  ],
  [
    'R-20 audio to eyes',
    stepPart('step-3.7-flash', {
      type: 'input_audio',
      input_audio: { data: `data:audio/wav;base64,${wav}` },
    }),
    400,
    step,
  ],
  [
    'R-21 audio as data URI',
    withParts(accepted.openai(), dsAudio(`data:audio/wav;base64,${wav}`), text('x')),
    400,
    openai('invalid_value'),
  ],
  [
    'R-21 ogg',
    withParts(accepted.openai(), { type: 'input_audio', input_audio: { data: 'T2dnUwAA', format: 'ogg' } }),
    400,
    openai('invalid_value'),
  ],
  ['R-22 a video', withParts(accepted.openai(), dsVideo, dsAudio(wav)), 400, openai('invalid_value')],
  ['R-23 max_tokens', gpt({ max_tokens: 100 }), 400, openai('unsupported_parameter')],
  ['R-23 temperature', gpt({ temperature: 0 }), 400, openai('unsupported_value')],
  ['R-24 no audio at all', withParts(accepted.openai(), text('x')), 400, openai('invalid_value')],
  ['R-25 a frame list', withParts(accepted.vllm(), { type: 'video', video: [frame(red)] }), 400, vllm],
  [
    'R-26 too many media in the history',
    accepted.vllm({
      messages: [
        user({ type: 'audio_url', audio_url: { url: `data:audio/wav;base64,${wav}` } }),
        { role: 'assistant', content: 'x' },
        user({ type: 'audio_url', audio_url: { url: `data:audio/wav;base64,${wav}` } }),
        { role: 'assistant', content: 'x' },
        user({ type: 'audio_url', audio_url: { url: `data:audio/wav;base64,${wav}` } }),
      ],
    }),
    400,
    vllm,
    { provider: 'vllm', profile: { limitPerPrompt: { audio: 2 } } },
  ],
  [
    'R-27 input_audio on an old server',
    withParts(accepted.sglang(), dsAudio(wav)),
    400,
    { object: 'error', message: expect.any(String), type: 'BadRequestError', param: null, code: 400 },
  ],
  [
    'R-28 audio without a projector',
    accepted.llamacpp(),
    500,
    { error: { code: 500, message: expect.any(String), type: 'server_error' } },
    { provider: 'llamacpp', profile: { mmproj: false } },
  ],
  [
    'R-29 a data URI',
    geminiParts({ inlineData: { mimeType: 'audio/wav', data: `data:audio/wav;base64,${wav}` } }),
    400,
    gemini('INVALID_ARGUMENT'),
  ],
  [
    'R-29 the role assistant',
    accepted.gemini({
      contents: [
        { role: 'user', parts: [{ text: 'x' }] },
        { role: 'assistant', parts: [{ text: 'x' }] },
        { role: 'user', parts: [{ text: 'y' }] },
      ],
    }),
    400,
    gemini('INVALID_ARGUMENT'),
  ],
  [
    'R-29 more than 20 MB',
    geminiParts({ text: 'A'.repeat(20 * 1024 * 1024) }),
    400,
    gemini('INVALID_ARGUMENT'),
  ],
  [
    'R-30 a file that is not ready',
    geminiParts({ fileData: { mimeType: 'video/mp4', fileUri: 'https://files.test/files/a' } }),
    400,
    gemini('FAILED_PRECONDITION'),
    {
      provider: 'gemini',
      files: [{ uri: 'https://files.test/files/a', mimeType: 'video/mp4', state: 'PROCESSING' }],
    },
  ],
  ['R-31 two user messages in a row', bedrock([said('user'), said('user')]), 400, converse],
  ['R-31 assistant first', bedrock([said('assistant'), said('user')]), 400, converse],
  [
    'R-31 audio to Nova Lite',
    bedrock(
      [{ role: 'user', content: [{ audio: { format: 'wav', source: { bytes: wav } } }] }],
      'us.amazon.nova-2-lite-v1:0',
    ),
    400,
    converse,
  ],
];

describe('a request that the provider would refuse', () => {
  it.each(refusals)('%s', async (_name, request, status, body, control) => {
    const server = await startedMock();
    if (control) server.control(control);

    const response = await send(server, request);

    expect(response.status).toBe(status);
    expect(await response.json()).toEqual(body);
    expect(server.stats()).toMatchObject({ replies: 0, malformed: 1 });
    expect(server.log()[0]).toMatchObject({ outcome: 'refused', status });
  });

  it('R-08 a server that tells no length', async () => {
    const bytes = Buffer.from(mp4, 'base64');
    const media = createServer((request, response) => {
      response.setHeader('content-type', 'video/mp4');
      if (request.url?.startsWith('/gone.mp4')) response.statusCode = 404;
      if (request.url?.startsWith('/good.mp4')) response.end(bytes);
      else {
        response.write(bytes);
        response.end();
      }
    });
    await new Promise<void>((resolve) => media.listen(0, '127.0.0.1', resolve));
    const { port } = media.address() as { port: number };
    const server = await startedMock({ mediaOrigins: { 'media.test': `http://127.0.0.1:${port}` } });
    const codeOf = async (name: string) => {
      const response = await send(server, whole(dsMedia(`https://media.test/${name}?signature=x`)));
      const { error, choices } = await jsonOf(response);
      return error?.code ?? choices?.[0]?.message?.content;
    };

    try {
      // Really fetched: the digest is that of the bytes.
      expect(await codeOf('good.mp4')).toBe('turns=1;media=video;sha=754ed2f2');
      expect(await codeOf('chunked.mp4')).toBe('InvalidURL');
      expect(await codeOf('gone.mp4')).toBe('InvalidURL');
    } finally {
      media.close();
    }
  });

  it('R-17: a misplaced fps is passed over in silence, which the token counts show', async () => {
    const server = await startedMock();
    const tokens = async (part: Record<string, unknown>) => {
      const request = whole(withParts(accepted.ark(), { type: 'video_url', ...part }, text('What now?')));
      return (await jsonOf(await send(server, request))).usage?.prompt_tokens;
    };

    expect(await tokens({ video_url: { url: videoUrl, fps: 2 } })).toBe(1280 + 3);
    expect(await tokens({ video_url: { url: videoUrl }, fps: 2 })).toBe(640 + 3);
  });

  it.each<[string, object, number]>([
    ['dashscope', { error: expect.objectContaining({ code: 'invalid_api_key' }) }, 401],
    ['ark', { error: expect.objectContaining({ code: 'AuthenticationError' }) }, 401],
    ['stepfun', { error: { message: expect.any(String), type: 'invalid_api_key' } }, 401],
    ['openai', { error: expect.objectContaining({ code: 'invalid_api_key' }) }, 401],
    ['vllm', { error: 'Unauthorized' }, 401],
    ['sglang', { error: 'Unauthorized' }, 401],
    ['llamacpp', { error: expect.objectContaining({ type: 'authentication_error' }) }, 401],
    ['gemini', { error: expect.objectContaining({ code: 400, status: 'INVALID_ARGUMENT' }) }, 400],
  ])('R-32: a wrong key of %s', async (name, body, status) => {
    const server = await startedMock();
    const request = accepted[name as 'ark']();
    const headers = { authorization: 'Bearer wrong', 'x-goog-api-key': 'wrong' };

    const response = await send(server, { ...request, headers });

    expect(response.status).toBe(status);
    expect(await response.json()).toMatchObject(body);
  });

  it('R-32: no key at all', async () => {
    const server = await startedMock();
    const without = async (request: Request) =>
      (
        await fetch(`${server.urlOf(request.provider)}${request.path ?? '/chat/completions'}`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify(request.body),
        })
      ).status;

    expect(await without(accepted.gemini())).toBe(403);
    expect(await without(accepted.bedrock())).toBe(403);
    expect(await without(accepted.dashscope())).toBe(401);
  });

  const unknown: Record<string, [number, object]> = {
    dashscope: [404, { error: { code: 'model_not_found' } }],
    ark: [404, { error: { code: 'InvalidEndpointOrModel.NotFound' } }],
    stepfun: [400, { error: { type: 'invalid_request_error' } }],
    openai: [404, { error: { code: 'model_not_found' } }],
    vllm: [404, { error: { code: 404, type: 'NotFoundError' } }],
    sglang: [404, { object: 'error', code: 404 }],
    llamacpp: [404, { error: { code: 404 } }],
    gemini: [404, { error: { status: 'NOT_FOUND' } }],
    bedrock: [404, { message: expect.any(String) }],
  };
  it.each(providerNames)('R-33: an unknown model of %s', async (name) => {
    const server = await startedMock();
    const request = accepted[name]({ ...(name !== 'gemini' && name !== 'bedrock' && { model: 'no-such' }) });
    const path = { gemini: '/models/no-such:generateContent', bedrock: bedrockPath('converse', 'no-such') };
    const [status, body] = unknown[name]!;

    const response = await send(server, { ...request, path: path[name as 'gemini'] });

    expect(response.status).toBe(status);
    expect(await response.json()).toMatchObject(body);
    if (name === 'bedrock')
      expect(response.headers.get('x-amzn-errortype')).toBe('ResourceNotFoundException');
  });

  it('cannot pass with other bytes than it says, or with half of them', async () => {
    const server = await startedMock();
    const statusOf = async (request: Request) => (await send(server, whole(request))).status;
    const cut = Buffer.from(wav, 'base64').subarray(0, 48).toString('base64');

    expect(await statusOf(withParts(accepted.vllm(), dsVideo))).toBe(200);
    const asVideo = { type: 'video_url', video_url: { url: `data:video/mp4;base64,${wav}` } };
    expect(await statusOf(withParts(accepted.vllm(), asVideo))).toBe(400);
    const asJpeg = { type: 'image_url', image_url: { url: `data:image/jpeg;base64,${red}` } };
    expect(await statusOf(withParts(accepted.ark(), asJpeg))).toBe(400);
    expect(await statusOf(withParts(accepted.openai(), dsAudio(cut)))).toBe(400);
    expect(await statusOf(withParts(accepted.openai(), dsAudio(`${wav} `)))).toBe(400);
  });

  it('has no members that the provider does not document', async () => {
    const server = await startedMock();
    const statusOf = async (request: Request) => (await send(server, request)).status;

    expect(await statusOf(accepted.ark({ seed: 7 }))).toBe(400);
    expect(await statusOf(accepted.stepfun({ stream_options: { include_usage: true } }))).toBe(400);
    expect(await statusOf(accepted.openai({ enable_thinking: false }))).toBe(400);
    server.control({ provider: 'ark', profile: { extraMembers: ['seed'] } });
    expect(await statusOf(accepted.ark({ seed: 7 }))).toBe(200);
  });
});
