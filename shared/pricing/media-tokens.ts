/** How many prompt tokens a clip becomes, where a provider says it: for projections and reservations only. */

interface MediaRule {
  provider: string;
  models: RegExp;
  audioTokensPerSecond?: number;
  video?: {
    /** Without `settings.fps`. */
    usualFps: number;
    frames: { min: number; max: number };
    tokensPerFrame: { min: number; max: number };
    /** Frames that become one time step. */
    framesPerStep: 1 | 2;
    tokensPerClip?: { min: number; max: number };
  };
  source: string;
}

const omniPage = 'help.aliyun.com/zh/model-studio/qwen-omni, Jan 2026';

const mediaRules: readonly MediaRule[] = [
  {
    provider: 'dashscope',
    models: /^qwen3-omni-flash/,
    audioTokensPerSecond: 12.5,
    video: {
      usualFps: 2,
      frames: { min: 4, max: 128 },
      tokensPerFrame: { min: 128, max: 768 },
      framesPerStep: 2,
      tokensPerClip: { min: 0, max: 16_384 },
    },
    source: omniPage,
  },
  { provider: 'dashscope', models: /^qwen-omni-turbo/, audioTokensPerSecond: 25, source: omniPage },
  {
    provider: 'ark',
    models: /^doubao-seed-/,
    video: {
      usualFps: 1,
      frames: { min: 16, max: 640 },
      tokensPerFrame: { min: 128, max: 640 },
      framesPerStep: 1,
      tokensPerClip: { min: 10_000, max: 80_000 },
    },
    source: 'volcengine.com Ark video understanding page, Dec 2025 (mirror Hajimi-Commune/VolcanoArkDocs)',
  },
  {
    provider: 'gemini',
    models: /^gemini-/,
    audioTokensPerSecond: 32,
    video: {
      usualFps: 1,
      frames: { min: 1, max: Number.POSITIVE_INFINITY },
      // Media resolution low and medium; which of them a model uses by itself is not confirmed.
      tokensPerFrame: { min: 64, max: 256 },
      framesPerStep: 1,
    },
    source: 'ai.google.dev/gemini-api/docs video and audio understanding, 2026',
  },
];

export interface TokenRange {
  atLeast: number;
  atMost: number;
}

export interface SentClip {
  provider: string;
  model: string;
  type: 'audio' | 'video';
  seconds: number;
  /** `settings.fps` of the lane. */
  fps: number | undefined;
}

const within = (value: number, { min, max }: { min: number; max: number }): number =>
  Math.min(max, Math.max(min, value));

/** Prompt tokens of a clip; null where the provider's rule is not known. */
export const clipTokens = ({ provider, model, type, seconds, fps }: SentClip): TokenRange | null => {
  const rule = mediaRules.find((known) => known.provider === provider && known.models.test(model));
  if (type === 'audio') {
    if (rule?.audioTokensPerSecond === undefined) return null;
    const tokens = Math.ceil(seconds * rule.audioTokensPerSecond);
    return { atLeast: tokens, atMost: tokens };
  }
  if (rule?.video === undefined) return null;
  const { usualFps, frames, tokensPerFrame, framesPerStep, tokensPerClip } = rule.video;
  const steps = Math.ceil(within(Math.ceil(seconds * (fps ?? usualFps)), frames) / framesPerStep);
  const bounds = tokensPerClip ?? { min: 0, max: Number.POSITIVE_INFINITY };
  return {
    atLeast: within(steps * tokensPerFrame.min, bounds),
    atMost: within(steps * tokensPerFrame.max, bounds),
  };
};

/** True where the length of a clip tells something about its tokens. */
export const hasClipRule = (provider: string, model: string): boolean =>
  mediaRules.some((rule) => rule.provider === provider && rule.models.test(model));

/**
 * Tokens of a second of sound, at most, where its length is known but no rule of the provider: an assumption, to be named
 * as one. Twice what most audio encoders make of a second, and above every rule here.
 */
export const assumedAudioTokensPerSecond = 50;

/** Tokens that a clip is counted at, at most, where nothing better is known: an assumption, to be named as one. */
export const assumedClipTokens = 4_000;
