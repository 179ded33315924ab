import { existsSync } from 'node:fs';
import path from 'node:path';
import type { Benchmark, LanePlan } from '../shared/benchmarks/benchmark.ts';
import { benchmarkOf } from '../shared/benchmarks/registry.ts';
import type { LaneContract, RunContract, RunSettings } from '../shared/contracts/run.ts';
import type { SweepFile } from '../shared/contracts/sweep-file.ts';
import { errorNames, type Problem, ProblemsFound } from '../shared/errors.ts';
import { canonicalJson, runId, sha256 } from '../shared/naming.ts';
import { openRelease, type ReleaseFiles } from './release-files.ts';

/** A sweep that has been read and checked whole; nothing has been written or called yet. */
export interface PreparedRun {
  contract: RunContract;
  contractHash: string;
  run: string;
  settings: RunSettings;
  benchmark: Benchmark;
  inputs: unknown;
  release: ReleaseFiles;
  /** sha256 by release path of every clip that a calling lane needs; null where media are not verified. */
  media: ReadonlyMap<string, string> | null;
  /** Recording file inside the release, by lane. */
  recordings: ReadonlyMap<string, string>;
  plans: ReadonlyMap<string, LanePlan>;
  reviewCaches: readonly string[];
}

const microUsd = (usd: number): number => Math.round(usd * 1e6);

const defaultOpenAiUrl = 'https://api.openai.com/v1';

const endpoint = (entry: { provider: string; baseUrl?: string | undefined }): string | null =>
  entry.baseUrl?.replace(/\/+$/, '') ?? (entry.provider === 'openai' ? defaultOpenAiUrl : null);

/** `release` counts from the sweep file's folder; from the working folder where it is not there. */
const releaseDirectory = (sweepPath: string, release: string): string => {
  const besideSweep = path.resolve(path.dirname(sweepPath), release);
  return existsSync(besideSweep) ? besideSweep : path.resolve(release);
};

/**
 * Reads and checks everything that a run depends on: benchmark, selection, media, recordings. Throws
 * `ProblemsFound` with every fault and its place.
 */
export const prepareRun = async (
  sweep: SweepFile,
  sweepPath: string,
  options: { limit: number | null },
): Promise<PreparedRun> => {
  const benchmark = benchmarkOf(sweep.benchmark.kind);
  const release = await openRelease(releaseDirectory(sweepPath, sweep.benchmark.release));
  for (const file of [...benchmark.inputFiles, ...benchmark.answerFiles]) await release.locate(file);
  const interfaces = sweep.interfaces ?? [...benchmark.interfaces];
  const problems = interfaceProblems(interfaces, benchmark, sweepPath);

  const read = await benchmark.read(release.lines, release.lines);
  problems.push(...read.problems);
  const manifest =
    sweep.benchmark.manifest === undefined
      ? null
      : { file: sweep.benchmark.manifest, text: await release.text(sweep.benchmark.manifest) };
  if (problems.length > 0)
    throw new ProblemsFound(errorNames.benchmarkInvalid, 'the benchmark has problems', problems);
  const selection = benchmark.select(read.inputs, { manifest, limit: options.limit });
  problems.push(...selection.problems);
  if (problems.length > 0)
    throw new ProblemsFound(errorNames.benchmarkInvalid, 'the selection has problems', problems);

  const plans = new Map<string, LanePlan>();
  for (const lane of sweep.models) {
    const plan = benchmark.planLane(read.inputs, {
      taskIds: selection.taskIds,
      interfaces,
      modalities: lane.modalities,
    });
    plans.set(lane.id, plan);
    if (plan.views.length === 0) {
      const message = `no selected task needs the modalities of lane "${lane.id}" (${lane.modalities.join(', ')})`;
      problems.push({ file: sweepPath, line: null, message });
    }
  }
  const media = sweep.benchmark.verifyMedia
    ? await verifyMedia(sweep, benchmark, read.inputs, plans, release, problems)
    : null;
  const recordings = new Map<string, string>();
  const recordingHashes = new Map<string, string>();
  for (const lane of sweep.models) {
    if (lane.recording === undefined) continue;
    recordings.set(lane.id, lane.recording);
    recordingHashes.set(lane.id, await release.sha256(lane.recording));
  }
  const reviewCaches = sweep.judge?.reviewCache ?? [];
  for (const file of reviewCaches) {
    problems.push(...(await benchmark.importReviews(file, release.lines(file))).problems);
  }
  if (problems.length > 0)
    throw new ProblemsFound(errorNames.benchmarkInvalid, 'the sweep has problems', problems);

  const fileHashes: Record<string, string> = {};
  for (const file of [...benchmark.inputFiles, ...benchmark.answerFiles])
    fileHashes[file] = await release.sha256(file);
  const mediaSha256 = media === null ? null : sha256(canonicalJson(Object.fromEntries(media)));
  const contract: RunContract = {
    v: 1,
    name: sweep.name,
    benchmark: {
      kind: benchmark.kind,
      id: `${benchmark.kind}-${sha256(canonicalJson([fileHashes, mediaSha256])).slice(0, 16)}`,
      interfaces,
      taskCount: selection.taskIds.length,
      taskIdsSha256: sha256(canonicalJson(selection.taskIds)),
      mediaSha256,
    },
    lanes: sweep.models.map(
      (lane): LaneContract => ({
        id: lane.id,
        provider: lane.provider,
        model: lane.model,
        baseUrl: endpoint(lane),
        recordingSha256: recordingHashes.get(lane.id) ?? null,
        modalities: lane.modalities,
        maxTokens: lane.maxTokens,
        retryMaxTokens: lane.retryMaxTokens ?? null,
        settings: lane.settings,
      }),
    ),
    reuseIdenticalRequests: sweep.benchmark.reuseIdenticalRequests,
  };
  const contractHash = sha256(canonicalJson(contract));
  const run = runId(sweep.name, contractHash);
  return {
    contract,
    contractHash,
    run,
    settings: settingsOf(sweep, run, selection.taskIds),
    benchmark,
    inputs: read.inputs,
    release,
    media,
    recordings,
    plans,
    reviewCaches,
  };
};

const interfaceProblems = (interfaces: readonly string[], benchmark: Benchmark, file: string): Problem[] => {
  const problems: Problem[] = interfaces
    .filter((name) => !benchmark.interfaces.includes(name))
    .map((name) => ({
      file,
      line: null,
      message: `unknown interface "${name}"; this benchmark has ${benchmark.interfaces.join(', ')}`,
    }));
  if (new Set(interfaces).size !== interfaces.length) {
    problems.push({ file, line: null, message: 'an interface is named twice' });
  }
  return problems;
};

/** Hashes of the clips that calling lanes need, each compared with the release's manifest. */
const verifyMedia = async (
  sweep: SweepFile,
  benchmark: Benchmark,
  inputs: unknown,
  plans: ReadonlyMap<string, LanePlan>,
  release: ReleaseFiles,
  problems: Problem[],
): Promise<ReadonlyMap<string, string>> => {
  const wanted = new Set<string>();
  for (const lane of sweep.models) {
    const requestIds = new Set(plans.get(lane.id)!.views.flatMap((view) => view.requestIds));
    for (const requestId of requestIds) {
      for (const message of benchmark.frozenRequest(inputs, requestId).messages) {
        if (message.role !== 'user') continue;
        for (const part of message.content) {
          if (part.type !== 'text' && lane.modalities.includes(part.type === 'video' ? 'V' : 'A'))
            wanted.add(part.path);
        }
      }
    }
  }
  if (wanted.size === 0) return new Map();
  const manifest = await release.text(benchmark.mediaManifest);
  const digests = benchmark.mediaDigests(benchmark.mediaManifest, manifest);
  problems.push(...digests.problems);
  const media = new Map<string, string>();
  for (const file of [...wanted].sort()) {
    const expected = digests.sha256ByPath.get(file);
    if (expected === undefined) {
      problems.push({ file, line: null, message: `not listed in ${benchmark.mediaManifest}` });
      continue;
    }
    const found = await release.sha256(file).catch((error: unknown) => {
      problems.push({ file, line: null, message: `media missing: ${(error as Error).message}` });
      return null;
    });
    if (found === null) continue;
    if (found === expected) media.set(file, found);
    else
      problems.push({
        file,
        line: null,
        message: `altered: sha256 is ${found}, the manifest says ${expected}`,
      });
  }
  return media;
};

const settingsOf = (sweep: SweepFile, run: string, taskIds: string[]): RunSettings => ({
  v: 1,
  run,
  seed: sweep.seed,
  taskIds,
  budgetMicroUsd: sweep.budget === undefined ? null : microUsd(sweep.budget.usd),
  lanes: sweep.models.map((lane) => ({
    id: lane.id,
    displayName: lane.displayName ?? lane.model,
    family: lane.family ?? null,
    apiKeyEnv: lane.apiKeyEnv ?? null,
    attempts: lane.attempts,
    maxInFlight: lane.maxInFlight,
    deadlineSeconds: lane.deadlineSeconds,
    backoff: lane.backoff,
    price: lane.price ?? null,
    budgetMicroUsd: lane.budget === undefined ? null : microUsd(lane.budget.usd),
  })),
  judge:
    sweep.judge === undefined
      ? null
      : {
          provider: sweep.judge.provider,
          model: sweep.judge.model,
          baseUrl: endpoint(sweep.judge),
          apiKeyEnv: sweep.judge.apiKeyEnv ?? null,
          reasoningEffort: sweep.judge.reasoningEffort ?? null,
          itemsPerRequest: sweep.judge.itemsPerRequest,
          maxTokens: sweep.judge.maxTokens,
          attempts: sweep.judge.attempts,
          maxInFlight: sweep.judge.maxInFlight,
          deadlineSeconds: sweep.judge.deadlineSeconds,
          backoff: sweep.judge.backoff,
          price: sweep.judge.price ?? null,
        },
});
