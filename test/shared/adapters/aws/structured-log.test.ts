import { describe, expect, it } from 'vitest';
import { createStructuredLog, redactText } from '../../../../shared/adapters/aws/structured-log.ts';

const collectingLog = (context = {}) => {
  const lines: string[] = [];
  const clock = { now: () => Date.UTC(2026, 0, 2, 3, 4, 5, 6) };
  return { lines, log: createStructuredLog({ clock, context, write: (line) => lines.push(line) }) };
};

// Made up, in the shapes that they come in.
const taskToken = `AQCEAAAAKgAAAAMAAAAAAAAAAd${'Ab9+/xYz'.repeat(60)}==`;
const secrets = [
  ['a key of OpenAI', 'sk-proj-Abc123Def456Ghi789'],
  ['a key of Anthropic', 'sk-ant-api03-Abc123_Def456'],
  ['a key of Google', 'AIzaSyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q'],
  ['a key of Hugging Face', 'hf_AbCdEfGhIjKlMnOp'],
  ['an access key of AWS', 'ASIAIOSFODNN7EXAMPLE'],
  ['a bearer header', 'Bearer abc.def-ghi'],
  ['a task token', taskToken],
] as const;

describe('structured log', () => {
  it('writes a line of JSON with time, level, message, context and fields', () => {
    const { lines, log } = collectingLog({ stage: 'generate-turns' });

    log.with({ run: 'r-1', lane: 'a', view: 'v/1' }).info('call-ended', { costMicroUsd: 12.5 });

    expect(lines).toHaveLength(1);
    expect(lines[0]!.endsWith('\n')).toBe(true);
    expect(JSON.parse(lines[0]!)).toEqual({
      time: '2026-01-02T03:04:05.006Z',
      level: 'info',
      message: 'call-ended',
      stage: 'generate-turns',
      run: 'r-1',
      lane: 'a',
      view: 'v/1',
      costMicroUsd: 12.5,
    });
  });

  it.each(secrets)('never writes %s, wherever it stands', (_, secret) => {
    const { lines, log } = collectingLog();
    const error = new Error(`the provider said: wrong key ${secret}`, { cause: new Error(`with ${secret}`) });

    log.warn(`asked with ${secret}`, { deep: { list: [{ text: `see ${secret}.` }] } });
    log.error('failed', { headers: { 'x-other': secret } }, error);

    expect(lines.join('')).not.toContain(secret.slice(-12));
    expect(lines.join('')).not.toContain(secret);
    expect(JSON.parse(lines[0]!).message).toContain('asked with');
  });

  it.each([
    'authorization',
    'apiKey',
    'api_key',
    'taskToken',
    'token',
    'secretAccessKey',
    'x-api-key',
    'receiptHandle',
  ])('never writes what a field named %s holds, even if it looks harmless', (name) => {
    const { lines, log } = collectingLog();

    log.info('request', { request: { [name]: 'short' } });

    expect(lines[0]).not.toContain('short');
  });

  it('leaves counts, names, ids and hashes readable', () => {
    const { lines, log } = collectingLog();
    const fields = {
      maxTokens: 512,
      inputTokens: 7,
      apiKeyEnv: 'OPENAI_API_KEY',
      messageId: '5fea7756-0ea4-451a-a703-a558b933e274',
      hash: 'a'.repeat(64),
      key: undefined,
      where: 'runs/r-1/lanes/a/requests/00112233445566778899aabbccddeeff.json',
      machine: 'arn:aws:states:eu-west-1:000000000000:execution:turnsweep-sweep:r-1',
    };

    log.info('facts', fields);

    const { key: _, ...expected } = fields;
    expect(JSON.parse(lines[0]!)).toMatchObject(expected);
  });

  it('writes what is thrown even if it is no error, and values that JSON cannot hold', () => {
    const { lines, log } = collectingLog();
    const circle: Record<string, unknown> = { size: 3n };
    circle.self = circle;

    log.error('thrown', { circle }, 'a text');

    expect(JSON.parse(lines[0]!)).toMatchObject({ error: 'a text', circle: { size: '3' } });
  });

  it('cuts credentials out of addresses', () => {
    expect(redactText('http://user:pass@host/path')).toBe('http://[redacted]@host/path');
  });
});
