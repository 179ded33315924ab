import type { Horizon, Side } from './composition.ts';
import { isFailure, type LaneScript, outcomeAt } from './outcomes.ts';
import type { Interface, Pair, PairRole, Split } from './release.ts';
import { paperNames } from './targets.ts';

/** Counts by the names of the report's columns. */
export interface Expected {
  views: number;
  valid: number;
  /** Distinct requests of the views. */
  requests: number;
  /** What the views would need if each were run alone. */
  requestsAlone: number;
  /** `model|interface|horizon|operation` → n, single, multi. */
  cells: Map<string, [n: number, single: number, multi: number]>;
  /** `role|model|interface` → n, single (of both members), reference, conflict. */
  ladders: Map<string, [n: number, single: number, reference: number, conflict: number]>;
}

/** Counts what the script of each lane comes to on the written share, view by view, with nothing of the pipeline. */
export const expectedCounts = (
  split: Split,
  scripts: readonly {
    targets: Pick<LaneScript['targets'], 'model' | 'modalities'>;
    codes: LaneScript['codes'];
  }[],
): Expected => {
  const cells: Expected['cells'] = new Map();
  const ladders: Expected['ladders'] = new Map();
  const requests = new Set<string>();
  let [views, valid, requestsAlone] = [0, 0, 0];
  for (const [lane, script] of scripts.entries()) {
    const { model, modalities } = script.targets;
    const viewOf = (pair: Pair, name: Interface, role: PairRole) => {
      const { control, history, native } = pair.views[name][role];
      views += 1;
      const needed = [control, ...native, history];
      requestsAlone += needed.length;
      for (const index of needed) requests.add(`${lane} ${index}`);
      if (needed.some((index) => isFailure(outcomeAt(script, index)))) return null;
      valid += 1;
      const view = {
        single: outcomeAt(script, control) === 'correct' ? 1 : 0,
        multi: outcomeAt(script, history) === 'correct' ? 1 : 0,
      };
      const key = cellKey(model, name, pair.horizon, paperNames[pair.side][role]);
      const cell = cells.get(key) ?? [0, 0, 0];
      cells.set(key, [cell[0] + 1, cell[1] + view.single, cell[2] + view.multi]);
      return view;
    };
    for (const pair of split.pairs) {
      if (!pair.root.included || !modalities.includes(pair.root.modality)) continue;
      for (const name of ['openqa', 'mcq'] as const) {
        const reference = viewOf(pair, name, 'reference');
        const conflict = viewOf(pair, name, 'conflict');
        if (reference === null || conflict === null) continue;
        const key = ladderKey(pair.side, model, name);
        const ladder = ladders.get(key) ?? [0, 0, 0, 0];
        ladders.set(key, [
          ladder[0] + 1,
          ladder[1] + reference.single + conflict.single,
          ladder[2] + reference.multi,
          ladder[3] + conflict.multi,
        ]);
      }
    }
  }
  return { views, valid, requests: requests.size, requestsAlone, cells, ladders };
};

export const cellKey = (model: string, name: Interface, horizon: Horizon, operation: string): string =>
  [model, name, horizon, operation].join('|');
export const ladderKey = (side: Side, model: string, name: Interface): string =>
  [side, model, name].join('|');
