import { describe, expect, it } from 'vitest';
import {
  callCostMicroUsd,
  isPaid,
  mayBeCharged,
  type Price,
  priceGaps,
  reservationMicroUsd,
} from '../../../shared/domain/cost.ts';
import { type Usage, unknownUsage } from '../../../shared/domain/outcome.ts';

const usageOf = (usage: Partial<Usage>): Usage => ({ ...unknownUsage, ...usage });

/** Text 1, audio 10, image and video 3 dollars a million; 4 out, 6 after media. */
const byModality: Price = {
  inputPerMTok: 1,
  audioInputPerMTok: 10,
  imageInputPerMTok: 3,
  videoInputPerMTok: 3,
  outputPerMTok: 4,
  outputAfterMediaPerMTok: 6,
};
const flat: Price = { inputPerMTok: 2, outputPerMTok: 8, cachedInputPerMTok: 0.5 };

describe('the cost of a call', () => {
  it.each<[string, Partial<Usage>, number]>([
    ['text in and out', { inputTokens: 100, outputTokens: 10 }, 100 * 2 + 10 * 8],
    [
      'cached input at its own rate, as a part of the input',
      { inputTokens: 100, cachedInputTokens: 40, outputTokens: 10 },
      60 * 2 + 40 * 0.5 + 10 * 8,
    ],
    ['an input that is cached whole', { inputTokens: 100, cachedInputTokens: 100, outputTokens: 0 }, 50],
    [
      'thinking once, as part of the output',
      { inputTokens: 100, outputTokens: 25, reasoningTokens: 16 },
      100 * 2 + 25 * 8,
    ],
    [
      'media at the rate that all modalities share',
      { inputTokens: 900, audioInputTokens: 800, outputTokens: 0 },
      1800,
    ],
    ['no tokens', { inputTokens: 0, outputTokens: 0 }, 0],
  ])('counts %s', (_, usage, expected) => {
    expect(callCostMicroUsd(usageOf(usage), flat)).toBe(expected);
  });

  it.each<[string, Partial<Usage>, boolean | undefined, number | null]>([
    [
      'every modality at its rate',
      {
        inputTokens: 100,
        textInputTokens: 20,
        audioInputTokens: 30,
        imageInputTokens: 10,
        videoInputTokens: 40,
        outputTokens: 5,
      },
      true,
      20 * 1 + 30 * 10 + 10 * 3 + 40 * 3 + 5 * 6,
    ],
    [
      'what is left as text where all else was told',
      { inputTokens: 100, audioInputTokens: 30, imageInputTokens: 0, videoInputTokens: 0, outputTokens: 5 },
      true,
      70 * 1 + 30 * 10 + 5 * 6,
    ],
    [
      'a split that is whole although modalities are missing from it',
      { inputTokens: 100, textInputTokens: 60, audioInputTokens: 40, outputTokens: 5 },
      undefined,
      60 * 1 + 40 * 10 + 5 * 6,
    ],
    [
      'nothing where what is left may be text, image or video',
      { inputTokens: 100, audioInputTokens: 30, outputTokens: 5 },
      true,
      null,
    ],
    ['nothing where no split was told', { inputTokens: 100, outputTokens: 5 }, true, null],
    ['no split needed where the prompt has no clips', { inputTokens: 100, outputTokens: 5 }, false, 120],
    [
      'text alone at the rate for text',
      { inputTokens: 100, textInputTokens: 100, outputTokens: 5 },
      undefined,
      100 * 1 + 5 * 4,
    ],
    [
      'nothing where parts are more than the whole',
      { inputTokens: 100, textInputTokens: 60, audioInputTokens: 50, outputTokens: 5 },
      true,
      null,
    ],
    [
      'nothing where tokens belong to no modality',
      {
        inputTokens: 100,
        textInputTokens: 10,
        audioInputTokens: 20,
        imageInputTokens: 0,
        videoInputTokens: 0,
        outputTokens: 5,
      },
      true,
      null,
    ],
  ])('by modality counts %s', (_, usage, holdsMedia, expected) => {
    expect(callCostMicroUsd(usageOf(usage), byModality, { holdsMedia })).toBe(expected);
  });

  it('with a discount on cached input is known only if all input has one rate', () => {
    const price = { ...byModality, cachedInputPerMTok: 0.1 };
    const split = { inputTokens: 100, imageInputTokens: 0, videoInputTokens: 0, outputTokens: 0 };
    const text = usageOf({ ...split, textInputTokens: 100, audioInputTokens: 0, cachedInputTokens: 50 });
    const mixed = usageOf({ ...split, textInputTokens: 70, audioInputTokens: 30, cachedInputTokens: 50 });

    expect(callCostMicroUsd(text, price)).toBe(50 * 1 + 50 * 0.1);
    expect(callCostMicroUsd(mixed, price)).toBeNull();
    expect(callCostMicroUsd({ ...mixed, cachedInputTokens: 0 }, price)).toBe(70 * 1 + 30 * 10);
  });

  it.each<[string, Partial<Usage>, Price | null]>([
    ['no price', { inputTokens: 100, outputTokens: 10 }, null],
    ['no count of the input', { outputTokens: 10 }, flat],
    ['no count of the output', { inputTokens: 100 }, flat],
    ['more cached than there was', { inputTokens: 100, cachedInputTokens: 101, outputTokens: 10 }, flat],
    ['more thinking than output', { inputTokens: 100, outputTokens: 10, reasoningTokens: 11 }, flat],
    ['an unknown rate', { inputTokens: 100, outputTokens: 10 }, { ...flat, outputPerMTok: null }],
    [
      'an unknown rate of what was cached',
      { inputTokens: 100, cachedInputTokens: 1, outputTokens: 10 },
      { ...flat, cachedInputPerMTok: null },
    ],
  ])('is unknown, never zero, with %s', (_, usage, price) => {
    expect(callCostMicroUsd(usageOf(usage), price)).toBeNull();
  });

  it('needs no rate of tokens that were not used', () => {
    const price: Price = {
      inputPerMTok: 1,
      videoInputPerMTok: null,
      cachedInputPerMTok: null,
      outputPerMTok: 4,
    };
    const text = usageOf({ inputTokens: 100, textInputTokens: 100, cachedInputTokens: 0, outputTokens: 5 });

    expect(callCostMicroUsd(text, price)).toBe(120);
    expect(callCostMicroUsd({ ...text, inputTokens: 101, videoInputTokens: 1 }, price)).toBeNull();
  });

  it.each([
    [1000, 1000 * 1 + 10 * 2],
    [1001, 1001 * 3 + 10 * 6],
    [5000, 5000 * 3 + 10 * 6],
    [5001, 5001 * 7 + 10 * 8],
  ])('of %i input tokens is that of its tier, the border in the lower one', (inputTokens, expected) => {
    const price: Price = {
      inputPerMTok: 1,
      outputPerMTok: 2,
      tiers: [
        { aboveInputTokens: 1000, inputPerMTok: 3, outputPerMTok: 6 },
        { aboveInputTokens: 5000, inputPerMTok: 7, outputPerMTok: 8 },
      ],
    };

    expect(callCostMicroUsd(usageOf({ inputTokens, outputTokens: 10 }), price)).toBe(expected);
  });

  it('in a batch is the share that the price says, and unknown where it says none', () => {
    const usage = usageOf({ inputTokens: 100, outputTokens: 10 });

    expect(callCostMicroUsd(usage, { ...flat, batchMultiplier: 0.5 }, { batched: true })).toBe(140);
    expect(callCostMicroUsd(usage, flat, { batched: true })).toBeNull();
    expect(callCostMicroUsd(usage, { ...flat, batchMultiplier: null }, { batched: true })).toBeNull();
  });

  it.each([
    ['2026-12-31T23:59:59.999Z', 280],
    ['2027-01-01T00:00:00.000Z', 1000],
  ])('at %s is that of the list in force', (timeUtc, expected) => {
    const price: Price = { ...flat, changes: [{ from: '2027-01-01', inputPerMTok: 9, outputPerMTok: 10 }] };
    const usage = usageOf({ inputTokens: 100, outputTokens: 10 });

    expect(callCostMicroUsd(usage, price, { timeUtc })).toBe(expected);
  });

  it('has none of the noise of binary fractions', () => {
    // 3 · 0.1 is 0.30000000000000004 in binary.
    const usage = usageOf({ inputTokens: 3, outputTokens: 0 });

    expect(callCostMicroUsd(usage, { inputPerMTok: 0.1, outputPerMTok: 1 })).toBe(0.3);
  });
});

describe('the most that a call can cost', () => {
  it('takes the dearest rate for every token', () => {
    // 100 · 10 (audio) + 20 · 6 (after media)
    expect(reservationMicroUsd(100, 20, byModality)).toBe(1120);
  });

  it('takes the dearest tier within reach', () => {
    const price: Price = {
      inputPerMTok: 5,
      outputPerMTok: 1,
      tiers: [{ aboveInputTokens: 1000, inputPerMTok: 2, outputPerMTok: 1 }],
    };

    expect(reservationMicroUsd(1000, 10, price)).toBe(5010);
    expect(reservationMicroUsd(2000, 10, price)).toBe(10_010);
    expect(reservationMicroUsd(2000, 10, { ...price, inputPerMTok: 1 })).toBe(4010);
  });

  it('is whole and never below the cost', () => {
    expect(reservationMicroUsd(3, 0, { inputPerMTok: 0.15, outputPerMTok: 1 })).toBe(1);
    expect(reservationMicroUsd(100, 10, { ...flat, batchMultiplier: 0.5 }, { batched: true })).toBe(140);
  });
});

describe('a price for a budget', () => {
  it.each<[string, Price | null, ('V' | 'A')[], string[]]>([
    ['none', null, ['V'], ['price']],
    ['one with all rates', flat, ['V', 'A'], []],
    ['one without a rate of video, for sound', { ...flat, videoInputPerMTok: null }, ['A'], []],
    [
      'one without a rate of video, for video',
      { ...flat, videoInputPerMTok: null },
      ['V'],
      ['rate of video'],
    ],
    ['one without a rate of audio', { ...flat, audioInputPerMTok: null }, ['V', 'A'], ['rate of audio']],
    ['one without output after media, for text', { ...flat, outputAfterMediaPerMTok: null }, [], []],
    ['one without output after media', { ...flat, outputAfterMediaPerMTok: null }, ['A'], ['output rate']],
    ['one without a cached rate', { ...flat, cachedInputPerMTok: null }, ['A'], []],
    [
      'one whose tier lacks a rate',
      { ...flat, tiers: [{ aboveInputTokens: 9, inputPerMTok: null, outputPerMTok: 1 }] },
      [],
      ['input rate'],
    ],
  ])('%s lacks what calls need', (_, price, channels, expected) => {
    expect(priceGaps(price, channels)).toEqual(expected);
  });
});

describe('whether a call is paid', () => {
  it.each([
    [{ httpStatus: null, kind: 'connect_failed' }, false],
    [{ httpStatus: 429, kind: 'http_429' }, false],
    [{ httpStatus: 200, kind: 'incomplete_stream' }, true],
    [{ httpStatus: null, kind: 'connection_reset' }, true],
  ])('%o: %s', (call, expected) => {
    expect(mayBeCharged(call)).toBe(expected);
  });

  it('is no for a recording', () => {
    expect([isPaid('recorded'), isPaid('fixed-reply'), isPaid('openai')]).toEqual([false, false, true]);
  });
});
