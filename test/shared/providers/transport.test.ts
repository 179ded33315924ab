import { gzipSync } from 'node:zlib';
import { afterEach, describe, expect, it } from 'vitest';
import { startMockProvider } from '../../../mock/server.ts';
import type { Transport, TransportOptions, TransportResult } from '../../../shared/providers/transport.ts';
import { createTransport, endpointUrl, retryAfterSeconds } from '../../../shared/providers/transport.ts';
import { chunk, head, lastChunk, pause, startRawServer, streamHead, whole } from './raw-server.ts';

const opened: { close(): Promise<void> }[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((item) => item.close()));
});
const opening = <T extends { close(): Promise<void> }>(item: T): T => {
  opened.push(item);
  return item;
};
const transportTo = (url: string, options: Partial<TransportOptions> = {}): Transport =>
  opening(createTransport({ url, headers: {}, connections: 4, ...options }));

const body = Buffer.from('{}');
const question = Buffer.from(
  JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'Which colour is it?' }] }),
);
const failureOf = (result: TransportResult) => ('failure' in result ? result.failure : null);
const replyOf = (result: TransportResult) => ('reply' in result ? result.reply : null);
const mock = async (latencyMs = 0) =>
  opening(await startMockProvider({ scenario: { models: { m: { reply: { text: 'Red' }, latencyMs } } } }));

describe('retryAfterSeconds', () => {
  const now = Date.UTC(2026, 10, 30, 7, 0, 0);

  it.each([
    ['whole seconds', { 'retry-after': '2' }, 2],
    ['zero', { 'retry-after': '0' }, 0],
    ['a fraction', { 'retry-after': '1.5' }, 1.5],
    ['a long time, not capped here', { 'retry-after': '86400' }, 86_400],
    ['milliseconds', { 'retry-after-ms': '1500' }, 1.5],
    ['milliseconds before seconds', { 'retry-after-ms': '1500', 'retry-after': '9' }, 1.5],
    ['unreadable milliseconds beside seconds', { 'retry-after-ms': 'soon', 'retry-after': '9' }, 9],
    ['a date ahead', { 'retry-after': 'Mon, 30 Nov 2026 07:00:03 GMT' }, 3],
    ['a date that has passed', { 'retry-after': 'Mon, 30 Nov 2026 06:59:00 GMT' }, 0],
    ['the old date of RFC 850', { 'retry-after': 'Monday, 30-Nov-26 07:01:00 GMT' }, 60],
    ['the date of asctime', { 'retry-after': 'Mon Nov 30 07:00:10 2026' }, 10],
    ['a repeated header', { 'retry-after': ['4', '8'] }, 4],
    ['spaces around', { 'retry-after': ' 3 ' }, 3],
    ['a word', { 'retry-after': 'banana' }, null],
    ['a word that Date would take', { 'retry-after': 'banana 1' }, null],
    ['a weekday and no date', { 'retry-after': 'Mon, whenever GMT' }, null],
    ['a negative number', { 'retry-after': '-1' }, null],
    ['an exponent', { 'retry-after': '1e9' }, null],
    ['nothing', {}, null],
    ['an empty text', { 'retry-after': '' }, null],
    ['an allowance of tokens', { 'x-ratelimit-reset-tokens': '1m2.5s' }, 62.5],
    ['an allowance in milliseconds', { 'x-ratelimit-reset-tokens': '6ms' }, 0.006],
    ['an allowance of requests', { 'x-ratelimit-reset-requests': '1m30s' }, 90],
    [
      'the longer of two that are spent',
      {
        'x-ratelimit-reset-tokens': '2s',
        'x-ratelimit-reset-requests': '12s',
        'x-ratelimit-remaining-requests': '0',
      },
      12,
    ],
    [
      'no allowance of requests of which some are left',
      {
        'x-ratelimit-reset-tokens': '2s',
        'x-ratelimit-reset-requests': '4m12s',
        'x-ratelimit-remaining-requests': '59',
      },
      2,
    ],
    ['a wish before an allowance', { 'retry-after': '9', 'x-ratelimit-reset-tokens': '2s' }, 9],
    [
      'an allowance behind a wish that is nonsense',
      { 'retry-after': '-1', 'x-ratelimit-reset-tokens': '2s' },
      2,
    ],
    ['no allowance of a day', { 'x-ratelimit-reset-requests': '7h12m0s' }, null],
    ['an allowance of the longest wait', { 'x-ratelimit-reset-requests': '5m0s' }, 300],
    ['no allowance in words', { 'x-ratelimit-reset-tokens': 'soon' }, null],
    ['no allowance without unit', { 'x-ratelimit-reset-tokens': '60' }, null],
    ['no negative allowance', { 'x-ratelimit-reset-tokens': '-5s' }, null],
    ['no empty allowance', { 'x-ratelimit-reset-tokens': '' }, null],
  ])('reads %s', (_name, headers, seconds) => {
    expect(retryAfterSeconds(headers, now)).toBe(seconds);
  });

  it('takes a date by the clock of the server that gave it, whatever this machine has for a clock', () => {
    const headers = {
      date: 'Mon, 02 Mar 2026 10:00:00 GMT',
      'retry-after': 'Mon, 02 Mar 2026 10:00:07 GMT',
    };

    const hoursOff = [-5, 0, 5].map((hours) => Date.UTC(2026, 2, 2, 10 + hours));
    expect(hoursOff.map((wrong) => retryAfterSeconds(headers, wrong))).toEqual([7, 7, 7]);
  });

  it('takes an allowance for a wish to wait on a 429 only', () => {
    expect(retryAfterSeconds({ 'x-ratelimit-reset-tokens': '2s' }, now, 503)).toBeNull();
    expect(retryAfterSeconds({ 'retry-after': '2' }, now, 503)).toBe(2);
  });
});

describe('endpointUrl', () => {
  it.each([
    ['https://host/v1', 'https://host/v1/chat/completions'],
    ['https://host/v1/', 'https://host/v1/chat/completions'],
    ['http://127.0.0.1:8000', 'http://127.0.0.1:8000/chat/completions'],
    ['https://host/openai?api-version=1', 'https://host/openai/chat/completions?api-version=1'],
  ])('extends %s', (base, expected) => {
    expect(endpointUrl(base, 'chat/completions')).toBe(expected);
  });

  it.each(['', 'host/v1', 'ftp://host/v1', 'https://user:secret@host/v1'])('refuses %j', (base) => {
    expect(() => endpointUrl(base, 'chat/completions')).toThrow(
      expect.objectContaining({ name: 'UsageWrong' }),
    );
  });

  it('does not repeat a password that stands in the address', () => {
    expect(() => endpointUrl('https://user:secret@host/v1', 'x')).toThrow(/^(?!.*secret)/);
  });
});

describe('connections', () => {
  it('uses its connections again', async () => {
    const server = await mock();
    const transport = transportTo(`${server.url}/chat/completions`);

    for (let call = 0; call < 50; call += 1) await transport.post(question, { deadlineMs: 5000 });

    expect(server.stats()).toMatchObject({ requests: 50, replies: 50 });
    // A call made in the very moment of the last byte may find its connection still taken.
    expect(server.stats().connections).toBeLessThanOrEqual(2);
  });

  it('has 300 calls in flight where it may', async () => {
    const server = await mock(2000);
    const transport = transportTo(`${server.url}/chat/completions`, { connections: 300 });

    const results = await Promise.all(
      Array.from({ length: 300 }, () => transport.post(question, { deadlineMs: 30_000 })),
    );

    expect(results.map((result) => replyOf(result)?.status)).toEqual(Array.from({ length: 300 }, () => 200));
    expect(server.stats()).toMatchObject({ peakInFlight: 300, connections: 300 });
  });

  it('never opens more connections than it may', async () => {
    const server = await mock(5);
    const transport = transportTo(`${server.url}/chat/completions`, { connections: 3 });

    await Promise.all(Array.from({ length: 30 }, () => transport.post(question, { deadlineMs: 30_000 })));

    expect(server.stats()).toMatchObject({ requests: 30, peakInFlight: 3, connections: 3 });
  });

  it('does not send a call whose deadline passed while it waited for a connection', async () => {
    const server = opening(
      await startRawServer(async (socket) => {
        await pause(250);
        socket.write(whole('{}'));
      }),
    );
    const transport = transportTo(server.url, { connections: 1 });

    const [first, second] = await Promise.all([
      transport.post(body, { deadlineMs: 10_000 }),
      transport.post(body, { deadlineMs: 50 }),
    ]);
    const third = await transport.post(body, { deadlineMs: 10_000 });

    expect(replyOf(first)?.status).toBe(200);
    expect(failureOf(second)?.kind).toBe('timeout');
    expect(replyOf(third)?.status).toBe(200);
    expect(server.requests).toHaveLength(2);
  });

  it('takes a new connection after a time-out', async () => {
    const server = opening(
      await startRawServer((socket, number) => {
        if (number > 1) socket.write(whole('{}'));
      }),
    );
    const transport = transportTo(server.url, { connections: 1 });

    const hung = await transport.post(body, { deadlineMs: 60 });
    const next = await transport.post(body, { deadlineMs: 10_000 });

    expect(failureOf(hung)).toMatchObject({ kind: 'timeout', partial: null });
    expect(replyOf(next)?.status).toBe(200);
    expect(server.connections).toBe(2);
  });

  it('sends head and body as they are', async () => {
    const server = opening(await startRawServer((socket) => void socket.write(whole('{}'))));
    const transport = transportTo(`${server.url}/v1/chat/completions?x=1`, {
      headers: { authorization: 'Bearer k' },
    });

    await transport.post(Buffer.from('{"a":"é"}'), { deadlineMs: 10_000 });

    expect(server.requests[0]).toMatch(/^POST \/v1\/chat\/completions\?x=1 HTTP\/1.1\r\n/);
    expect(server.requests[0]).toMatch(/content-type: application\/json\r\n/);
    expect(server.requests[0]).toMatch(/authorization: Bearer k\r\n/);
    expect(server.requests[0]).toMatch(/content-length: 10\r\n/);
    expect(server.requests[0]).toMatch(/\r\n\r\n\{"a":"é"\}$/);
  });
});

describe('time', () => {
  const drip = (pieces: number, everyMs: number) =>
    startRawServer(async (socket) => {
      socket.write(streamHead);
      for (let piece = 0; piece < pieces && !socket.destroyed; piece += 1) {
        socket.write(chunk(': still here\n\n'));
        await pause(everyMs);
      }
      if (!socket.destroyed) socket.write(lastChunk);
    });

  it('ends a body that drips on beyond the deadline', async () => {
    const server = opening(await drip(1000, 10));
    const transport = transportTo(server.url, { idleTimeoutMs: 10_000 });

    const result = await transport.post(body, { deadlineMs: 150 });

    expect(failureOf(result)).toMatchObject({ kind: 'timeout', message: 'no complete reply within 150 ms' });
    expect(failureOf(result)?.partial?.body.toString()).toMatch(/^: still here\n\n/);
  });

  it('lets a body drip inside the deadline, however slow against the idle time-out', async () => {
    const server = opening(await drip(12, 100));
    const transport = transportTo(server.url, { idleTimeoutMs: 1000 });

    const result = await transport.post(body, { deadlineMs: 30_000 });

    expect(replyOf(result)?.body.toString()).toBe(': still here\n\n'.repeat(12));
  });

  it('ends a reply that falls silent', async () => {
    const server = opening(
      await startRawServer(
        (socket) => void socket.write(Buffer.concat([Buffer.from(streamHead), chunk('data: ')])),
      ),
    );
    const transport = transportTo(server.url, { idleTimeoutMs: 80 });

    const result = await transport.post(body, { deadlineMs: 30_000 });

    expect(failureOf(result)).toMatchObject({ kind: 'timeout', message: 'the reply stopped for 80 ms' });
  });

  it('waits for the first byte longer than the idle time-out', async () => {
    const server = opening(
      await startRawServer(async (socket) => {
        await pause(200);
        socket.write(whole('{}'));
      }),
    );
    const transport = transportTo(server.url, { idleTimeoutMs: 50 });

    const result = await transport.post(body, { deadlineMs: 30_000 });

    expect(replyOf(result)?.status).toBe(200);
  });

  it('rejects with the reason of an abort, before and during a call', async () => {
    const server = opening(await startRawServer(() => {}));
    const transport = transportTo(server.url);
    const during = new AbortController();
    const reason = new Error('interrupted');

    const running = transport.post(body, { deadlineMs: 30_000, signal: during.signal });
    const aborted = expect(running).rejects.toBe(reason);
    await expect.poll(() => server.requests.length, { timeout: 20_000 }).toBe(1);
    during.abort(reason);

    await aborted;
    await expect(
      transport.post(body, { deadlineMs: 30_000, signal: AbortSignal.abort(reason) }),
    ).rejects.toBe(reason);
    expect(server.requests).toHaveLength(1);
  });
});

describe('faults', () => {
  it('names a refused connection', async () => {
    const server = await startRawServer(() => {});
    await server.close();
    const transport = transportTo(server.url);

    const result = await transport.post(body, { deadlineMs: 10_000 });

    expect(failureOf(result)).toMatchObject({ kind: 'connect_failed', partial: null });
    expect(failureOf(result)?.message).toMatch(/ECONNREFUSED/);
  });

  it('names a host that does not exist', async () => {
    const transport = transportTo('http://no-such-host.invalid/v1');

    const result = await transport.post(body, { deadlineMs: 10_000 });

    expect(failureOf(result)?.kind).toBe('connect_failed');
  });

  it.each([
    ['a reset before the head', (): (string | Buffer)[] => []],
    ['a reset inside the head', () => ['HTTP/1.1 200 OK\r\ncontent-']],
    ['a reset inside a stream', () => [streamHead, chunk('data: {}\n\n')]],
    ['a body shorter than its length', () => [head('content-length: 10'), '{"a"']],
  ])('names %s, by a reset and by a regular end of the connection', async (_name, bytes) => {
    const server = opening(
      await startRawServer(async (socket, number) => {
        socket.write(Buffer.concat(bytes().map((part) => Buffer.from(part))));
        await pause(20);
        if (number === 1) socket.resetAndDestroy();
        else socket.end();
      }),
    );
    const transport = transportTo(server.url);

    const reset = await transport.post(body, { deadlineMs: 10_000 });
    const ended = await transport.post(body, { deadlineMs: 10_000 });

    expect(failureOf(reset)?.kind).toBe('connection_reset');
    expect(failureOf(ended)?.kind).toBe('connection_reset');
  });

  it.each([
    ['another protocol', 'SSH-2.0-OpenSSH_9.6\r\n\r\n'],
    ['a broken chunk size', `${streamHead}zz\r\n`],
    [
      'a head without end',
      `HTTP/1.1 200 OK\r\n${'x-filler: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n'.repeat(3000)}`,
    ],
  ])('names %s', async (_name, bytes) => {
    const server = opening(await startRawServer((socket) => void socket.write(bytes)));
    const transport = transportTo(server.url);

    const result = await transport.post(body, { deadlineMs: 10_000 });

    expect(failureOf(result)?.kind).toBe('protocol_error');
  });

  it('stops reading a reply that grows beyond the limit', async () => {
    const server = opening(
      await startRawServer(async (socket) => {
        socket.write(streamHead);
        while (!socket.destroyed) {
          socket.write(chunk('x'.repeat(10_000)));
          await pause(1);
        }
      }),
    );
    const transport = transportTo(server.url, { maxReplyBytes: 100_000 });

    const result = await transport.post(body, { deadlineMs: 30_000 });

    expect(failureOf(result)).toMatchObject({
      kind: 'reply_too_large',
      message: 'the reply is larger than 100000 bytes',
    });
    expect(failureOf(result)?.partial?.body.length).toBeLessThanOrEqual(100_000);
  });

  it('takes a reply of exactly the limit', async () => {
    const server = opening(await startRawServer((socket) => void socket.write(whole('x'.repeat(1000)))));
    const transport = transportTo(server.url, { maxReplyBytes: 1000 });

    const result = await transport.post(body, { deadlineMs: 10_000 });

    expect(replyOf(result)?.body.length).toBe(1000);
  });

  it('decodes gzip, and holds the limit against what it unfolds to', async () => {
    const packed = (text: string) =>
      whole(gzipSync(text), 'text/plain', '200 OK', 'content-encoding: gzip\r\n');
    const server = opening(
      await startRawServer((socket, number) => {
        socket.write(packed(number === 1 ? 'A red light' : 'x'.repeat(5000)));
      }),
    );
    const transport = transportTo(server.url, { maxReplyBytes: 1000 });

    const small = await transport.post(body, { deadlineMs: 10_000 });
    const bomb = await transport.post(body, { deadlineMs: 10_000 });

    expect(replyOf(small)?.body.toString()).toBe('A red light');
    expect(failureOf(bomb)?.kind).toBe('reply_too_large');
  });

  it('names an encoding that it cannot undo', async () => {
    const server = opening(
      await startRawServer(
        (socket) => void socket.write(whole('abc', 'text/plain', '200 OK', 'content-encoding: gzip\r\n')),
      ),
    );
    const transport = transportTo(server.url);

    const result = await transport.post(body, { deadlineMs: 10_000 });

    expect(failureOf(result)?.kind).toBe('protocol_error');
  });

  it('does not follow a redirect', async () => {
    const other = opening(await startRawServer((socket) => void socket.write(whole('{}'))));
    const server = opening(
      await startRawServer(
        (socket) =>
          void socket.write(whole('', 'text/plain', '307 Temporary Redirect', `location: ${other.url}/\r\n`)),
      ),
    );
    const transport = transportTo(server.url);

    const result = await transport.post(body, { deadlineMs: 10_000 });

    expect(replyOf(result)?.status).toBe(307);
    expect(other.connections).toBe(0);
  });
});
