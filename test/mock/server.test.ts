import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { requestFingerprint } from '../../mock/fingerprint.ts';
import type { ScenarioInput } from '../../mock/scenario.ts';
import type { MockProvider } from '../../mock/server.ts';
import { startMockProvider } from '../../mock/server.ts';

const servers: MockProvider[] = [];
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.close()));
});
const started = async (scenario: ScenarioInput | string, more: object = {}): Promise<MockProvider> => {
  const server = await startMockProvider({ scenario, ...more });
  servers.push(server);
  return server;
};
const startedModel = (model: Partial<ScenarioInput['models'][string]> = {}, seed = 0) =>
  started({ seed, models: { m: { reply: { text: 'A red light' }, ...model } } });

const wav = 'QUFB';
const user = (content: unknown = 'Which colour?') => ({ role: 'user', content });
const valid = (more: object = {}) => ({ model: 'm', messages: [user()], ...more });
const post = (server: MockProvider, body: unknown, contentType = 'application/json') =>
  fetch(`${server.url}/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': contentType },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
const replyOf = async (response: Response) => {
  const document = (await response.json()) as {
    choices: { message: { content: string }; finish_reason: string }[];
  };
  return document.choices[0]!.message.content;
};
const ask = async (server: MockProvider, text: string, more: object = {}) =>
  post(server, valid({ messages: [user(text)], ...more }));

describe('replies', () => {
  it('are documents in the form of OpenAI', async () => {
    const server = await startedModel();

    const response = await post(
      server,
      valid({
        messages: [
          user([
            { type: 'input_audio', input_audio: { data: wav, format: 'wav' } },
            { type: 'text', text: '12345678' },
          ]),
        ],
      }),
    );

    expect(response.status).toBe(200);
    expect(await response.json()).toEqual({
      id: expect.stringMatching(/^mock-[0-9a-f]{16}-1$/),
      object: 'chat.completion',
      created: expect.any(Number),
      model: 'm',
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: 'A red light', refusal: null },
          logprobs: null,
          finish_reason: 'stop',
        },
      ],
      // 8 characters of text are 2 tokens, 3 bytes of audio one begun token, 11 characters of reply 3.
      usage: {
        prompt_tokens: 3,
        completion_tokens: 3,
        total_tokens: 6,
        prompt_tokens_details: { text_tokens: 2, audio_tokens: 1, cached_tokens: 0 },
      },
    });
  });

  it('are streams where the call asks for one, with usage where it asks for that', async () => {
    const server = await startedModel();
    const events = async (body: object) => {
      const text = await (await post(server, body)).text();
      expect(text.endsWith('data: [DONE]\n\n')).toBe(true);
      return text
        .split('\n\n')
        .slice(0, -2)
        .map((line) => JSON.parse(line.slice('data: '.length)));
    };

    const plain = await events(valid({ stream: true }));
    const counted = await events(valid({ stream: true, stream_options: { include_usage: true } }));

    expect(plain.map(({ choices }) => choices[0].delta.content ?? '').join('')).toBe('A red light');
    expect(plain.at(-1).choices[0].finish_reason).toBe('stop');
    expect(counted).toHaveLength(plain.length + 1);
    expect(counted.at(-1)).toMatchObject({ choices: [], usage: { completion_tokens: 3 } });
  });

  it('echo the last user turn', async () => {
    const server = await startedModel({ reply: { echo: true } });
    const messages = [
      user('first'),
      { role: 'assistant', content: 'x' },
      user([{ type: 'text', text: 'last' }]),
    ];

    expect(await replyOf(await post(server, valid({ messages })))).toBe('last');
  });

  it('come from a table: last text before fingerprint, the model before all, then the fallback', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'mock-table-'));
    // Fingerprint of one user turn with the text Hi, from Python's hashlib.
    const hi = '98ae1764e42509b514961631c61de1fe9924470562640d45cc1f1b42c2356851';
    const rows = [
      { fingerprint: hi, reply: 'by fingerprint' },
      { lastText: 'A', reply: 'for all' },
      { model: 'm', lastText: 'A', reply: 'for m' },
    ];
    writeFileSync(join(folder, 't.jsonl'), rows.map((row) => JSON.stringify(row)).join('\n'));
    writeFileSync(
      join(folder, 's.yaml'),
      'models:\n  m: { reply: { table: t.jsonl } }\n  "*": { reply: { table: t.jsonl, fallback: none } }\n',
    );
    const server = await started(join(folder, 's.yaml'));
    rmSync(folder, { recursive: true });

    expect(await replyOf(await ask(server, 'Hi'))).toBe('by fingerprint');
    expect(await replyOf(await ask(server, 'A'))).toBe('for m');
    expect(await replyOf(await ask(server, 'A', { model: 'other' }))).toBe('for all');
    expect(await replyOf(await ask(server, 'B', { model: 'other' }))).toBe('none');
    const unknown = await ask(server, 'B');
    expect(unknown.status).toBe(400);
    expect(await unknown.text()).toMatch(/no reply scripted for [0-9a-f]{64}/);
  });

  it('come from a table with or without the system text, and requests are counted by it', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'mock-table-'));
    // Fingerprints of the text Hi, without and with the system text `Be brief.`, from Python's hashlib.
    const rows = [
      { fingerprint: '98ae1764e42509b514961631c61de1fe9924470562640d45cc1f1b42c2356851', reply: 'any' },
      { fingerprint: '8054daac54adeb6c5fdd6d46b71b2126e9b4d5ef48379e52203ba4f8d5bac590', reply: 'brief' },
    ];
    writeFileSync(join(folder, 't.jsonl'), rows.map((row) => JSON.stringify(row)).join('\n'));
    writeFileSync(join(folder, 's.yaml'), 'models:\n  m: { reply: { table: t.jsonl } }\n');
    const server = await started(join(folder, 's.yaml'));
    rmSync(folder, { recursive: true });
    const askAfter = (content: string) =>
      post(server, valid({ messages: [{ role: 'system', content }, user('Hi')] }));

    expect(await replyOf(await ask(server, 'Hi'))).toBe('any');
    expect(await replyOf(await askAfter('Be long.'))).toBe('any');
    expect(await replyOf(await askAfter('Be brief.'))).toBe('brief');
    expect(server.stats().requestsBySystem).toEqual({ 'm none': 1, 'm fd09b35b': 1, 'm 213c22ed': 1 });
    const late = await post(
      server,
      valid({ messages: [user('Hi'), { role: 'system', content: 'Be brief.' }, user('Hi')] }),
    );
    expect(late.status).toBe(400);
  });

  it('come from the simulated judge, its faults too', async () => {
    const server = await startedModel({
      reply: { judge: 'aliases' },
      faults: [{ kind: 'fenced', firstAttempts: 1 }],
    });
    const text = JSON.stringify({ items: [{ id: 'i', gold: 'red', candidate: 'It is red.' }] });

    expect(await replyOf(await ask(server, text))).toMatch(/^```json/);
    expect(await replyOf(await ask(server, text))).toMatch(
      /^\{"judgments":\[\{"id":"i","verdict":"equivalent"/,
    );
    expect((await ask(server, 'what?')).status).toBe(400);
  });
});

describe('a strict server', () => {
  const parts = (...content: unknown[]) => valid({ messages: [user(content)] });
  it.each<[string, unknown]>([
    ['no JSON', '{"model":'],
    ['an array', []],
    ['no model', { messages: [user()] }],
    ['no messages', { model: 'm' }],
    ['empty messages', valid({ messages: [] })],
    ['an unknown argument', valid({ max_token: 5 })],
    ['a fractional cap', valid({ max_tokens: 1.5 })],
    ['a cap of zero', valid({ max_tokens: 0 })],
    ['two caps', valid({ max_tokens: 5, max_completion_tokens: 5 })],
    ['a temperature as text', valid({ temperature: '0' })],
    ['options of a stream that is none', valid({ stream_options: { include_usage: true } })],
    ['a stream that is no boolean', valid({ stream: 'yes' })],
    ['an unknown role', valid({ messages: [{ role: 'robot', content: 'x' }] })],
    ['an unknown member of a message', valid({ messages: [{ ...user(), name: 'x', mood: 1 }] })],
    ['empty text', valid({ messages: [user('')] })],
    ['no parts', valid({ messages: [user([])] })],
    ['an empty assistant message', valid({ messages: [user(), { role: 'assistant', content: '' }, user()] })],
    [
      'media in an assistant message',
      valid({ messages: [user(), { role: 'assistant', content: [] }, user()] }),
    ],
    ['a reply as last message', valid({ messages: [user(), { role: 'assistant', content: 'x' }] })],
    ['an unknown part', parts({ type: 'video', video: [] })],
    ['a text part without text', parts({ type: 'text' })],
    [
      'audio with a prefix',
      parts({ type: 'input_audio', input_audio: { data: `data:audio/wav;base64,${wav}`, format: 'wav' } }),
    ],
    ['audio that is no base64', parts({ type: 'input_audio', input_audio: { data: 'QU!B', format: 'wav' } })],
    ['audio that is cut', parts({ type: 'input_audio', input_audio: { data: 'QUF', format: 'wav' } })],
    ['audio of another format', parts({ type: 'input_audio', input_audio: { data: wav, format: 'ogg' } })],
    ['audio without data', parts({ type: 'input_audio', input_audio: { format: 'wav' } })],
    ['video without a prefix', parts({ type: 'video_url', video_url: { url: wav } })],
    [
      'video of another type',
      parts({ type: 'video_url', video_url: { url: `data:video/webm;base64,${wav}` } }),
    ],
    [
      'a misplaced fps',
      parts({ type: 'video_url', video_url: { url: `data:video/mp4;base64,${wav}` }, fps: 2 }),
    ],
  ])('refuses %s', async (_name, body) => {
    const server = await startedModel();

    const response = await post(server, body);

    expect(response.status).toBe(400);
    expect(await response.json()).toEqual({
      error: {
        message: expect.any(String),
        type: 'invalid_request_error',
        param: expect.toBeOneOf([null, expect.any(String)]),
        code: 'invalid_value',
      },
    });
    expect(server.stats()).toMatchObject({
      requests: 1,
      replies: 0,
      malformed: 1,
      requestsByFingerprint: {},
    });
  });

  it('refuses another content type, an unknown model and an unknown address', async () => {
    const server = await startedModel();

    expect((await post(server, valid(), 'text/plain')).status).toBe(400);
    expect((await post(server, valid({ model: 'x' }))).status).toBe(404);
    expect((await fetch(`${server.url}/completions`, { method: 'POST', body: '{}' })).status).toBe(404);
  });

  it('takes every member that our dialects send', async () => {
    const server = await startedModel();
    const body = valid({
      max_completion_tokens: 5,
      temperature: 0,
      top_p: 1,
      seed: 0,
      reasoning_effort: 'none',
      response_format: { type: 'json_object' },
      mm_processor_kwargs: { fps: 2 },
      stream: false,
      messages: [
        { role: 'system', content: 'Be brief.' },
        user([{ type: 'video_url', video_url: { url: `data:video/mp4;base64,${wav}` } }]),
      ],
    });

    expect((await post(server, body)).status).toBe(200);
  });
});

describe('faults', () => {
  const faultyOf = async (server: MockProvider, texts: string[]) => {
    const faulty: string[] = [];
    for (const text of texts) if ((await ask(server, text)).status !== 200) faulty.push(text);
    return faulty;
  };
  const texts = Array.from({ length: 300 }, (_, index) => `question ${index}`);

  it('of a rate meet the same requests in any order, and others with another seed', async () => {
    const model = { faults: [{ kind: 'http_500', rate: 0.2 }] };
    const first = await faultyOf(await startedModel(model, 1), texts);
    const backwards = await faultyOf(await startedModel(model, 1), texts.toReversed());
    const otherSeed = await faultyOf(await startedModel(model, 2), texts);

    expect(backwards.toSorted()).toEqual(first.toSorted());
    expect(otherSeed).not.toEqual(first);
    // 60 expected; six standard deviations of 6.9 on each side.
    expect(first.length).toBeGreaterThan(18);
    expect(first.length).toBeLessThan(102);
  });

  it('of a rate are drawn again for every attempt', async () => {
    const server = await startedModel({ faults: [{ kind: 'http_500', rate: 0.5 }] });

    const statuses = [];
    for (let attempt = 0; attempt < 40; attempt += 1) statuses.push((await ask(server, 'same')).status);

    expect(new Set(statuses)).toEqual(new Set([200, 500]));
  });

  it('of the first attempts count each request by itself', async () => {
    const server = await startedModel({
      faults: [{ kind: 'http_429', firstAttempts: 2, retryAfterSeconds: 3, match: { lastText: 'colour' } }],
    });
    const statuses = async (text: string) => [
      (await ask(server, text)).status,
      (await ask(server, text)).status,
      (await ask(server, text)).status,
    ];

    expect(await statuses('Which colour?')).toEqual([429, 429, 200]);
    expect(await statuses('What colour is it?')).toEqual([429, 429, 200]);
    expect(await statuses('Who?')).toEqual([200, 200, 200]);
    expect((await ask(server, 'A third colour')).headers.get('retry-after')).toBe('3');
    expect(server.stats()).toMatchObject({ rateLimited: 5, byFault: { http_429: 5 }, replies: 5 });
  });

  it('may be those of one request', async () => {
    const fingerprint = requestFingerprint([{ role: 'user', content: 'Who?' }]);
    const server = await startedModel({
      faults: [{ kind: 'http_500', firstAttempts: 1, match: { fingerprint } }],
    });

    expect((await ask(server, 'Who is it?')).status).toBe(200);
    expect((await ask(server, 'Who?')).status).toBe(500);
    expect((await ask(server, 'Who?')).status).toBe(200);
  });

  it('of length end with a cap that is large enough', async () => {
    const server = await startedModel({ faults: [{ kind: 'length', rate: 1, succeedAtMaxTokens: 4096 }] });
    const finishOf = async (more: object) =>
      ((await (await post(server, valid(more))).json()) as { choices: [{ finish_reason: string }] })
        .choices[0].finish_reason;

    expect(await finishOf({ max_tokens: 4095 })).toBe('length');
    expect(await finishOf({ max_tokens: 4096 })).toBe('stop');
    expect(await finishOf({ max_completion_tokens: 5000 })).toBe('stop');
  });
});

describe('capacity', () => {
  it('answers 429 beyond it, which is no attempt', async () => {
    const server = await startedModel({
      capacity: 2,
      retryAfterSeconds: 7,
      latencyMs: 500,
      faults: [{ kind: 'http_500', firstAttempts: 1, match: { lastText: 'later' } }],
    });

    const responses = await Promise.all([1, 2, 3, 4, 5].map((number) => ask(server, `question ${number}`)));

    const rejected = responses.filter(({ status }) => status === 429);
    expect(rejected).toHaveLength(3);
    expect(rejected[0]?.headers.get('retry-after')).toBe('7');
    expect(server.stats()).toMatchObject({
      requests: 5,
      replies: 2,
      peakInFlight: 2,
      rateLimited: 3,
      inFlight: 0,
    });
    expect(Object.values(server.stats().requestsByFingerprint)).toEqual([1, 1]);
  });

  it('is free again as soon as a reply has arrived', async () => {
    const server = await startedModel({ capacity: 4 });
    const statuses: number[] = [];

    await Promise.all(
      [1, 2, 3, 4].map(async (worker) => {
        for (let call = 0; call < 75; call += 1) {
          const response = await ask(server, `${worker} ${call}`);
          await response.text();
          statuses.push(response.status);
        }
      }),
    );

    expect(statuses).toEqual(Array.from({ length: 300 }, () => 200));
  });

  it('belongs to each model, and can change', async () => {
    const model = { reply: { text: 'x' }, capacity: 1, latencyMs: 100 };
    const server = await started({ models: { m: model, n: model } });

    const both = await Promise.all([ask(server, 'a'), ask(server, 'a', { model: 'n' })]);
    server.setScenario({ models: { m: { ...model, capacity: 3 } } });
    const three = await Promise.all(['a', 'b', 'c'].map((text) => ask(server, text)));

    expect([...both, ...three].map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
    expect(server.stats().byModel).toMatchObject({ m: { peakInFlight: 3 }, n: { requests: 1 } });
  });

  it('is free again after callers went away', async () => {
    const server = await startedModel({ capacity: 1, faults: [{ kind: 'hang', firstAttempts: 1 }] });
    const abort = new AbortController();
    const hanging = fetch(`${server.url}/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(valid()),
      signal: abort.signal,
    });
    await expect.poll(() => server.stats().inFlight).toBe(1);

    abort.abort();

    await expect(hanging).rejects.toThrow();
    await expect.poll(() => server.stats().inFlight).toBe(0);
    expect((await post(server, valid())).status).toBe(200);
  });
});

describe('latency', () => {
  it('is slept through on the clock that is given, inside its range', async () => {
    const slept: number[] = [];
    const clock = {
      sleep: async (ms: number) => {
        slept.push(ms);
      },
    };
    const server = await started(
      { models: { m: { reply: { text: 'x' }, latencyMs: { min: 1000, max: 2000 } } } },
      { clock },
    );

    for (let number = 0; number < 20; number += 1) await ask(server, `question ${number}`);

    expect(slept).toHaveLength(20);
    expect(Math.min(...slept)).toBeGreaterThanOrEqual(1000);
    expect(Math.max(...slept)).toBeLessThan(2000);
    expect(new Set(slept).size).toBeGreaterThan(10);
  });
});

describe('the server', () => {
  it('counts requests and replies by fingerprint', async () => {
    const server = await startedModel({ faults: [{ kind: 'http_503', firstAttempts: 1 }] });
    const key = 'm 98ae1764e42509b514961631c61de1fe9924470562640d45cc1f1b42c2356851';

    for (let attempt = 0; attempt < 3; attempt += 1) await ask(server, 'Hi');

    expect(server.stats()).toMatchObject({
      requestsByFingerprint: { [key]: 3 },
      repliesByFingerprint: { [key]: 2 },
      byModel: { m: { requests: 3, replies: 2 } },
    });
    const root = server.url.replace('/v1', '');
    expect(await (await fetch(`${root}/stats`)).json()).toMatchObject({
      requests: 3,
      repliesByFingerprint: { [key]: 2 },
    });
    expect(await (await fetch(`${root}/stats?fingerprints=no`)).json()).not.toHaveProperty(
      'repliesByFingerprint',
    );
    expect((await fetch(`${root}/reset`, { method: 'POST' })).status).toBe(200);
    expect(server.stats()).toMatchObject({ requests: 0, replies: 0, requestsByFingerprint: {} });
  });

  it('sees the media of every turn, in order', async () => {
    const server = await startedModel();
    const messages = [
      user([
        { type: 'input_audio', input_audio: { data: 'QUFB', format: 'wav' } },
        { type: 'video_url', video_url: { url: 'data:video/mp4;base64,QkI=' } },
        { type: 'text', text: 'Which 蓝 "colour"?\n' },
      ]),
      { role: 'assistant', content: 'Blue' },
      user([{ type: 'text', text: 'And now?' }]),
    ];

    await post(server, valid({ messages }));

    // The same request as in the tests of requestFingerprint.
    expect(server.stats().requestsByFingerprint).toEqual({
      'm d6113c809dd6a94354bd07d9ee9d996ae752cfd13f90b7d21394320cdeee12bc': 1,
    });
  });

  it('lists its models', async () => {
    const server = await started({ models: { m: { reply: { text: 'x' } }, '*': { reply: { text: 'y' } } } });

    expect(await (await fetch(`${server.url}/models`)).json()).toMatchObject({
      object: 'list',
      data: [{ id: 'm' }],
    });
    expect(await replyOf(await ask(server, 'a', { model: 'any' }))).toBe('y');
  });

  it('says that its port is taken, in one line', async () => {
    const server = await startedModel();

    await expect(started({ models: {} }, { port: server.port })).rejects.toMatchObject({
      name: 'UsageWrong',
      message: `port is in use (127.0.0.1:${server.port}); stop its owner or choose another port`,
    });
  });
});
