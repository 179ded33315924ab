import { readFileSync } from 'node:fs';
import path from 'node:path';
import { parse, stringify } from 'yaml';
import type { Modality } from './composition.ts';

/** A lane of the paper, as far as the simulated fleet has a say in it. */
export interface FleetLane {
  id: string;
  displayName: string;
  family: string;
  modalities: Modality[];
  /** Name on the wire. */
  model: string;
  maxTokens?: number;
  retryMaxTokens?: number;
  attempts?: number;
  settings?: Record<string, unknown>;
}

/**
 * The thirteen ready lanes of the paper's Table 6, with their channels, caps, attempts and plain settings. What belongs to a
 * real provider is left out: the fleet speaks the plain dialect and takes clips as they are.
 */
export const paperLanes = (): FleetLane[] => {
  const file = path.join(import.meta.dirname, '../../examples/models/return.yaml');
  const { models } = parse(readFileSync(file, 'utf8')) as { models: (FleetLane & { model: string })[] };
  return models.map(
    ({ id, displayName, family, modalities, model, maxTokens, retryMaxTokens, attempts, settings }) => {
      const { temperature, seed } = settings ?? {};
      return {
        id,
        displayName,
        family,
        modalities,
        model: model.startsWith('${') ? id : model,
        maxTokens,
        retryMaxTokens,
        attempts,
        settings: { temperature, seed },
      };
    },
  );
};

export const judgeModel = 'gpt-5.6-sol';

/** A sweep of the lanes against the fleet, as a person would write it; prices are made up, so that money is counted. */
export const sweepFileText = (given: {
  name: string;
  release: string;
  lanes: readonly FleetLane[];
  urlOf(lane: number): string;
  judgeUrl: string;
  /** Name of the judge on the wire. */
  judge?: string;
  maxInFlight: number | undefined;
  resampleSeed: number;
}): string =>
  stringify(
    {
      name: given.name,
      benchmark: { kind: 'return', release: given.release },
      interfaces: ['openqa', 'mcq'],
      models: given.lanes.map((lane, at) => ({
        ...lane,
        provider: 'openai-compatible',
        baseUrl: given.urlOf(at),
        maxInFlight: given.maxInFlight,
        backoff: { baseSeconds: 0.1, maxSeconds: 1 },
        price: { inputPerMTok: 0.15, outputPerMTok: 0.47 },
      })),
      judge: {
        provider: 'openai-compatible',
        model: given.judge ?? judgeModel,
        baseUrl: given.judgeUrl,
        price: { inputPerMTok: 1, outputPerMTok: 4 },
      },
      seed: given.resampleSeed,
    },
    { keepUndefined: false },
  );
