import type { GroupRow, PlannedView } from '../contracts/plan.ts';
import type { FailureRecord, RequestRecord, ViewRow } from '../contracts/records.ts';
import type { Review, ReviewItem } from '../contracts/reviews.ts';
import type { Channel, FrozenRequest } from '../domain/request.ts';
import type { Problem } from '../errors.ts';

/**
 * What a benchmark brings. The core knows views, requests, replies and reviews; what they mean is the
 * plug-in's. Every function is pure: text comes in as lines, results go out as values.
 */

export type Lines = Iterable<string> | AsyncIterable<string>;

/** Opens a file of the release by its path inside the release. */
export type OpenFile = (path: string) => Lines;

export interface Selection {
  /** Tasks that the sweep names, in its order. */
  taskIds: string[];
  problems: Problem[];
}

export interface LanePlan {
  taskIds: string[];
  views: PlannedView[];
  groups: GroupRow[];
}

/** Identity of a lane as reports show it. */
export interface LaneTitle {
  id: string;
  displayName: string;
  family: string | null;
  model: string;
  modalities: readonly Channel[];
}

/** One scored reply, as JSON. `reviewKey` is set where the rules could not tell and a judge has to. */
export interface RuleScore {
  requestId: string;
  reviewKey: string | null;
  row: unknown;
}

/** A lane's replies after the rules, before the reviews. */
export interface LaneScores {
  title: LaneTitle;
  taskIds: readonly string[];
  scores: readonly RuleScore[];
}

export type Verdict = Pick<Review, 'verdict' | 'formatCompliant' | 'reason'>;

export interface ReportFile {
  /** Path under the run's report folder. */
  path: string;
  content: string;
}

export interface LaneAggregate {
  lane: string;
  /**
   * Views with both replies scored, views that a failure keeps out of every denominator, views whose review
   * is pending, and views without a decision yet.
   */
  valid: number;
  excluded: number;
  pending: number;
  open: number;
  /** The effect that the lane measured, in percentage points, one for each denominator; left out where none is. */
  deltas?: readonly { interface: string; deltaPp: number }[];
  /** Final scored rows in the release's order. */
  scoredRows: readonly unknown[];
  /** The lane's own report files. */
  files: readonly ReportFile[];
  /** What goes into `summary.json` for the lane. */
  summary: unknown;
}

export interface Aggregate {
  lanes: readonly LaneAggregate[];
  files: readonly ReportFile[];
  summary: Record<string, unknown>;
  /** Table for people: header and rows. */
  table: { header: readonly string[]; rows: readonly (readonly string[])[] };
  /** Further tables with titles, for the pages and the terminal. */
  tables: readonly { title: string; header: readonly string[]; rows: readonly (readonly string[])[] }[];
}

export interface Benchmark<Inputs = unknown, Answers = unknown> {
  kind: string;
  interfaces: readonly string[];
  /** Files that go to `benchmarks/<id>/inputs/`, readable by every stage. */
  inputFiles: readonly string[];
  /** Files that go to `benchmarks/<id>/answers/`, unreadable for stages that talk to evaluated models. */
  answerFiles: readonly string[];
  /** File that lists the SHA-256 of every clip. */
  mediaManifest: string;
  mediaDigests(
    file: string,
    text: string,
  ): { sha256ByPath: ReadonlyMap<string, string>; problems: Problem[] };

  /** Reads and checks; `answers` is null where the caller may not see them. */
  read(
    openInputs: OpenFile,
    openAnswers: OpenFile | null,
  ): Promise<{ inputs: Inputs; answers: Answers | null; problems: Problem[] }>;
  select(
    inputs: Inputs,
    wanted: { manifest: { file: string; text: string } | null; limit: number | null },
  ): Selection;
  planLane(
    inputs: Inputs,
    wanted: { taskIds: readonly string[]; interfaces: readonly string[]; modalities: readonly Channel[] },
  ): LanePlan;
  frozenRequest(inputs: Inputs, requestId: string): FrozenRequest;

  /** Scores what the rules can score, in the release's order of rows. */
  score(
    inputs: Inputs,
    answers: Answers,
    wanted: { taskIds: readonly string[]; interfaces: readonly string[] },
    record: (requestId: string) => RequestRecord | FailureRecord | null,
  ): RuleScore[];
  /** The item to judge for a score with a `reviewKey`. */
  reviewItem(score: RuleScore): ReviewItem;
  /** Reads reviews made elsewhere (JSON lines); keys are those of `reviewItem`. */
  importReviews(file: string, lines: Lines): Promise<{ reviews: Map<string, Verdict>; problems: Problem[] }>;
  judge: {
    promptVersion: string;
    /** One request for a chunk; item ids in it say nothing but their position. */
    buildRequest(items: readonly ReviewItem[]): { system: string; user: string };
    /** Verdicts by item key, or why the whole chunk is void. */
    parseReply(
      text: string,
      items: readonly ReviewItem[],
    ): { ok: true; verdicts: Map<string, Verdict> } | { ok: false; kind: string; message: string };
  };
  aggregate(
    inputs: Inputs,
    wanted: {
      interfaces: readonly string[];
      seed: number;
      lanes: readonly LaneScores[];
      verdict: (reviewKey: string) => Verdict | null;
    },
  ): Aggregate;

  /** Files of the release's own formats for one lane, under `<lane>/`. */
  exportLane(
    inputs: Inputs,
    wanted: {
      title: LaneTitle;
      taskIds: readonly string[];
      interfaces: readonly string[];
      views: readonly ViewRow[];
      scoredRows: readonly unknown[];
      record: (requestId: string) => RequestRecord | FailureRecord | null;
    },
  ): ReportFile[];
}
