import { errorNames, TurnsweepError } from '../../errors.ts';
import { type CallShape, type ClipOnTheWire, clipUrl, type JsonPiece } from '../chat-completions/profile.ts';
import type { LaneSettings } from '../provider.ts';
import { dashscopeCapabilities } from './capabilities.ts';

/**
 * The source file of a data URI of 10 MB at most (help.aliyun.com model-studio/qwen-omni, Jan 2026), in bytes. Bare
 * base64 is no URL to this provider and refused.
 */
export const dashscopeInlineBytesAtMost = 7 * 1024 * 1024;

/**
 * Members of the body. Left to themselves qwen3.8-omni thinks at its highest effort and the hybrids think too, so
 * every call says what is wanted; models without a switch refuse the member
 * (`InvalidParameter.NotSupportEnableThinking`, help.aliyun.com model-studio/error-code) and are not sent it.
 */
export const dashscopeBody = (
  model: string,
  settings: LaneSettings,
  call: CallShape,
): Record<string, unknown> => {
  const { channels, thinking } = dashscopeCapabilities(model);
  const effort = call.reasoningEffort ?? settings.reasoningEffort;
  return {
    modalities: channels.includes('A') ? ['text'] : undefined,
    reasoning_effort: thinking === 'effort' ? (effort ?? (settings.thinking ? 'xhigh' : 'none')) : undefined,
    enable_thinking: thinking === 'switch' ? (settings.thinking ?? (effort ?? 'none') !== 'none') : undefined,
    temperature: settings.temperature,
    top_p: settings.topP,
    seed: settings.seed,
    max_tokens: call.maxTokens,
    response_format: call.responseFormat,
  };
};

/** A clip's part: `fps` stands beside the address; anywhere else it is ignored in silence. */
export const dashscopeClip = (model: string, { medium, files, fps }: ClipOnTheWire): JsonPiece[] => {
  const first = files[0]!;
  if (medium === 'audio') {
    return ['{"type":"input_audio","input_audio":{"data":"', ...clipUrl(first), '","format":"wav"}}'];
  }
  const rate = fps === null ? '' : `,"fps":${fps}`;
  if (!first.mime.startsWith('image/')) {
    return ['{"type":"video_url","video_url":{"url":"', ...clipUrl(first), `"}${rate}}`];
  }
  const { framesPerVideo: bounds } = dashscopeCapabilities(model);
  if (bounds !== undefined && (files.length < bounds.min || files.length > bounds.max)) {
    throw new TurnsweepError(errorNames.usage, `a video of ${files.length} frames cannot be sent`, {
      where: model,
      remedy: `the model takes ${bounds.min} to ${bounds.max} frames`,
    });
  }
  const frames = files.flatMap((file, index) => [index === 0 ? '"' : ',"', ...clipUrl(file), '"']);
  return ['{"type":"video","video":[', ...frames, `]${rate}}`];
};
