/**
 * A form in which clips are sent. Made once for a clip and a form, kept by content under `derived/`
 * (return-protocol §3).
 *
 * - `video`: silent H.264 MP4, longest side at most `maxSide` px, even sides; `fps` null keeps the clip's own rate.
 * - `frames`: the same picture as JPEG files cut at `fps`, for providers that take no video.
 * - `wav`: 16 kHz mono 16-bit WAV.
 * - `video-with-sound`: the video and another clip's sound in one MP4, for providers that take one medium a message.
 */
export type ClipForm =
  | { kind: 'video'; maxSide: number; fps: number | null }
  | { kind: 'frames'; maxSide: number; fps: number }
  | { kind: 'wav' }
  | {
      kind: 'video-with-sound';
      maxSide: number;
      fps: number | null;
      sound: { path: string; sha256: string };
    };

/** The benchmark's own form (return-protocol §3). */
export const usualMaxSide = 768;

const rate = (fps: number | null): string => (fps === null ? '' : `-${fps}fps`);

/** Name of a form in a storage key: equal forms, equal names. */
export const formId = (form: ClipForm): string => {
  switch (form.kind) {
    case 'wav':
      return 'wav-16khz-mono';
    case 'video':
      return `video-${form.maxSide}px${rate(form.fps)}`;
    case 'frames':
      return `frames-${form.maxSide}px${rate(form.fps)}`;
    case 'video-with-sound':
      return `video-${form.maxSide}px${rate(form.fps)}-sound-${form.sound.sha256}`;
  }
};

/** How a lane's clips are sent. Null: as the benchmark has them. */
export interface ClipForms {
  video: Exclude<ClipForm, { kind: 'wav' | 'video-with-sound' }> | null;
  audio: Extract<ClipForm, { kind: 'wav' }> | null;
  /** A message's video and sound become one file. */
  mux: boolean;
}

export const asTheyAre: ClipForms = { video: null, audio: null, mux: false };
