import { describe, expect, it } from 'vitest';
import type { FrozenRequest } from '../../../shared/domain/request.ts';
import { type ProjectedLane, projectLane } from '../../../shared/pricing/projection.ts';

/** 40 bytes: 10 tokens. */
const text = { type: 'text' as const, text: 'x'.repeat(40) };
const clips = [
  { type: 'video' as const, path: 'a.mp4' },
  { type: 'audio' as const, path: 'a.wav' },
];
const single: FrozenRequest = { requestId: 'c', messages: [{ role: 'user', content: [...clips, text] }] };
const second: FrozenRequest = {
  requestId: 'h',
  messages: [
    { role: 'user', content: [...clips, text] },
    { role: 'assistant', replyOf: 'n' },
    { role: 'user', content: [...clips, text] },
  ],
};

const project = (lane: Partial<Omit<ProjectedLane, 'contract'>> & { contract?: object } = {}) =>
  projectLane({
    requests: [single, second],
    price: { inputPerMTok: 1, audioInputPerMTok: 10, outputPerMTok: 4 },
    secondsOf: () => 10,
    timeUtc: '2026-11-30T00:00:00Z',
    ...lane,
    contract: {
      provider: 'gemini',
      model: 'gemini-3.8-flash',
      modalities: ['V', 'A'],
      maxTokens: 100,
      settings: {},
      ...lane.contract,
    } as ProjectedLane['contract'],
  });

describe('the projection of a lane', () => {
  it('counts clips by the provider’s rule, and the replies that a prompt grows by at the cap', () => {
    const { projection, clipTokensAtMost } = project();

    // Video 10 frames · 256, sound 10 s · 32.
    expect(clipTokensAtMost).toEqual({ video: 2560, audio: 320 });
    // single: 10 + 2880; second: 10 + 2880 + 100 + 10 + 2880
    expect(projection).toEqual({
      promptTokens: 2890 + 5880,
      mediaTokens: 3 * 2880,
      replyTokens: 200,
      // text 10 + 120 and video 3 · 2560 at 1, sound 3 · 320 at 10, 200 replies at 4
      costMicroUsd: 130 + 7680 + 9600 + 800,
      assumptions: ['every reply as long as the first cap', 'every call succeeds at once'],
    });
  });

  it('leaves channels out that the lane does not have', () => {
    const { projection } = project({ contract: { modalities: ['A'] } });

    expect(projection).toMatchObject({ mediaTokens: 3 * 320, costMicroUsd: 130 + 9600 + 800 });
  });

  it('names what it assumes where no rule or no length is known', () => {
    const unknownRule = project({
      contract: { provider: 'openai-compatible', model: 'm' },
      secondsOf: () => null,
    });
    const unknownLength = project({ secondsOf: (path) => (path === 'a.wav' ? null : 10) });

    expect(unknownRule.projection).toMatchObject({
      mediaTokens: 3 * 8000,
      assumptions: expect.arrayContaining([
        '4000 tokens for each audio clip',
        '4000 tokens for each video clip',
      ]),
    });
    expect(unknownLength.clipTokensAtMost).toEqual({ video: 2560, audio: 4000 });
    expect(unknownLength.projection.assumptions).toContain('4000 tokens for each audio clip');
    expect(unknownLength.projection.assumptions).not.toContain('4000 tokens for each video clip');
  });

  it('counts sound of known length by the second where no rule is known, and says so', () => {
    const { projection, clipTokensAtMost } = project({
      contract: { provider: 'vllm', model: 'm', modalities: ['A'] },
      secondsOf: () => 6.51,
    });

    // 6.51 s · 50, rounded up, three times.
    expect(clipTokensAtMost.audio).toBe(326);
    expect(projection.mediaTokens).toBe(978);
    expect(projection.assumptions).toEqual([
      'every reply as long as the first cap',
      'every call succeeds at once',
      '50 tokens for each second of audio',
    ]);
  });

  it('counts a system turn and fixed replies as the text that they are', () => {
    const request: FrozenRequest = {
      requestId: 'q',
      messages: [
        { role: 'system', text: 'x'.repeat(41) },
        { role: 'user', content: [text] },
        { role: 'assistant', text: 'y'.repeat(80) },
        { role: 'user', content: [text] },
      ],
    };

    // 11 + 10 + 20 + 10
    expect(project({ requests: [request] }).projection).toMatchObject({ promptTokens: 51, mediaTokens: 0 });
  });

  it('has no cost where the price is unknown, in whole or in what is needed', () => {
    expect(project({ price: null }).projection.costMicroUsd).toBeNull();
    const price = { inputPerMTok: 1, videoInputPerMTok: null, outputPerMTok: 4 };
    expect(project({ price }).projection.costMicroUsd).toBeNull();
    expect(project({ price, contract: { modalities: ['A'] } }).projection.costMicroUsd).not.toBeNull();
  });

  it('prices each request in the tier of its own prompt', () => {
    const price = {
      inputPerMTok: 1,
      outputPerMTok: 0,
      tiers: [{ aboveInputTokens: 5000, inputPerMTok: 2, outputPerMTok: 0 }],
    };

    expect(project({ price }).projection.costMicroUsd).toBe(2890 * 1 + 5880 * 2);
  });

  it.each(['recorded', 'fixed-reply'])('of %s costs nothing', (provider) => {
    const { projection } = project({ price: null, contract: { provider } });

    expect(projection).toMatchObject({ costMicroUsd: 0, assumptions: [] });
  });
});
