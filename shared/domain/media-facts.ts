import type { ClipForm } from './media.ts';

/** What a media file was found to hold. Times are measured on its packets, not believed from its header. */
export interface MediaFacts {
  /** Names of the container, such as `mov,mp4,m4a,3gp,3g2,mj2`. */
  container: string;
  /** Length by the container's header; null where there is none, or where it is only an estimate. */
  claimedSeconds: number | null;
  /** From the first moment of any stream to the last one of any. */
  heldSeconds: number;
  streams: StreamFacts[];
}

export interface PictureFacts {
  kind: 'picture';
  index: number;
  codec: string;
  pixelFormat: string;
  /** As stored. */
  width: number;
  height: number;
  /** As a viewer sees it: turned, with square pixels. */
  shownWidth: number;
  shownHeight: number;
  /** Quarter turns or mirroring are left to the viewer. */
  isTurned: boolean;
  /** Frames a second as an exact fraction, such as `30000/1001`: the average over the whole. */
  rate: string;
  hasConstantRate: boolean;
  frames: number;
  seconds: number;
}

export interface SoundFacts {
  kind: 'sound';
  index: number;
  codec: string;
  sampleRate: number;
  channels: number;
  seconds: number;
}

/** Cover pictures, subtitles, data. */
export interface OtherFacts {
  kind: 'other';
  index: number;
  codec: string;
}

export type StreamFacts = PictureFacts | SoundFacts | OtherFacts;

/** Instructions for one conversion; names are those of files in the workspace. */
export interface Making {
  form: ClipForm['kind'];
  source: string;
  /** Null where the form has no picture. `copies`: the stream is taken over as it is. */
  picture: {
    index: number;
    width: number;
    height: number;
    rate: string;
    /** The frame shown at each moment, not the nearest one: for rates below the clip's own. */
    samples: boolean;
    copies: boolean;
  } | null;
  /** Null where the form has no sound. */
  sound: { source: string; index: number } | null;
}

/** Longer than this at a rate of its own, a clip is another clip: half of a second, or the time of a frame. */
const slackSeconds = (framesPerSecond: number | null): number =>
  0.25 + (framesPerSecond === null ? 0 : 1 / framesPerSecond);

export const rateOf = (rate: string): number => {
  const [numerator, denominator] = rate.split('/').map(Number);
  return numerator! / (denominator ?? 1);
};

const pictureOf = ({ streams }: MediaFacts): PictureFacts | undefined =>
  streams.find((stream) => stream.kind === 'picture');
const soundOf = ({ streams }: MediaFacts): SoundFacts | undefined =>
  streams.find((stream) => stream.kind === 'sound');

/** H.264 in 4:2:0 has no odd sides. */
const evenBelow = (side: number): number => Math.max(2, 2 * Math.floor(side / 2));

/** Size of a picture whose longest side is at most `maxSide`: aspect kept, sides even, never larger than it was. */
export const fittedSize = (
  { width, height }: { width: number; height: number },
  maxSide: number,
): { width: number; height: number } => {
  const scale = Math.min(1, maxSide / Math.max(width, height));
  const fitted = (side: number) =>
    Math.max(2, Math.min(2 * Math.round((side * scale) / 2), evenBelow(side), evenBelow(maxSide)));
  return { width: fitted(width), height: fitted(height) };
};

const isNear = (one: number, other: number): boolean => Math.abs(one - other) <= 0.01 * other;

/** The picture is as the form wants it already, whatever else the file holds. */
const pictureFits = (
  picture: PictureFacts,
  { container }: MediaFacts,
  { maxSide, fps }: { maxSide: number; fps: number | null },
): boolean =>
  container.split(',').includes('mp4') &&
  picture.codec === 'h264' &&
  picture.pixelFormat === 'yuv420p' &&
  picture.width % 2 === 0 &&
  picture.height % 2 === 0 &&
  Math.max(picture.width, picture.height) <= maxSide &&
  !picture.isTurned &&
  isNear(picture.shownWidth / picture.shownHeight, picture.width / picture.height) &&
  picture.hasConstantRate &&
  (fps === null || isNear(rateOf(picture.rate), fps));

const isPlainWav = (facts: MediaFacts): boolean => {
  const [sound, ...more] = facts.streams;
  return (
    facts.container === 'wav' &&
    more.length === 0 &&
    sound?.kind === 'sound' &&
    sound.codec === 'pcm_s16le' &&
    sound.sampleRate === 16_000 &&
    sound.channels === 1
  );
};

/** True where the file is what the form asks for, so that it is passed on unchanged. */
export const satisfies = (facts: MediaFacts, form: ClipForm): boolean => {
  if (form.kind === 'wav') return isPlainWav(facts);
  if (form.kind !== 'video') return false;
  const [picture, ...more] = facts.streams;
  return more.length === 0 && picture?.kind === 'picture' && pictureFits(picture, facts, form);
};

/** Why content cannot be used, found before or after a conversion; in words that go after the clip's name. */
export type Fault = string;

/** What is wrong with an original before anything is done with it: its header promises more than is there. */
export const faultOfOriginal = ({ claimedSeconds: claimed, heldSeconds: held }: MediaFacts): Fault | null => {
  if (claimed === null || claimed - held <= Math.max(0.5, 0.02 * claimed)) return null;
  return `it is cut short: ${held.toFixed(1)} s of ${claimed.toFixed(1)} s are there`;
};

/** The same for RIFF files (WAV, AVI), whose length readers take from what is there. Streamed ones promise nothing. */
export const faultOfRiff = (content: Uint8Array): Fault | null => {
  const view = new DataView(content.buffer, content.byteOffset, content.byteLength);
  if (content.length < 8 || view.getUint32(0) !== 0x52494646) return null;
  const promised = view.getUint32(4, true);
  if (promised === 0xffff_ffff || promised + 8 <= content.length + 1) return null;
  return `it is cut short: ${content.length} of ${promised + 8} bytes are there`;
};

const chunkName = (content: Uint8Array, offset: number): string =>
  String.fromCharCode(...content.subarray(offset, offset + 4));

/**
 * True for content that its own header tells to be 16 kHz mono 16-bit WAV with sound in it, whole: what `satisfies` would
 * say of it, without anything being started. False wherever a closer look is needed.
 */
export const isPlainWavContent = (content: Uint8Array): boolean => {
  const view = new DataView(content.buffer, content.byteOffset, content.byteLength);
  if (content.length < 12 || chunkName(content, 0) !== 'RIFF' || chunkName(content, 8) !== 'WAVE')
    return false;
  let isPlain = false;
  for (let offset = 12; offset + 8 <= content.length; ) {
    const size = view.getUint32(offset + 4, true);
    const start = offset + 8;
    if (start + size > content.length) return false;
    if (chunkName(content, offset) === 'data') return isPlain && size > 0 && size % 2 === 0;
    if (chunkName(content, offset) === 'fmt ' && size >= 16) {
      const [format, channels] = [view.getUint16(start, true), view.getUint16(start + 2, true)];
      const [samplesPerSecond, bits] = [view.getUint32(start + 4, true), view.getUint16(start + 14, true)];
      isPlain = format === 1 && channels === 1 && samplesPerSecond === 16_000 && bits === 16;
    }
    offset = start + size + (size % 2);
  }
  return false;
};

/** What has to be made of a file, and of the other one that gives the sound; or why that cannot be. */
export const planMaking = (
  source: { name: string; facts: MediaFacts },
  sound: { name: string; facts: MediaFacts } | null,
  form: ClipForm,
): Making | Fault => {
  const heard = soundOf((sound ?? source).facts);
  if (form.kind === 'wav' || form.kind === 'video-with-sound') {
    if (heard === undefined) return 'it has no sound';
    if (heard.seconds <= 0) return 'its sound is empty';
  }
  if (form.kind === 'wav') {
    return {
      form: form.kind,
      source: source.name,
      picture: null,
      sound: { source: source.name, index: heard!.index },
    };
  }
  const picture = pictureOf(source.facts);
  if (picture === undefined) return 'it has no picture';
  if (picture.frames === 0) return 'its picture is empty';
  const size = fittedSize({ width: picture.shownWidth, height: picture.shownHeight }, form.maxSide);
  return {
    form: form.kind,
    source: source.name,
    picture: {
      index: picture.index,
      ...size,
      rate: form.fps === null ? picture.rate : String(form.fps),
      samples: form.fps !== null,
      copies: form.kind !== 'frames' && pictureFits(picture, source.facts, form),
    },
    sound: form.kind === 'video-with-sound' ? { source: sound!.name, index: heard!.index } : null,
  };
};

const countFault = (frames: number, seconds: number, framesPerSecond: number): Fault | null => {
  const expected = seconds * framesPerSecond;
  // A frame for the rest of a last interval, and one for rounding.
  if (frames >= 1 && Math.abs(frames - expected) <= Math.max(1.5, 0.02 * expected)) return null;
  return `${frames} frames came out where ${expected.toFixed(1)} were expected`;
};

const lengthFault = (what: string, is: number, was: number, slack: number): Fault | null =>
  Math.abs(is - was) <= slack + 0.01 * was
    ? null
    : `the ${what} lasts ${is.toFixed(2)} s where the original has ${was.toFixed(2)} s`;

/**
 * What is wrong with the files that a conversion made; null where they are what was wanted: exactly the wanted
 * streams, sizes and rates, as long as the originals. `made` are the facts of the result, of the first file for frames.
 */
export const faultOfResult = (
  made: MediaFacts,
  files: number,
  making: Making,
  source: MediaFacts,
  sound: MediaFacts | null,
): Fault | null => {
  const wantedStreams = (making.picture === null ? 0 : 1) + (making.sound === null ? 0 : 1);
  if (made.streams.length !== wantedStreams) {
    return `the result has ${made.streams.length} streams where ${wantedStreams} were wanted`;
  }
  if (making.picture !== null) {
    const was = pictureOf(source)!;
    const is = pictureOf(made);
    const { width, height, rate } = making.picture;
    if (is === undefined) return 'the result has no picture';
    const size = making.picture.copies ? was : { width, height };
    if (is.width !== size.width || is.height !== size.height || is.isTurned) {
      return `the picture has ${is.width}x${is.height} where ${size.width}x${size.height} were wanted`;
    }
    const framesPerSecond = rateOf(rate);
    if (making.form === 'frames') {
      return is.codec === 'mjpeg'
        ? countFault(files, was.seconds, framesPerSecond)
        : `the frames are ${is.codec}`;
    }
    if (is.codec !== 'h264' || is.pixelFormat !== 'yuv420p') return `the picture is ${is.codec}`;
    const fault =
      countFault(is.frames, was.seconds, framesPerSecond) ??
      lengthFault('picture', is.seconds, was.seconds, slackSeconds(framesPerSecond));
    if (fault !== null) return fault;
  }
  if (making.sound !== null) {
    const is = soundOf(made);
    const was = soundOf(sound ?? source)!;
    if (is === undefined) return 'the result has no sound';
    if (is.sampleRate !== 16_000 || is.channels !== 1) {
      return `the sound has ${is.sampleRate} Hz and ${is.channels} channels`;
    }
    if (making.form === 'wav' && !isPlainWav(made)) return `the sound is ${is.codec}`;
    return lengthFault('sound', is.seconds, was.seconds, slackSeconds(null));
  }
  return null;
};
