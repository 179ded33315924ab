import type { z } from 'zod';
import type { GroupRow, PlannedView } from '../contracts/plan.ts';
import type { FailureRecord, RequestRecord, ViewRow } from '../contracts/records.ts';
import type { ReviewItem } from '../contracts/reviews.ts';
import type { Channel, FrozenRequest } from '../domain/request.ts';
import type { Problem } from '../errors.ts';
import type { ByteSource, FileSet } from '../ports/byte-source.ts';

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
  /** Review keys of the follow-up items by request, see `followUps`. */
  followUps: ReadonlyMap<string, string>;
}

/** What a judge said of an item, in the benchmark's own words. */
export type Verdict = Readonly<Record<string, unknown>>;

/** Texts by name that a benchmark's requests and judge are made of; users may replace them. */
export type Prompts = Readonly<Record<string, string>>;

/** How a sweep wants a benchmark to be run. */
export interface BenchmarkSetting {
  /** As the benchmark's `options` schema reads them. */
  options: unknown;
  prompts: Prompts;
}

export const usualSetting: BenchmarkSetting = { options: {}, prompts: {} };

/** How a benchmark talks to its judge. */
export interface JudgeProtocol {
  /** Part of the judge's identity: verdicts given under another wording are not interchangeable. */
  promptVersion: string;
  /** Items that one request may hold; null: as many as the sweep says. */
  itemsPerRequestAtMost: number | null;
  /** One request for a chunk; item ids in it say nothing but their position. */
  buildRequest(items: readonly ReviewItem[]): { system: string; user: string };
  /** Verdicts by item key, or why the whole chunk is void. */
  parseReply(
    text: string,
    items: readonly ReviewItem[],
  ): { ok: true; verdicts: Map<string, Verdict> } | { ok: false; kind: string; message: string };
  /** What stands for verdicts when the last attempt was void as well; left out: the items stay without one. */
  unreadable?(items: readonly ReviewItem[]): Map<string, Verdict>;
}

export interface ReportFile {
  /** Path under the run's report folder. */
  path: string;
  content: string;
}

export interface LaneAggregate {
  lane: string;
  /**
   * Views with every reply scored, views of which a failure has taken a reply, views whose review is pending, and views
   * without a decision yet.
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
}

/** What concerns all lanes together. */
export interface Aggregate {
  files: readonly ReportFile[];
  summary: Record<string, unknown>;
  /** Table for people: header and rows. */
  table: { header: readonly string[]; rows: readonly (readonly string[])[] };
  /** Further tables with titles, for the pages and the terminal. */
  tables: readonly { title: string; header: readonly string[]; rows: readonly (readonly string[])[] }[];
}

/** A file of a data set, and the files in its folder. */
export interface DataFile {
  name: string;
  bytes: ByteSource;
  beside: FileSet;
}

/** Where an unpacked release goes: a folder of its own, empty at first. */
export interface UnpackSink {
  /** Adds a line (without its end) to a text file. */
  appendLine(file: string, line: string): Promise<void>;
  /** Writes a clip; nothing happens where it is there. */
  putClipIfAbsent(file: string, bytes: Uint8Array): Promise<void>;
}

export interface UnpackProgress {
  file: string;
  itemsDone: number;
  items: number;
  clips: number;
  /** Of distinct clips. */
  clipBytes: number;
}

/** How a data set, as its makers publish it, becomes a release that `read` reads. */
export interface Unpacking {
  /** Raised whenever the same data set would be unpacked to other files. */
  version: number;
  /** A file that every release has, and no data set as it is published. */
  releaseFile: string;
  /** Forms in which the data set is published, by the ends of its files' names; a set is in one of them. */
  forms: readonly string[];
  /** What of the data set a sweep asks for: tells one unpacking from another. */
  selection(options: unknown, limit: number | null): unknown;
  /** Names of the files that the rows of a data file name. */
  filesBeside(file: DataFile): AsyncIterable<string>;
  /** Throws `ProblemsFound` with every fault of the data. */
  unpack(wanted: {
    files: readonly DataFile[];
    selection: unknown;
    sink: UnpackSink;
    onProgress?: (progress: UnpackProgress) => void;
  }): Promise<void>;
}

export type FollowUps<Answers> = (
  answers: Answers,
  scores: readonly RuleScore[],
  verdict: (reviewKey: string) => Verdict | null,
) => Map<string, ReviewItem>;

export interface Benchmark<Inputs = unknown, Answers = unknown> {
  kind: string;
  interfaces: readonly string[];
  /** What `benchmark.options` of a sweep file may hold. */
  options: z.ZodObject;
  /**
   * Names of the texts that a sweep may replace; the usual ones lie in the benchmark's folder `prompts/`. Those that
   * requests are made with under the sweep's options are part of the run's contract.
   */
  prompts: { request(options: unknown): readonly string[]; judge: readonly string[] };
  /** Name of the export in the format of the benchmark's release. */
  exportFormat: string;
  /** Files that go to `benchmarks/<id>/inputs/`, readable by every stage. */
  inputFiles: readonly string[];
  /** Files that go to `benchmarks/<id>/answers/`, unreadable for stages that talk to evaluated models. */
  answerFiles: readonly string[];
  /** Left out: the data set is published as the release that is read here. */
  unpacking?: Unpacking;
  /** File that lists the SHA-256 of every clip. */
  mediaManifest: string;
  mediaDigests(
    file: string,
    text: string,
  ): {
    sha256ByPath: ReadonlyMap<string, string>;
    /** Lengths of clips where the list tells them. */
    secondsByPath?: ReadonlyMap<string, number>;
    problems: Problem[];
  };

  /**
   * Reads and checks; `answers` is null where the caller may not see them. `withRequests` false (true where it is left
   * out) is for who will call neither `planLane`, `frozenRequest` nor `exportLane`: what only they need, by far the
   * most of a release, may then be left out.
   */
  read(
    openInputs: OpenFile,
    openAnswers: OpenFile | null,
    setting: BenchmarkSetting,
    withRequests?: boolean,
  ): Promise<{ inputs: Inputs; answers: Answers | null; problems: Problem[] }>;
  select(
    inputs: Inputs,
    answers: Answers,
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
  /**
   * Items that only the verdicts on a lane's scores give rise to, by request: asked about once the others are judged.
   * Left out or null: there are none, in this benchmark or under the sweep's options.
   */
  followUps?(inputs: Inputs): FollowUps<Answers> | null;
  /** Reads reviews made elsewhere (JSON lines); keys are those of `reviewItem`. */
  importReviews(file: string, lines: Lines): Promise<{ reviews: Map<string, Verdict>; problems: Problem[] }>;
  judge(prompts: Prompts): JudgeProtocol;
  /**
   * Joins scores and reviews. Lanes come one after the other, and each is given to `onLane` before the next is taken:
   * the replies of all of them would fill the memory. Verdicts are known of the lanes that have come.
   */
  aggregate(
    inputs: Inputs,
    wanted: {
      interfaces: readonly string[];
      seed: number;
      lanes: AsyncIterable<LaneScores>;
      onLane: (lane: LaneAggregate) => Promise<void>;
      verdict: (reviewKey: string) => Verdict | null;
      /** Every judge whose verdicts this run has, with those of its own: the one of `verdict` first. */
      judges: readonly { judge: string; model: string; verdict: (reviewKey: string) => Verdict | null }[];
    },
  ): Promise<Aggregate>;

  /** Files of the release's own formats for one lane, under `<lane>/`. */
  exportLane(
    inputs: Inputs,
    answers: Answers,
    wanted: {
      title: LaneTitle;
      taskIds: readonly string[];
      interfaces: readonly string[];
      views: readonly ViewRow[];
      scoredRows: readonly unknown[];
      /** Name of the run's judge; null where it has none. */
      judge: string | null;
      record: (requestId: string) => RequestRecord | FailureRecord | null;
    },
  ): ReportFile[];
}
