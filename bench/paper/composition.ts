import { type Draw, drawFrom } from './draw.ts';

export type Modality = 'V' | 'A';
export type Horizon = 'short' | 'long';
export type Side = 'task' | 'evidence';

/** How many source roots of each kind a split has. An evidence root carries both horizons, a task root one. */
export interface Composition {
  taskShort: Record<Modality, number>;
  taskLong: Record<Modality, number>;
  evidence: Record<Modality, number>;
}

/**
 * The Test split of the paper, from the denominators of its Tables 7–10: 625 pairs per side and horizon, of which V has 312
 * on the task side and 313 on the evidence side, in 1,875 source roots.
 */
export const paperComposition: Composition = {
  taskShort: { V: 312, A: 313 },
  taskLong: { V: 312, A: 313 },
  evidence: { V: 313, A: 312 },
};

export interface Root {
  id: string;
  /** Over all roots of the composition, whatever share of them is written. */
  index: number;
  side: Side;
  horizons: readonly Horizon[];
  modality: Modality;
  /** Part of the share that is written. */
  included: boolean;
  draw: Draw;
}

/**
 * The roots of a composition, strata one after the other. A share includes the same share of each stratum, at least one root
 * of it; what a root holds does not depend on the share.
 */
export const rootsOf = (composition: Composition, seed: number, share = 1): Root[] => {
  const strata: [prefix: string, side: Side, horizons: Horizon[], counts: Record<Modality, number>][] = [
    ['task-short', 'task', ['short'], composition.taskShort],
    ['task-long', 'task', ['long'], composition.taskLong],
    ['evidence', 'evidence', ['short', 'long'], composition.evidence],
  ];
  const roots: Root[] = [];
  for (const [prefix, side, horizons, counts] of strata) {
    for (const modality of ['V', 'A'] as const) {
      const count = counts[modality];
      const included = Math.max(1, Math.round(count * share));
      for (let at = 0; at < count; at += 1) {
        const id = `${prefix}-${modality.toLowerCase()}-${String(at + 1).padStart(4, '0')}`;
        roots.push({
          id,
          index: roots.length,
          side,
          horizons,
          modality,
          included: at < included,
          draw: drawFrom(seed, id),
        });
      }
    }
  }
  return roots;
};
