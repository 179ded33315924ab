import type { Usage } from './outcome.ts';
import { callsOut } from './reply-source.ts';
import type { Channel } from './request.ts';

/**
 * US dollars for a million tokens. Null: not known. Left out: as the text of the same side; cached input left out: no
 * discount. Thinking is billed as output, and is part of `Usage.outputTokens`.
 */
export interface Rates {
  /** Text, and every modality without a rate of its own. */
  inputPerMTok: number | null;
  outputPerMTok: number | null;
  cachedInputPerMTok?: number | null | undefined;
  audioInputPerMTok?: number | null | undefined;
  imageInputPerMTok?: number | null | undefined;
  videoInputPerMTok?: number | null | undefined;
  /** Where the prompt holds clips. */
  outputAfterMediaPerMTok?: number | null | undefined;
}

export interface PriceList extends Rates {
  /** Rates of the whole request once its input has more tokens than this; ascending. */
  tiers?: (Rates & { aboveInputTokens: number })[] | undefined;
  /** What a call through the provider's batch interface costs of a usual one; left out or null: not known. */
  batchMultiplier?: number | null | undefined;
}

export interface Price extends PriceList {
  /** Lists that take the place of this one from a day on (UTC, `YYYY-MM-DD`); ascending. */
  changes?: (PriceList & { from: string })[] | undefined;
  /** Where the price comes from, and the day on which it was seen there. */
  source?: string | undefined;
  seen?: string | undefined;
  note?: string | undefined;
}

/** What the bill depends on besides the tokens. */
export interface BilledCall {
  /** The prompt holds clips; left out: as the token counts tell. */
  holdsMedia?: boolean;
  /** Through the provider's batch interface. */
  batched?: boolean;
  /** When the call was made (ISO 8601), for prices that change; left out: before any change. */
  timeUtc?: string;
}

const listAt = (price: Price, timeUtc: string | undefined): PriceList =>
  price.changes?.findLast(({ from }) => timeUtc !== undefined && from <= timeUtc.slice(0, 10)) ?? price;

const ratesFor = (list: PriceList, inputTokens: number): Rates =>
  list.tiers?.findLast(({ aboveInputTokens }) => inputTokens > aboveInputTokens) ?? list;

const modalities = ['text', 'audio', 'image', 'video'] as const;
type Modality = (typeof modalities)[number];

const inputRates = (rates: Rates): Record<Modality, number | null> => {
  const { inputPerMTok: text, audioInputPerMTok: audio = text } = rates;
  const { imageInputPerMTok: image = text, videoInputPerMTok: video = text } = rates;
  return { text, audio, image, video };
};

/** Tokens by what they may cost each; null where they could belong to modalities of different rates, or are broken. */
const splitInput = (
  usage: Usage,
  inputTokens: number,
  rates: Rates,
  holdsMedia: boolean | undefined,
): { tokens: number; rate: number | null }[] | null => {
  const rate = inputRates(rates);
  const [first, ...others] = modalities.map((modality) => rate[modality]);
  if (others.every((other) => other === first)) return [{ tokens: inputTokens, rate: first! }];
  const told: Record<Modality, number | null> = {
    text: usage.textInputTokens,
    audio: usage.audioInputTokens,
    image: usage.imageInputTokens,
    video: usage.videoInputTokens,
  };
  const parts = modalities.map((modality) => ({ tokens: told[modality] ?? 0, rate: rate[modality] }));
  const toldInAll = parts.reduce((sum, { tokens }) => sum + tokens, 0);
  if (holdsMedia === false && toldInAll === (told.text ?? 0))
    return [{ tokens: inputTokens, rate: rate.text }];
  const rest = inputTokens - toldInAll;
  if (rest < 0) return null;
  if (rest === 0) return parts;
  const untold = modalities.filter((modality) => told[modality] === null);
  const [restRate, ...otherRates] = new Set(untold.map((modality) => rate[modality]));
  if (restRate === undefined || otherRates.length > 0) return null;
  return [...parts, { tokens: rest, rate: restRate }];
};

const inputCost = (
  usage: Usage,
  inputTokens: number,
  rates: Rates,
  holdsMedia: boolean | undefined,
): number | null => {
  const parts = splitInput(usage, inputTokens, rates, holdsMedia)?.filter(({ tokens }) => tokens > 0);
  if (parts === undefined || parts.some((part) => part.rate === null)) return null;
  const whole = parts.reduce((sum, { tokens, rate }) => sum + tokens * rate!, 0);
  // A discount that nobody told of is not taken: what was not called cached is billed in full.
  const cached = usage.cachedInputTokens ?? 0;
  const { cachedInputPerMTok } = rates;
  if (cached === 0 || cachedInputPerMTok === undefined) return whole;
  const [rate, ...others] = new Set(parts.map((part) => part.rate!));
  if (cachedInputPerMTok === null || rate === undefined || others.length > 0) return null;
  return whole - cached * (rate - cachedInputPerMTok);
};

const sawMedia = ({ audioInputTokens, imageInputTokens, videoInputTokens, ...usage }: Usage) => {
  const media = [audioInputTokens, imageInputTokens, videoInputTokens];
  if (media.some((tokens) => tokens !== null && tokens > 0)) return true;
  const isAllTold = media.every((tokens) => tokens !== null) || usage.textInputTokens === usage.inputTokens;
  return isAllTold ? false : undefined;
};

const outputCost = (
  outputTokens: number,
  { outputPerMTok: plain, outputAfterMediaPerMTok: afterMedia = plain }: Rates,
  holdsMedia: boolean | undefined,
): number | null => {
  if (outputTokens === 0) return 0;
  if (holdsMedia === undefined && plain !== afterMedia) return null;
  const rate = holdsMedia ? afterMedia : plain;
  return rate === null ? null : outputTokens * rate;
};

/** Sums of decimal prices without the noise of binary fractions: to a millionth of a micro-dollar. */
export const roundMicroUsd = (microUsd: number): number => Math.round(microUsd * 1e6) / 1e6;

/**
 * Cost of one call in millionths of a dollar (a price per million tokens is a price in micro-dollars per token). Null
 * where it cannot be known: no price, no token counts, a rate that is not known for tokens that were used, tokens whose
 * modality was not told although modalities differ in price, or counts that contradict each other. Unknown is never
 * zero. The tier is that of the whole input, its border included in the lower one; cached input is part of the input,
 * thinking of the output.
 */
export const callCostMicroUsd = (usage: Usage, price: Price | null, call: BilledCall = {}): number | null => {
  const { inputTokens, outputTokens } = usage;
  if (price === null || inputTokens === null || outputTokens === null) return null;
  if ((usage.cachedInputTokens ?? 0) > inputTokens || (usage.reasoningTokens ?? 0) > outputTokens)
    return null;
  const list = listAt(price, call.timeUtc);
  const share = call.batched ? (list.batchMultiplier ?? null) : 1;
  const rates = ratesFor(list, inputTokens);
  const holdsMedia = call.holdsMedia ?? sawMedia(usage);
  const input = inputCost(usage, inputTokens, rates, holdsMedia);
  const output = outputCost(outputTokens, rates, holdsMedia);
  return input === null || output === null || share === null ? null : roundMicroUsd((input + output) * share);
};

/** Requests of a batch that ended before their turn came (developers.openai.com, batch guide, Aug 2026). */
const neverRun = ['batch_expired', 'batch_cancelled', 'batch_failed', 'batch_too_large'];

/** False for calls that were surely not charged: never sent, no connection, or an HTTP status that refuses. */
export const mayBeCharged = (call: { httpStatus: number | null; kind: string | null }): boolean =>
  call.kind !== 'connect_failed' &&
  call.kind !== 'request_too_large' &&
  !neverRun.includes(call.kind ?? '') &&
  (call.httpStatus === null || call.httpStatus === 200);

/** False for replies that nobody is called for: they cost nothing, whatever they once did. */
export const isPaid = (provider: string): boolean => callsOut(provider);

const highest = (rates: readonly (number | null | undefined)[]): number =>
  Math.max(0, ...rates.map((rate) => rate ?? 0));

/**
 * The most that a call can cost whose prompt has at most `inputTokens`, in millionths of a dollar: every token at the
 * dearest known rate of the dearest tier within reach. What a budget reserves.
 */
export const reservationMicroUsd = (
  inputTokens: number,
  maxTokens: number,
  price: Price,
  call: BilledCall = {},
): number => {
  const list = listAt(price, call.timeUtc);
  const reach = [list, ...(list.tiers ?? []).filter((tier) => inputTokens > tier.aboveInputTokens)];
  const most = Math.max(
    ...reach.map(
      (rates) =>
        inputTokens * highest(Object.values(inputRates(rates))) +
        maxTokens * highest([rates.outputPerMTok, rates.outputAfterMediaPerMTok]),
    ),
  );
  return Math.ceil(roundMicroUsd(most * (call.batched ? (list.batchMultiplier ?? 1) : 1)));
};

/**
 * What is missing from a price to tell the cost of calls on these channels, in words; empty where nothing is. A
 * cached rate is not asked for: without it a call costs its reservation at most.
 */
export const priceGaps = (price: Price | null, channels: readonly Channel[], timeUtc?: string): string[] => {
  if (price === null) return ['price'];
  const list = listAt(price, timeUtc);
  const gaps = new Set<string>();
  for (const rates of [list, ...(list.tiers ?? [])]) {
    const { text, audio, image, video } = inputRates(rates);
    const { outputPerMTok, outputAfterMediaPerMTok = outputPerMTok } = rates;
    if (text === null) gaps.add('input rate');
    if ((channels.length > 0 ? outputAfterMediaPerMTok : outputPerMTok) === null) gaps.add('output rate');
    if (channels.includes('A') && audio === null) gaps.add('rate of audio');
    if (channels.includes('V') && (image === null || video === null)) gaps.add('rate of video');
  }
  return [...gaps];
};
