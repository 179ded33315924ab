import { existsSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { createPrepareMedia } from '../../functions/prepare-media/prepare-media.ts';
import { createFfmpegMediaTool } from '../../shared/adapters/local/ffmpeg-media-tool.ts';
import { createFileObjectStore } from '../../shared/adapters/local/file-object-store.ts';
import { scopeObjectStore } from '../../shared/adapters/local/scoped-object-store.ts';
import { type DerivedRecord, derivedRecord } from '../../shared/contracts/media.ts';
import { type ClipForm, recipeId } from '../../shared/domain/media.ts';
import { keys } from '../../shared/keys.ts';
import { sha256 } from '../../shared/naming.ts';
import type { MediaTool } from '../../shared/ports/media-tool.ts';
import { scopes } from '../../shared/scopes.ts';
import { temporaryFolder } from '../support/command-line.ts';
import { ffmpeg, frameTimes, greyFrames, mediaFile, streamsOf } from '../support/media-files.ts';

const tool = createFfmpegMediaTool({ ffmpeg: null, remedy: 'install it', deadlineSeconds: 120 });
const silent = { kind: 'video', maxSide: 768, fps: 2 } as const;
const ownRate = { kind: 'video', maxSide: 768, fps: null } as const;
const wav = { kind: 'wav' } as const;

const bars = (size: string, rate: number, seconds: number) => [
  ...['-f', 'lavfi', '-i', `testsrc2=size=${size}:rate=${rate}:duration=${seconds}`],
];
const tone = (seconds: number, more = '') => [
  ...['-f', 'lavfi', '-i', `sine=frequency=440:sample_rate=48000:duration=${seconds}${more}`],
];
const h264 = ['-c:v', 'libx264', '-preset', 'ultrafast', '-pix_fmt', 'yuv420p'];

/** A store with the originals, and the stage as its role lets it work. */
const stage = (files: readonly string[], own: MediaTool = tool) => {
  const root = temporaryFolder();
  const store = createFileObjectStore({
    root,
    aliases: new Map(
      files.map((file) => [keys.media(sha256(readFileSync(file)), path.extname(file).slice(1)), file]),
    ),
  });
  const prepareMedia = createPrepareMedia({
    store: scopeObjectStore(store, scopes['prepare-media']),
    tool: own,
  });
  const clipOf = (file: string) => ({
    path: `media/${path.basename(file)}`,
    sha256: sha256(readFileSync(file)),
  });
  return {
    clipOf,
    async prepare(file: string, form: ClipForm) {
      const clip = clipOf(file);
      const { status } = await prepareMedia({ clip, form });
      const recipe = recipeId(form);
      const text = await store.getText(keys.derived.record(clip.sha256, recipe));
      const record: DerivedRecord = derivedRecord.parse(JSON.parse(text!));
      const made =
        record.status === 'made'
          ? record.files.map(({ name }) => path.join(root, keys.derived.file(clip.sha256, recipe, name)))
          : [];
      return { status, record, made };
    },
  };
};
const prepare = (file: string, form: ClipForm) => stage([file]).prepare(file, form);
const reasonOf = async (file: string, form: ClipForm) => {
  const { record } = await prepare(file, form);
  return record.status === 'unusable' ? record.reason : record.status;
};

describe('a video with sound', () => {
  it('becomes silent H.264 of the wanted size and rate, once', async () => {
    const file = mediaFile(
      'loud.mp4',
      ...[
        ...bars('1280x720', 30, 3.2),
        ...tone(3.2),
        ...h264,
        '-c:a',
        'aac',
        '-metadata',
        'title=Secret title',
      ],
    );
    let opened = 0;
    const counting: MediaTool = {
      ...tool,
      open: () => {
        opened += 1;
        return tool.open();
      },
    };
    const { prepare: prepareHere } = stage([file], counting);

    const first = await prepareHere(file, silent);
    const second = await prepareHere(file, silent);

    expect([first.status, second.status, opened]).toEqual(['made', 'kept', 1]);
    const streams = streamsOf(first.made[0]!);
    expect(streams).toMatchObject([
      { codec_name: 'h264', pix_fmt: 'yuv420p', width: 768, height: 432, avg_frame_rate: '2/1' },
    ]);
    // The frames at 0, 0.5 … 3.0 s.
    expect(frameTimes(first.made[0]!)).toEqual([0, 0.5, 1, 1.5, 2, 2.5, 3]);
    const content = readFileSync(first.made[0]!);
    expect(content.includes('Secret title')).toBe(false);
    expect(first.record).toMatchObject({
      mime: 'video/mp4',
      width: 768,
      height: 432,
      files: [{ bytes: content.length, sha256: sha256(content) }],
    });
  });

  it('comes out as the same bytes on another run', async () => {
    const file = mediaFile('again.mp4', ...bars('640x360', 25, 2), ...h264);

    const runs = await Promise.all([prepare(file, silent), prepare(file, silent)]);

    const [one, other] = runs.map(({ made }) => readFileSync(made[0]!));
    expect(one!.equals(other!)).toBe(true);
  });

  it('keeps its picture as it is where only the sound has to go', async () => {
    const file = mediaFile('small.mp4', ...bars('320x240', 10, 2), ...tone(2), ...h264, '-c:a', 'aac');

    const { made } = await prepare(file, ownRate);

    const picture = (of: string) => ffmpeg('-i', of, '-map', '0:v', '-c', 'copy', '-f', 'h264', '-');
    expect(picture(made[0]!).equals(picture(file))).toBe(true);
    expect(streamsOf(made[0]!)).toHaveLength(1);
  });
});

describe('files that have their form already', () => {
  const media = path.join(
    import.meta.dirname,
    '..',
    '..',
    'examples',
    'small-return',
    'release',
    'data',
    'media',
  );

  it.each([
    ['clip-01.mp4', ownRate],
    ['clip-02.mp4', ownRate],
    ['clip-01.wav', wav],
    ['clip-15.wav', wav],
  ] as const)('%s of the example goes out unchanged', async (name, form) => {
    const { record, made } = await prepare(path.join(media, name), form);

    expect(record.status).toBe('same');
    expect(made).toEqual([]);
  });

  it('of the example are sampled and cut into frames at another rate', async () => {
    const file = path.join(media, 'clip-01.mp4');
    const { prepare: prepareHere } = stage([file]);

    const video = await prepareHere(file, silent);
    const frames = await prepareHere(file, { kind: 'frames', maxSide: 240, fps: 2 });

    // 3.5 s of 480x320.
    expect(streamsOf(video.made[0]!)).toMatchObject([{ width: 480, height: 320, avg_frame_rate: '2/1' }]);
    expect(frames.made).toHaveLength(7);
    for (const frame of frames.made) {
      expect(streamsOf(frame)).toMatchObject([{ codec_name: 'mjpeg', width: 240, height: 160 }]);
    }
    const times = frames.made.map((frame) => path.basename(frame).slice(0, 6));
    expect(times).toEqual(['000001', '000002', '000003', '000004', '000005', '000006', '000007']);
  });
});

describe('odd files', () => {
  it('of odd sides get even ones, and no other colours than 4:2:0', async () => {
    const file = mediaFile('odd.mp4', ...bars('321x241', 10, 1), '-c:v', 'libx264', '-pix_fmt', 'yuv444p');

    const { made } = await prepare(file, ownRate);

    expect(streamsOf(made[0]!)).toMatchObject([{ width: 320, height: 240, pix_fmt: 'yuv420p' }]);
  });

  it('of pixels that are not square are stretched to what people see', async () => {
    const file = mediaFile('wide.mp4', ...bars('320x240', 10, 1), '-vf', 'setsar=2/1', ...h264);

    const { made } = await prepare(file, ownRate);

    expect(streamsOf(made[0]!)).toMatchObject([{ width: 640, height: 240 }]);
  });

  it('that players turn are turned', async () => {
    // The left half is black, the right one white.
    const upright = mediaFile(
      'upright.mp4',
      ...['-f', 'lavfi', '-i', 'color=black:size=320x160:rate=10:duration=1'],
      ...['-vf', 'drawbox=x=160:w=160:h=160:color=white:t=fill', ...h264],
    );
    const turned = path.join(path.dirname(upright), 'turned.mp4');
    try {
      ffmpeg('-display_rotation', '90', '-i', upright, '-c', 'copy', turned);
    } catch {
      // Before version 6.
      ffmpeg('-i', upright, '-c', 'copy', '-metadata:s:v:0', 'rotate=270', turned);
    }
    expect(streamsOf(turned)[0]!.side_data_list).toHaveLength(1);

    const { made } = await prepare(turned, ownRate);

    expect(streamsOf(made[0]!)).toMatchObject([{ width: 160, height: 320 }]);
    expect(streamsOf(made[0]!)[0]!.side_data_list ?? []).toEqual([]);
    const seen = greyFrames(turned, 2, 4)[0]!.map((grey) => grey > 128);
    expect(new Set([seen[0], seen[6]]).size).toBe(2);
    expect(greyFrames(made[0]!, 2, 4)[0]!.map((grey) => grey > 128)).toEqual(seen);
  });

  it('of a changing rate show at each moment what was to be seen then', async () => {
    // Brightness tells the time: 50 a second. The first second has 30 frames, the others 3.
    const file = mediaFile(
      'changing.mp4',
      ...['-f', 'lavfi', '-i', 'color=black:size=160x120:rate=30:duration=4'],
      ...['-vf', "geq=lum='20+50*T':cb=128:cr=128,select='if(lt(t,1),1,not(mod(n,10)))'"],
      ...['-vsync', 'vfr', ...h264, '-crf', '5'],
    );
    expect(
      new Set(frameTimes(file).map((_, at, all) => Math.round(1000 * (all[at + 1]! - all[at]!)))).size,
    ).toBeGreaterThan(2);

    const { made } = await prepare(file, silent);

    expect(frameTimes(made[0]!)).toEqual([0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5]);
    const greys = greyFrames(made[0]!, 1, 1).map(([grey]) => grey!);
    // From limited range: 20 … 195 of 16 … 235 become these. A third of a second is the time of a slow frame.
    const expected = [0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5].map(
      (seconds) => ((20 + 50 * seconds - 16) * 255) / 219,
    );
    for (const [at, grey] of greys.entries()) {
      expect(grey).toBeLessThan(expected[at]! + 4);
      expect(grey).toBeGreaterThan(expected[at]! - (50 / 3) * (255 / 219) - 4);
    }
  });

  it('that are shorter than one interval give one frame', async () => {
    const file = mediaFile('short.mp4', ...bars('160x120', 30, 0.2), ...h264);

    const { made } = await prepare(file, { kind: 'frames', maxSide: 768, fps: 2 });

    expect(made).toHaveLength(1);
  });

  it('in other containers and of more bits become H.264 of 8 bits', async () => {
    const file = mediaFile(
      'deep.mkv',
      ...bars('320x180', 24, 2),
      '-c:v',
      'libx264',
      '-pix_fmt',
      'yuv420p10le',
    );

    const { made } = await prepare(file, ownRate);

    expect(streamsOf(made[0]!)).toMatchObject([
      { codec_name: 'h264', pix_fmt: 'yuv420p', avg_frame_rate: '24/1' },
    ]);
    expect(frameTimes(made[0]!)).toHaveLength(48);
  });
});

describe('sound', () => {
  it('of six channels becomes 16 kHz mono, as long as it was', async () => {
    const file = mediaFile(
      'surround.mka',
      ...tone(2.5),
      '-ac',
      '6',
      '-c:a',
      'flac',
      '-metadata',
      'title=Secret title',
    );

    const { made } = await prepare(file, wav);

    expect(streamsOf(made[0]!)).toMatchObject([
      { codec_name: 'pcm_s16le', sample_rate: '16000', channels: 1 },
    ]);
    // A header of 44 bytes and 2.5 s of 16-bit samples.
    expect(readFileSync(made[0]!)).toHaveLength(44 + 2.5 * 16_000 * 2);
  });

  it('of an MP3 with a cover picture is heard, the cover is no video', async () => {
    const cover = mediaFile('cover.png', ...bars('100x100', 1, 1), '-frames:v', '1');
    const file = mediaFile(
      'song.mp3',
      ...[
        ...tone(2),
        '-i',
        cover,
        '-map',
        '0:a',
        '-map',
        '1:v',
        '-c:v',
        'copy',
        '-disposition:v',
        'attached_pic',
      ],
    );
    const { prepare: prepareHere } = stage([file]);

    expect((await prepareHere(file, wav)).status).toBe('made');
    expect((await prepareHere(file, silent)).record).toMatchObject({
      status: 'unusable',
      reason: 'it has no picture',
    });
  });

  it('goes into the file of its video where both have to be one', async () => {
    const video = mediaFile('seen.mp4', ...bars('640x360', 30, 3), ...h264);
    const sound = mediaFile('heard.wav', ...tone(2));
    const { prepare: prepareHere, clipOf } = stage([video, sound]);
    const form = { kind: 'video-with-sound', maxSide: 768, fps: 2, sound: clipOf(sound) } as const;

    const { made } = await prepareHere(video, form);

    const streams = streamsOf(made[0]!);
    expect(streams).toMatchObject([
      { codec_name: 'h264', avg_frame_rate: '2/1' },
      { codec_name: 'aac', sample_rate: '16000', channels: 1 },
    ]);
    expect(Number(streams[0]!.duration)).toBeCloseTo(3, 1);
    expect(Number(streams[1]!.duration)).toBeCloseTo(2, 0);
    // There is something to hear.
    const samples = ffmpeg('-i', made[0]!, '-map', '0:a', '-f', 's16le', '-');
    expect(Math.max(...new Int16Array(new Uint8Array(samples).buffer))).toBeGreaterThan(1000);
  });
});

describe('files that cannot be used', () => {
  const written = (name: string, content: string | Buffer) => {
    const file = path.join(temporaryFolder(), name);
    writeFileSync(file, content);
    return file;
  };

  it('say so: no sound', async () => {
    const file = mediaFile('mute.mp4', ...bars('160x120', 10, 1), ...h264);
    expect(await reasonOf(file, wav)).toBe('it has no sound');
  });

  it('say so: no picture', async () => {
    expect(await reasonOf(mediaFile('tone.wav', ...tone(1)), silent)).toBe('it has no picture');
  });

  it('say so: zero length', async () => {
    expect(await reasonOf(written('empty.mp4', ''), silent)).toBe('it is empty');
  });

  it('say so: a header and nothing after it', async () => {
    const file = mediaFile('head.wav', ...tone(1), '-c:a', 'pcm_s16le');
    truncateSync(file, 44);
    expect(await reasonOf(file, wav)).toMatch(/^it is cut short/);
  });

  it.each([
    ['text', 'words.mp4', 'This is no video.'],
    ['noise', 'noise.wav', Buffer.from(Array.from({ length: 4096 }, (_, at) => (at * 7919) % 251))],
  ])('say so: %s', async (_, name, content) => {
    expect(await reasonOf(written(name, content), name.endsWith('.wav') ? wav : silent)).toMatch(
      /^ffprobe cannot read it: /,
    );
  });

  it('say so: a still picture under the name of a video', async () => {
    const picture = mediaFile('still.png', ...bars('64x64', 1, 1), '-frames:v', '1');
    expect(await reasonOf(written('still.mp4', readFileSync(picture)), silent)).toMatch(/cannot read it/);
  });

  it('say so: cut off in the middle', async () => {
    const file = mediaFile('cut.mp4', ...bars('320x240', 30, 6), ...h264, '-movflags', '+faststart');
    truncateSync(file, Math.round(readFileSync(file).length * 0.5));
    expect(await reasonOf(file, ownRate)).toMatch(/^it is cut short: \d\.\d s of 6\.0 s are there$/);
  });

  it('say so: a WAV that would be passed on, cut off in the middle', async () => {
    const file = mediaFile('cut.wav', ...tone(4), '-ar', '16000', '-ac', '1', '-c:a', 'pcm_s16le');
    truncateSync(file, 2 * 16_000 * 2);
    // The header of ffmpeg has 78 bytes: it names its maker.
    expect(await reasonOf(file, wav)).toBe('it is cut short: 64000 of 128078 bytes are there');
  });

  it('never make another file of the machine part of a clip', async () => {
    const secret = mediaFile('secret.ts', ...bars('160x120', 10, 1), ...h264);
    const playlist = `#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:1,\n${secret}\n#EXT-X-ENDLIST\n`;
    const concatenation = `ffconcat version 1.0\nfile '${secret}'\n`;
    expect(existsSync(secret)).toBe(true);

    for (const text of [playlist, concatenation]) {
      expect(await reasonOf(written('playlist.mp4', text), silent)).toMatch(/cannot read it/);
    }
  });

  it('are tried again when they are asked for again', async () => {
    const file = mediaFile('twice.mp4', ...bars('160x120', 10, 1), ...h264);
    const { prepare: prepareHere } = stage([file]);

    expect((await prepareHere(file, wav)).status).toBe('unusable');
    expect((await prepareHere(file, wav)).status).toBe('unusable');
  });
});
