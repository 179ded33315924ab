import {
  type Interval,
  mean,
  median,
  percent,
  percentileInterval,
  type ResamplingSettings,
  resampleUnits,
  spearman,
} from '../../domain/statistics.ts';
import type { LaneTitle } from '../benchmark.ts';
import {
  type ContextLength,
  contextLengths,
  evidenceTypes,
  type ItemStatus,
  memoryOperations,
  operationCodes,
  type ScoredItem,
} from './format.ts';

/** Scored items of one lane, in any order; an item is named once. */
export interface VoxmemLane {
  title: Pick<LaneTitle, 'id' | 'displayName' | 'family' | 'model'>;
  items: readonly ScoredItem[];
}

/** `resamples`: 10,000 in the protocol. */
export type IntervalSettings = Pick<ResamplingSettings, 'seed'> & Partial<ResamplingSettings>;

export const defaultResamples = 10_000;

/** Items with an answer, items to be refused, and the paper's pool of both. */
export const scopes = ['overall', 'answerable', 'answer_refusal'] as const;
export type Scope = (typeof scopes)[number];

/** How the system prompt reached a model; null where no item tells. */
export type Delivery = 'native' | 'folded' | 'mixed' | null;

/** A set of items counted. `n = correct + incorrect + ungraded + failed + empty` is the denominator (voxmem-protocol §4). */
export interface Tally extends Record<ItemStatus, number> {
  n: number;
  /** Null where nothing is counted. */
  accuracyPct: number | null;
  /** Nothing awaits a judge or a model. */
  complete: boolean;
}

export interface LaneFacts {
  /** Lane id. */
  lane: string;
  displayName: string;
  family: string | null;
  /** A row of folded prompts is not quite comparable with one of native prompts. */
  systemPromptDelivery: Delivery;
}

export const groupNames = ['all', 'evidence_type', 'operation', 'cell', 'subtype'] as const;
export type GroupName = (typeof groupNames)[number];

/** All items of a lane that share a length and a property. */
export interface AccuracyRow extends LaneFacts, Tally {
  /** `all`: items of every length together. */
  length: ContextLength | 'all';
  group: GroupName;
  /** `all`, an evidence type, an operation's code, `<evidence type>/<code>` or a subtype. */
  value: string;
  scope: Scope;
  /** Over questions: those of `all` lengths are drawn with all their items. */
  intervalPct: Interval | null;
}

/** A length of a lane on the questions that count at every length which the lane ran. */
export interface MatchedRow extends LaneFacts, Tally {
  length: ContextLength;
  scope: Scope;
  intervalPct: Interval | null;
}

/** Accuracy at 64K over accuracy at 8K, on the lane's matched questions. */
export interface RetentionRow extends LaneFacts {
  group: 'all' | 'evidence_type';
  value: string;
  scope: Scope;
  questions: number;
  shortPct: number;
  longPct: number;
  /** A ratio, 1 for nothing lost; null where nothing was right at 8K. */
  retention: number | null;
  interval: Interval | null;
  complete: boolean;
}

/** Models at one length, each weighing the same. */
export interface AcrossModels {
  length: ContextLength;
  scope: Scope;
  models: number;
  meanPct: number;
  medianPct: number;
}

/**
 * Length curves that differ in nothing but the length: the same models and the same questions at every length.
 *
 * - Models: lanes whose 64K run is complete, i.e. covers every 64K item of the sweep with none rejected, pending or
 *   open.
 * - Lengths: those that each of these models ran.
 * - Questions: those that count at each of these lengths for each of these models.
 */
export interface LengthCurves {
  /** Lane ids. */
  models: string[];
  lengths: ContextLength[];
  questions: number;
  rows: MatchedRow[];
  acrossModels: AcrossModels[];
}

export interface LaneOverview extends LaneFacts {
  model: string;
  /** Lengths at which an item counts. */
  lengths: ContextLength[];
  counts: Tally;
  /** Questions that count at each of these lengths. */
  matchedQuestions: number;
  failuresByKind: Record<string, number>;
}

export interface Correlation {
  models: number;
  /** Spearman's ρ; null where it is not defined. */
  rho: number | null;
}

/** Everything of voxmem-protocol §5 that one judge's verdicts give. */
export interface VoxmemReport {
  seed: number;
  resamples: number;
  systemPromptDelivery: Delivery;
  lanes: LaneOverview[];
  accuracies: AccuracyRow[];
  matched: MatchedRow[];
  /** Over the matched rows of all lanes. */
  acrossModels: AcrossModels[];
  curves: LengthCurves;
  retention: RetentionRow[];
  correlations: {
    /** Across models, matched rows: accuracy on answerable items with that on items to be refused. */
    answerableWithRefusal: (Correlation & { length: ContextLength })[];
    /** Across models: retention with accuracy at 8K. */
    retentionWithShort: (Correlation & { scope: Scope })[];
  };
}

export const scopeOf = (item: Pick<ScoredItem, 'memoryOperation'>): Exclude<Scope, 'overall'> =>
  item.memoryOperation === 'answer_refusal' ? 'answer_refusal' : 'answerable';

const inScope = (item: Pick<ScoredItem, 'memoryOperation'>, scope: Scope): boolean =>
  scope === 'overall' || scopeOf(item) === scope;

/** Whether an item stands in denominators: rejected ones leave, pending and open ones are not there yet. */
export const counts = ({ status }: Pick<ScoredItem, 'status'>): boolean =>
  status !== 'rejected' && status !== 'pending' && status !== 'open';

/** Counts of a set of items. */
export const tallyOf = (items: Iterable<Pick<ScoredItem, 'status'>>): Tally => {
  const by: Record<ItemStatus, number> = {
    correct: 0,
    incorrect: 0,
    ungraded: 0,
    failed: 0,
    empty: 0,
    rejected: 0,
    pending: 0,
    open: 0,
  };
  for (const { status } of items) by[status] += 1;
  const n = by.correct + by.incorrect + by.ungraded + by.failed + by.empty;
  return {
    ...by,
    n,
    accuracyPct: n === 0 ? null : percent(by.correct, n),
    complete: by.pending === 0 && by.open === 0,
  };
};

/** `mixed` as soon as two kinds meet. */
const mixOf = (deliveries: Iterable<Delivery>): Delivery => {
  const kinds = new Set([...deliveries].filter((delivery) => delivery !== null));
  return kinds.size > 1 ? 'mixed' : ([...kinds][0] ?? null);
};

/** Kinds of questions: all that any group looks at. */
type Leaf = Pick<ScoredItem, 'evidenceType' | 'memoryOperation' | 'subtype'>;

interface Part {
  group: GroupName;
  value: string;
  scope: Scope;
  holds: (leaf: Leaf) => boolean;
}

const groupValue: Record<GroupName, (leaf: Leaf) => string> = {
  all: () => 'all',
  evidence_type: (leaf) => leaf.evidenceType,
  operation: (leaf) => operationCodes[leaf.memoryOperation],
  cell: (leaf) => `${leaf.evidenceType}/${operationCodes[leaf.memoryOperation]}`,
  subtype: (leaf) => leaf.subtype,
};

const codes = memoryOperations.map((operation) => operationCodes[operation]);

/** Values in the order of tables; subtypes are the data set's own and sorted. */
const valueOrder: Record<Exclude<GroupName, 'subtype'>, readonly string[]> = {
  all: ['all'],
  evidence_type: evidenceTypes,
  operation: codes,
  cell: evidenceTypes.flatMap((type) => codes.map((code) => `${type}/${code}`)),
};

/** Every group that has a question; groups below evidence types never mix answerable items with others. */
const partsOf = (leaves: readonly Leaf[]): Part[] =>
  groupNames.flatMap((group) => {
    const present = new Set(leaves.map(groupValue[group]));
    const values = group === 'subtype' ? [...present].sort() : valueOrder[group];
    const mixes = group === 'all' || group === 'evidence_type';
    return values.flatMap((value) =>
      scopes
        .filter((scope) => mixes || scope !== 'overall')
        .map((scope) => ({
          group,
          value,
          scope,
          holds: (leaf: Leaf) => groupValue[group](leaf) === value && inScope(leaf, scope),
        }))
        .filter(({ holds }) => leaves.some(holds)),
    );
  });

/** A question with its items that count, by length. */
interface Question extends Leaf {
  questionId: string;
  items: Map<ContextLength, ScoredItem>;
}

const questionsOf = (items: Iterable<ScoredItem>): Question[] => {
  const questions = new Map<string, Question>();
  for (const item of items) {
    if (!counts(item)) continue;
    const { questionId, evidenceType, memoryOperation, subtype } = item;
    const question = questions.get(questionId) ?? {
      questionId,
      evidenceType,
      memoryOperation,
      subtype,
      items: new Map(),
    };
    question.items.set(item.contextLength, item);
    questions.set(questionId, question);
  }
  return [...questions.values()];
};

/** Part of the items whose accuracy is resampled. */
interface Series {
  holds: (leaf: Leaf) => boolean;
  lengths: readonly ContextLength[];
}

/** Accuracies of a series in percent, one a resample; NaN where a resample has none of its items. */
type Resampled = (series: Series) => Float64Array;

/** One count for items and 65,536 more for items that are right: half the sums, and no set has so many questions. */
const rightItem = 0x1_0000;

/**
 * Resamples questions, each with its items of all lengths. Every series sees the same draws: the values of two may be set
 * against each other, resample by resample.
 */
const resample = (questions: readonly Question[], settings: ResamplingSettings): Resampled => {
  const width = contextLengths.length;
  const leaves = new Map<string, { leaf: Leaf; place: number }>();
  const units = new Int32Array(questions.length * width);
  const places = questions.map((question, index) => {
    const key = `${question.evidenceType}\n${question.memoryOperation}\n${question.subtype}`;
    const known = leaves.get(key) ?? { leaf: question, place: leaves.size * width };
    leaves.set(key, known);
    contextLengths.forEach((length, column) => {
      const status = question.items.get(length)?.status;
      if (status !== undefined) units[index * width + column] = status === 'correct' ? rightItem + 1 : 1;
    });
    return known.place;
  });
  const { resamples } = settings;
  const sumsLength = leaves.size * width;
  /** Sums of all resamples, one column after the other. */
  const drawn = new Uint32Array(sumsLength * resamples);
  resampleUnits(
    { counts: units, width, places: Int32Array.from(places), sumsLength },
    settings,
    (sums, index) => {
      for (let column = 0; column < sumsLength; column += 1)
        drawn[column * resamples + index] = sums[column]!;
    },
  );
  return ({ holds, lengths }) => {
    const values = new Float64Array(resamples);
    for (const { leaf, place } of leaves.values()) {
      if (!holds(leaf)) continue;
      for (const length of lengths) {
        const start = (place + contextLengths.indexOf(length)) * resamples;
        for (let index = 0; index < resamples; index += 1) values[index]! += drawn[start + index]!;
      }
    }
    for (let index = 0; index < resamples; index += 1) {
      const n = values[index]! & (rightItem - 1);
      values[index] = n === 0 ? Number.NaN : percent((values[index]! - n) / rightItem, n);
    }
    return values;
  };
};

interface Lane {
  facts: LaneFacts;
  items: readonly ScoredItem[];
  lengths: ContextLength[];
  questions: Question[];
  /** Those that count at each of `lengths`. */
  matched: Question[];
}

const countsAtAll = (question: Question, lengths: readonly ContextLength[]): boolean =>
  lengths.every((length) => question.items.has(length));

const laneOf = ({ title, items }: VoxmemLane): Lane => {
  const questions = questionsOf(items);
  const lengths = contextLengths.filter((length) => questions.some((question) => question.items.has(length)));
  return {
    facts: {
      lane: title.id,
      displayName: title.displayName,
      family: title.family,
      systemPromptDelivery: mixOf(items.map((item) => item.systemPromptDelivery)),
    },
    items,
    lengths,
    questions,
    matched: questions.filter((question) => countsAtAll(question, lengths)),
  };
};

const overviewOf = (lane: Lane, model: string): LaneOverview => {
  const failures = Map.groupBy(
    lane.items.filter((item) => item.failure !== null),
    (item) => item.failure!,
  );
  return {
    ...lane.facts,
    model,
    lengths: lane.lengths,
    counts: tallyOf(lane.items),
    matchedQuestions: lane.matched.length,
    failuresByKind: Object.fromEntries(
      [...failures].sort(([a], [b]) => (a < b ? -1 : 1)).map(([kind, { length }]) => [kind, length]),
    ),
  };
};

const accuracyRows = (lane: Lane, resampled: Resampled): AccuracyRow[] => {
  const planned = contextLengths.filter((length) => lane.items.some((item) => item.contextLength === length));
  return [...planned, 'all' as const].flatMap((length) => {
    const items = length === 'all' ? lane.items : lane.items.filter((item) => item.contextLength === length);
    const lengths = length === 'all' ? contextLengths : [length];
    return partsOf(items).map(({ group, value, scope, holds }) => ({
      ...lane.facts,
      length,
      group,
      value,
      scope,
      ...tallyOf(items.filter(holds)),
      intervalPct: percentileInterval(resampled({ holds, lengths })),
    }));
  });
};

const tallyAt = (questions: readonly Question[], length: ContextLength): Tally =>
  tallyOf(questions.map((question) => question.items.get(length)!));

/** A lane's rows at some lengths on questions that count at all of them. */
const matchedRows = (
  { facts, items }: Lane,
  lengths: readonly ContextLength[],
  questions: readonly Question[],
  resampled: Resampled,
): MatchedRow[] =>
  lengths.flatMap((length) =>
    scopes.flatMap((scope) => {
      const holds = (leaf: Leaf) => inScope(leaf, scope);
      const members = questions.filter(holds);
      if (members.length === 0) return [];
      return {
        ...facts,
        length,
        scope,
        ...tallyAt(members, length),
        complete: tallyOf(items.filter(holds)).complete,
        intervalPct: percentileInterval(resampled({ holds, lengths: [length] })),
      };
    }),
  );

const retentionRows = ({ facts, items, lengths, matched }: Lane, resampled: Resampled): RetentionRow[] => {
  if (!lengths.includes('8k') || !lengths.includes('64k')) return [];
  const parts = partsOf(matched).filter(({ group }) => group === 'all' || group === 'evidence_type');
  return parts.map(({ group, value, scope, holds }) => {
    const questions = matched.filter(holds);
    const shortPct = tallyAt(questions, '8k').accuracyPct!;
    const longPct = tallyAt(questions, '64k').accuracyPct!;
    const short = resampled({ holds, lengths: ['8k'] });
    const ratios = resampled({ holds, lengths: ['64k'] }).map((long, index) =>
      short[index]! > 0 ? long / short[index]! : Number.NaN,
    );
    return {
      ...facts,
      group: group as RetentionRow['group'],
      value,
      scope,
      questions: questions.length,
      shortPct,
      longPct,
      retention: shortPct === 0 ? null : longPct / shortPct,
      interval: percentileInterval(ratios),
      complete: tallyOf(items.filter(holds)).complete,
    };
  });
};

/** All rows of a lane; what was drawn for them is not kept. */
const rowsOf = (lane: Lane, settings: ResamplingSettings) => {
  const { questions, matched, lengths } = lane;
  const resampled = resample(questions, settings);
  const ofMatched = matched.length === questions.length ? resampled : resample(matched, settings);
  return {
    accuracies: accuracyRows(lane, resampled),
    matched: matchedRows(lane, lengths, matched, ofMatched),
    retention: retentionRows(lane, ofMatched),
  };
};

const acrossModels = (rows: readonly MatchedRow[]): AcrossModels[] =>
  contextLengths.flatMap((length) =>
    scopes.flatMap((scope) => {
      const values = rows
        .filter((row) => row.length === length && row.scope === scope)
        .flatMap((row) => row.accuracyPct ?? []);
      if (values.length === 0) return [];
      return { length, scope, models: values.length, meanPct: mean(values), medianPct: median(values) };
    }),
  );

const lengthCurves = (
  lanes: readonly Lane[],
  matched: readonly MatchedRow[],
  settings: ResamplingSettings,
): LengthCurves => {
  const longest = (lane: Lane) => lane.items.filter((item) => item.contextLength === '64k');
  const wanted = new Set(lanes.flatMap((lane) => longest(lane).map((item) => item.questionId)));
  const complete = lanes.filter(
    (lane) => wanted.size > 0 && longest(lane).filter(counts).length === wanted.size,
  );
  const lengths = contextLengths.filter(
    (length) => complete.length > 0 && complete.every((lane) => lane.lengths.includes(length)),
  );
  const answered = complete.map(
    (lane) =>
      new Set(
        lane.questions
          .filter((question) => countsAtAll(question, lengths))
          .map((question) => question.questionId),
      ),
  );
  const shared = new Set(
    [...(answered[0] ?? [])].filter((questionId) => answered.every((ids) => ids.has(questionId))),
  );
  const rows = complete.flatMap((lane) => {
    if (shared.size === lane.matched.length && lengths.length === lane.lengths.length) {
      return matched.filter((row) => row.lane === lane.facts.lane);
    }
    const questions = lane.questions.filter((question) => shared.has(question.questionId));
    return matchedRows(lane, lengths, questions, resample(questions, settings));
  });
  return {
    models: complete.map((lane) => lane.facts.lane),
    lengths,
    questions: shared.size,
    rows,
    acrossModels: acrossModels(rows),
  };
};

const correlationOf = (pairs: readonly (readonly [number, number])[]): Correlation => ({
  models: pairs.length,
  rho: spearman(
    pairs.map(([first]) => first),
    pairs.map(([, second]) => second),
  ),
});

const answerableWithRefusal = (matched: readonly MatchedRow[]) =>
  contextLengths.flatMap((length) => {
    const rows = matched.filter((row) => row.length === length);
    if (rows.length === 0) return [];
    const pairs = [...Map.groupBy(rows, (row) => row.lane).values()].flatMap((ofLane) => {
      const pct = (scope: Scope) => ofLane.find((row) => row.scope === scope)?.accuracyPct ?? null;
      const [answerable, refusal] = [pct('answerable'), pct('answer_refusal')];
      return answerable === null || refusal === null ? [] : [[answerable, refusal] as const];
    });
    return { length, ...correlationOf(pairs) };
  });

const retentionWithShort = (retention: readonly RetentionRow[]) =>
  scopes.flatMap((scope) => {
    const rows = retention.filter((row) => row.group === 'all' && row.scope === scope);
    if (rows.length === 0) return [];
    const pairs = rows.flatMap((row) =>
      row.retention === null ? [] : [[row.retention, row.shortPct] as const],
    );
    return { scope, ...correlationOf(pairs) };
  });

/**
 * Every figure of voxmem-protocol §5 that the verdicts of one judge give: accuracies with their counts, model × length on
 * matched questions, length curves, retention, correlations. Intervals are percentile 95 % over questions; each lane is
 * resampled from the same seed.
 *
 * @param given lanes in the order of the sweep
 */
export const aggregateLanes = (
  given: readonly VoxmemLane[],
  { seed, resamples = defaultResamples }: IntervalSettings,
): VoxmemReport => {
  const settings = { seed, resamples };
  const lanes = given.map(laneOf);
  const rows = lanes.map((lane) => rowsOf(lane, settings));
  const matched = rows.flatMap((row) => row.matched);
  const retention = rows.flatMap((row) => row.retention);
  return {
    seed,
    resamples,
    systemPromptDelivery: mixOf(lanes.map((lane) => lane.facts.systemPromptDelivery)),
    lanes: lanes.map((lane, index) => overviewOf(lane, given[index]!.title.model)),
    accuracies: rows.flatMap((row) => row.accuracies),
    matched,
    acrossModels: acrossModels(matched),
    curves: lengthCurves(lanes, matched, settings),
    retention,
    correlations: {
      answerableWithRefusal: answerableWithRefusal(matched),
      retentionWithShort: retentionWithShort(retention),
    },
  };
};
