import { describe, expect, it } from 'vitest';
import { checkSweepRules } from '../../cli/sweep-rules.ts';
import { laneContract } from '../../shared/contracts/run.ts';
import { sweepFile } from '../../shared/contracts/sweep-file.ts';
import { canonicalJson } from '../../shared/naming.ts';

const sweepWith = (lane: object, more: object = {}) => ({
  name: 's',
  benchmark: { kind: 'return', release: 'r' },
  models: [{ id: 'a', model: 'm', modalities: ['A'], ...lane }],
  ...more,
});
const faultsOf = (lane: object, more?: object) =>
  checkSweepRules(sweepWith(lane, more)).map(({ message }) => message);
const issuesOf = (lane: object) =>
  sweepFile.safeParse(sweepWith(lane)).error?.issues.map(({ path }) => path.join('.')) ?? [];

const baseline = { provider: 'fixed-reply', reply: 'The evidence is insufficient.' };
const recording = { provider: 'recorded', recording: 'r.jsonl' };
const called = { provider: 'openai-compatible', baseUrl: 'http://127.0.0.1/v1' };

describe('a lane that calls nobody', () => {
  it.each([[baseline], [recording]])('is taken: %j', (lane) => {
    expect(faultsOf(lane)).toEqual([]);
    expect(issuesOf(lane)).toEqual([]);
  });

  it.each([
    [{ provider: 'fixed-reply' }, 'models[0]: provider "fixed-reply" needs "reply"'],
    [{ provider: 'recorded' }, 'models[0]: provider "recorded" needs "recording"'],
    [{ ...baseline, recording: 'r.jsonl' }, 'models[0]: "recording" goes with provider "recorded" only'],
    [{ ...recording, reply: 'x' }, 'models[0]: "reply" goes with provider "fixed-reply" only'],
    [{ ...called, reply: 'x' }, 'models[0]: "reply" goes with provider "fixed-reply" only'],
    [{ ...called, recording: 'x' }, 'models[0]: "recording" goes with provider "recorded" only'],
    [
      { ...baseline, baseUrl: 'http://127.0.0.1/v1' },
      'models[0].baseUrl: provider "fixed-reply" calls nobody; leave "baseUrl" out',
    ],
    [
      { ...recording, apiKeyEnv: 'KEY' },
      'models[0].apiKeyEnv: provider "recorded" calls nobody; leave "apiKeyEnv" out',
    ],
  ])('is refused: %j', (lane, message) => {
    expect(faultsOf(lane)).toEqual([message]);
  });

  it('needs no price, and no verified media', () => {
    expect(faultsOf(baseline, { budget: { usd: 1 } })).toEqual([]);
    expect(faultsOf(baseline, { benchmark: { kind: 'return', release: 'r', verifyMedia: false } })).toEqual(
      [],
    );
  });

  it('may not reply with nothing', () => {
    expect(issuesOf({ ...baseline, reply: ' \n' })).toEqual(['models.0.reply']);
  });

  it('cannot judge', () => {
    const judge = { provider: 'fixed-reply', model: 'm' };

    expect(faultsOf(baseline, { judge })).toEqual([
      expect.stringMatching(/^judge\.provider: .*"fixed-reply"/),
    ]);
  });
});

describe('the contract of a lane', () => {
  const contract = {
    id: 'a',
    provider: 'recorded',
    model: 'm',
    baseUrl: null,
    recordingSha256: 'c'.repeat(64),
    modalities: ['A'],
    maxTokens: 1024,
    retryMaxTokens: null,
    settings: {},
  };

  it('holds the reply where there is one, and is as it was where there is none', () => {
    expect(canonicalJson(laneContract.parse({ ...contract, reply: undefined }))).toBe(
      `{"baseUrl":null,"id":"a","maxTokens":1024,"modalities":["A"],"model":"m","provider":"recorded","recordingSha256":"${'c'.repeat(64)}","retryMaxTokens":null,"settings":{}}`,
    );
    expect(laneContract.parse({ ...contract, reply: 'No.' })).toEqual({ ...contract, reply: 'No.' });
  });

  it('knows how a system prompt is sent', () => {
    expect(issuesOf({ ...called, settings: { systemPrompt: 'folded' } })).toEqual([]);
    expect(issuesOf({ ...called, settings: { systemPrompt: 'appended' } })).toEqual([
      'models.0.settings.systemPrompt',
    ]);
  });
});
