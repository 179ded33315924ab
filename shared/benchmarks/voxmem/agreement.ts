import {
  type ContingencyTable,
  cohenKappa,
  mean,
  meanAbsoluteDifference,
  observedAgreement,
  percent,
  spearman,
} from '../../domain/statistics.ts';
import { type Scope, scopeOf, scopes } from './aggregate.ts';
import type { ScoredItem } from './format.ts';

/** One lane's items as one judge left them. */
export interface JudgedLane {
  lane: string;
  displayName: string;
  /** Whose model it is (GPT, Gemini, Qwen …), for favouritism; null where not known. */
  family: string | null;
  items: readonly Pick<ScoredItem, 'itemId' | 'memoryOperation' | 'status'>[];
}

export interface JudgeVerdicts {
  judge: string;
  /** In the words of `JudgedLane.family`. */
  family: string | null;
  lanes: readonly JudgedLane[];
}

/** Two judges on the items that both were asked about; `first` and `second` are in the order given. */
export interface AgreementRow {
  firstJudge: string;
  secondJudge: string;
  /** Lane id; null for the items of all lanes together. */
  lane: string | null;
  scope: Scope;
  compared: number;
  bothCorrect: number;
  firstOnlyCorrect: number;
  secondOnlyCorrect: number;
  bothIncorrect: number;
  /** Items, counted above as incorrect, of which a judge gave no verdict that can be read. */
  ungradedByFirst: number;
  ungradedBySecond: number;
  agreementPct: number;
  /** Null where it is not defined: both judges said one and the same thing throughout. */
  kappa: number | null;
  /** Of the compared items. */
  firstAccuracyPct: number;
  secondAccuracyPct: number;
}

export interface JudgePair {
  firstJudge: string;
  secondJudge: string;
  scope: Scope;
  /** Lanes with compared items. */
  models: number;
  compared: number;
  /** Spearman's ρ of the lanes' accuracies under the two judges. */
  rankingRho: number | null;
  /** Mean over lanes of the absolute difference of the two accuracies, in percentage points. */
  meanAbsoluteDifferencePp: number | null;
  favouritism: Favouritism;
}

/**
 * Differences of differences in percentage points. With `d(F)` the mean over the lanes of family F of the first judge's
 * accuracy minus the second's, f and g the families of the first and the second judge, and R all lanes of known families that are neither:
 *
 * - `ofFirstPp = d(f) − d(R)`: how much more than elsewhere the first judge gives to its own family.
 * - `ofSecondPp = d(R) − d(g)`: the same of the second judge.
 * - `betweenPp = d(f) − d(g)`: both together; positive where judges favour their own.
 *
 * Null where a group has no lane, a judge's family is not known, or both judges are of one family.
 */
export interface Favouritism {
  ofFirstPp: number | null;
  ofSecondPp: number | null;
  betweenPp: number | null;
}

interface Compared {
  first: string;
  second: string;
  scope: Exclude<Scope, 'overall'>;
}

const isJudged = ({ status }: Pick<ScoredItem, 'status'>): boolean =>
  status === 'correct' || status === 'incorrect' || status === 'ungraded';

const comparedItems = (first: JudgedLane, second: JudgedLane): Compared[] => {
  const bySecond = new Map(second.items.map((item) => [item.itemId, item]));
  return first.items.flatMap((item) => {
    const other = bySecond.get(item.itemId);
    if (other === undefined || !isJudged(item) || !isJudged(other)) return [];
    return { first: item.status, second: other.status, scope: scopeOf(item) };
  });
};

const agreementOf = (items: readonly Compared[]) => {
  const count = (test: (item: Compared) => boolean): number => items.filter(test).length;
  const both = (first: boolean, second: boolean): number =>
    count((item) => (item.first === 'correct') === first && (item.second === 'correct') === second);
  const table: ContingencyTable = [
    [both(true, true), both(true, false)],
    [both(false, true), both(false, false)],
  ];
  const [[bothCorrect, firstOnlyCorrect], [secondOnlyCorrect, bothIncorrect]] = table as [
    [number, number],
    [number, number],
  ];
  return {
    compared: items.length,
    bothCorrect,
    firstOnlyCorrect,
    secondOnlyCorrect,
    bothIncorrect,
    ungradedByFirst: count((item) => item.first === 'ungraded'),
    ungradedBySecond: count((item) => item.second === 'ungraded'),
    agreementPct: 100 * observedAgreement(table)!,
    kappa: cohenKappa(table),
    firstAccuracyPct: percent(bothCorrect + firstOnlyCorrect, items.length),
    secondAccuracyPct: percent(bothCorrect + secondOnlyCorrect, items.length),
  };
};

interface ComparedLane {
  lane: string;
  family: string | null;
  items: Compared[];
}

const narrowed = (items: readonly Compared[], scope: Scope): Compared[] =>
  items.filter((item) => scope === 'overall' || item.scope === scope);

const favouritismOf = (
  lanes: readonly { family: string | null; differencePp: number }[],
  first: string | null,
  second: string | null,
): Favouritism => {
  const none = { ofFirstPp: null, ofSecondPp: null, betweenPp: null };
  if (first === null || second === null || first === second) return none;
  const groupMean = (test: (family: string | null) => boolean): number | null => {
    const differences = lanes.filter((lane) => test(lane.family)).map((lane) => lane.differencePp);
    return differences.length === 0 ? null : mean(differences);
  };
  const ofFirst = groupMean((family) => family === first);
  const ofSecond = groupMean((family) => family === second);
  const elsewhere = groupMean((family) => family !== null && family !== first && family !== second);
  const minus = (a: number | null, b: number | null) => (a === null || b === null ? null : a - b);
  return {
    ofFirstPp: minus(ofFirst, elsewhere),
    ofSecondPp: minus(elsewhere, ofSecond),
    betweenPp: minus(ofFirst, ofSecond),
  };
};

/**
 * Compares every two judges on the items of which both gave a verdict, or should have: failed, empty, rejected, pending
 * and open items were never before a judge and say nothing of agreement. An ungraded item counts as incorrect, as in
 * the scores (voxmem-protocol §4, §5). Lanes and items are matched by their ids.
 */
export const compareJudges = (
  judges: readonly JudgeVerdicts[],
): { agreement: AgreementRow[]; pairs: JudgePair[] } => {
  const agreement: AgreementRow[] = [];
  const pairs: JudgePair[] = [];
  for (const [index, first] of judges.entries()) {
    for (const second of judges.slice(index + 1)) {
      const lanes = first.lanes.flatMap((lane): ComparedLane[] => {
        const other = second.lanes.find((one) => one.lane === lane.lane);
        return other === undefined
          ? []
          : [{ lane: lane.lane, family: lane.family, items: comparedItems(lane, other) }];
      });
      const all = lanes.flatMap((lane) => lane.items);
      for (const scope of scopes) {
        const facts = { firstJudge: first.judge, secondJudge: second.judge, scope };
        const rows = [{ lane: null, family: null, items: all }, ...lanes].flatMap(
          ({ lane, family, items }) => {
            const ofScope = narrowed(items, scope);
            return ofScope.length === 0 ? [] : [{ family, row: { ...facts, lane, ...agreementOf(ofScope) } }];
          },
        );
        const [pooled, ...perLane] = rows;
        if (pooled === undefined) continue;
        agreement.push(...rows.map(({ row }) => row));
        const accuracies = perLane.map(({ row }) => row.firstAccuracyPct);
        const others = perLane.map(({ row }) => row.secondAccuracyPct);
        pairs.push({
          ...facts,
          models: perLane.length,
          compared: pooled.row.compared,
          rankingRho: spearman(accuracies, others),
          meanAbsoluteDifferencePp: meanAbsoluteDifference(accuracies, others),
          favouritism: favouritismOf(
            perLane.map(({ family, row }) => ({
              family,
              differencePp: row.firstAccuracyPct - row.secondAccuracyPct,
            })),
            first.family,
            second.family,
          ),
        });
      }
    }
  }
  return { agreement, pairs };
};
