import type { Horizon, Side } from './composition.ts';
import { drawFrom, shuffled } from './draw.ts';
import type { Interface, Pair, PairRole, Split } from './release.ts';
import type { LaneTargets } from './targets.ts';

/**
 * What becomes of a request of a lane. `unscored` are native turns: their words matter to nobody's score. The failing ones
 * are those of return-protocol §4 that leave a view without a valid reply.
 */
export const outcomes = [
  'not-asked',
  'unscored',
  'correct',
  'wrong',
  'content_filter',
  'length_twice',
  'http_400',
  'empty',
] as const;
export type RequestOutcome = (typeof outcomes)[number];
const codeOf = (outcome: RequestOutcome): number => outcomes.indexOf(outcome);
const failures: readonly RequestOutcome[] = ['content_filter', 'length_twice', 'http_400', 'empty'];

export const outcomeAt = (script: Pick<LaneScript, 'codes'>, index: number): RequestOutcome =>
  outcomes[script.codes[index]!]!;
export const isFailure = (outcome: RequestOutcome): boolean => failures.includes(outcome);

export interface LaneScript {
  targets: LaneTargets;
  /** By request index. */
  codes: Uint8Array;
}

const roles = ['reference', 'conflict'] as const;
const names = ['openqa', 'mcq'] as const;
const sides = ['task', 'evidence'] as const;
const horizons = ['short', 'long'] as const;

/** The pairs of one interface, side and horizon that lack valid views, in numbers. */
interface Gaps {
  /** Pairs that lack both members, the reference only, the conflict only. */
  both: number;
  reference: number;
  conflict: number;
}

const insist = (holds: boolean, what: string): void => {
  if (!holds) throw new Error(`the targets cannot be met: ${what}`);
};

/**
 * Decides for one lane which requests come out right, so that every count of its targets is met exactly.
 *
 * A control serves both members of a pair, on the evidence side both horizons too, so correctness of controls is chosen per
 * root and interface; a history serves one view and is free. What the tables leave open is solved from the ladders, which
 * count complete pairs only:
 *
 * - pairs lost = gaps(reference) + gaps(conflict) − pairs that lack both;
 * - K controls are right. single(reference) = K − xR and single(conflict) = K − xC, where xR and xC are the right controls
 *   of the pairs that lack that member, and the ladder has K − xR − xC; so all three follow;
 * - multi(reference) − ladder reference are the right histories of references whose conflict is missing, and vice versa.
 *
 * A pair of the task side that lacks both members has lost its control. On the evidence side, where the control serves the
 * other horizon too, both interfaces lacking both members means a native turn lost that all four views share.
 */
export const scriptLane = (targets: LaneTargets, split: Split, seed: number): LaneScript => {
  const { model, modalities } = targets;
  const codes = new Uint8Array(split.requests.length);
  const own = split.pairs.filter(({ root }) => modalities.includes(root.modality));
  for (const pair of own) {
    for (const name of names) {
      for (const role of roles) {
        for (const index of pair.views[name][role].native) codes[index] = codeOf('unscored');
      }
    }
  }
  let failed = 0;
  const fail = (index: number) => {
    codes[index] = codeOf(failures[failed % failures.length]!);
    failed += 1;
  };
  for (const side of sides) {
    const pairsOf = new Map<Horizon, Pair[]>();
    for (const horizon of horizons) {
      const order = shuffled(
        split.roots.filter((root) => root.side === side),
        drawFrom(seed, model, side, side === 'task' ? horizon : 'both'),
      );
      const place = new Map(order.map((root, at) => [root.index, at]));
      pairsOf.set(
        horizon,
        own
          .filter((pair) => pair.side === side && pair.horizon === horizon)
          .sort((a, b) => place.get(a.root.index)! - place.get(b.root.index)!),
      );
    }
    const gaps = new Map(names.map((name) => [name, gapsOf(targets, side, name, pairsOf)]));
    const lostNatives = new Set<Pair>();
    if (side === 'evidence') {
      for (const horizon of horizons) {
        const shared = Math.min(...names.map((name) => gaps.get(name)!.get(horizon)!.both));
        for (const pair of pairsOf.get(horizon)!.slice(0, shared)) {
          lostNatives.add(pair);
          fail(pair.views.openqa.reference.native[0]!);
        }
      }
    }
    for (const name of names) {
      scriptSide({ targets, side, name, pairsOf, gaps: gaps.get(name)!, lostNatives, codes, fail, seed });
    }
  }
  return { targets, codes };
};

const gapsOf = (
  targets: LaneTargets,
  side: Side,
  name: Interface,
  pairsOf: ReadonlyMap<Horizon, Pair[]>,
): Map<Horizon, Gaps> => {
  const lacking = horizons.map((horizon) => {
    const all = pairsOf.get(horizon)!.length;
    const lack = (role: PairRole) => all - targets.cell(name, horizon, side, role).n;
    return { horizon, reference: lack('reference'), conflict: lack('conflict') };
  });
  const gapped = lacking.filter(({ reference, conflict }) => reference + conflict > 0);
  insist(gapped.length <= 1, `${targets.model} lacks ${side} views on ${name} in both horizons`);
  const allPairs = [...pairsOf.values()].reduce((sum, pairs) => sum + pairs.length, 0);
  const lost = allPairs - targets.ladder(name, side).n;
  return new Map(
    lacking.map(({ horizon, reference, conflict }) => {
      if (reference + conflict === 0) return [horizon, { both: 0, reference: 0, conflict: 0 }];
      const both = reference + conflict - lost;
      insist(both >= 0 && both <= Math.min(reference, conflict), `${targets.model} ${side} ${name} pairs`);
      return [horizon, { both, reference: reference - both, conflict: conflict - both }];
    }),
  );
};

interface SideOfLane {
  targets: LaneTargets;
  side: Side;
  name: Interface;
  pairsOf: ReadonlyMap<Horizon, Pair[]>;
  gaps: ReadonlyMap<Horizon, Gaps>;
  lostNatives: ReadonlySet<Pair>;
  codes: Uint8Array;
  fail(index: number): void;
  seed: number;
}

const scriptSide = (given: SideOfLane): void => {
  const { targets, side, name, pairsOf, gaps, lostNatives, codes, fail, seed } = given;
  const what = `${targets.model} ${side} ${name}`;
  const cell = (horizon: Horizon, role: PairRole) => targets.cell(name, horizon, side, role);
  const ladder = targets.ladder(name, side);
  const sum = (of: (horizon: Horizon) => number) => horizons.reduce((total, one) => total + of(one), 0);
  const gapped = horizons.find((one) => Object.values(gaps.get(one)!).some((count) => count > 0)) ?? null;

  // Pairs that lack views come first in the order of the pairs, which chance has made.
  const lacking = new Map<Pair, keyof Gaps>();
  if (gapped !== null) {
    const { both, reference, conflict } = gaps.get(gapped)!;
    const kinds = [
      ...Array<keyof Gaps>(both).fill('both'),
      ...Array<keyof Gaps>(reference).fill('reference'),
      ...Array<keyof Gaps>(conflict).fill('conflict'),
    ];
    for (const [at, kind] of kinds.entries()) lacking.set(pairsOf.get(gapped)![at]!, kind);
  }
  for (const [pair, kind] of lacking) {
    const views = pair.views[name];
    if (lostNatives.has(pair) && kind === 'both') continue;
    if (kind === 'both' && side === 'task') fail(views.reference.control);
    else for (const role of roles) if (kind === role || kind === 'both') fail(views[role].history);
  }

  const rightControls = new Set<number>();
  const chooseControls = (pools: { pairs: readonly Pair[]; right: number }[], salt: string) => {
    for (const [at, { pairs, right }] of pools.entries()) {
      insist(right >= 0 && right <= pairs.length, `${what}: ${right} right controls of ${pairs.length}`);
      const ranked = ranking(pairs, (pair) => ease(pair, drawFrom(seed, what, salt, at, pair.root.id)()));
      for (const pair of ranked.slice(0, right)) rightControls.add(pair.views[name].reference.control);
    }
  };
  const kindOf = (pair: Pair) => lacking.get(pair) ?? null;
  const singles = (horizon: Horizon) => roles.map((role) => cell(horizon, role).single) as [number, number];
  const completeSingle = (horizon: Horizon): number => {
    if (horizon !== gapped) return singles(horizon)[0];
    const others = sum((one) => (one === gapped ? 0 : singles(one)[0] + singles(one)[1]));
    insist((ladder.single - others) % 2 === 0, `${what}: odd number of single-turn successes`);
    return (ladder.single - others) / 2;
  };
  for (const horizon of horizons) {
    if (horizon === gapped) continue;
    const [reference, conflict] = singles(horizon);
    insist(reference === conflict, `${what} ${horizon}: members of a pair share their control`);
  }
  const poolsOf = (horizon: Horizon, controlsRight: number | null) => {
    const pairs = pairsOf.get(horizon)!;
    const of = (kind: keyof Gaps | null) => pairs.filter((pair) => kindOf(pair) === kind);
    const complete = completeSingle(horizon);
    const [reference, conflict] = singles(horizon);
    // Without lost controls among them, K of the whole side is known from the other horizon.
    const rightOfBoth = controlsRight === null ? 0 : controlsRight - (reference + conflict - complete);
    const known = reference + conflict - complete;
    return [
      { pairs: of(null), right: complete },
      { pairs: of('both'), right: rightOfBoth },
      { pairs: of('reference'), right: known - reference },
      { pairs: of('conflict'), right: known - conflict },
    ];
  };
  if (side === 'task') {
    for (const horizon of horizons) chooseControls(poolsOf(horizon, null), horizon);
  } else {
    const whole = horizons.find((one) => one !== gapped)!;
    const controlsRight = singles(whole)[0];
    insist(
      gapped !== null || singles('short')[0] === singles('long')[0],
      `${what}: both horizons share their controls`,
    );
    chooseControls(poolsOf(gapped ?? whole, gapped === null ? null : controlsRight), 'both');
  }
  for (const pairs of pairsOf.values()) {
    for (const pair of pairs) {
      const { control } = pair.views[name].reference;
      if (codes[control] === codeOf('not-asked'))
        codes[control] = codeOf(rightControls.has(control) ? 'correct' : 'wrong');
    }
  }

  for (const [role, other] of [roles, [...roles].reverse()] as [PairRole, PairRole][]) {
    // Right ones among the views of this role whose counterpart is missing.
    const alone = sum((horizon) => cell(horizon, role).multi) - ladder[role];
    for (const horizon of horizons) {
      const pairs = pairsOf.get(horizon)!;
      const lone = pairs.filter((pair) => kindOf(pair) === other);
      const rightAlone = horizon === gapped ? alone : 0;
      const rightComplete = cell(horizon, role).multi - rightAlone;
      const complete = pairs.filter((pair) => kindOf(pair) === null);
      insist(rightAlone >= 0 && rightAlone <= lone.length, `${what} ${role}: lone multi-turn successes`);
      insist(rightComplete >= 0 && rightComplete <= complete.length, `${what} ${horizon} ${role}: multi`);
      const easier = (pair: Pair) => {
        const views = pair.views[name][role];
        const answersAlone = codes[views.control] === codeOf('correct') ? 0.6 : 0;
        return answersAlone + ease(pair, drawFrom(seed, what, horizon, role, pair.root.id)());
      };
      const right = new Set([
        ...ranking(lone, easier).slice(0, rightAlone),
        ...ranking(complete, easier).slice(0, rightComplete),
      ]);
      for (const pair of [...lone, ...complete])
        codes[pair.views[name][role].history] = codeOf(right.has(pair) ? 'correct' : 'wrong');
      for (const pair of pairs) {
        // Asked in vain, or never: whatever the control or a native turn left of it.
        const { history } = pair.views[name][role];
        if (codes[history] === codeOf('not-asked')) codes[history] = codeOf('wrong');
      }
    }
  }
};

/** Easier first: some roots are easier for every lane. */
const ease = (pair: Pair, chance: number): number => drawFrom('ease', pair.root.id)() * 0.5 + chance;

const ranking = (pairs: readonly Pair[], score: (pair: Pair) => number): Pair[] =>
  pairs
    .map((pair) => ({ pair, score: score(pair) }))
    .sort((a, b) => b.score - a.score)
    .map(({ pair }) => pair);
