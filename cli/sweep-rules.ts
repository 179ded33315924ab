import { benchmarkKinds, benchmarkOf } from '../shared/benchmarks/registry.ts';
import { providers as allProviders, type SweepFile, sweepFile } from '../shared/contracts/sweep-file.ts';
import { priceGaps } from '../shared/domain/cost.ts';
import { didYouMean } from '../shared/domain/did-you-mean.ts';
import { replyKeyOf, uncalledProviders } from '../shared/domain/reply-source.ts';
import type { Channel } from '../shared/domain/request.ts';
import {
  batchProviders,
  judgeProviders,
  judgesInBatches,
  providers,
  usualBaseUrlOf,
} from '../shared/providers/registry.ts';
import { type Path, pathText } from './explain-issue.ts';
import { priceOf } from './lane-prices.ts';

type Loose<Part> = { [Key in keyof Part]?: Part[Key] };

const isMapping = (value: unknown): value is Record<string, unknown> =>
  value !== null && typeof value === 'object' && !Array.isArray(value);

/** Members of a mapping with their defaults; those that their schema refuses stay as they are written. */
const membersOf = <Part>(
  schema: {
    shape: Readonly<Record<string, { safeParse(value: unknown): { success: boolean; data?: unknown } }>>;
  },
  value: unknown,
): Loose<Part> =>
  Object.fromEntries(
    Object.entries(schema.shape).map(([key, member]) => {
      const given = isMapping(value) ? value[key] : undefined;
      const parsed = member.safeParse(given);
      return [key, parsed.success ? parsed.data : given];
    }),
  ) as Loose<Part>;

/** Entries that stand in the list before, with their places. */
const repeated = (values: readonly unknown[]): [number, unknown][] =>
  [...values.entries()].filter(([index, value]) => values.indexOf(value) !== index);

export interface RuleFault {
  path: Path;
  message: string;
}

/**
 * Rules between keys, and what the file format has but this version has not. Works on a file with other
 * faults too, so that all of them are told at once.
 */
export const checkSweepRules = (value: unknown): RuleFault[] => {
  const faults: RuleFault[] = [];
  const fault = (path: Path, message: string, place: Path = path) =>
    faults.push({ path, message: `${pathText(place)}: ${message}` });
  const sweep = membersOf<SweepFile>(sweepFile, value);
  const benchmark = membersOf<SweepFile['benchmark']>(sweepFile.shape.benchmark, sweep.benchmark);
  const models: unknown[] = Array.isArray(sweep.models) ? sweep.models : [];

  const { kind } = benchmark;
  const kindFault = nameFault(kind, {
    what: 'benchmark',
    ofThisVersion: benchmarkKinds,
  });
  if (kindFault !== null) fault(['benchmark', 'kind'], kindFault);
  else if (typeof kind === 'string' && Array.isArray(sweep.interfaces)) {
    const known = benchmarkOf(kind).interfaces;
    for (const [index, name] of sweep.interfaces.entries()) {
      if (typeof name !== 'string' || known.includes(name)) continue;
      fault(
        ['interfaces', index],
        `unknown interface "${name}"; benchmark "${kind}" has ${known.join(', ')}`,
      );
    }
    for (const [index, name] of repeated(sweep.interfaces)) {
      fault(['interfaces', index], `"${name}" is named twice`);
    }
  }

  const calling: number[] = [];
  const laneIds = new Map<string, number>();
  for (const [index, entry] of models.entries()) {
    const at = (key: string): Path => ['models', index, key];
    const here: Path = ['models', index];
    const lane = membersOf<SweepFile['models'][number]>(sweepFile.shape.models.element, entry);
    if (typeof lane.id === 'string') {
      const first = laneIds.get(lane.id.toLowerCase());
      if (first === undefined) laneIds.set(lane.id.toLowerCase(), index);
      else fault(at('id'), `"${lane.id}" is already the id of models[${first}]; every lane needs its own`);
    }
    if (Array.isArray(lane.modalities)) {
      for (const [place, channel] of repeated(lane.modalities)) {
        fault([...at('modalities'), place], `"${channel}" is named twice`);
      }
    }
    if (Number(lane.retryMaxTokens) <= Number(lane.maxTokens)) {
      fault(
        at('retryMaxTokens'),
        `${lane.retryMaxTokens} must be above maxTokens (${lane.maxTokens}), or be left out`,
      );
    }
    const provider = providerFault(lane.provider, providers);
    if (provider !== null) fault(at('provider'), provider);
    if (!isOneOf(lane.provider, providers)) continue;
    const name = String(lane.provider);
    const holder = replyKeyOf(name);
    for (const key of ['recording', 'reply'] as const) {
      if (key === holder && lane[key] === undefined) {
        fault(at('provider'), `provider "${name}" needs "${key}"`, here);
      }
      if (key !== holder && lane[key] !== undefined) {
        const owner = uncalledProviders.find((provider) => replyKeyOf(provider) === key);
        fault(at(key), `"${key}" goes with provider "${owner}" only`, here);
      }
    }
    if (holder !== null) {
      for (const key of ['baseUrl', 'apiKeyEnv'] as const) {
        if (lane[key] === undefined) continue;
        fault(at(key), `provider "${name}" calls nobody; leave "${key}" out`);
      }
      continue;
    }
    calling.push(index);
    if (lane.baseUrl === undefined && usualBaseUrlOf(String(lane.provider)) === null) {
      fault(at('provider'), `provider "${lane.provider}" needs "baseUrl"`, here);
    }
    if ((sweep.budget ?? lane.budget) !== undefined) {
      const unknown = unknownPrice(lane, Array.isArray(lane.modalities) ? lane.modalities : []);
      if (unknown !== null) fault(at('model'), priceFault(unknown, 'this model'), here);
    }
  }

  if (benchmark.verifyMedia === false && calling.length > 0) {
    const lanes = calling.map((index) => `models[${index}]`).join(', ');
    fault(
      ['benchmark', 'verifyMedia'],
      `false is for models that nobody calls, and calls are made for ${lanes}; set it to true`,
    );
  }

  if (isMapping(sweep.judge)) {
    const judge = membersOf<NonNullable<SweepFile['judge']>>(sweepFile.shape.judge.unwrap(), sweep.judge);
    const provider = providerFault(judge.provider, judgeProviders);
    if (provider !== null) fault(['judge', 'provider'], provider);
    if (
      isOneOf(judge.provider, judgeProviders) &&
      usualBaseUrlOf(String(judge.provider)) === null &&
      judge.baseUrl === undefined
    ) {
      fault(['judge', 'provider'], `provider "${judge.provider}" needs "baseUrl"`, ['judge']);
    }
    const { provider: name, model } = judge;
    if (judge.batch === true && isOneOf(name, judgeProviders) && typeof model === 'string') {
      const batchFault = noBatchFault(name!, model);
      if (batchFault !== null) fault(['judge', 'batch'], batchFault);
    }
    if (sweep.budget !== undefined) {
      const unknown = unknownPrice(judge, []);
      if (unknown !== null) fault(['judge', 'model'], priceFault(unknown, 'the judge'), ['judge']);
    }
  }
  return faults;
};

const noBatchFault = (provider: string, model: string): string | null => {
  if (judgesInBatches(provider, model)) return null;
  const where = batchProviders.includes(provider) ? ` for "${model}"` : '';
  return `provider "${provider}" has no batch interface${where} here (${batchProviders.join(', ')} has); leave "batch" out`;
};

/** What of a price is unknown and why, as far as calls on these channels need it; null where nothing is. */
const unknownPrice = (
  entry: { provider?: unknown; model?: unknown; baseUrl?: unknown; price?: unknown },
  channels: readonly Channel[],
): { gaps: string[]; why: string | null } | null => {
  if (entry.price !== undefined) return null;
  const { provider, model, baseUrl } = entry;
  const timeUtc = new Date().toISOString();
  const { price, why } = priceOf(
    {
      provider: String(provider),
      model: String(model),
      baseUrl: typeof baseUrl === 'string' ? baseUrl : null,
    },
    timeUtc,
  );
  const gaps = priceGaps(price, channels, timeUtc);
  return gaps.length === 0 ? null : { gaps, why };
};

const priceFault = ({ gaps, why }: { gaps: string[]; why: string | null }, whose: string): string =>
  `a budget is set but the ${gaps.join(' and ')} of ${whose} ${gaps.length > 1 ? 'are' : 'is'} unknown${why === null ? '' : ` (${why})`}; add "price"`;

const isOneOf = (name: unknown, names: readonly string[]): boolean =>
  typeof name === 'string' && names.includes(name);

/** Null for a name that this version knows, and for what is not even text. */
const nameFault = (
  name: unknown,
  {
    what,
    ofThisVersion,
    ofFormat = ofThisVersion,
  }: { what: string; ofFormat?: readonly string[]; ofThisVersion: readonly string[] },
): string | null => {
  if (typeof name !== 'string' || ofThisVersion.includes(name)) return null;
  const use = `use ${ofThisVersion.length > 1 ? 'one of ' : ''}${ofThisVersion.join(', ')}`;
  if (ofFormat.includes(name)) return `${what} "${name}" is not in this version; ${use}`;
  const near = didYouMean(name, ofThisVersion);
  return `unknown ${what} "${name}"; ${use}${near === null ? '' : ` (did you mean "${near}"?)`}`;
};

const providerFault = (name: unknown, ofThisVersion: readonly string[]): string | null =>
  nameFault(name, { what: 'provider', ofFormat: allProviders, ofThisVersion });
