import { describe, expect, it } from 'vitest';
import type { ClipForm } from '../../../shared/domain/media.ts';
import {
  faultOfOriginal,
  faultOfResult,
  faultOfRiff,
  fittedSize,
  isPlainWavContent,
  type Making,
  type MediaFacts,
  type PictureFacts,
  planMaking,
  type SoundFacts,
  satisfies,
} from '../../../shared/domain/media-facts.ts';

const picture = (changes: Partial<PictureFacts> = {}): PictureFacts => ({
  kind: 'picture',
  index: 0,
  codec: 'h264',
  pixelFormat: 'yuv420p',
  width: 640,
  height: 360,
  shownWidth: 640,
  shownHeight: 360,
  isTurned: false,
  rate: '2/1',
  hasConstantRate: true,
  frames: 8,
  seconds: 4,
  ...changes,
});
const sound = (changes: Partial<SoundFacts> = {}): SoundFacts => ({
  kind: 'sound',
  index: 0,
  codec: 'pcm_s16le',
  sampleRate: 16_000,
  channels: 1,
  seconds: 4,
  ...changes,
});
const facts = (streams: MediaFacts['streams'], changes: Partial<MediaFacts> = {}): MediaFacts => ({
  container: streams.some(({ kind }) => kind === 'picture') ? 'mov,mp4,m4a,3gp,3g2,mj2' : 'wav',
  claimedSeconds: 4,
  heldSeconds: 4,
  streams,
  ...changes,
});
const video = { kind: 'video', maxSide: 768, fps: 2 } as const satisfies ClipForm;
const wav = { kind: 'wav' } as const satisfies ClipForm;

describe('the size of a picture', () => {
  it.each([
    [1920, 1080, 768, 768, 432],
    [1080, 1920, 768, 432, 768],
    // 480 · 768 / 853 = 432.2
    [853, 480, 768, 768, 432],
    [640, 360, 768, 640, 360],
    [641, 361, 768, 640, 360],
    // 3 · 767 / 2000 = 1.2, which is not even; 767 has an even number below it.
    [2000, 3, 767, 766, 2],
    [1, 1, 768, 2, 2],
  ])('%i x %i within %i is %i x %i', (width, height, maxSide, fittedWidth, fittedHeight) => {
    expect(fittedSize({ width, height }, maxSide)).toEqual({ width: fittedWidth, height: fittedHeight });
  });
});

describe('a file that is what the form asks for', () => {
  it('is silent H.264 at the rate, or a plain WAV', () => {
    expect(satisfies(facts([picture()]), video)).toBe(true);
    expect(satisfies(facts([picture({ rate: '30/1' })]), { ...video, fps: null })).toBe(true);
    expect(satisfies(facts([sound()]), wav)).toBe(true);
  });

  it.each<[string, MediaFacts]>([
    ['it has sound', facts([picture(), sound()])],
    ['another codec', facts([picture({ codec: 'hevc' })])],
    ['other colours', facts([picture({ pixelFormat: 'yuv444p' })])],
    ['an odd side', facts([picture({ width: 639, shownWidth: 639 })])],
    ['a side too long', facts([picture({ width: 1280, height: 720, shownWidth: 1280, shownHeight: 720 })])],
    ['it is turned', facts([picture({ isTurned: true, shownWidth: 360, shownHeight: 640 })])],
    ['its pixels are no squares', facts([picture({ shownWidth: 1280 })])],
    ['another rate', facts([picture({ rate: '30/1' })])],
    ['a changing rate', facts([picture({ hasConstantRate: false })])],
    ['another container', facts([picture()], { container: 'matroska,webm' })],
  ])('is not where %s', (_, found) => {
    expect(satisfies(found, video)).toBe(false);
  });

  it.each<[string, MediaFacts]>([
    ['it has two channels', facts([sound({ channels: 2 })])],
    ['another sample rate', facts([sound({ sampleRate: 44_100 })])],
    ['another codec', facts([sound({ codec: 'pcm_f32le' })])],
    ['another container', facts([sound()], { container: 'flac' })],
    ['more streams', facts([sound(), sound({ index: 1 })])],
  ])('is no WAV of ours where %s', (_, found) => {
    expect(satisfies(found, wav)).toBe(false);
  });

  it('is never a list of frames', () => {
    expect(satisfies(facts([picture()]), { kind: 'frames', maxSide: 768, fps: 2 })).toBe(false);
  });
});

describe('an original', () => {
  it('is cut short where its header promises more than is there', () => {
    expect(faultOfOriginal(facts([], { claimedSeconds: 10, heldSeconds: 3.04 }))).toBe(
      'it is cut short: 3.0 s of 10.0 s are there',
    );
    expect(faultOfOriginal(facts([], { claimedSeconds: 10, heldSeconds: 9.6 }))).toBeNull();
    expect(faultOfOriginal(facts([], { claimedSeconds: null, heldSeconds: 3 }))).toBeNull();
  });

  it.each([
    ['RIFF\u0000\u0001\u0000\u0000', 'it is cut short: 8 of 264 bytes are there'],
    // Nothing was promised by who wrote into a pipe.
    ['RIFF\u00ff\u00ff\u00ff\u00ff', null],
    ['RIFF\u0000\u0000\u0000\u0000', null],
    ['RIFX\u0000\u0001\u0000\u0000', null],
    ['RI', null],
  ])('of RIFF says in its first bytes how long it is (%j)', (bytes, fault) => {
    expect(faultOfRiff(Buffer.from(bytes, 'latin1'))).toBe(fault);
  });
});

describe('plain WAV by its own header', () => {
  interface Parts {
    format?: number;
    channels?: number;
    samplesPerSecond?: number;
    bits?: number;
    samples?: Buffer;
    /** What the header says of the samples. */
    promised?: number;
    before?: Buffer;
    after?: Buffer;
  }
  const chunk = (name: string, content: Buffer, size = content.length): Buffer => {
    const head = Buffer.alloc(8);
    head.write(name, 0, 'latin1');
    head.writeUInt32LE(size, 4);
    return Buffer.concat([head, content, Buffer.alloc(content.length % 2)]);
  };
  const wav = ({
    format = 1,
    channels = 1,
    samplesPerSecond = 16_000,
    bits = 16,
    samples = Buffer.alloc(64, 7),
    promised,
    before = Buffer.alloc(0),
    after = Buffer.alloc(0),
  }: Parts = {}): Buffer => {
    const fmt = Buffer.alloc(16);
    fmt.writeUInt16LE(format, 0);
    fmt.writeUInt16LE(channels, 2);
    fmt.writeUInt32LE(samplesPerSecond, 4);
    fmt.writeUInt32LE((samplesPerSecond * channels * bits) / 8, 8);
    fmt.writeUInt16LE((channels * bits) / 8, 12);
    fmt.writeUInt16LE(bits, 14);
    const rest = [before, chunk('fmt ', fmt), chunk('data', samples, promised), after];
    return chunk('RIFF', Buffer.concat([Buffer.from('WAVE'), ...rest]));
  };

  it.each<[string, Buffer, boolean]>([
    ['as it should be', wav(), true],
    [
      'with a list before and after',
      wav({ before: chunk('LIST', Buffer.from('abc')), after: chunk('LIST', Buffer.from('ab')) }),
      true,
    ],
    ['of another rate', wav({ samplesPerSecond: 24_000 }), false],
    ['in stereo', wav({ channels: 2 }), false],
    ['of 8 bits', wav({ bits: 8 }), false],
    ['of floats', wav({ format: 3 }), false],
    ['of the extensible kind', wav({ format: 0xfffe }), false],
    ['without samples', wav({ samples: Buffer.alloc(0) }), false],
    ['cut short', wav({ promised: 66 }), false],
    ['of open length', wav({ promised: 0xffff_ffff }), false],
    ['with half a sample', wav({ samples: Buffer.alloc(63, 7) }), false],
    ['that is no WAV', Buffer.from('RIFF\x04\0\0\0AVI '), false],
    ['that is nearly nothing', Buffer.from('RIFF'), false],
    ['that is nothing', Buffer.alloc(0), false],
  ])('%s', (_name, content, expected) => {
    expect(isPlainWavContent(content)).toBe(expected);
    // The same inside a larger buffer.
    const inside = Buffer.concat([Buffer.alloc(3), content, Buffer.alloc(5)]).subarray(3, 3 + content.length);
    expect(isPlainWavContent(inside)).toBe(expected);
  });
});

describe('what is to be made', () => {
  const source = (found: MediaFacts) => ({ name: 'original.mp4', facts: found });

  it('is the picture alone, fitted and sampled', () => {
    const turned = picture({ index: 1, rate: '30/1', isTurned: true, shownWidth: 1080, shownHeight: 1920 });

    expect(planMaking(source(facts([sound(), turned])), null, video)).toEqual({
      form: 'video',
      source: 'original.mp4',
      picture: { index: 1, width: 432, height: 768, rate: '2', samples: true, copies: false },
      sound: null,
    });
  });

  it("keeps the clip's own rate where none is wanted, and a picture that fits", () => {
    const found = facts([picture({ rate: '30000/1001' }), sound({ index: 1 })]);

    expect(planMaking(source(found), null, { ...video, fps: null })).toMatchObject({
      picture: { rate: '30000/1001', samples: false, copies: true },
    });
  });

  it('takes the sound from the other clip', () => {
    const form: ClipForm = { ...video, kind: 'video-with-sound', sound: { path: 'a.wav', sha256: 'f' } };
    const other = { name: 'sound.wav', facts: facts([sound({ index: 3 })]) };

    expect(planMaking(source(facts([picture(), sound({ index: 1 })])), other, form)).toMatchObject({
      sound: { source: 'sound.wav', index: 3 },
    });
  });

  it.each<[string, MediaFacts, ClipForm]>([
    ['it has no sound', facts([picture()]), wav],
    ['its sound is empty', facts([sound({ seconds: 0 })]), wav],
    ['it has no picture', facts([sound(), { kind: 'other', index: 1, codec: 'png' }]), video],
    ['its picture is empty', facts([picture({ frames: 0, seconds: 0 })]), video],
  ])('cannot be made where %s', (reason, found, form) => {
    expect(planMaking(source(found), null, form)).toBe(reason);
  });
});

describe('a result', () => {
  const original = facts([picture({ rate: '30/1', frames: 120 }), sound({ index: 1 })]);
  const making: Making = {
    form: 'video',
    source: 'original.mp4',
    picture: { index: 0, width: 640, height: 360, rate: '2', samples: true, copies: false },
    sound: null,
  };
  const heard: Making = {
    ...making,
    form: 'wav',
    picture: null,
    sound: { source: 'original.mp4', index: 1 },
  };
  const fault = (made: MediaFacts, of: Making = making, files = 1) =>
    faultOfResult(made, files, of, original, null);

  it('is good with exactly the wanted streams, as long as the original', () => {
    expect(fault(facts([picture()]))).toBeNull();
    expect(fault(facts([picture({ frames: 9, seconds: 4.5 })]))).toBeNull();
    expect(fault(facts([sound()]), heard)).toBeNull();
    expect(
      fault(facts([picture({ codec: 'mjpeg', frames: 1, seconds: 0 })]), { ...making, form: 'frames' }, 8),
    ).toBeNull();
  });

  it.each<[string, MediaFacts, Making, number]>([
    ['the result has 2 streams where 1 were wanted', facts([picture(), sound()]), making, 1],
    ['the result has 0 streams where 1 were wanted', facts([]), making, 1],
    ['the result has no picture', facts([sound()]), making, 1],
    ['the picture has 642x360 where 640x360 were wanted', facts([picture({ width: 642 })]), making, 1],
    ['the picture is mpeg4', facts([picture({ codec: 'mpeg4' })]), making, 1],
    ['6 frames came out where 8.0 were expected', facts([picture({ frames: 6 })]), making, 1],
    ['the picture lasts 3.00 s where the original has 4.00 s', facts([picture({ seconds: 3 })]), making, 1],
    [
      '5 frames came out where 8.0 were expected',
      facts([picture({ codec: 'mjpeg' })]),
      { ...making, form: 'frames' },
      5,
    ],
    ['the sound has 8000 Hz and 1 channels', facts([sound({ sampleRate: 8000 })]), heard, 1],
    ['the sound lasts 3.50 s where the original has 4.00 s', facts([sound({ seconds: 3.5 })]), heard, 1],
    ['the sound is pcm_s24le', facts([sound({ codec: 'pcm_s24le' })]), heard, 1],
  ])('is refused: %s', (reason, made, of, files) => {
    expect(fault(made, of, files)).toBe(reason);
  });
});
