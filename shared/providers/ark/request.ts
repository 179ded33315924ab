import type { LoadedClip } from '../../ports/model-client.ts';
import {
  bareBase64,
  type CallShape,
  type ClipOnTheWire,
  clipUrl,
  type JsonPiece,
} from '../chat-completions/profile.ts';
import type { LaneSettings } from '../provider.ts';

/** Its base64 stays below the 50 MB of Ark's video page (Dec 2025), in bytes. */
export const arkInlineBytesAtMost = 37_000_000;

/**
 * Members of the body. Without `thinking` Seed 2.0 thinks, at many times the latency, so every call says what is
 * wanted; `minimal` means off. `max_tokens` bounds the answer alone; together with `max_completion_tokens` it is
 * refused. There is no `seed`.
 */
export const arkBody = (_model: string, settings: LaneSettings, call: CallShape): Record<string, unknown> => {
  const asked = call.reasoningEffort ?? settings.reasoningEffort;
  const effort = asked === 'none' || asked === 'minimal' ? undefined : asked;
  return {
    thinking: { type: (settings.thinking ?? effort !== undefined) ? 'enabled' : 'disabled' },
    reasoning_effort: effort,
    temperature: settings.temperature,
    top_p: settings.topP,
    max_tokens: call.maxTokens,
    response_format: call.responseFormat,
  };
};

/** A clip's part: `fps` stands inside `video_url`; beside it, it is ignored in silence. */
export const arkClip = ({ medium, files, fps }: ClipOnTheWire): JsonPiece[] => {
  const first = files[0]!;
  if (medium === 'audio')
    return ['{"type":"input_audio","input_audio":{', ...sound(first), ',"format":"wav"}}'];
  if (first.mime.startsWith('image/')) return pictures(files, fps);
  const rate = fps === null ? '' : `,"fps":${fps}`;
  return ['{"type":"video_url","video_url":{"url":"', ...clipUrl(first), `"${rate}}}`];
};

/** `data` is base64 by the type of Ark's SDK; whether a data URI would pass as well is not confirmed. */
const sound = (clip: LoadedClip): JsonPiece[] =>
  clip.type === 'url' ? [`"url":${JSON.stringify(clip.url)}`] : ['"data":"', bareBase64(clip), '"'];

/** Ark has no list of frames: pictures, each after its time in the video. */
const pictures = (files: readonly LoadedClip[], fps: number | null): JsonPiece[] =>
  files.flatMap((file, index) => [
    index === 0 ? '' : ',',
    fps === null ? '' : `{"type":"text","text":"t=${secondsText(index / fps)}s"},`,
    '{"type":"image_url","image_url":{"url":"',
    ...clipUrl(file),
    '","detail":"low"}}',
  ]);

const secondsText = (seconds: number): string => seconds.toFixed(Number.isInteger(10 * seconds) ? 1 : 2);
