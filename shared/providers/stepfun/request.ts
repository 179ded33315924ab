import { errorNames, TurnsweepError } from '../../errors.ts';
import { type CallShape, type ClipOnTheWire, clipUrl, type JsonPiece } from '../chat-completions/profile.ts';
import type { LaneSettings } from '../provider.ts';
import { stepfunCapabilities } from './capabilities.ts';

/**
 * Members of the body. Every chunk of a stream has the usage so far, so that `stream_options` is not needed, and the
 * provider does not document it. step-3.7 cannot be kept from thinking: without a wish it thinks least. There is no
 * documented `seed`.
 */
export const stepfunBody = (
  model: string,
  settings: LaneSettings,
  call: CallShape,
): Record<string, unknown> => {
  const { channels, thinking } = stepfunCapabilities(model);
  const effort = call.reasoningEffort ?? settings.reasoningEffort;
  return {
    stream_options: undefined,
    modalities: channels.includes('A') ? ['text'] : undefined,
    reasoning_effort: thinking === 'effort' ? (effort ?? 'low') : undefined,
    temperature: settings.temperature,
    top_p: settings.topP,
    max_tokens: call.maxTokens,
    response_format: call.responseFormat,
  };
};

/** A clip's part: sound as a data URI of WAV or MP3 without a format, video by its address. */
export const stepfunClip = ({ medium, files }: ClipOnTheWire): JsonPiece[] => {
  const file = files[0]!;
  if (medium === 'audio') {
    if (file.type !== 'inline' || !['audio/wav', 'audio/mpeg'].includes(file.mime)) {
      throw new TurnsweepError(errorNames.usage, `StepFun takes sound as WAV or MP3 content`, {
        where: `${file.type} ${file.mime}`,
      });
    }
    return ['{"type":"input_audio","input_audio":{"data":"', ...clipUrl(file), '"}}'];
  }
  if (file.type !== 'url' || !/^https?:/.test(file.url) || file.mime !== 'video/mp4') {
    throw new TurnsweepError(errorNames.usage, 'StepFun takes video as MP4 from an http address', {
      where: `${file.type} ${file.mime}`,
      remedy: 'run where the clips have an address, or leave the video out',
    });
  }
  return ['{"type":"video_url","video_url":{"url":"', ...clipUrl(file), '"}}'];
};
