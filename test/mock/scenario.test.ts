import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { loadScenario, loadTable, parseScenario, tableKey } from '../../mock/scenario.ts';
import { ProblemsFound } from '../../shared/errors.ts';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'mock-scenario-'));
});
afterEach(() => rmSync(folder, { recursive: true }));
const file = (name: string, content: string): string => {
  writeFileSync(join(folder, name), content);
  return join(folder, name);
};

describe('scenario files', () => {
  it('are YAML with defaults, tables beside them', () => {
    const path = file('s.yaml', 'seed: 7\nmodels:\n  "*":\n    reply: { table: replies.jsonl }\n');

    expect(loadScenario(path)).toEqual({
      seed: 7,
      models: {
        '*': {
          reply: { table: join(folder, 'replies.jsonl') },
          latencyMs: 0,
          capacity: null,
          retryAfterSeconds: null,
          tokens: {},
          faults: [],
        },
      },
    });
  });

  it('are JSON too', () => {
    const path = file('s.json', '{"models":{"m":{"reply":{"echo":true}}}}');

    expect(loadScenario(path).models.m?.reply).toEqual({ echo: true });
  });

  const model = (more: object) => ({ models: { m: { reply: { text: 'x' }, ...more } } });
  const fault = (more: object) => model({ faults: [more] });
  it.each([
    ['an unknown key', { ...model({}), speed: 1 }],
    ['an unknown key of a model', model({ latency: 1 })],
    ['an unknown key of a fault', fault({ kind: 'reset', rate: 1, often: true })],
    ['an unknown fault', fault({ kind: 'explode', rate: 1 })],
    ['a status that is no fault', fault({ kind: 'http_200', rate: 1 })],
    ['a rate above 1', fault({ kind: 'reset', rate: 1.1 })],
    ['neither rate nor firstAttempts', fault({ kind: 'reset' })],
    ['both rate and firstAttempts', fault({ kind: 'reset', rate: 1, firstAttempts: 1 })],
    ['two kinds of reply', { models: { m: { reply: { text: 'x', echo: true } } } }],
    ['an empty reply', { models: { m: { reply: { text: '' } } } }],
    ['a range upside down', model({ latencyMs: { min: 2, max: 1 } })],
    ['a capacity of nobody', model({ capacity: 0 })],
    ['nothing', null],
  ])('are refused with %s', (_name, value) => {
    expect(() => parseScenario(value, 's.yaml')).toThrow(
      expect.objectContaining({
        name: 'UsageWrong',
        message: expect.stringMatching(/^[^\n]*s\.yaml[^\n]*$/),
      }),
    );
  });

  it.each([
    ['is missing', () => join(folder, 'none.yaml')],
    ['is no YAML', () => file('bad.yaml', 'models: [')],
  ])('are refused where the file %s', (_name, path) => {
    expect(() => loadScenario(path())).toThrow(expect.objectContaining({ name: 'UsageWrong' }));
  });
});

describe('reply tables', () => {
  it('hold replies by fingerprint and by last text, for one model or all', () => {
    const path = file(
      't.jsonl',
      '{"fingerprint":"f","reply":"a"}\n\n{"model":"m","lastText":"Hi","reply":"b"}\n{"fingerprint":"f","reply":"a"}',
    );

    const table = loadTable(path);

    expect([...table.byFingerprint]).toEqual([[tableKey(null, 'f'), 'a']]);
    expect([...table.byLastText]).toEqual([[tableKey('m', 'Hi'), 'b']]);
  });

  it('name every bad line', () => {
    const path = file(
      't.jsonl',
      '{"fingerprint":"f","reply":"a"}\n{"fingerprint":"f","reply":"b"}\nnonsense\n{"reply":"a"}\n{"lastText":"x","reply":""}\n',
    );

    const load = () => loadTable(path);

    expect(load).toThrow(ProblemsFound);
    expect(load).toThrow(
      expect.objectContaining({ problems: [2, 3, 4, 5].map((line) => expect.objectContaining({ line })) }),
    );
  });
});
