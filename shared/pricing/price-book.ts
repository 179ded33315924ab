import type { Price, PriceList } from '../domain/cost.ts';
import { type PriceEntry, priceEntries } from './price-entries.ts';

/** A model at a provider, on a day (ISO 8601; only its UTC day counts). */
export interface PriceQuestion {
  provider: string;
  /** Name on the wire. */
  model: string;
  /** Null: the provider's own address. */
  baseUrl: string | null;
  timeUtc: string;
}

export interface FoundPrice {
  /** Null: unknown, never a guess. Single rates of it may be null too. */
  price: Price | null;
  /** Why the price, or a rate of it, is unknown; null where there is nothing to say, as for a model not in the book. */
  why: string | null;
}

type Region = NonNullable<PriceEntry['region']> | 'elsewhere';

/**
 * Where an address bills, by provider: Alibaba's sites and Amazon's regions have prices of their own. Null: the
 * address does not tell, as that of a gateway.
 */
const regionOf = (provider: string, baseUrl: string | null): Region | null => {
  const host = baseUrl === null ? '' : (URL.parse(baseUrl)?.hostname ?? '');
  if (provider === 'dashscope' && host.endsWith('aliyuncs.com')) {
    if (host === 'dashscope-intl.aliyuncs.com' || host.includes('.ap-southeast-1.')) return 'international';
    return host === 'dashscope.aliyuncs.com' || host.includes('.cn-beijing.') ? 'mainland' : 'elsewhere';
  }
  if (provider === 'ark' && /(?:^|\.)(?:volces|bytepluses)\.com$/.test(host)) {
    return host.endsWith('volces.com') ? 'mainland' : 'elsewhere';
  }
  if (provider === 'bedrock' && host.endsWith('amazonaws.com')) {
    return /\.us-(?:east|west)-\d\./.test(host) ? 'us' : 'elsewhere';
  }
  return null;
};

const listOf = ({ inputPerMTok, outputPerMTok, ...entry }: PriceEntry): PriceList => {
  const { cachedInputPerMTok, audioInputPerMTok, imageInputPerMTok, videoInputPerMTok } = entry;
  const { outputAfterMediaPerMTok, tiers, batchMultiplier } = entry;
  const list = {
    inputPerMTok,
    outputPerMTok,
    cachedInputPerMTok,
    audioInputPerMTok,
    imageInputPerMTok,
    videoInputPerMTok,
    outputAfterMediaPerMTok,
    tiers,
    batchMultiplier,
  };
  const given = Object.entries(list).filter(([, value]) => value !== undefined);
  return Object.fromEntries(given) as unknown as PriceList;
};

const isOver = ({ validTo }: PriceEntry, day: string): boolean => validTo !== undefined && validTo < day;

/**
 * List price of a model for calls from this day on; announced changes come with it. Where prices differ by region and
 * the address tells none, the price is known only if the book has one region.
 */
export const findPrice = (
  { provider, model, baseUrl, timeUtc }: PriceQuestion,
  entries: readonly PriceEntry[] = priceEntries,
): FoundPrice => {
  const day = timeUtc.slice(0, 10);
  const ofModel = entries.filter((entry) => entry.provider === provider && entry.models.test(model));
  if (ofModel.length === 0) return { price: null, why: null };
  const region = regionOf(provider, baseUrl);
  const regions = new Set(ofModel.map((entry) => entry.region));
  if (region === null && regions.size > 1) {
    return { price: null, why: 'prices differ by region and the address does not tell which applies' };
  }
  const here = ofModel
    .filter((entry) => entry.region === undefined || region === null || entry.region === region)
    .filter((entry) => !isOver(entry, day))
    .sort((a, b) => ((a.validFrom ?? '') < (b.validFrom ?? '') ? -1 : 1));
  const found = here.findLast(({ validFrom }) => validFrom === undefined || validFrom <= day);
  if (found === undefined) {
    const why = ofModel.every((entry) => isOver(entry, day))
      ? `the price book has it until ${ofModel.at(-1)!.validTo}`
      : 'the price book does not have it for this region or day';
    return { price: null, why };
  }
  if (found.currency !== 'USD') {
    return { price: null, why: `its price is in ${found.currency} (${found.source}, ${found.seen})` };
  }
  const changes = here.filter(({ validFrom }) => validFrom !== undefined && validFrom > day);
  const isAssumed = found.region !== undefined && region === null;
  const note = [
    found.note,
    isAssumed ? `the address tells no region: ${found.region} price assumed` : undefined,
  ]
    .filter((part) => part !== undefined)
    .join('; ');
  return {
    price: {
      ...listOf(found),
      ...(changes.length > 0 && {
        changes: changes.map((entry) => ({ from: entry.validFrom!, ...listOf(entry) })),
      }),
      source: found.source,
      seen: found.seen,
      ...(note !== '' && { note }),
    },
    why: found.note ?? null,
  };
};
