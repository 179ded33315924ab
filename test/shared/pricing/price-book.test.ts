import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { callCostMicroUsd } from '../../../shared/domain/cost.ts';
import { type Usage, unknownUsage } from '../../../shared/domain/outcome.ts';
import { findPrice, type PriceQuestion } from '../../../shared/pricing/price-book.ts';
import { type PriceEntry, priceEntries } from '../../../shared/pricing/price-entries.ts';

const intl = 'https://dashscope-intl.aliyuncs.com/compatible-mode/v1';
const beijing = 'https://dashscope.aliyuncs.com/compatible-mode/v1';
const timeUtc = '2026-11-30T12:00:00.000Z';

const priceFor = (provider: string, model: string, more: Partial<PriceQuestion> = {}) =>
  findPrice({ provider, model, baseUrl: null, timeUtc, ...more });

interface Call {
  what: string;
  provider: string;
  model: string;
  baseUrl?: string;
  usage: Partial<Usage>;
  holdsMedia: boolean;
  batched?: boolean;
  timeUtc?: string;
  microUsd: number | null;
}

/** Amounts worked out by hand from the providers' lists, in millionths of a dollar. */
const calls: Call[] = [
  {
    what: 'DashScope, video and sound at one rate',
    provider: 'dashscope',
    model: 'qwen3.8-omni-flash',
    baseUrl: intl,
    usage: {
      inputTokens: 1305,
      audioInputTokens: 25,
      videoInputTokens: 1280,
      textInputTokens: 0,
      outputTokens: 9,
    },
    holdsMedia: true,
    // 1305 · 0.15 + 9 · 0.47 = 195.75 + 4.23
    microUsd: 199.98,
  },
  {
    what: 'DashScope, thinking inside the output',
    provider: 'dashscope',
    model: 'qwen3.8-omni-flash',
    baseUrl: intl,
    usage: { inputTokens: 1305, outputTokens: 25, reasoningTokens: 16 },
    holdsMedia: true,
    // 195.75 + 25 · 0.47 = 195.75 + 11.75
    microUsd: 207.5,
  },
  {
    what: 'DashScope, cached',
    provider: 'dashscope',
    model: 'qwen3.8-omni-flash',
    baseUrl: intl,
    usage: { inputTokens: 10_000, cachedInputTokens: 8000, outputTokens: 100 },
    holdsMedia: true,
    // 2000 · 0.15 + 8000 · 0.016 + 100 · 0.47 = 300 + 128 + 47
    microUsd: 475,
  },
  {
    what: 'DashScope, no batch price',
    provider: 'dashscope',
    model: 'qwen3.8-omni-flash',
    baseUrl: intl,
    usage: { inputTokens: 100, outputTokens: 10 },
    holdsMedia: false,
    batched: true,
    microUsd: null,
  },
  {
    what: 'DashScope qwen3-omni-flash, text only',
    provider: 'dashscope',
    model: 'qwen3-omni-flash-2025-12-01',
    baseUrl: intl,
    usage: { inputTokens: 1000, textInputTokens: 1000, outputTokens: 100 },
    holdsMedia: false,
    // 1000 · 0.43 + 100 · 1.66
    microUsd: 596,
  },
  {
    what: 'DashScope qwen3-omni-flash after sound: the output rate is not known',
    provider: 'dashscope',
    model: 'qwen3-omni-flash',
    baseUrl: intl,
    usage: { inputTokens: 1000, textInputTokens: 500, audioInputTokens: 500, outputTokens: 100 },
    holdsMedia: true,
    microUsd: null,
  },
  {
    what: 'DashScope qwen3-omni-flash in Beijing',
    provider: 'dashscope',
    model: 'qwen3-omni-flash',
    baseUrl: beijing,
    usage: { inputTokens: 1000, textInputTokens: 1000, outputTokens: 100 },
    holdsMedia: false,
    // 1000 · 0.058 + 100 · 0.23
    microUsd: 81,
  },
  {
    what: 'DashScope qwen3.7-plus up to its border, where the sources disagree',
    provider: 'dashscope',
    model: 'qwen3.7-plus',
    baseUrl: intl,
    usage: { inputTokens: 256_000, outputTokens: 100 },
    holdsMedia: false,
    microUsd: null,
  },
  {
    what: 'DashScope qwen3.7-plus above it',
    provider: 'dashscope',
    model: 'qwen3.7-plus',
    baseUrl: intl,
    usage: { inputTokens: 256_001, outputTokens: 100 },
    holdsMedia: false,
    // 256,001 · 2 + 100 · 6
    microUsd: 512_602,
  },
  {
    what: 'DashScope qwen3-vl-plus in a batch',
    provider: 'dashscope',
    model: 'qwen3-vl-plus',
    baseUrl: intl,
    usage: { inputTokens: 1000, videoInputTokens: 900, outputTokens: 100 },
    holdsMedia: true,
    batched: true,
    // (1000 · 0.20 + 100 · 1.60) / 2
    microUsd: 180,
  },
  {
    what: 'Ark, sound, at the border of the first tier',
    provider: 'ark',
    model: 'doubao-seed-2-0-lite-260428',
    usage: { inputTokens: 32_000, audioInputTokens: 2000, textInputTokens: 30_000, outputTokens: 100 },
    holdsMedia: true,
    // 30,000 · 0.08 + 2000 · 1.269 + 100 · 0.51 = 2400 + 2538 + 51
    microUsd: 4989,
  },
  {
    what: 'Ark, one token above it',
    provider: 'ark',
    model: 'doubao-seed-2-0-lite-260428',
    usage: { inputTokens: 32_001, audioInputTokens: 2000, textInputTokens: 30_001, outputTokens: 100 },
    holdsMedia: true,
    // 30,001 · 0.13 + 2000 · 1.902 + 100 · 0.76 = 3900.13 + 3804 + 76
    microUsd: 7780.13,
  },
  {
    what: 'Ark, above the second tier, in a batch',
    provider: 'ark',
    model: 'doubao-seed-2-0-lite-260428',
    usage: { inputTokens: 128_001, audioInputTokens: 0, outputTokens: 100 },
    holdsMedia: true,
    batched: true,
    // (128,001 · 0.25 + 100 · 1.52) / 2 = (32,000.25 + 152) / 2
    microUsd: 16_076.125,
  },
  {
    what: 'Ark, without a count of sound',
    provider: 'ark',
    model: 'doubao-seed-2-0-lite-260428',
    usage: { inputTokens: 1000, outputTokens: 100 },
    holdsMedia: true,
    microUsd: null,
  },
  {
    what: 'StepFun: its price is in yuan',
    provider: 'stepfun',
    model: 'stepaudio-2.5-chat',
    usage: { inputTokens: 40, outputTokens: 12 },
    holdsMedia: true,
    microUsd: null,
  },
  {
    what: 'Gemini, with thinking, in 2026',
    provider: 'gemini',
    model: 'gemini-3.8-flash',
    usage: {
      inputTokens: 1305,
      audioInputTokens: 25,
      videoInputTokens: 1280,
      outputTokens: 13,
      reasoningTokens: 4,
    },
    holdsMedia: true,
    timeUtc: '2026-12-31T23:59:59.000Z',
    // 1305 · 0.75 + 13 · 3.75 = 978.75 + 48.75
    microUsd: 1027.5,
  },
  {
    what: 'Gemini, cached',
    provider: 'gemini',
    model: 'gemini-3.8-flash',
    usage: { inputTokens: 10_000, cachedInputTokens: 4000, outputTokens: 100 },
    holdsMedia: true,
    // 6000 · 0.75 + 4000 · 0.075 + 100 · 3.75 = 4500 + 300 + 375
    microUsd: 5175,
  },
  {
    what: 'Gemini, in 2027, video',
    provider: 'gemini',
    model: 'gemini-3.8-flash',
    usage: { inputTokens: 1000, audioInputTokens: 0, videoInputTokens: 900, outputTokens: 100 },
    holdsMedia: true,
    timeUtc: '2027-01-01T00:00:00.000Z',
    // 1000 · 1.50 + 100 · 7.50
    microUsd: 2250,
  },
  {
    what: 'Gemini, in 2027, sound: its rate is not confirmed',
    provider: 'gemini',
    model: 'gemini-3.8-flash',
    usage: { inputTokens: 1000, audioInputTokens: 900, outputTokens: 100 },
    holdsMedia: true,
    timeUtc: '2027-01-01T00:00:00.000Z',
    microUsd: null,
  },
  {
    what: 'Gemini 2.5 Flash, sound and video',
    provider: 'gemini',
    model: 'gemini-2.5-flash',
    usage: {
      inputTokens: 1000,
      audioInputTokens: 320,
      videoInputTokens: 600,
      textInputTokens: 80,
      outputTokens: 10,
    },
    holdsMedia: true,
    // 680 · 0.30 + 320 · 1.00 + 10 · 2.50 = 204 + 320 + 25
    microUsd: 549,
  },
  {
    what: 'Gemini 3.1 Pro at its border',
    provider: 'gemini',
    model: 'gemini-3.1-pro-preview',
    usage: { inputTokens: 200_000, outputTokens: 1000 },
    holdsMedia: true,
    // 200,000 · 2 + 1000 · 12
    microUsd: 412_000,
  },
  {
    what: 'Gemini 3.1 Pro above it, in a batch',
    provider: 'gemini',
    model: 'gemini-3.1-pro-preview',
    usage: { inputTokens: 200_001, outputTokens: 1000 },
    holdsMedia: true,
    batched: true,
    // (200,001 · 4 + 1000 · 18) / 2 = 818,004 / 2
    microUsd: 409_002,
  },
  {
    what: 'OpenAI gpt-5.5, cached, at its border',
    provider: 'openai',
    model: 'gpt-5.5',
    usage: { inputTokens: 272_000, cachedInputTokens: 200_000, outputTokens: 1000, reasoningTokens: 900 },
    holdsMedia: false,
    // 72,000 · 5 + 200,000 · 0.50 + 1000 · 30 = 360,000 + 100,000 + 30,000
    microUsd: 490_000,
  },
  {
    what: 'OpenAI gpt-5.5 above it',
    provider: 'openai',
    model: 'gpt-5.5',
    usage: { inputTokens: 272_001, cachedInputTokens: 0, outputTokens: 1000 },
    holdsMedia: false,
    // 272,001 · 10 + 1000 · 45
    microUsd: 2_765_010,
  },
  {
    what: 'OpenAI gpt-5.4-mini, a judge in a batch',
    provider: 'openai',
    model: 'gpt-5.4-mini-2026-03-17',
    usage: { inputTokens: 4000, cachedInputTokens: 1024, outputTokens: 600 },
    holdsMedia: false,
    batched: true,
    // (2976 · 0.75 + 1024 · 0.075 + 600 · 4.50) / 2 = (2232 + 76.8 + 2700) / 2
    microUsd: 2504.4,
  },
  {
    what: 'OpenAI gpt-audio-mini, sound',
    provider: 'openai',
    model: 'gpt-audio-mini',
    usage: { inputTokens: 137, audioInputTokens: 100, textInputTokens: 37, outputTokens: 9 },
    holdsMedia: true,
    // 37 · 0.60 + 100 · 10 + 9 · 2.40 = 22.2 + 1000 + 21.6
    microUsd: 1043.8,
  },
  {
    what: 'OpenAI gpt-audio, with the split of sound alone',
    provider: 'openai',
    model: 'gpt-audio',
    usage: { inputTokens: 137, audioInputTokens: 100, cachedInputTokens: 0, outputTokens: 9 },
    holdsMedia: true,
    // 37 · 2.50 + 100 · 32 + 9 · 10 = 92.5 + 3200 + 90
    microUsd: 3382.5,
  },
  {
    what: 'Bedrock Nova Lite, video',
    provider: 'bedrock',
    model: 'us.amazon.nova-lite-v1:0',
    baseUrl: 'https://bedrock-runtime.us-east-1.amazonaws.com',
    usage: { inputTokens: 1305, cachedInputTokens: 0, outputTokens: 9 },
    holdsMedia: true,
    // 1305 · 0.06 + 9 · 0.24 = 78.3 + 2.16
    microUsd: 80.46,
  },
  {
    what: 'Bedrock Nova Pro in a batch',
    provider: 'bedrock',
    model: 'amazon.nova-pro-v1:0',
    baseUrl: 'https://bedrock-runtime.us-west-2.amazonaws.com',
    usage: { inputTokens: 1000, outputTokens: 100 },
    holdsMedia: true,
    batched: true,
    // (1000 · 0.80 + 100 · 3.20) / 2
    microUsd: 560,
  },
  {
    what: 'Bedrock Nova 2 Lite: the sources give a range',
    provider: 'bedrock',
    model: 'us.amazon.nova-2-lite-v1:0',
    usage: { inputTokens: 1000, outputTokens: 100 },
    holdsMedia: true,
    microUsd: null,
  },
  {
    what: 'a server of one’s own: no list has it',
    provider: 'vllm',
    model: 'Qwen/Qwen3-Omni-30B-A3B-Instruct',
    usage: { inputTokens: 1000, outputTokens: 100 },
    holdsMedia: true,
    microUsd: null,
  },
];

describe('list prices', () => {
  it.each(calls)('$what', ({ provider, model, usage, holdsMedia, batched, microUsd, ...call }) => {
    const { price } = priceFor(provider, model, { baseUrl: call.baseUrl ?? null });

    const cost = callCostMicroUsd({ ...unknownUsage, ...usage }, price, {
      holdsMedia,
      batched,
      timeUtc: call.timeUtc ?? timeUtc,
    });

    expect(cost).toBe(microUsd);
  });

  it('found after a change are those in force, and those found before bring the change along', () => {
    const after = priceFor('gemini', 'gemini-3.8-flash', { timeUtc: '2027-01-01T00:00:00Z' });
    const before = priceFor('gemini', 'gemini-3.8-flash');

    expect(after.price).toMatchObject({ inputPerMTok: 1.5, outputPerMTok: 7.5, audioInputPerMTok: null });
    expect(after.price).not.toHaveProperty('changes');
    expect(before.price).toMatchObject({
      inputPerMTok: 0.75,
      changes: [{ from: '2027-01-01', inputPerMTok: 1.5, outputPerMTok: 7.5 }],
    });
  });

  it('say where and when they were seen', () => {
    expect(priceFor('openai', 'gpt-5.4-nano').price).toMatchObject({
      source: expect.stringContaining('developers.openai.com/api/docs/pricing'),
      seen: '2026-10',
    });
  });

  it.each<[string, string, string | null, RegExp | null]>([
    ['dashscope', 'qwen3-omni-flash', 'https://gateway.example/v1', /differ by region/],
    ['dashscope', 'qwen3.8-omni-flash', beijing, /region or day/],
    [
      'dashscope',
      'qwen3.8-omni-flash',
      'https://dashscope-us.aliyuncs.com/compatible-mode/v1',
      /region or day/,
    ],
    ['stepfun', 'step-3.7-flash', null, /CNY/],
    ['ark', 'doubao-seed-2-0-lite-260428', 'https://ark.ap-southeast.bytepluses.com/api/v3', /region or day/],
    ['openai', 'gpt-5.6-sol', null, null],
    ['openai', 'gpt-5.4-mini-high', null, null],
    ['openai-compatible', 'gpt-5.4-mini', null, null],
  ])('are unknown for %s %s at %s', (provider, model, baseUrl, why) => {
    const found = priceFor(provider, model, { baseUrl });

    expect(found.price).toBeNull();
    if (why === null) expect(found.why).toBeNull();
    else expect(found.why).toMatch(why);
  });

  it('of the one region that the book has serve a gateway, and say so', () => {
    const { price } = priceFor('dashscope', 'qwen3.8-omni-flash', { baseUrl: 'http://127.0.0.1:8080/v1' });

    expect(price).toMatchObject({ inputPerMTok: 0.15, note: expect.stringContaining('tells no region') });
  });

  it('of workspace hosts are those of their region', () => {
    const workspace = 'https://ws-1.ap-southeast-1.maas.aliyuncs.com/compatible-mode/v1';

    expect(priceFor('dashscope', 'qwen3-omni-flash', { baseUrl: workspace }).price?.inputPerMTok).toBe(0.43);
  });

  it('that are over are not used', () => {
    const entry: PriceEntry = {
      provider: 'p',
      models: /^m$/,
      currency: 'USD',
      validTo: '2026-10-31',
      inputPerMTok: 1,
      outputPerMTok: 1,
      source: 's',
      seen: '2026-01',
    };
    const question = { provider: 'p', model: 'm', baseUrl: null };

    expect(findPrice({ ...question, timeUtc: '2026-10-31T23:00:00Z' }, [entry]).price).not.toBeNull();
    expect(findPrice({ ...question, timeUtc }, [entry])).toEqual({
      price: null,
      why: 'the price book has it until 2026-10-31',
    });
  });

  it('in dollars all stand in the page for people', () => {
    const page = readFileSync(path.join(import.meta.dirname, '../../../docs/prices.md'), 'utf8');
    const numbers = new Set([...page.matchAll(/\d+\.\d+/g)].map(([text]) => Number(text)));
    for (const { currency, tiers = [], ...base } of priceEntries) {
      if (currency !== 'USD') continue;
      const rates = [base, ...tiers].flatMap((list) =>
        Object.entries(list).flatMap(([name, value]) =>
          name.endsWith('PerMTok') && typeof value === 'number' ? [value] : [],
        ),
      );
      for (const rate of rates) expect(numbers, `${base.provider} ${base.models}`).toContain(rate);
    }
  });

  it('have a source, a date and ascending tiers in every entry', () => {
    expect(priceEntries.length).toBeGreaterThan(20);
    for (const { source, seen, tiers = [], validFrom, validTo } of priceEntries) {
      expect(source).not.toBe('');
      expect(seen).toMatch(/^20\d\d-\d\d(-\d\d)?$/);
      for (const day of [validFrom, validTo])
        if (day !== undefined) expect(day).toMatch(/^20\d\d-\d\d-\d\d$/);
      const borders = tiers.map((tier) => tier.aboveInputTokens);
      expect(borders).toEqual(borders.toSorted((a, b) => a - b));
    }
  });
});
