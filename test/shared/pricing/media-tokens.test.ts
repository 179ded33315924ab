import { describe, expect, it } from 'vitest';
import { clipTokens, hasClipRule, type SentClip } from '../../../shared/pricing/media-tokens.ts';

const clipOf = (clip: Partial<SentClip>): SentClip => ({
  provider: 'dashscope',
  model: 'qwen3-omni-flash',
  type: 'video',
  seconds: 10,
  fps: undefined,
  ...clip,
});

describe('tokens of a clip', () => {
  it.each<[string, Partial<SentClip>, { atLeast: number; atMost: number } | null]>([
    // 10 s · 12.5
    ['Qwen3-Omni, sound', { type: 'audio' }, { atLeast: 125, atMost: 125 }],
    // 10 s · 2 frames, two a step: 10 steps of 128 to 768
    ['Qwen3-Omni, video', {}, { atLeast: 1280, atMost: 7680 }],
    // 4 frames at least: 2 steps
    ['Qwen3-Omni, a short video', { seconds: 0.5 }, { atLeast: 256, atMost: 1536 }],
    // 128 frames at most: 64 steps of 128; 64 · 768 is above the clip's own limit
    ['Qwen3-Omni, a long video', { seconds: 600 }, { atLeast: 8192, atMost: 16_384 }],
    ['Qwen3-Omni, four frames a second', { fps: 4, seconds: 5 }, { atLeast: 1280, atMost: 7680 }],
    ['Qwen-Omni-Turbo, sound', { model: 'qwen-omni-turbo', type: 'audio' }, { atLeast: 250, atMost: 250 }],
    ['Qwen3.8-Omni: not documented', { model: 'qwen3.8-omni-flash' }, null],
    [
      // 16 frames at least of 128 to 640, and a clip is 10,000 at least
      'Ark, video',
      { provider: 'ark', model: 'doubao-seed-2-0-lite-260428' },
      { atLeast: 10_000, atMost: 10_240 },
    ],
    [
      // 300 · 2 frames: 76,800 to 384,000, and a clip is 80,000 at most
      'Ark, a long video',
      { provider: 'ark', model: 'doubao-seed-2-0-lite-260428', seconds: 300, fps: 2 },
      { atLeast: 76_800, atMost: 80_000 },
    ],
    [
      'Ark, sound: not documented',
      { provider: 'ark', model: 'doubao-seed-2-0-lite-260428', type: 'audio' },
      null,
    ],
    [
      'Gemini, sound',
      { provider: 'gemini', model: 'gemini-3.8-flash', type: 'audio' },
      { atLeast: 320, atMost: 320 },
    ],
    [
      // 20 frames of 64 to 256
      'Gemini, video at two frames a second',
      { provider: 'gemini', model: 'gemini-3.8-flash', fps: 2 },
      { atLeast: 1280, atMost: 5120 },
    ],
    ['a provider without a rule', { provider: 'stepfun', model: 'stepaudio-2.5-chat', type: 'audio' }, null],
  ])('%s', (_, clip, expected) => {
    expect(clipTokens(clipOf(clip))).toEqual(expected);
  });

  it('depend on length for providers with a rule alone', () => {
    expect([hasClipRule('gemini', 'gemini-3.8-flash'), hasClipRule('openai', 'gpt-audio')]).toEqual([
      true,
      false,
    ]);
  });
});
