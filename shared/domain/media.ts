import { errorNames, TurnsweepError } from '../errors.ts';
import type { ResolvedClip, ResolvedPart, TextPart } from './request.ts';

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

/** Frames a second where a provider takes frames and the lane names no rate (return-protocol §3). */
export const usualFps = 2;

const rate = (fps: number | null): string => (fps === null ? '' : `-${fps}fps`);

/** Name of a form in a storage key: equal forms, equal names. */
const formId = (form: ClipForm): string => {
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

/** Raised whenever the same form is made in another way: what was made before then counts no more. */
const recipe = 1;

/** Name of what is made of a clip, in storage keys: a form and the way in which it is made. */
export const recipeId = (form: ClipForm): string => `${formId(form)}-r${recipe}`;

/** How a lane's clips are sent. Null: as the benchmark has them. */
export interface ClipForms {
  video: Exclude<ClipForm, { kind: 'wav' | 'video-with-sound' }> | null;
  audio: Extract<ClipForm, { kind: 'wav' }> | null;
  /** A message's video and sound become one file. */
  mux: boolean;
}

/** Silent video and WAV as the benchmark has them (return-protocol §3), at the lane's own size and rate. */
export const benchmarkForms = (
  settings: { videoMaxSide?: number; fps?: number },
  { mux = false } = {},
): ClipForms => ({
  video: { kind: 'video', maxSide: settings.videoMaxSide ?? usualMaxSide, fps: settings.fps ?? null },
  audio: { kind: 'wav' },
  mux,
});

export const asTheyAre: ClipForms = { video: null, audio: null, mux: false };

/** A clip as it goes out. Form null: as the benchmark has it. */
export interface SentClip {
  type: 'audio' | 'video';
  clip: ResolvedClip;
  form: ClipForm | null;
}

/**
 * The parts of a user message as they go out, in their order. Where video and sound become one file, the sound is no
 * part of its own. Throws `ContractViolated` for a message of several videos or sounds that is to be one file.
 */
export const sentParts = (content: readonly ResolvedPart[], forms: ClipForms): (TextPart | SentClip)[] => {
  const clips = content.filter((part): part is ResolvedClip => part.type !== 'text');
  const sounds = clips.filter((clip) => clip.type === 'audio');
  const pictures = clips.filter((clip) => clip.type === 'video');
  const muxes = forms.mux && sounds.length > 0 && pictures.length > 0;
  if (muxes && (sounds.length > 1 || pictures.length > 1)) {
    throw new TurnsweepError(
      errorNames.contractViolated,
      'one video and one sound make a file, not several',
      {
        where: pictures[0]!.path,
      },
    );
  }
  return content.flatMap((part) => {
    if (part.type === 'text') return part;
    if (!muxes) return { type: part.type, clip: part, form: forms[part.type] };
    if (part.type === 'audio') return [];
    return { type: part.type, clip: part, form: withSound(forms.video, sounds[0]!) };
  });
};

const withSound = (form: ClipForms['video'], sound: ResolvedClip): ClipForm => {
  if (sound.sha256 === null) {
    throw new TurnsweepError(errorNames.objectMissing, 'a clip without verified content cannot be sent', {
      where: sound.path,
    });
  }
  return {
    kind: 'video-with-sound',
    maxSide: form?.maxSide ?? usualMaxSide,
    fps: form?.fps ?? null,
    sound: { path: sound.path, sha256: sound.sha256 },
  };
};
