import type { Benchmark, LanePlan } from '../shared/benchmarks/benchmark.ts';
import type { SweepFile } from '../shared/contracts/sweep-file.ts';
import { encodedSize, type LaneNeeds, misfits, type RequestPeak } from '../shared/domain/capabilities.ts';
import type { ClipForms } from '../shared/domain/media.ts';
import { callsOut } from '../shared/domain/reply-source.ts';
import type { ClipPart, FrozenRequest } from '../shared/domain/request.ts';
import { providerOf } from '../shared/providers/registry.ts';

type Lane = SweepFile['models'][number];

/** What is known of a clip of the release before anything is made of it. */
export interface ListedClip {
  bytes: number;
  /** Null: not known. */
  seconds: number | null;
}

export type ListedClips = (path: string) => ListedClip | null;

/** Of 16 kHz mono 16-bit WAV: samples of two bytes behind a header of 44. */
const wavBytes = (seconds: number): number => 44 + 2 * Math.ceil(16_000 * seconds);

/** Bytes of a clip as it is sent, before encoding; null where only making it tells. */
const sentBytes = ({ type }: ClipPart, { bytes, seconds }: ListedClip, forms: ClipForms): number | null => {
  if (forms[type] === null) return bytes;
  return type === 'audio' && seconds !== null ? wavBytes(seconds) : null;
};

/** Keeps the larger one; null while nothing is known. */
const peak = (known: RequestPeak | null, candidate: RequestPeak): RequestPeak | null =>
  candidate.clips > 0 && candidate.amount > (known?.amount ?? 0) ? candidate : known;

/** What the requests of a lane's plan ask of its provider, the channels that the lane lacks left out. */
export const needsOf = (
  lane: Pick<Lane, 'modalities'>,
  requests: Iterable<FrozenRequest>,
  sending: { forms: ClipForms; listed: ListedClips },
): Omit<LaneNeeds, 'givesUrls'> => {
  const { forms, listed } = sending;
  const clipsPerRequest = { audio: 0, video: 0 };
  const mostClipsIn: { audio: string | null; video: string | null } = { audio: null, video: null };
  let mixesMedia = false;
  let hasSilentRequests = false;
  let largestClipBytes: number | null = null;
  let inlineBytesAtMost: RequestPeak | null = null;
  let audioSecondsAtMost: RequestPeak | null = null;
  for (const { requestId, messages } of requests) {
    const counts = { audio: 0, video: 0 };
    const inline = { amount: 0, requestId, clips: 0 };
    const sound = { amount: 0, requestId, clips: 0 };
    for (const message of messages) {
      if (message.role !== 'user') continue;
      const clips = message.content.filter(
        (part): part is ClipPart =>
          part.type !== 'text' && lane.modalities.includes(part.type === 'video' ? 'V' : 'A'),
      );
      const mixes = new Set(clips.map(({ type }) => type)).size > 1;
      if (mixes) mixesMedia = true;
      for (const clip of clips) {
        counts[clip.type] += 1;
        const facts = listed(clip.path);
        if (facts === null) continue;
        if (clip.type === 'audio' && facts.seconds !== null) {
          sound.amount += facts.seconds;
          sound.clips += 1;
        }
        // As one file with the picture, a sound has no size of its own.
        const bytes = mixes && forms.mux ? null : sentBytes(clip, facts, forms);
        if (bytes === null) continue;
        largestClipBytes = Math.max(largestClipBytes ?? 0, bytes);
        inline.amount += encodedSize(bytes);
        inline.clips += 1;
      }
    }
    for (const kind of ['audio', 'video'] as const) {
      if (counts[kind] <= clipsPerRequest[kind]) continue;
      clipsPerRequest[kind] = counts[kind];
      mostClipsIn[kind] = requestId;
    }
    if (counts.audio === 0) hasSilentRequests = true;
    inlineBytesAtMost = peak(inlineBytesAtMost, inline);
    audioSecondsAtMost = peak(audioSecondsAtMost, sound);
  }
  // A channel that no request uses is asked of nobody.
  const channels = lane.modalities.filter(
    (channel) => clipsPerRequest[channel === 'V' ? 'video' : 'audio'] > 0,
  );
  return {
    channels,
    clipsPerRequest,
    mostClipsIn,
    mixesMedia,
    hasSilentRequests,
    largestClipBytes,
    inlineBytesAtMost,
    audioSecondsAtMost,
  };
};

/**
 * Why lanes cannot work with their providers, found before any call: one line each, with the lane's place in the sweep
 * file. `mediaFacts` knows nothing where media were not verified; `givesUrls` is undefined where it is not known yet in
 * which home the sweep runs.
 */
export const laneMisfits = (
  sweep: SweepFile,
  plans: ReadonlyMap<string, LanePlan>,
  benchmark: Pick<Benchmark, 'frozenRequest'>,
  inputs: unknown,
  facts: { mediaFacts: ListedClips; givesUrls: boolean | undefined },
): string[] =>
  sweep.models.flatMap((lane, index) => {
    if (!callsOut(lane.provider)) return [];
    const provider = providerOf(lane.provider, lane.model);
    const forms = provider.clipForms(lane);
    const requestIds = new Set(plans.get(lane.id)!.views.flatMap((view) => view.requestIds));
    const needs = needsOf(
      lane,
      requestIds.values().map((requestId) => benchmark.frozenRequest(inputs, requestId)),
      { forms, listed: facts.mediaFacts },
    );
    const found = misfits(
      provider.capabilities(lane.model),
      { ...needs, givesUrls: facts.givesUrls },
      lane.settings,
      forms.mux,
    );
    return found.map(
      (fault) =>
        `models[${index}]: lane "${lane.id}" cannot work: provider "${lane.provider}" with model "${lane.model}" ${fault}`,
    );
  });
