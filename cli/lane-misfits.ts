import type { Benchmark, LanePlan } from '../shared/benchmarks/benchmark.ts';
import type { SweepFile } from '../shared/contracts/sweep-file.ts';
import { type LaneNeeds, misfits } from '../shared/domain/capabilities.ts';
import type { FrozenRequest } from '../shared/domain/request.ts';
import { providerOf } from '../shared/providers/registry.ts';

type Lane = SweepFile['models'][number];

/** What the requests of a lane's plan ask of its provider, the channels that the lane lacks left out. */
export const needsOf = (
  lane: Pick<Lane, 'modalities'>,
  requests: Iterable<FrozenRequest>,
): Omit<LaneNeeds, 'largestClipBytes' | 'givesUrls'> => {
  const clipsPerRequest = { audio: 0, video: 0 };
  let mixesMedia = false;
  let hasSilentRequests = false;
  for (const { messages } of requests) {
    const counts = { audio: 0, video: 0 };
    for (const message of messages) {
      if (message.role !== 'user') continue;
      const kinds = message.content.flatMap((part) =>
        part.type !== 'text' && lane.modalities.includes(part.type === 'video' ? 'V' : 'A') ? part.type : [],
      );
      for (const kind of kinds) counts[kind] += 1;
      if (new Set(kinds).size > 1) mixesMedia = true;
    }
    clipsPerRequest.audio = Math.max(clipsPerRequest.audio, counts.audio);
    clipsPerRequest.video = Math.max(clipsPerRequest.video, counts.video);
    if (counts.audio === 0) hasSilentRequests = true;
  }
  // A channel that no request uses is asked of nobody.
  const channels = lane.modalities.filter(
    (channel) => clipsPerRequest[channel === 'V' ? 'video' : 'audio'] > 0,
  );
  return { channels, clipsPerRequest, mixesMedia, hasSilentRequests };
};

/**
 * Why lanes cannot work with their providers, found before any call: one line each, with the lane's place in the sweep
 * file. `largestClipBytes` is null where media were not verified; `givesUrls` is undefined where it is not known yet in
 * which home the sweep runs.
 */
export const laneMisfits = (
  sweep: SweepFile,
  plans: ReadonlyMap<string, LanePlan>,
  benchmark: Pick<Benchmark, 'frozenRequest'>,
  inputs: unknown,
  facts: { largestClipBytes: number | null; givesUrls: boolean | undefined },
): string[] =>
  sweep.models.flatMap((lane, index) => {
    if (lane.provider === 'recorded') return [];
    const provider = providerOf(lane.provider, lane.model);
    const forms = provider.clipForms(lane);
    const requestIds = new Set(plans.get(lane.id)!.views.flatMap((view) => view.requestIds));
    const needs = needsOf(
      lane,
      requestIds.values().map((requestId) => benchmark.frozenRequest(inputs, requestId)),
    );
    const isSentAsItIs = forms.video === null && forms.audio === null;
    const found = misfits(
      provider.capabilities(lane.model),
      {
        ...needs,
        givesUrls: facts.givesUrls,
        // A clip that is made over for sending is smaller than the original.
        largestClipBytes: isSentAsItIs ? facts.largestClipBytes : null,
      },
      lane.settings,
      forms.mux,
    );
    return found.map(
      (fault) =>
        `models[${index}]: lane "${lane.id}" cannot work: provider "${lane.provider}" with model "${lane.model}" ${fault}`,
    );
  });
