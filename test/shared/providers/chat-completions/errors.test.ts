import { describe, expect, it } from 'vitest';
import { cleanMessage } from '../../../../shared/providers/chat-completions/errors.ts';
import { replyOutcome } from '../../../../shared/providers/chat-completions/response.ts';
import { commonProfile } from '../../../../shared/providers/openai-compatible/provider.ts';

const now = Date.UTC(2026, 10, 30, 7, 0, 0);
const outcomeOf = (status: number, body: unknown, headers: Record<string, string> = {}) =>
  replyOutcome(
    {
      status,
      headers,
      body: Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)),
    },
    { apiKey: 'sk-secret', now, profile: commonProfile },
  );
const named = (code: unknown, type = 'some_error') => ({
  error: { message: 'fake', type, param: null, code },
});

describe('outcomes by status', () => {
  it.each([
    [307, 'failed', 'http_307'],
    [400, 'failed', 'http_400'],
    [401, 'stop_lane', 'http_401'],
    [402, 'stop_lane', 'http_402'],
    [403, 'stop_lane', 'http_403'],
    [404, 'stop_lane', 'http_404'],
    [405, 'failed', 'http_405'],
    [408, 'retry', 'http_408'],
    [409, 'retry', 'http_409'],
    [413, 'failed', 'http_413'],
    [422, 'failed', 'http_422'],
    [425, 'retry', 'http_425'],
    [429, 'retry', 'http_429'],
    [431, 'failed', 'http_431'],
    [451, 'refused', 'http_451'],
    [500, 'retry', 'http_500'],
    [502, 'retry', 'http_502'],
    [503, 'retry', 'http_503'],
    [504, 'retry', 'http_504'],
    [529, 'retry', 'http_529'],
  ])('%i is %s', (status, outcome, kind) => {
    expect(outcomeOf(status, named(null))).toMatchObject({ status: outcome, kind, httpStatus: status });
    expect(outcomeOf(status, '<html>proxy</html>')).toMatchObject({ status: outcome, kind });
    expect(outcomeOf(status, '')).toMatchObject({ status: outcome, kind, message: `HTTP ${status}` });
  });

  it.each([201, 204, 206])('%i is no reply', (status) => {
    const reply = { choices: [{ message: { content: 'Red' }, finish_reason: 'stop' }] };

    expect(outcomeOf(status, reply)).toMatchObject({ status: 'retry', kind: 'invalid_response' });
  });
});

describe('outcomes by code', () => {
  it.each([
    ['content_policy_violation'],
    ['content_filter'],
    ['invalid_prompt'],
    ['cyber_policy'],
    ['data_inspection_failed'],
    ['DataInspectionFailed'],
    ['InputVideoSensitiveContentDetected'],
    ['InputTextSensitiveContentDetected.SevereViolation'],
    ['OutputTextRiskDetection'],
    ['ResponsibleAIPolicyViolation'],
  ])('400 %s is refused', (code) => {
    expect(outcomeOf(400, named(code))).toMatchObject({ status: 'refused', kind: 'provider_refusal' });
  });

  it('reads a policy code that stands in the type', () => {
    expect(outcomeOf(400, named(null, 'data_inspection_failed'))).toMatchObject({ status: 'refused' });
  });

  it.each([
    [429, 'insufficient_quota'],
    [400, 'Arrearage'],
    [429, 'billing_hard_limit_reached'],
    [400, 'model_not_found'],
    [400, 'invalid_api_key'],
  ])('%i %s stops the lane', (status, code) => {
    expect(outcomeOf(status, named(code))).toMatchObject({ status: 'stop_lane', kind: `http_${status}` });
  });

  it.each([
    [429, 'rate_limit_exceeded', 'retry'],
    [400, 'context_length_exceeded', 'failed'],
    [400, 'InvalidParameter.DataInspection', 'failed'],
    [503, 'overloaded', 'retry'],
  ])('%i %s is %s', (status, code, outcome) => {
    expect(outcomeOf(status, named(code)).status).toBe(outcome);
  });
});

describe('errors inside a 200', () => {
  it.each([
    ['a status as a number', { error: { message: 'x', code: 500 } }, 'retry', 'http_500'],
    ['a status as text', { error: { message: 'x', code: '429' } }, 'retry', 'http_429'],
    ['a bad request', { error: { message: 'x', code: 400 } }, 'failed', 'http_400'],
    ['a policy code', named('data_inspection_failed'), 'refused', 'provider_refusal'],
    ['an empty wallet', named('insufficient_quota'), 'stop_lane', 'http_429'],
    ['a rate', named('rate_limit_exceeded'), 'retry', 'http_429'],
    ['a rate in the type', named(null, 'rate_limit_error'), 'retry', 'http_429'],
    ['a server that failed', named(null, 'server_error'), 'retry', 'http_500'],
    ['the same in another spelling', named('InternalServerError'), 'retry', 'http_500'],
    ['a busy server', named('overloaded_error'), 'retry', 'http_503'],
    ['an unknown code', named('who_knows'), 'retry', 'invalid_response'],
    ['a text', { error: 'overloaded' }, 'retry', 'invalid_response'],
    ['an empty object', { error: {} }, 'retry', 'invalid_response'],
    [
      'the older form',
      { object: 'error', message: 'x', type: 'BadRequestError', code: 400 },
      'failed',
      'http_400',
    ],
    [
      'a whole reply beside it',
      { error: { code: 503 }, choices: [{ message: { content: 'Red' }, finish_reason: 'stop' }] },
      'retry',
      'http_503',
    ],
  ])('%s', (_name, body, outcome, kind) => {
    expect(outcomeOf(200, body)).toMatchObject({ status: outcome, kind, httpStatus: 200 });
  });
});

describe('what is kept of an error', () => {
  it('takes the wait of a 429 in each form', () => {
    expect(outcomeOf(429, named(null), { 'retry-after': '2' })).toMatchObject({ retryAfterSeconds: 2 });
    expect(outcomeOf(429, named(null), { 'retry-after': 'Mon, 30 Nov 2026 07:00:03 GMT' })).toMatchObject({
      retryAfterSeconds: 3,
    });
    expect(outcomeOf(429, named(null))).toMatchObject({ retryAfterSeconds: null });
  });

  it('finds the id of the request in the body or the header', () => {
    expect(outcomeOf(400, { ...named('x'), request_id: 'r-1' }).responseId).toBe('r-1');
    expect(outcomeOf(400, named('x'), { 'x-request-id': 'r-2' }).responseId).toBe('r-2');
    expect(outcomeOf(400, named('x')).responseId).toBeNull();
  });

  it.each([
    ['an error object', named('bad_part'), 'HTTP 400: bad_part: fake'],
    ['a message alone', { message: 'too\nmany' }, 'HTTP 400: too many'],
    ['plain text', 'upstream  went\r\naway', 'HTTP 400: upstream went away'],
    ['a page', '<!doctype html><p>no</p>', 'HTTP 400: a web page'],
  ])('says what %s says, in one line', (_name, body, message) => {
    expect(outcomeOf(400, body)).toMatchObject({ message });
  });

  it('never shows the key', () => {
    const filler = 'x'.repeat(270);

    const outcomes = [
      outcomeOf(401, named('invalid_api_key')),
      outcomeOf(401, { error: { message: 'wrong key sk-secret, sk-secret!' } }),
      outcomeOf(500, 'Authorization: Bearer sk-secret'),
      outcomeOf(400, { error: { message: `${filler}sk-secret` } }),
      outcomeOf(200, { error: { message: 'sk-secret', code: 500 } }),
      outcomeOf(200, {
        choices: [{ message: { content: '', refusal: 'no sk-secret' }, finish_reason: 'stop' }],
      }),
    ];

    expect(JSON.stringify(outcomes)).not.toMatch(/sk-se/);
  });
});

describe('cleanMessage', () => {
  it('keeps 300 characters at most and never half of one', () => {
    expect(cleanMessage('a'.repeat(300), null)).toBe('a'.repeat(300));
    expect(cleanMessage('a'.repeat(301), null)).toBe(`${'a'.repeat(299)}…`);
    expect(cleanMessage(`${'a'.repeat(298)}🔵🔵`, null)).toBe(`${'a'.repeat(298)}…`);
  });

  it('takes out control characters and escapes of a terminal', () => {
    expect(cleanMessage('a\u001b[31mred\u0000\tb\u2028c', null)).toBe('a [31mred b c');
  });
});
