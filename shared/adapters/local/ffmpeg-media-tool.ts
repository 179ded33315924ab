import { spawn } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Making } from '../../domain/media-facts.ts';
import { errorNames, TurnsweepError } from '../../errors.ts';
import type { MediaTool, MediaWorkspace } from '../../ports/media-tool.ts';
import { factsOf, type Probed } from './ffprobe-facts.ts';
import { errnoCode } from './storage-errors.ts';

export interface FfmpegMediaToolOptions {
  /** The ffmpeg program, with ffprobe beside it; null: both are looked for in PATH. */
  ffmpeg: string | null;
  /** What to do where the programs are missing, one clause. */
  remedy: string;
  /** Longest time of one look into a file or of one conversion. */
  deadlineSeconds: number;
}

/**
 * What may be opened as a benchmark's clip. Playlists are not in it: they would let a file of the benchmark read
 * other files of this machine, or fetch from the network.
 */
const containers =
  'mov,mp4,matroska,webm,avi,wav,mp3,flac,ogg,aac,ac3,mpegts,mpeg,mpegvideo,flv,asf,aiff,amr,caf,m4v,h264,hevc';
const safely = ['-protocol_whitelist', 'file', '-format_whitelist', containers];
/** Frames of our own making. */
const safelyFrames = ['-protocol_whitelist', 'file', '-format_whitelist', 'image2,jpeg_pipe'];

/** Same bytes on every run of one build: no dates, no names, one thread. */
const reproducible = ['-map_metadata', '-1', '-map_chapters', '-1', '-fflags', '+bitexact', '-threads', '1'];

const stderrCharacters = 2000;
/** Facts of a clip of many hours; above that it is no clip. */
const stdoutBytesAtMost = 256 * 1024 * 1024;

/** The machine's fault or the program's, not that of the file. */
const toolFaults =
  /No space left on device|Cannot allocate memory|Disk quota exceeded|Unknown (encoder|decoder|muxer)|Unrecognized option|No such filter|Permission denied/i;

/**
 * ffmpeg and ffprobe as child processes. A file is decoded from its beginning in order, turned as its header says,
 * with all its pictures at a constant rate. Throws `UsageWrong` where the programs are missing, `MediaToolFailed` where
 * the machine stops them, `MediaUnusable` for what they cannot read or make in time.
 */
export const createFfmpegMediaTool = (options: FfmpegMediaToolOptions): MediaTool => {
  const { remedy, deadlineSeconds } = options;
  const ffmpeg = options.ffmpeg ?? 'ffmpeg';
  const ffprobe = ffmpeg.includes('/') ? path.join(path.dirname(ffmpeg), 'ffprobe') : 'ffprobe';
  const run = (program: string, parameters: readonly string[], cwd: string) =>
    runProgram({ program, parameters, cwd, deadlineSeconds, remedy });
  let version: Promise<string> | null = null;

  const openRoom = async (): Promise<MediaWorkspace> => {
    const room = await mkdtemp(path.join(tmpdir(), 'turnsweep-media-'));
    const frames = new Set<string>();
    return {
      put: (name, content) => writeFile(path.join(room, name), content),
      async probe(name) {
        const parameters = [
          ...['-v', 'error', ...(frames.has(name) ? safelyFrames : safely), '-of', 'json'],
          ...['-show_format', '-show_streams', '-show_packets'],
          ...['-show_entries', 'packet=stream_index,pts_time,dts_time,duration_time,flags'],
          `file:${name}`,
        ];
        return factsOf(JSON.parse(await run(ffprobe, parameters, room)) as Probed);
      },
      async make(making) {
        const before = new Set(await readdir(room));
        await run(ffmpeg, conversion(making), room);
        const made = (await readdir(room)).filter((name) => !before.has(name)).sort();
        if (making.form === 'frames') for (const name of made) frames.add(name);
        return made;
      },
      read: (name) => readFile(path.join(room, name)),
      close: () => rm(room, { recursive: true, force: true }),
    };
  };

  return {
    version() {
      version ??= run(ffmpeg, ['-version'], tmpdir()).then(
        (text) => /^(ffmpeg version \S+)/.exec(text)?.[1] ?? 'ffmpeg',
      );
      return version;
    },
    open: openRoom,
  };
};

/** Arguments of ffmpeg for one conversion. */
const conversion = ({ form, source, picture, sound }: Making): string[] => {
  const sources = [...new Set([source, ...(sound === null ? [] : [sound.source])])];
  const inputOf = (name: string) => sources.indexOf(name);
  const inputs = sources.flatMap((name) => ['-threads', '1', ...safely, '-i', `file:${name}`]);
  const maps = [
    ...(picture === null ? [] : ['-map', `${inputOf(source)}:${picture.index}`]),
    ...(sound === null ? [] : ['-map', `${inputOf(sound.source)}:${sound.index}`]),
  ];
  const start = [
    '-nostdin',
    '-hide_banner',
    '-loglevel',
    'error',
    '-filter_threads',
    '1',
    ...inputs,
    ...maps,
  ];
  const mono = ['-ac', '1', '-ar', '16000', '-flags:a', '+bitexact'];
  if (form === 'wav')
    return [...start, ...reproducible, ...mono, '-c:a', 'pcm_s16le', '-f', 'wav', 'made.wav'];
  if (form === 'frames') {
    const frames = ['-c:v', 'mjpeg', '-q:v', '3', '-flags:v', '+bitexact', '-f', 'image2', 'made-%06d.jpg'];
    return [...start, ...reproducible, '-vf', filters(picture!, 'yuvj420p'), ...frames];
  }
  const h264 = ['-c:v', 'libx264', '-preset', 'medium', '-crf', '20', '-flags:v', '+bitexact'];
  const video = picture!.copies ? ['-c:v', 'copy'] : ['-vf', filters(picture!, 'yuv420p'), ...h264];
  const aac = sound === null ? [] : ['-c:a', 'aac', '-b:a', '64k', ...mono];
  return [...start, ...reproducible, ...video, ...aac, '-movflags', '+faststart', '-f', 'mp4', 'made.mp4'];
};

const filters = (picture: NonNullable<Making['picture']>, pixelFormat: string): string => {
  const { width, height, rate, samples } = picture;
  return [
    'setpts=PTS-STARTPTS',
    // Rounded up: what is to be seen at a moment is the last frame before it.
    `fps=fps=${rate}:round=${samples ? 'up' : 'near'}`,
    `scale=${width}:${height}:flags=bicubic+accurate_rnd+full_chroma_int+bitexact`,
    'setsar=1',
    `format=${pixelFormat}`,
  ].join(',');
};

interface Run {
  program: string;
  parameters: readonly string[];
  cwd: string;
  deadlineSeconds: number;
  remedy: string;
}

/** Standard output of a program that ended well. It gets nothing of our environment but the way to programs. */
const runProgram = async ({ program, parameters, cwd, deadlineSeconds, remedy }: Run): Promise<string> => {
  const name = path.basename(program);
  const child = spawn(program, parameters, {
    cwd,
    env: { PATH: process.env.PATH, LC_ALL: 'C', AV_LOG_FORCE_NOCOLOR: '1' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let stopped: string | null = null;
  const stop = (why: string) => {
    stopped ??= why;
    child.kill('SIGKILL');
  };
  const timer = setTimeout(
    () => stop(`${name} took longer than ${deadlineSeconds} s`),
    deadlineSeconds * 1000,
  );
  const output: Buffer[] = [];
  let size = 0;
  child.stdout.on('data', (chunk: Buffer) => {
    size += chunk.length;
    if (size > stdoutBytesAtMost) stop('it has too many packets');
    else output.push(chunk);
  });
  let complaints = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    complaints = (complaints + text).slice(-stderrCharacters);
  });
  const ended = Promise.withResolvers<{ code: number | null; signal: NodeJS.Signals | null }>();
  child.once('error', ended.reject);
  child.once('close', (code, signal) => ended.resolve({ code, signal }));
  const { code, signal } = await ended.promise
    .catch((error: unknown) => {
      const isMissing = errnoCode(error) === 'ENOENT';
      throw new TurnsweepError(
        errorNames.usage,
        `${name} ${isMissing ? 'is missing' : 'cannot be started'}`,
        {
          where: program,
          remedy,
          cause: error,
        },
      );
    })
    .finally(() => clearTimeout(timer));
  if (stopped !== null) throw new TurnsweepError(errorNames.mediaUnusable, stopped);
  if (code === 0) return Buffer.concat(output).toString('utf8');
  const tail = lastComplaint(complaints);
  // ffmpeg ends with 255 when it is asked to stop.
  if (code === null || code === 255 || toolFaults.test(complaints)) {
    throw new TurnsweepError(errorNames.mediaToolFailed, `${name} was stopped: ${signal ?? tail}`, {
      where: program,
      remedy: 'make room or mend the program, then run again',
    });
  }
  throw new TurnsweepError(errorNames.mediaUnusable, `${name} cannot read it: ${tail}`);
};

/** The last line of what a program said, without addresses in its memory. */
const lastComplaint = (text: string): string =>
  text
    .trim()
    .split('\n')
    .at(-1)!
    .replaceAll(/ @ 0x[0-9a-f]+/g, '')
    .slice(0, 300) || 'it gives no reason';
