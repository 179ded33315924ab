import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { onDisk } from '../shared/adapters/local/storage-errors.ts';
import type { Benchmark, LanePlan, Prompts } from '../shared/benchmarks/benchmark.ts';
import { benchmarkOf } from '../shared/benchmarks/registry.ts';
import type { LaneContract, RunContract, RunSettings } from '../shared/contracts/run.ts';
import type { SweepFile } from '../shared/contracts/sweep-file.ts';
import { errorNames, type Problem, ProblemsFound, TurnsweepError } from '../shared/errors.ts';
import { canonicalJson, runId, sha256 } from '../shared/naming.ts';
import { recordingProblems } from '../shared/providers/recorded/client.ts';
import { usualBaseUrlOf } from '../shared/providers/registry.ts';
import { type ListedClip, laneMisfits } from './lane-misfits.ts';
import { priceOf, withProjections } from './lane-prices.ts';
import { openRelease, type ReleaseFiles } from './release-files.ts';
import { printable, warn } from './terminal.ts';
import { unpackedRelease } from './unpacked-release.ts';

/** A sweep that has been read and checked whole; nothing has been written or called yet. */
export interface PreparedRun {
  contract: RunContract;
  contractHash: string;
  run: string;
  settings: RunSettings;
  benchmark: Benchmark;
  release: ReleaseFiles;
  /** sha256 by release path of every clip that a calling lane needs; null where media are not verified. */
  media: ReadonlyMap<string, string> | null;
  /** Recording file inside the release, by lane. */
  recordings: ReadonlyMap<string, string>;
  plans: ReadonlyMap<string, LanePlan>;
  reviewCaches: readonly string[];
}

const microUsd = (usd: number): number => Math.round(usd * 1e6);

const endpoint = (entry: { provider: string; baseUrl?: string | undefined }): string | null =>
  entry.baseUrl?.replace(/\/+$/, '') ?? usualBaseUrlOf(entry.provider);

/** `release` counts from the sweep file's folder; from the working folder where it is not there. */
const releaseDirectory = (sweepPath: string, release: string): string => {
  const besideSweep = path.resolve(path.dirname(sweepPath), release);
  return existsSync(besideSweep) ? besideSweep : path.resolve(release);
};

/** What is unpacked lies here: every sweep of a data set uses it. */
const cacheDirectory = (): string =>
  process.env.TURNSWEEP_CACHE || path.join(homedir(), '.cache', 'turnsweep');

const progressEveryMs = 2_000;

/** Where the release is; a data set in another form is unpacked first, which can take minutes and is told. */
const releaseOf = async (
  { benchmark: { release, options } }: SweepFile,
  sweepPath: string,
  benchmark: Benchmark,
  limit: number | null,
): Promise<{ directory: string; isUnpacked: boolean }> => {
  const source = release.startsWith('s3://') ? release : releaseDirectory(sweepPath, release);
  const { kind, unpacking } = benchmark;
  if (unpacking === undefined) return { directory: source, isUnpacked: false };
  let toldMs = performance.now();
  const directory = await unpackedRelease({
    source,
    benchmark: { kind, unpacking },
    options,
    limit,
    cacheDirectory: cacheDirectory(),
    onProgress({ file, itemsDone, items, clips, clipBytes }) {
      const nowMs = performance.now();
      if (nowMs - toldMs < progressEveryMs) return;
      toldMs = nowMs;
      const mebibytes = Math.round(clipBytes / 2 ** 20);
      warn(printable(`unpacking ${file}: ${itemsDone} of ${items} items, ${clips} clips, ${mebibytes} MiB`));
    },
  });
  return { directory, isUnpacked: directory !== source };
};

/** Files inside the release that the sweep needs, with the key that names each; null for the benchmark's own. */
const namedFiles = (sweep: SweepFile, benchmark: Benchmark): { file: string; key: string | null }[] => [
  ...[...benchmark.inputFiles, ...benchmark.answerFiles].map((file) => ({ file, key: null })),
  ...(sweep.benchmark.manifest === undefined
    ? []
    : [{ file: sweep.benchmark.manifest, key: 'benchmark.manifest' }]),
  ...sweep.models.flatMap(({ recording }, index) =>
    recording === undefined ? [] : [{ file: recording, key: `models[${index}].recording` }],
  ),
  ...(sweep.judge?.reviewCache ?? []).map((file, index) => ({ file, key: `judge.reviewCache[${index}]` })),
];

/** An error about one file as one of several problems. */
const problemOf = (error: unknown, key: string | null): Problem => {
  if (!(error instanceof TurnsweepError) || error.where === undefined) throw error;
  const message = error.message.replace(` (${error.where})`, key === null ? '' : ` (${key})`);
  return { file: error.where, line: null, message };
};

/** Problems so far, in one throw; none, no throw. */
const throwProblems = (what: string, problems: readonly Problem[]): void => {
  if (problems.length > 0) throw new ProblemsFound(errorNames.benchmarkInvalid, what, problems);
};

/**
 * Reads and checks everything that a run depends on: benchmark, selection, media, recordings. Throws
 * `ProblemsFound` with every fault and its place.
 */
export const prepareRun = async (
  sweep: SweepFile,
  sweepPath: string,
  options: {
    limit: number | null;
    /** Whether providers can fetch clips from where the run will be; left out: not known yet. */
    givesUrls?: boolean;
  },
): Promise<PreparedRun> => {
  const benchmark = benchmarkOf(sweep.benchmark.kind);
  const { directory, isUnpacked } = await releaseOf(sweep, sweepPath, benchmark, options.limit);
  const release = await openRelease(directory);
  const problems: Problem[] = [];
  for (const { file, key } of namedFiles(sweep, benchmark)) {
    await release.locate(file).catch((error: unknown) => problems.push(problemOf(error, key)));
  }
  throwProblems('the release lacks files', problems);
  const inRelease = (problem: Problem): Problem => ({ ...problem, file: release.shown(problem.file) });

  const { options: benchmarkOptions } = sweep.benchmark;
  const prompts = await readPrompts(sweep, sweepPath, benchmark);
  const setting = { options: benchmarkOptions, prompts };
  // Apart, so that the answers need not stay in memory.
  const { inputs, answers, problems: faults } = await benchmark.read(release.lines, release.lines, setting);
  throwProblems('the benchmark has problems', faults.map(inRelease));
  const manifest =
    sweep.benchmark.manifest === undefined
      ? null
      : { file: sweep.benchmark.manifest, text: await release.text(sweep.benchmark.manifest) };
  const selection = benchmark.select(inputs, answers, { manifest, limit: options.limit });
  throwProblems('the selection has problems', selection.problems.map(inRelease));
  if (selection.taskIds.length === 0) {
    const message = 'holds no task; there is nothing to evaluate';
    throwProblems('the benchmark is empty', [
      inRelease({ file: benchmark.inputFiles[0]!, line: null, message }),
    ]);
  }

  const interfaces = sweep.interfaces ?? [...benchmark.interfaces];
  const plans = new Map<string, LanePlan>();
  const plansByModalities = new Map<string, LanePlan>();
  for (const [index, lane] of sweep.models.entries()) {
    const modalities = lane.modalities.toSorted().join('');
    const plan =
      plansByModalities.get(modalities) ??
      benchmark.planLane(inputs, {
        taskIds: selection.taskIds,
        interfaces,
        modalities: lane.modalities,
      });
    plansByModalities.set(modalities, plan);
    plans.set(lane.id, plan);
    if (plan.views.length === 0) {
      const given = lane.modalities.join(', ');
      const message = `models[${index}].modalities: no selected task is for ${given}; add a modality or leave lane "${lane.id}" out`;
      problems.push({ file: sweepPath, line: null, message });
    }
  }
  const { media, secondsByPath } = sweep.benchmark.verifyMedia
    ? await verifyMedia(sweep, benchmark, inputs, plans, { ...release, isUnpacked }, problems)
    : { media: null, secondsByPath: undefined };
  const listedClips = new Map<string, ListedClip>();
  for (const file of media?.keys() ?? []) {
    listedClips.set(file, {
      bytes: await release.bytes(file),
      seconds: secondsByPath?.get(file) ?? null,
    });
  }
  problems.push(
    ...laneMisfits(sweep, plans, benchmark, inputs, {
      mediaFacts: (file) => listedClips.get(file) ?? null,
      givesUrls: options.givesUrls,
    }).map((message) => ({ file: sweepPath, line: null, message })),
  );
  const recordings = new Map<string, string>();
  const recordingHashes = new Map<string, string>();
  const checked = new Set<string>();
  for (const { id, recording } of sweep.models) {
    if (recording === undefined) continue;
    recordings.set(id, recording);
    recordingHashes.set(id, await release.sha256(recording));
    if (!checked.has(recording)) {
      problems.push(...(await recordingProblems(release.shown(recording), release.lines(recording))));
    }
    checked.add(recording);
  }
  const reviewCaches = sweep.judge?.reviewCache ?? [];
  for (const file of reviewCaches) {
    problems.push(...(await benchmark.importReviews(release.shown(file), release.lines(file))).problems);
  }
  throwProblems('the sweep has problems', problems);

  const fileHashes: Record<string, string> = {};
  for (const file of [...benchmark.inputFiles, ...benchmark.answerFiles])
    fileHashes[file] = await release.sha256(file);
  const mediaSha256 = media === null ? null : sha256(canonicalJson(Object.fromEntries(media)));
  const shapingPrompts = benchmark.prompts.request(benchmarkOptions);
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
      ...(shapingPrompts.length === 0
        ? {}
        : {
            promptsSha256: Object.fromEntries(shapingPrompts.map((name) => [name, sha256(prompts[name]!)])),
          }),
    },
    lanes: sweep.models.map(
      (lane): LaneContract => ({
        id: lane.id,
        provider: lane.provider,
        model: lane.model,
        baseUrl: endpoint(lane),
        recordingSha256: recordingHashes.get(lane.id) ?? null,
        reply: lane.reply,
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
  const timeUtc = new Date().toISOString();
  const settings = await withProjections(settingsOf(sweep, run, selection.taskIds, prompts, timeUtc), {
    lanes: contract.lanes,
    plans,
    frozenRequest: (requestId) => benchmark.frozenRequest(inputs, requestId),
    media,
    secondsByPath,
    release,
    timeUtc,
  });
  return {
    contract,
    contractHash,
    run,
    settings,
    benchmark,
    release,
    media,
    recordings,
    plans,
    reviewCaches,
  };
};

/** The benchmark's texts by name: the sweep's own files, and the usual ones for the rest. */
const readPrompts = async (sweep: SweepFile, sweepPath: string, benchmark: Benchmark): Promise<Prompts> => {
  const replaced = sweep.benchmark.prompts;
  const names = [...benchmark.prompts.request(sweep.benchmark.options), ...benchmark.prompts.judge];
  const problems = Object.keys(replaced)
    .filter((name) => !names.includes(name))
    .map((name): Problem => {
      const remedy = names.length === 0 ? 'it has none' : `it has ${names.join(', ')}`;
      const message = `benchmark.prompts.${name}: no text of this benchmark under its options; ${remedy}`;
      return { file: sweepPath, line: null, message };
    });
  const prompts: Record<string, string> = {};
  for (const name of names) {
    const file =
      replaced[name] === undefined
        ? fileURLToPath(new URL(`../shared/benchmarks/${benchmark.kind}/prompts/${name}.md`, import.meta.url))
        : path.resolve(path.dirname(sweepPath), replaced[name]);
    const text = await onDisk('read the prompt', file, () => readFile(file, 'utf8'));
    if (text.trim() === '') {
      problems.push({ file: sweepPath, line: null, message: `benchmark.prompts.${name}: the file is empty` });
    }
    prompts[name] = text.trim();
  }
  throwProblems('the sweep has problems', problems);
  return prompts;
};

/** Hashes of the clips that calling lanes need, each compared with the release's manifest. */
const verifyMedia = async (
  sweep: SweepFile,
  benchmark: Benchmark,
  inputs: unknown,
  plans: ReadonlyMap<string, LanePlan>,
  release: ReleaseFiles & {
    /** The clips were named by their content when they were unpacked: reading them all again would tell nothing new. */
    isUnpacked: boolean;
  },
  problems: Problem[],
): Promise<{ media: ReadonlyMap<string, string>; secondsByPath?: ReadonlyMap<string, number> }> => {
  const wanted = new Set<string>();
  // Lanes with the same modalities have the same plan.
  for (const [plan, modalities] of new Map(
    sweep.models.map((lane) => [plans.get(lane.id)!, lane.modalities]),
  )) {
    const requestIds = new Set(plan.views.flatMap((view) => view.requestIds));
    for (const requestId of requestIds) {
      for (const message of benchmark.frozenRequest(inputs, requestId).messages) {
        if (message.role !== 'user') continue;
        for (const part of message.content) {
          if (part.type !== 'text' && modalities.includes(part.type === 'video' ? 'V' : 'A'))
            wanted.add(part.path);
        }
      }
    }
  }
  const media = new Map<string, string>();
  if (wanted.size === 0) return { media };
  const listFile = benchmark.mediaManifest;
  const list = await release.text(listFile).catch((error: unknown) => {
    problems.push(problemOf(error, null));
    return null;
  });
  if (list === null) return { media };
  const shownList = release.shown(listFile);
  const digests = benchmark.mediaDigests(shownList, list);
  problems.push(...digests.problems);
  for (const file of [...wanted].sort()) {
    const fault = (message: string) => problems.push({ file: release.shown(file), line: null, message });
    const expected = digests.sha256ByPath.get(file);
    if (expected === undefined) {
      fault(`media not listed in ${shownList}; add its digest, or put back the release's own list`);
      continue;
    }
    const found = await (release.isUnpacked
      ? release.locate(file).then(() => expected)
      : release.sha256(file)
    ).catch((error: unknown) => {
      problems.push(problemOf(error, 'media'));
      return null;
    });
    if (found === null) continue;
    if (found === expected) media.set(file, found);
    else
      fault(
        `media altered: its sha256 begins ${found.slice(0, 12)}, the list says ${expected.slice(0, 12)}; put back the original`,
      );
  }
  return { media, secondsByPath: digests.secondsByPath };
};

const settingsOf = (
  sweep: SweepFile,
  run: string,
  taskIds: string[],
  prompts: Prompts,
  timeUtc: string,
): RunSettings => ({
  v: 1,
  run,
  seed: sweep.seed,
  taskIds,
  options: sweep.benchmark.options,
  prompts,
  budgetMicroUsd: sweep.budget === undefined ? null : microUsd(sweep.budget.usd),
  lanes: sweep.models.map((lane) => ({
    id: lane.id,
    displayName: lane.displayName ?? lane.model,
    family: lane.family ?? null,
    apiKeyEnv: lane.apiKeyEnv ?? null,
    attempts: lane.attempts,
    maxInFlight: lane.maxInFlight,
    limits: lane.limits,
    deadlineSeconds: lane.deadlineSeconds,
    backoff: lane.backoff,
    price: priceOf({ ...lane, baseUrl: endpoint(lane) }, timeUtc).price,
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
          limits: sweep.judge.limits,
          deadlineSeconds: sweep.judge.deadlineSeconds,
          backoff: sweep.judge.backoff,
          price: priceOf({ ...sweep.judge, baseUrl: endpoint(sweep.judge) }, timeUtc).price,
          batch: sweep.judge.batch ? { poll: sweep.judge.batchPoll } : null,
        },
});
