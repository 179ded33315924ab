import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { temporaryFolder } from './command-line.ts';

/** Runs the ffmpeg of this machine, for what tests make and look at on their own. */
export const ffmpeg = (...parameters: string[]): Buffer =>
  execFileSync('ffmpeg', ['-nostdin', '-v', 'error', '-y', ...parameters], { maxBuffer: 1 << 28 });

/** A media file made by ffmpeg from what stands before its name. */
export const mediaFile = (name: string, ...parameters: string[]): string => {
  const file = path.join(temporaryFolder(), name);
  ffmpeg(...parameters, file);
  return file;
};

export interface ProbedStream {
  codec_type: string;
  codec_name: string;
  width?: number;
  height?: number;
  pix_fmt?: string;
  avg_frame_rate?: string;
  sample_rate?: string;
  channels?: number;
  duration: string;
  tags?: Record<string, string>;
  side_data_list?: unknown[];
}

export const streamsOf = (file: string): ProbedStream[] =>
  JSON.parse(execFileSync('ffprobe', ['-v', 'error', '-of', 'json', '-show_streams', file]).toString('utf8'))
    .streams;

/** Times at which the frames of a video are shown, in seconds. */
export const frameTimes = (file: string): number[] =>
  execFileSync('ffprobe', [
    ...['-v', 'error', '-select_streams', 'v:0', '-show_entries', 'frame=pts_time', '-of', 'csv=p=0', file],
  ])
    .toString('utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => Number.parseFloat(line));

/** Every frame at `width` x `height` as rows of grey values from 0 to 255. */
export const greyFrames = (file: string, width: number, height: number): number[][] => {
  const pixels = ffmpeg(
    ...['-i', file, '-vf', `scale=${width}:${height}:flags=area,format=gray`],
    ...['-f', 'rawvideo', '-'],
  );
  const size = width * height;
  return Array.from({ length: pixels.length / size }, (_, at) => [
    ...pixels.subarray(at * size, (at + 1) * size),
  ]);
};
