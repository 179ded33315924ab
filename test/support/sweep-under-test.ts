import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parse } from 'csv-parse/sync';
import { onTestFinished } from 'vitest';
import type { ScenarioInput } from '../../mock/scenario.ts';
import { startMockProvider } from '../../mock/server.ts';
import type { ExcludedItem } from '../../shared/benchmarks/return/aggregate.ts';
import type { ScoredRecord } from '../../shared/benchmarks/return/scored-record.ts';
import type { AttemptLog, FailureRecord, RequestRecord, ViewRow } from '../../shared/contracts/records.ts';
import { callsOut } from '../../shared/domain/reply-source.ts';
import { startCommand, sweepFile, temporaryFolder, turnsweep } from './command-line.ts';
import { documentsIn } from './packed-records.ts';
import { releaseOnDisk } from './release-on-disk.ts';

type Models = ScenarioInput['models'];
type Json = Record<string, unknown>;

/** A chat request as the provider received it. */
export interface SentBody {
  model: string;
  max_tokens: number;
  messages: { role: string; content: string | { type: string; text?: string }[] }[];
}

export const modalitiesAndFamily = { modalities: ['V', 'A'], family: 'Omni' };
export const noBackoff = { baseSeconds: 0, maxSeconds: 0 };

const readLines = <Row>(file: string): Row[] =>
  readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));

/**
 * A generated release, a fake provider over HTTP, and the command line as a process: everything that one
 * sweep needs, and what it left behind read back from its files. Lanes and judge need only what differs.
 */
export const sweepUnderTest = async (options: {
  roots?: number;
  seed?: number;
  /** Only these tasks, by the ends of their ids. */
  tasks?: readonly string[];
  interfaces?: readonly string[];
  models: Models;
  lanes: readonly Json[];
  judge?: Json;
  budgetUsd?: number;
  /** Rows `lastText`, `reply` of the table `replies.jsonl` that the models may name. */
  replies?: (release: ReturnType<typeof releaseOnDisk>) => readonly Json[];
}) => {
  const folder = temporaryFolder();
  const release = releaseOnDisk(path.join(folder, 'release'), {
    roots: options.roots ?? 1,
    seed: options.seed ?? 1,
  });
  const table = path.join(folder, 'replies.jsonl');
  writeFileSync(table, (options.replies?.(release) ?? []).map((row) => `${JSON.stringify(row)}\n`).join(''));
  const manifest = 'manifest.json';
  const taskIds = release.taskIds.filter((id) => options.tasks?.some((end) => id.endsWith(end)) ?? true);
  writeFileSync(path.join(release.directory, manifest), JSON.stringify({ task_ids: taskIds }));

  const bodies: SentBody[] = [];
  const withTable = (models: Models): Models =>
    Object.fromEntries(
      Object.entries(models).map(([name, model]) => [
        name,
        'table' in model.reply ? { ...model, reply: { ...model.reply, table } } : model,
      ]),
    );
  const mock = await startMockProvider({
    scenario: { models: withTable(options.models) },
    onRequest: (body) => bodies.push(JSON.parse(body)),
  });
  onTestFinished(() => mock.close());

  const out = path.join(folder, 'out');
  const write = (changes: { budgetUsd?: number; judge?: Json; name?: string } = {}) => {
    const budgetUsd = changes.budgetUsd ?? options.budgetUsd;
    const judge = changes.judge ?? options.judge;
    return sweepFile(
      folder,
      {
        name: 'faulty',
        benchmark: { kind: 'return', release: release.directory, manifest },
        ...(options.interfaces && { interfaces: options.interfaces }),
        models: options.lanes.map((lane) => ({
          ...modalitiesAndFamily,
          model: lane.id,
          ...(callsOut(String(lane.provider)) && { provider: 'openai-compatible', baseUrl: mock.url }),
          maxTokens: 64,
          maxInFlight: 3,
          backoff: noBackoff,
          ...lane,
        })),
        ...(judge && {
          judge: {
            provider: 'openai-compatible',
            model: 'judge',
            baseUrl: mock.url,
            maxInFlight: 2,
            backoff: noBackoff,
            ...judge,
          },
        }),
        ...(budgetUsd !== undefined && { budget: { usd: budgetUsd } }),
      },
      changes.name,
    );
  };
  let sweep = write();

  const inLane = (lane: string, ...names: string[]) => path.join(out, 'lanes', lane, ...names);
  return {
    folder,
    out,
    release,
    mock,
    /** Every body that the provider received, also those that it answered with a fault. */
    bodies,
    /** Ids of all requests that a lane with this many channels needs; each is one call. */
    requestIds: release.rows.inputs.map((row) => row.request_id),
    setModels: (models: Models) => mock.setScenario({ models: withTable(models) }),
    change: (changes: Parameters<typeof write>[0]) => {
      sweep = write(changes);
    },
    run: (...args: string[]) => turnsweep(['run', sweep, '--out', out, ...args]),
    start: (...args: string[]) => startCommand(['run', sweep, '--out', out, ...args]),
    judge: () => turnsweep(['judge', out]),
    records: (lane: string) => documentsIn<RequestRecord>(inLane(lane, 'requests')),
    failures: (lane: string) => documentsIn<FailureRecord>(inLane(lane, 'failures')),
    attempts: (lane: string) => documentsIn<AttemptLog>(inLane(lane, 'attempts')),
    views: (lane: string) => readLines<ViewRow>(inLane(lane, 'views.jsonl')),
    scores: (lane: string) => readLines<ScoredRecord>(path.join(out, 'scores', `${lane}.jsonl`)),
    excluded: (lane: string) =>
      readLines<ExcludedItem>(path.join(out, 'report', lane, 'excluded_items.jsonl')),
    costs: (): Record<string, string>[] =>
      parse(readFileSync(path.join(out, 'report', 'costs.csv')), { columns: true }),
    summary: () => JSON.parse(readFileSync(path.join(out, 'report', 'summary.json'), 'utf8')),
  };
};

export type SweepUnderTest = Awaited<ReturnType<typeof sweepUnderTest>>;

/** How often each distinct request of a model was asked, ascending. */
export const timesAsked = (sweep: SweepUnderTest, model: string): number[] =>
  Object.entries(sweep.mock.stats().requestsByFingerprint)
    .filter(([key]) => key.startsWith(`${model} `))
    .map(([, count]) => count)
    .sort((a, b) => a - b);

/** Everything that stands as an assistant turn in what a provider received. */
export const historiesSent = (bodies: readonly SentBody[]): Set<string> =>
  new Set(
    bodies.flatMap(({ messages }) =>
      messages.filter(({ role }) => role === 'assistant').map(({ content }) => content as string),
    ),
  );
