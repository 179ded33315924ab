import type { Composition } from './composition.ts';
import { mix, seedOf } from './draw.ts';
import { type LaneScript, outcomes } from './outcomes.ts';
import type { Split } from './release.ts';
import type { FleetLane } from './sweep-file.ts';

/** A composition with so many times the roots of another one, at least one root of each kind. */
export const scaled = (composition: Composition, factor: number): Composition => {
  const times = ({ V, A }: Composition['evidence']) => ({
    V: Math.max(1, Math.round(V * factor)),
    A: Math.max(1, Math.round(A * factor)),
  });
  const { taskShort, taskLong, evidence } = composition;
  return { taskShort: times(taskShort), taskLong: times(taskLong), evidence: times(evidence) };
};

/**
 * What becomes of each request of a lane by seeded chance, where no counts have to come out: seven of ten scored replies are
 * right. So many final requests of a thousand are refused, the first one of the split among them; no other request depends
 * on those.
 */
export const scriptByChance = (
  lane: Pick<FleetLane, 'displayName' | 'modalities' | 'model'>,
  { requests }: Split,
  seed: number,
  refusedPerMille: number,
): Pick<LaneScript, 'codes'> & { targets: Pick<LaneScript['targets'], 'model' | 'modalities'> } => {
  const salt = seedOf('chance', seed, lane.model);
  const first = requests.find(
    ({ condition, modality }) => condition === 'H0' && lane.modalities.includes(modality),
  );
  const codes = Uint8Array.from(requests, (facts) => {
    const { index, condition, modality } = facts;
    const outcome = () => {
      if (!lane.modalities.includes(modality)) return 'not-asked';
      if (condition === 'AUX') return 'unscored';
      const chance = mix(salt, index);
      if (condition === 'H0' && (facts === first || chance % 1000 < refusedPerMille)) return 'http_400';
      return (chance >>> 10) % 10 < 7 ? 'correct' : 'wrong';
    };
    return outcomes.indexOf(outcome());
  });
  const { displayName: model, modalities } = lane;
  return { targets: { model, modalities }, codes };
};
