import { open } from 'node:fs/promises';
import type { LanePlan } from '../shared/benchmarks/benchmark.ts';
import type { LaneContract, RunSettings } from '../shared/contracts/run.ts';
import { isPaid, type Price } from '../shared/domain/cost.ts';
import type { FrozenRequest } from '../shared/domain/request.ts';
import { clipSeconds } from '../shared/pricing/clip-seconds.ts';
import { hasClipRule } from '../shared/pricing/media-tokens.ts';
import { type FoundPrice, findPrice } from '../shared/pricing/price-book.ts';
import { projectLane } from '../shared/pricing/projection.ts';
import type { ReleaseFiles } from './release-files.ts';

export interface PricedEntry {
  provider: string;
  model: string;
  baseUrl?: string | null | undefined;
  price?: Price | undefined;
}

/** Price of a lane or judge: the sweep file's own, else the price book's for this day. */
export const priceOf = (
  { provider, model, baseUrl = null, price }: PricedEntry,
  timeUtc: string,
): FoundPrice => {
  if (price !== undefined) return { price: { ...price, source: 'sweep file' }, why: null };
  if (!isPaid(provider)) return { price: null, why: null };
  return findPrice({ provider, model, baseUrl, timeUtc });
};

const secondsOfFile = async (file: string): Promise<number | null> => {
  const handle = await open(file);
  try {
    return await clipSeconds(async (position, length) => {
      const bytes = new Uint8Array(length);
      const { bytesRead } = await handle.read({ buffer: bytes, position });
      return bytes.subarray(0, bytesRead);
    });
  } finally {
    await handle.close();
  }
};

/** Length of clips by path: as the release lists it, else by the file's own header where a lane's provider counts by it. */
const clipLengths = async (
  lanes: readonly LaneContract[],
  media: ReadonlyMap<string, string> | null,
  listed: ReadonlyMap<string, number>,
  release: ReleaseFiles,
): Promise<ReadonlyMap<string, number>> => {
  const lengths = new Map(listed);
  if (!lanes.some(({ provider, model }) => hasClipRule(provider, model))) return lengths;
  for (const path of media?.keys() ?? []) {
    if (lengths.has(path)) continue;
    const seconds = await secondsOfFile(await release.locate(path));
    if (seconds !== null) lengths.set(path, seconds);
  }
  return lengths;
};

/** Settings with what each lane is expected to use and to cost. */
export const withProjections = async (
  settings: RunSettings,
  planned: {
    lanes: readonly LaneContract[];
    plans: ReadonlyMap<string, LanePlan>;
    frozenRequest: (requestId: string) => FrozenRequest;
    media: ReadonlyMap<string, string> | null;
    /** Lengths that the release's own list of media tells, by path; left out: it tells none. */
    secondsByPath?: ReadonlyMap<string, number>;
    release: ReleaseFiles;
    timeUtc: string;
  },
): Promise<RunSettings> => {
  const lengths = await clipLengths(
    planned.lanes,
    planned.media,
    planned.secondsByPath ?? new Map(),
    planned.release,
  );
  const lanes = settings.lanes.map((lane, index) => {
    const requestIds = new Set(planned.plans.get(lane.id)!.views.flatMap((view) => view.requestIds));
    const projected = projectLane({
      contract: planned.lanes[index]!,
      requests: requestIds.values().map(planned.frozenRequest),
      price: lane.price,
      secondsOf: (path) => lengths.get(path) ?? null,
      timeUtc: planned.timeUtc,
    });
    return { ...lane, ...projected };
  });
  return { ...settings, lanes };
};
