import type { MediaFacts, PictureFacts, StreamFacts } from '../../domain/media-facts.ts';
import { rateOf } from '../../domain/media-facts.ts';

/** What `ffprobe -of json -show_format -show_streams -show_packets` prints, as far as it is read here. */
export interface Probed {
  format?: { format_name?: string; duration?: string };
  streams?: {
    index: number;
    codec_type?: string;
    codec_name?: string;
    pix_fmt?: string;
    width?: number;
    height?: number;
    sample_aspect_ratio?: string;
    avg_frame_rate?: string;
    sample_rate?: string;
    channels?: number;
    disposition?: { attached_pic?: number };
    tags?: { rotate?: string };
    side_data_list?: { rotation?: number }[];
  }[];
  packets?: {
    stream_index: number;
    pts_time?: string;
    dts_time?: string;
    duration_time?: string;
    flags?: string;
  }[];
}
type ProbedStream = NonNullable<Probed['streams']>[number];

interface Measured {
  /** Start of each packet in seconds, ascending. */
  starts: number[];
  endSeconds: number;
}

/** Containers whose header says how long they are; others only let it be estimated. */
const tellsLength = /^(mov|matroska|wav|avi|flac|ogg|asf)/;

const measure = (packets: NonNullable<Probed['packets']>): ReadonlyMap<number, Measured> => {
  const found = new Map<number, Measured>();
  for (const packet of packets) {
    // Packets before the first moment of an edited clip are decoded and thrown away.
    if (packet.flags?.includes('D')) continue;
    const start = Number(packet.pts_time ?? packet.dts_time);
    if (!Number.isFinite(start)) continue;
    const of = found.get(packet.stream_index) ?? { starts: [], endSeconds: Number.NEGATIVE_INFINITY };
    of.starts.push(start);
    of.endSeconds = Math.max(of.endSeconds, start + (Number(packet.duration_time) || 0));
    found.set(packet.stream_index, of);
  }
  for (const { starts } of found.values()) starts.sort((a, b) => a - b);
  return found;
};

const usualGap = ({ starts }: Measured): number => {
  const gaps = starts.slice(1).map((start, at) => start - starts[at]!);
  return gaps.sort((a, b) => a - b)[Math.floor(gaps.length / 2)] ?? 0;
};

/** The last packet of some containers has no duration of its own. */
const secondsOf = (measured: Measured): number => {
  const { starts, endSeconds } = measured;
  const last = starts.at(-1)!;
  return (endSeconds > last ? endSeconds : last + usualGap(measured)) - starts[0]!;
};

/** Time stamps of some containers are rounded to milliseconds: half of an interval is no change of the rate. */
const hasConstantRate = (measured: Measured): boolean => {
  const usual = usualGap(measured);
  return measured.starts.every((start, at, starts) => {
    const gap = at === 0 ? usual : start - starts[at - 1]!;
    return gap > usual / 2 ? gap < usual * 1.5 : usual === 0;
  });
};

/** The header's exact fraction where it is true, else what was counted. */
const averageRate = (claimed: string | undefined, frames: number, seconds: number): string => {
  const counted = seconds > 0 ? frames / seconds : 1;
  const isTrue = claimed !== undefined && Math.abs(rateOf(claimed) - counted) <= 0.02 * counted;
  return isTrue ? claimed : `${Math.max(1, Math.round(counted * 1000))}/1000`;
};

const pictureFacts = (stream: ProbedStream, measured: Measured | undefined): PictureFacts => {
  const { width = 0, height = 0 } = stream;
  const turn = Math.abs(
    stream.side_data_list?.find((data) => data.rotation !== undefined)?.rotation ??
      Number(stream.tags?.rotate ?? 0),
  );
  const [across, down] = (stream.sample_aspect_ratio ?? '1:1').split(':').map(Number);
  const wide = Math.max(1, Math.round(across && down ? (width * across) / down : width));
  const frames = measured?.starts.length ?? 0;
  const seconds = measured === undefined ? 0 : secondsOf(measured);
  const isUpright = turn % 180 === 0;
  return {
    kind: 'picture',
    index: stream.index,
    codec: stream.codec_name ?? 'unknown',
    pixelFormat: stream.pix_fmt ?? 'unknown',
    width,
    height,
    shownWidth: isUpright ? wide : height,
    shownHeight: isUpright ? height : wide,
    isTurned: turn % 360 !== 0,
    rate: averageRate(stream.avg_frame_rate, frames, seconds),
    hasConstantRate: measured !== undefined && hasConstantRate(measured),
    frames,
    seconds,
  };
};

export const factsOf = (probed: Probed): MediaFacts => {
  const measured = measure(probed.packets ?? []);
  const container = probed.format?.format_name ?? 'unknown';
  const claimed = Number(probed.format?.duration);
  const all = [...measured.values()];
  return {
    container,
    claimedSeconds: tellsLength.test(container) && Number.isFinite(claimed) ? claimed : null,
    heldSeconds:
      all.length === 0
        ? 0
        : Math.max(...all.map(({ endSeconds }) => endSeconds)) -
          Math.min(...all.map(({ starts }) => starts[0]!)),
    streams: (probed.streams ?? []).map((stream): StreamFacts => {
      const { index, codec_name: codec = 'unknown' } = stream;
      const of = measured.get(index);
      if (stream.codec_type === 'video' && stream.disposition?.attached_pic !== 1) {
        return pictureFacts(stream, of);
      }
      if (stream.codec_type !== 'audio') return { kind: 'other', index, codec };
      return {
        kind: 'sound',
        index,
        codec,
        sampleRate: Number(stream.sample_rate ?? 0),
        channels: stream.channels ?? 0,
        seconds: of === undefined ? 0 : secondsOf(of),
      };
    }),
  };
};
