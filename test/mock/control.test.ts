import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { providerNames } from '../../mock/dialects/dialect.ts';
import { temporaryFolder } from '../support/command-line.ts';
import { accepted, answerOf, jsonOf, send, startedMock, whole } from './dialects/requests.ts';

const post = (url: string, path: string, body: unknown) =>
  fetch(new URL(path, url), { method: 'POST', body: JSON.stringify(body) });

/** Latencies last until they are released. */
const heldClock = () => {
  const waiting: (() => void)[] = [];
  return {
    clock: { sleep: () => new Promise<void>((resolve) => waiting.push(resolve)) },
    release: () => {
      for (const resolve of waiting.splice(0)) resolve();
    },
  };
};

describe('the control address', () => {
  it('scripts the next outcomes of one provider in order, then all is well again', async () => {
    const server = await startedMock();
    const set = await post(server.url, '/__control', {
      provider: 'dashscope',
      queue: ['F-01', 'F-13:503', 'ok'],
    });
    const statuses = [];
    for (let call = 0; call < 4; call += 1) {
      statuses.push((await send(server, whole(accepted.dashscope()))).status);
    }
    const other = await send(server, whole(accepted.ark()));

    expect(set.status).toBe(200);
    expect(statuses).toEqual([429, 503, 200, 200]);
    expect(other.status).toBe(200);
    expect(server.stats()).toMatchObject({ rateLimited: 1, byFault: { 'F-01': 1, 'F-13:503': 1 } });
  });

  it('validates first: a request that is refused takes no outcome from the queue', async () => {
    const server = await startedMock();
    server.control({ provider: 'ark', queue: ['F-14'] });

    const wrong = await send(server, whole(accepted.ark({ max_completion_tokens: 5 })));
    const right = await send(server, whole(accepted.ark()));

    expect([wrong.status, right.status]).toEqual([400, 503]);
  });

  it('takes a text, a code and a wait of its own', async () => {
    const server = await startedMock();
    server.control({
      provider: 'step',
      queue: [{ text: 'Three.' }, { outcome: 'http_503', retryAfterSeconds: 0.5 }],
    });

    const said = await answerOf(await send(server, whole(accepted.stepfun())));
    const failed = await send(server, whole(accepted.stepfun()));

    expect(said).toBe('Three.');
    expect([failed.status, failed.headers.get('retry-after')]).toEqual([503, '0.5']);
  });

  it.each([
    [
      'an outcome that the provider does not serve',
      { provider: 'openai', queue: ['F-45'] },
      /does not serve the outcome F-45/,
    ],
    ['an outcome without a provider', { queue: ['ok'] }, /provider is missing/],
    ['an unknown member', { provider: 'ark', que: [] }, /que/],
    ['an unknown provider', { provider: 'acme', queue: [] }, /provider/],
  ])('refuses %s', async (_name, command, message) => {
    const server = await startedMock();

    const answer = await post(server.url, '/__control', command);

    expect(answer.status).toBe(400);
    expect((await jsonOf(answer)).error!.message).toMatch(message);
  });

  it('is followed by the log, with keys masked and long texts cut', async () => {
    const server = await startedMock();
    const long = 'A'.repeat(5000);
    await send(server, whole(accepted.openai()));
    await send(server, whole(accepted.gemini({ contents: [{ role: 'user', parts: [{ text: long }] }] })));

    const log = (await (await fetch(new URL('/__log', server.url))).json()) as unknown[];

    expect(log).toMatchObject([
      {
        at: expect.stringMatching(/^\d{4}-.*Z$/),
        provider: 'openai',
        method: 'POST',
        path: '/chat/completions',
        headers: { authorization: '(masked)' },
        bodySha256: expect.stringMatching(/^[0-9a-f]{64}$/),
        body: { model: 'gpt-audio-mini' },
        outcome: 'ok',
        status: 200,
        callerGone: false,
      },
      { provider: 'gemini', headers: { 'x-goog-api-key': '(masked)' } },
    ]);
    expect(JSON.stringify(log)).not.toContain('test-openai');
    expect(JSON.stringify(log)).not.toContain(long);
  });
});

describe('capacity', () => {
  it.each(providerNames)('of %s: a 429 in its own form beyond the slots, which can change', async (name) => {
    const scenario = { models: { '*': { reply: { digest: true as const }, latencyMs: 1000 } } };
    const { clock, release } = heldClock();
    const server = await startedMock({ scenario, clock });
    const request = whole(accepted[name]());
    const atOnce = async (calls: number) => {
      const before = server.stats().requests;
      const answers = Array.from({ length: calls }, () => send(server, request));
      await expect.poll(() => server.stats().requests).toBe(before + calls);
      release();
      return (await Promise.all(answers)).map(({ status }) => status).sort();
    };

    server.setCapacity(2);
    const narrow = await atOnce(5);
    server.control({ capacity: 5, retryAfterSeconds: 3 });
    const wide = await atOnce(5);

    expect(narrow).toEqual([200, 200, 429, 429, 429]);
    expect(wide).toEqual([200, 200, 200, 200, 200]);
    const [model] = Object.values(server.stats().byModel);
    expect(model).toMatchObject({ rateLimited: 3, peakInFlight: 5, replies: 7 });
    expect(server.log().filter(({ outcome }) => outcome === 'capacity')).toHaveLength(3);
  });

  it('may be that of one model, and says how long to wait where it is told to', async () => {
    const server = await startedMock();
    server.control({ capacity: 0, model: 'gpt-audio-mini', retryAfterSeconds: 7 });

    const full = await send(server, whole(accepted.openai()));
    const free = await send(server, whole(accepted.ark()));

    expect([full.status, full.headers.get('retry-after'), free.status]).toEqual([429, '7', 200]);
    expect((await jsonOf(full)).error!.code).toBe('rate_limit_exceeded');
  });
});

describe('a scenario in a dialect', () => {
  it('names the models, their replies and their faults', async () => {
    const server = await startedMock({
      provider: 'dashscope',
      scenario: {
        models: {
          'qwen3.8-omni-flash': {
            reply: { text: 'A red light.' },
            faults: [
              { kind: 'http_503', firstAttempts: 1 },
              { kind: 'F-22', firstAttempts: 2 },
            ],
          },
        },
      },
    });
    const ask = () => send(server, accepted.dashscope());

    const failed = await ask();
    const cut = await (await ask()).text();
    const good = await answerOf(await ask());
    const unknown = await send(
      server,
      accepted.dashscope({ model: 'qwen3-vl-plus', reasoning_effort: undefined }),
    );

    expect(server.url).toBe(server.urlOf('dashscope'));
    expect([failed.status, (await jsonOf(failed)).error?.code]).toEqual([503, 'ModelServingError']);
    expect(cut).toContain('A red ');
    expect(cut).not.toContain('light.');
    expect(cut).not.toContain('"finish_reason":"stop"');
    expect(good).toBe('A red light.');
    expect(unknown.status).toBe(404);
    expect(server.stats().byFault).toEqual({ http_503: 1, 'F-22': 1 });
  });

  it('judges', async () => {
    const server = await startedMock({ scenario: { models: { '*': { reply: { judge: 'aliases' } } } } });
    const content = JSON.stringify({ items: [{ id: 'i', gold: 'red', candidate: 'It is red.' }] });
    const request = {
      provider: 'openai' as const,
      body: { model: 'gpt-5.4-mini', messages: [{ role: 'user', content }] },
    };

    const answer = JSON.parse(await answerOf(await send(server, request)));

    expect(answer.judgments).toMatchObject([{ id: 'i', verdict: 'equivalent' }]);
  });

  it('finds scripted replies by the question behind time stamps of frames', async () => {
    const table = path.join(temporaryFolder(), 'replies.jsonl');
    writeFileSync(table, `${JSON.stringify({ lastText: 'Which?', reply: 'The red one.' })}\n`);
    const server = await startedMock({
      scenario: { models: { '*': { reply: { table, fallback: 'none' } } } },
    });
    const asked = (...texts: string[]) =>
      whole(
        accepted.ark({
          messages: [{ role: 'user', content: texts.map((text) => ({ type: 'text', text })) }],
        }),
      );

    expect(await answerOf(await send(server, asked('t=0.0s', 'Which?')))).toBe('The red one.');
    expect(await answerOf(await send(server, asked('Which?', 'Now.')))).toBe('none');
  });
});
