import { createConnection } from 'node:net';
import { describe, expect, it } from 'vitest';
import type { ProviderName } from '../../mock/dialects/dialect.ts';
import { outcomeNames } from '../../mock/faults.ts';
import type { MockProvider } from '../../mock/server.ts';
import {
  accepted,
  answerOf,
  eventsOf,
  jsonOf,
  type Request,
  send,
  startedMock,
  whole,
} from './dialects/requests.ts';

const sample = 'A red light, then 蓝 🔵.';

/** A server whose next answers are these. */
const facing = async (provider: ProviderName, ...queue: string[]): Promise<MockProvider> => {
  const server = await startedMock();
  server.control({ provider, queue });
  return server;
};
const met = async (provider: keyof typeof accepted, fault: string, request?: Request): Promise<Response> =>
  send(await facing(provider, fault), request ?? accepted[provider]());

/** The bytes that a plain socket sees: chunks as they arrive, and how the connection ended. */
const overSocket = async (server: MockProvider, request: Request) => {
  const body = JSON.stringify(request.body);
  const address = new URL(`${server.urlOf(request.provider)}/chat/completions`);
  const chunks: Buffer[] = [];
  const end = await new Promise<string>((resolve) => {
    const socket = createConnection({ host: address.hostname, port: Number(address.port) }, () => {
      socket.write(
        [
          `POST ${address.pathname} HTTP/1.1`,
          `host: ${address.host}`,
          'content-type: application/json',
          `authorization: Bearer test-${request.provider}`,
          `content-length: ${Buffer.byteLength(body)}`,
          'connection: close',
          '',
          body,
        ].join('\r\n'),
      );
    });
    socket.on('data', (chunk: Buffer) => chunks.push(chunk));
    socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? 'error'));
    socket.on('end', () => resolve('end'));
  });
  return { text: Buffer.concat(chunks).toString('utf8'), chunks, end };
};

/** Reads until so many bytes came, then goes away. */
const readSome = async (response: Response, bytes: number): Promise<number> => {
  const reader = response.body!.getReader();
  let size = 0;
  while (size < bytes) {
    const { value, done } = await reader.read();
    if (done) break;
    size += value.length;
  }
  await reader.cancel();
  return size;
};

describe('limits', () => {
  it.each<[string, string, Record<string, string | null>]>([
    ['openai', 'F-01', { 'retry-after': '2' }],
    ['openai', 'F-03', { 'retry-after-ms': '1500', 'retry-after': '9' }],
    ['openai', 'F-04', { 'retry-after': null, 'retry-after-ms': null }],
    ['ark', 'F-05', { 'retry-after': '86400' }],
    ['ark', 'F-06', { 'retry-after': 'banana' }],
    ['ark', 'F-06:negative', { 'retry-after': '-1' }],
    ['openai', 'F-12', { 'retry-after': null, 'x-ratelimit-reset-tokens': '1m2.5s' }],
  ])('%s %s', async (provider, fault, headers) => {
    const response = await met(provider as 'ark', fault);

    expect(response.status).toBe(429);
    for (const [name, value] of Object.entries(headers)) expect(response.headers.get(name)).toBe(value);
  });

  it('F-02 states a date three seconds ahead', async () => {
    const before = Date.now();
    const response = await met('openai', 'F-02');

    const stated = Date.parse(response.headers.get('retry-after')!);
    expect(stated).toBeGreaterThanOrEqual(before + 2000);
    expect(stated).toBeLessThanOrEqual(Date.now() + 3000);
  });

  it.each<[string, string, number, object]>([
    ['openai', 'F-07', 429, { error: { code: 'insufficient_quota', type: 'insufficient_quota' } }],
    ['dashscope', 'F-08', 429, { error: { code: 'insufficient_quota', type: 'insufficient_quota' } }],
    ['dashscope', 'F-09', 429, { error: { code: 'limit_burst_rate' } }],
    ['ark', 'F-09', 429, { error: { code: 'RequestBurstTooFast' } }],
    ['ark', 'F-09:overloaded', 429, { error: { code: 'ServerOverloaded' } }],
    ['ark', 'F-10', 429, { error: { code: 'SetLimitExceeded' } }],
    ['dashscope', 'F-10', 429, { error: { code: 'PrepaidBillOverdue' } }],
    ['stepfun', 'F-10', 402, { error: { type: expect.any(String) } }],
    ['gemini', 'F-11', 429, { error: { status: 'RESOURCE_EXHAUSTED', details: [{ retryDelay: '2s' }] } }],
    [
      'gemini',
      'F-11:day',
      429,
      { error: { details: [{ violations: [{ quotaId: expect.stringContaining('PerDay') }] }, {}] } },
    ],
  ])('%s %s', async (provider, fault, status, body) => {
    const response = await met(provider as 'ark', fault);

    expect(response.status).toBe(status);
    expect(await response.json()).toMatchObject(body);
  });

  it('are in the form of each provider', async () => {
    const bodies = await Promise.all(
      (['dashscope', 'vllm', 'sglang', 'bedrock'] as const).map(async (name) =>
        (await met(name, 'F-04')).json(),
      ),
    );

    expect(bodies).toMatchObject([
      { error: { code: 'limit_requests' }, request_id: expect.any(String) },
      { error: { code: 429, type: 'TooManyRequestsError' } },
      { object: 'error', code: 429 },
      { message: expect.any(String) },
    ]);
  });
});

describe('broken servers', () => {
  it('F-13 to F-14, F-28, F-51: statuses with JSON and with pages', async () => {
    const server = await facing(
      'ark',
      'F-13',
      'F-13:502',
      'F-13:503',
      'F-13:504',
      'F-13:529',
      'F-14',
      'F-28',
      'F-51',
      'F-51:431',
    );
    const seen = [];
    for (let call = 0; call < 9; call += 1) {
      const response = await send(server, accepted.ark());
      seen.push(`${response.status} ${response.headers.get('content-type')}`);
      await response.text();
    }

    const json = [500, 502, 503, 504, 529].map((status) => `${status} application/json`);
    const pages = [503, 200, 413, 431].map((status) => `${status} text/html`);
    expect(seen).toEqual([...json, ...pages]);
  });

  it('F-26 is half a document of the right length', async () => {
    const response = await met('openai', 'F-26', whole(accepted.openai()));

    const body = await response.text();
    expect(Number(response.headers.get('content-length'))).toBe(Buffer.byteLength(body));
    expect(() => JSON.parse(body)).toThrow();
  });

  it('F-27 is shorter than it said', async () => {
    for (const request of [accepted.openai(), whole(accepted.openai())]) {
      const response = await met('openai', 'F-27', request);
      await expect(response.text()).rejects.toThrow();
    }
  });

  it('F-29 has no content type', async () => {
    const streamed = await met('vllm', 'F-29');
    const json = await met('vllm', 'F-29:json');

    expect(streamed.headers.get('content-type')).toBeNull();
    expect(await answerOf(streamed)).toBe(sample);
    expect(json.headers.get('content-type')).toBeNull();
    expect((await jsonOf(json)).choices![0]!.message!.content).toBe(sample);
  });

  it('F-30 is an error with status 200', async () => {
    const response = await met('openai', 'F-30:limit');

    expect(response.status).toBe(200);
    expect((await jsonOf(response)).error!.code).toBe('rate_limit_exceeded');
  });

  it('F-33, F-35: a reset and silence before the headers', async () => {
    await expect(met('vllm', 'F-33')).rejects.toThrow();

    const server = await facing('vllm', 'F-35');
    const silent = send(server, accepted.vllm(), { signal: AbortSignal.timeout(500) });
    await expect(silent).rejects.toThrow(/timeout/);
    expect(server.log()[0]).toMatchObject({ outcome: 'F-35' });
  });

  it('F-34 resets after two texts, which still arrive', async () => {
    const { text, end } = await overSocket(await facing('dashscope', 'F-34'), accepted.dashscope());

    expect(end).toBe('ECONNRESET');
    expect(text).toContain('"content":"A red light, "');
    expect(text).toContain('"content":"then 蓝 🔵."');
    expect(text).not.toContain('"finish_reason":"stop"');
  });

  it('F-36 is silent after a piece, F-37 drips on, F-39 drips until the caller is gone', async () => {
    for (const fault of ['F-36', 'F-37', 'F-39']) {
      const server = await facing('openai', fault);
      const response = await send(server, accepted.openai(), { signal: AbortSignal.timeout(600) });
      expect(response.status).toBe(200);
      await expect(response.text()).rejects.toThrow();
      await expect.poll(() => server.log()[0]?.callerGone).toBe(true);
      expect(server.stats().replies).toBe(0);
    }
  });

  it('F-38 drips a complete reply, character by character', async () => {
    const server = await facing('openai', 'F-38');

    const body = await (await send(server, accepted.openai())).text();

    const texts = eventsOf(body).flatMap(({ choices }) => choices?.map(({ delta }) => delta?.content) ?? []);
    expect(texts.filter((text) => text)).toEqual(Array.from(sample));
    expect(server.stats().replies).toBe(1);
  });

  it('F-44 goes on for 50 MB and ends nowhere', async () => {
    const server = await facing('vllm', 'F-44');

    const size = await readSome(await send(server, accepted.vllm()), 49 * 1024 * 1024);

    expect(size).toBeGreaterThanOrEqual(49 * 1024 * 1024);
    await expect.poll(() => server.log()[0]?.callerGone).toBe(true);
  });

  it('F-46 points elsewhere, where the log would show who followed', async () => {
    const server = await facing('vllm', 'F-46', 'F-46:308', 'F-46');
    const first = await send(server, accepted.vllm());
    const second = await send(server, accepted.vllm());

    expect([first.status, second.status]).toEqual([307, 308]);
    expect(new URL(first.headers.get('location')!).hostname).toBe('localhost');
    expect(server.log().map(({ provider }) => provider)).toEqual(['vllm', 'vllm']);

    await send(server, accepted.vllm(), { redirect: 'follow' });
    expect(server.log().at(-1)).toMatchObject({ provider: 'elsewhere', method: 'POST' });
  });
});

describe('safety', () => {
  it.each<[string, string, number, object]>([
    [
      'dashscope',
      'F-15',
      400,
      { error: { code: 'data_inspection_failed', message: expect.stringContaining('Input') } },
    ],
    ['ark', 'F-15', 400, { error: { code: 'InputVideoSensitiveContentDetected' } }],
    ['stepfun', 'F-15', 451, { error: {} }],
    ['openai', 'F-15', 400, { error: { code: 'content_policy_violation' } }],
    ['gemini', 'F-15', 200, { promptFeedback: { blockReason: 'PROHIBITED_CONTENT' } }],
    ['bedrock', 'F-15', 200, { stopReason: 'guardrail_intervened' }],
  ])('%s %s: the input is refused', async (provider, fault, status, body) => {
    const response = await met(provider as 'ark', fault, whole(accepted[provider as 'ark']()));

    expect(response.status).toBe(status);
    expect(await response.json()).toMatchObject(body);
  });

  it('F-16, F-17: the output is refused in the middle of a stream, or by its finish reason', async () => {
    const inStream = await (await met('ark', 'F-16')).text();
    const byFinish = await (await met('ark', 'F-17')).text();
    const gemini = await (await met('gemini', 'F-17')).text();

    expect(eventsOf(inStream).at(-1)).toMatchObject({
      error: { code: 'OutputTextSensitiveContentDetected' },
    });
    expect(inStream).not.toContain('[DONE]');
    expect(byFinish).toContain('"finish_reason":"content_filter","moderation_hit_type":"severe_violation"');
    expect(gemini).toContain('"finishReason":"SAFETY"');
  });
});

describe('odd streams', () => {
  it('F-20, F-21: no text, unknown reasons', async () => {
    const empty = eventsOf(await (await met('openai', 'F-20')).text());
    const odd = await (await met('sglang', 'F-21:abort')).text();

    expect(empty.map(({ choices }) => choices?.[0]?.delta?.content ?? '').join('')).toBe('');
    expect(empty.some(({ choices }) => choices?.[0]?.finish_reason === 'stop')).toBe(true);
    expect(odd).toContain('"finish_reason":"abort"');
    expect(await (await met('vllm', 'F-21')).text()).toContain('"finish_reason":"repetition_truncation"');
  });

  it('F-23, F-24: no usage, two usages', async () => {
    const none = eventsOf(await (await met('dashscope', 'F-23')).text());
    const two = eventsOf(await (await met('dashscope', 'F-24')).text()).filter(({ usage }) => usage);

    expect(none.some(({ usage }) => usage)).toBe(false);
    expect(none.some(({ choices }) => choices?.[0]?.finish_reason === 'stop')).toBe(true);
    expect(two.map(({ usage }) => usage!.completion_tokens)).toEqual([5, 9]);
  });

  it('F-25 has a broken chunk between good ones', async () => {
    const body = await (await met('openai', 'F-25')).text();

    const lines = body.split('\n\n').filter((line) => line.startsWith('data: {'));
    expect(lines.filter((line) => !line.endsWith('}'))).toHaveLength(1);
    expect(body.endsWith('data: [DONE]\n\n')).toBe(true);
  });

  it('F-32 has a line that starts with error', async () => {
    const body = await (await met('llamacpp', 'F-32')).text();

    expect(body.split('\n').at(-3)).toBe('error: {"code":500,"message":"fake"}');
  });

  it('F-40 to F-43 are good replies in other clothes', async () => {
    const noise = await (await met('openai', 'F-40')).text();
    const crlf = await (await met('openai', 'F-41')).text();
    const bytes = await overSocket(await facing('dashscope', 'F-42'), accepted.dashscope());
    const server = await facing('openai', 'F-43');
    const zipped = await overSocket(server, accepted.openai());

    expect(noise).toContain(': keep-alive\n\nevent: ping\ndata:\n\n');
    expect(crlf.replaceAll('\r\n', '')).not.toMatch(/[\r\n]/);
    expect(crlf).toContain('data: {\r\ndata: "id"');
    // Every byte is a chunk of its own in HTTP: most are one byte long.
    expect(bytes.text.split('\r\n1\r\n').length).toBeGreaterThan(500);
    expect(zipped.text).toMatch(/content-encoding: gzip/i);
    const whole = await (await send(await facing('openai', 'F-43'), accepted.openai())).text();
    expect(
      eventsOf(whole)
        .map(({ choices }) => choices?.[0]?.delta?.content ?? '')
        .join(''),
    ).toBe(sample);
  });

  it('F-42 keeps characters whole for a reader that waits for their bytes', async () => {
    expect(await answerOf(await met('gemini', 'F-42'))).toBe(`weigh it${sample}`);
  });

  it('F-45 says that it is partial, F-47 has a list as content', async () => {
    const partial = await met('dashscope', 'F-45');
    const parts = await jsonOf(await met('openai', 'F-47', whole(accepted.openai())));

    expect(partial.headers.get('x-dashscope-partialresponse')).toBe('true');
    expect(parts.choices![0]!.message!.content).toEqual([{ type: 'text', text: sample }]);
  });

  it.each([
    ['F-48', { prompt_tokens: -38 }],
    ['F-48:string', { prompt_tokens: '37' }],
    ['F-48:missing', {}],
  ])('%s has counts that are none', async (fault, usage) => {
    const found = await jsonOf(await met('openai', fault, whole(accepted.openai())));

    expect(found.usage).toMatchObject(usage);
    if (fault === 'F-48:missing') expect(found.usage).not.toHaveProperty('prompt_tokens');
    expect(found.choices![0]!.message!.content).toBe(sample);
  });

  it('F-49 has no choice, F-54 did not hear', async () => {
    const none = await jsonOf(await met('openai', 'F-49', whole(accepted.openai())));
    const deaf = await jsonOf(await met('openai', 'F-54', whole(accepted.openai())));
    const absent = await jsonOf(await met('openai', 'F-54:absent', whole(accepted.openai())));

    expect(none.choices).toEqual([]);
    expect(deaf.usage).toMatchObject({ prompt_tokens_details: { audio_tokens: 0 } });
    expect(absent.usage).not.toHaveProperty('prompt_tokens_details.audio_tokens');
  });

  it('F-53 has another id for each call', async () => {
    const server = await facing('openai', 'F-53', 'F-53');
    const ids = [];
    for (let call = 0; call < 2; call += 1) {
      const body = (await (await send(server, whole(accepted.openai()))).json()) as { id: string };
      ids.push(body.id);
    }

    expect(new Set(ids).size).toBe(2);
  });

  it.each([
    ['F-50', '```json\n{"verdict":"pass","why":"fake"}\n```', 'stop'],
    ['F-50:comma', '{"verdict":"pass","why":"fake",}', 'stop'],
    ['F-50:extra', '{"verdict":"pass","why":"fake","mood":"good"}', 'stop'],
    ['F-50:cut', '{"verdict":"pass', 'length'],
    ['F-50:two', '{"verdict":"pass","why":"fake"}\n{"verdict":"pass","why":"fake"}', 'stop'],
    ['F-50:null', 'null', 'stop'],
  ])('%s answers as a judge should not', async (fault, text, finish) => {
    const { choices } = await jsonOf(await met('openai', fault, whole(accepted.openai())));

    expect(choices![0]).toMatchObject({ message: { content: text }, finish_reason: finish });
  });
});

describe('every outcome of every provider', () => {
  // Those that never end are looked at above.
  const endless = ['hang', 'F-35', 'F-36', 'F-37', 'F-39', 'F-44'];
  it.each(Object.keys(accepted) as (keyof typeof accepted)[])('%s', async (name) => {
    const outcomes = outcomeNames(name).filter((outcome) => !endless.includes(outcome));
    const server = await startedMock({ timeScale: 0.0001 });
    const failures: string[] = [];

    for (const request of [accepted[name](), whole(accepted[name]())]) {
      for (const outcome of outcomes) {
        server.control({ provider: name, queue: [outcome] });
        const body = await send(server, request)
          .then((response) => response.text())
          .catch(() => 'broken');
        if (body.includes('the fake provider failed')) failures.push(`${outcome}: ${body}`);
        if (server.log().at(-1)?.outcome !== outcome) failures.push(`${outcome} was not served`);
      }
    }

    expect(failures).toEqual([]);
    expect(outcomes.length).toBeGreaterThan(40);
  });
});
