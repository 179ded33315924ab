import { benchmarkForms, type ClipForms, usualFps, usualMaxSide } from '../../domain/media.ts';
import { errorNames, TurnsweepError } from '../../errors.ts';
import type { LoadedClip } from '../../ports/model-client.ts';
import type { LaneConnection } from '../provider.ts';
import { bareBase64, clipUrl, type JsonPiece } from './profile.ts';

const audioFormats: Readonly<Record<string, string>> = { 'audio/wav': 'wav', 'audio/mpeg': 'mp3' };

/**
 * `input_audio` with bare base64: the part knows wav and mp3 only (openai npm 7.59.0, `ChatCompletionContentPartInputAudio`;
 * llama.cpp tools/server/README.md). Throws `UsageWrong` for any other kind of file: under a wrong name it would be
 * refused, or heard as noise.
 */
export const inputAudio = (clip: LoadedClip): JsonPiece[] => {
  const format = audioFormats[clip.mime];
  if (format === undefined) {
    throw new TurnsweepError(errorNames.usage, 'sound can be sent as wav or mp3 only', {
      where: clip.mime,
      remedy: 'give the benchmark its sound as 16 kHz mono WAV',
    });
  }
  return ['{"type":"input_audio","input_audio":{"data":"', bareBase64(clip), `","format":"${format}"}}`];
};

/** A part whose address is the clip itself, such as `video_url`, with its media type in a data URL. */
export const urlPart = (type: 'audio_url' | 'video_url' | 'image_url', clip: LoadedClip): JsonPiece[] => [
  `{"type":"${type}","${type}":{"url":"`,
  ...clipUrl(clip),
  '"}}',
];

/**
 * A video's frames as `image_url` parts, one a frame, in order and in the place of the video. Frameworks write the time
 * of each frame before it; here nothing is added to the benchmark's words: no labels, no captions (return-protocol §3).
 */
export const pictures = (frames: readonly LoadedClip[]): JsonPiece[] =>
  frames.flatMap((frame, position) => [...(position === 0 ? [] : [',']), ...urlPart('image_url', frame)]);

/** Forms of a lane whose provider takes no video: frames at the lane's rate, sound as the benchmark has it. */
export const asPictures = ({ settings }: Pick<LaneConnection, 'settings'>): ClipForms => ({
  ...benchmarkForms(settings),
  video: { kind: 'frames', maxSide: settings.videoMaxSide ?? usualMaxSide, fps: settings.fps ?? usualFps },
});
