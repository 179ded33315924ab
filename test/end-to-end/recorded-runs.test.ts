import { cpSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { referenceRelease, sweepFile, temporaryFolder, turnsweep } from '../support/command-line.ts';

const hasReference = existsSync(referenceRelease);
if (!hasReference)
  console.warn('the public release is not beside this checkout: recorded runs are not replayed');

const text = (...names: string[]): string => readFileSync(path.join(...names), 'utf8');
const json = (...names: string[]): unknown => JSON.parse(text(...names));
const rows = (...names: string[]): unknown[] =>
  text(...names)
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));

const recordedRuns = [
  { folder: 'current_validation/qwen3_vl', modalities: ['V'], requests: 20, views: 8 },
  { folder: 'current_validation/qwen38_api', modalities: ['V', 'A'], requests: 40, views: 16 },
  { folder: 'current_validation/stepaudio_api', modalities: ['A'], requests: 20, views: 8 },
  { folder: 'recorded_outputs/qwen38_api', modalities: ['V', 'A'], requests: 40, views: 16 },
];

/** A copy of the release with the run's own task selection as a manifest. */
const releaseWithSelection = (folder: string, recorded: (typeof recordedRuns)[number]): string => {
  const copy = path.join(folder, 'release');
  cpSync(referenceRelease, copy, { recursive: true });
  const contract = json(referenceRelease, 'examples', recorded.folder, 'run_contract.reduced.json') as {
    task_ids: string[];
  };
  writeFileSync(path.join(copy, 'data', 'selection.json'), JSON.stringify({ task_ids: contract.task_ids }));
  return copy;
};

const modelOf = (folder: string): string =>
  (rows(referenceRelease, 'examples', folder, 'predictions.jsonl')[0] as { model: string }).model;

const sweepOf = (release: string, recorded: (typeof recordedRuns)[number], extra: object = {}) => ({
  name: 'replay',
  benchmark: { kind: 'return', release, manifest: 'data/selection.json', verifyMedia: false },
  models: [
    {
      id: 'lane',
      provider: 'recorded',
      recording: `examples/${recorded.folder}/predictions.jsonl`,
      model: modelOf(recorded.folder),
      modalities: recorded.modalities,
    },
  ],
  ...extra,
});

/** A judge that must never be contacted: nothing listens there. */
const judgeWithCache = (folder: string) => ({
  judge: {
    provider: 'openai-compatible',
    model: 'gpt-5.6-sol',
    baseUrl: 'http://127.0.0.1:9/v1',
    reviewCache: [`examples/${folder}/review_cache.jsonl`],
  },
});

describe.runIf(hasReference)('a recorded run of the release', () => {
  it.each(recordedRuns)('$folder is scored and reported as the release has it', async (recorded) => {
    const folder = temporaryFolder();
    const out = path.join(folder, 'out');
    const release = path.join(referenceRelease, 'examples', recorded.folder);
    const sweep = sweepFile(
      folder,
      sweepOf(releaseWithSelection(folder, recorded), recorded, judgeWithCache(recorded.folder)),
    );

    const ran = await turnsweep(['run', sweep, '--out', out]);
    const exported = await turnsweep(['export', out, '--to', 'return-release']);

    expect(ran.stderr).toBe('');
    expect(ran.code).toBe(0);
    expect(exported.code).toBe(0);
    const ours = path.join(out, 'export', 'return-release', 'lane');
    expect(rows(ours, 'scoring/scored_records.jsonl')).toEqual(rows(release, 'scoring/scored_records.jsonl'));
    expect(rows(ours, 'report/paired_items.jsonl')).toEqual(rows(release, 'report/paired_items.jsonl'));
    expect(rows(ours, 'report/operation_pairs.jsonl')).toEqual(rows(release, 'report/operation_pairs.jsonl'));
    for (const file of ['scoring/summary.json', 'report/summary.json']) {
      if (existsSync(path.join(release, file))) expect(json(ours, file)).toEqual(json(release, file));
    }
    if (existsSync(path.join(release, 'report/groups.csv'))) {
      expect(text(ours, 'report/groups.csv')).toBe(
        text(release, 'report/groups.csv').replaceAll('\r\n', '\n'),
      );
    }
    const replies = (file: string) =>
      new Map(
        (rows(file) as { request_id: string; raw_text: string }[]).map((row) => [
          row.request_id,
          row.raw_text,
        ]),
      );
    const replayed = replies(path.join(ours, 'predictions.jsonl'));
    expect(replayed.size).toBe(recorded.requests);
    expect(replayed).toEqual(replies(path.join(release, 'predictions.jsonl')));
    const summary = json(out, 'report/summary.json') as {
      counts: { valid: number; views: number; calls: number; costMicroUsd: number };
    };
    expect(summary.counts).toMatchObject({
      valid: recorded.views,
      views: recorded.views,
      calls: recorded.requests,
      costMicroUsd: 0,
    });
    // Every verdict of the release's own judge came from the cache: none was asked for, none was paid.
    const verdicts = (
      rows(release, 'scoring/scored_records.jsonl') as { rule_correct: boolean | null }[]
    ).filter((row) => row.rule_correct === false);
    const { costs } = json(out, 'report/summary.json') as { costs: { phase: string }[] };
    expect(costs.find(({ phase }) => phase === 'judge')).toMatchObject({
      calls: 0,
      reused: verdicts.length,
      usd: 0,
    });
  });

  it('without a judge leaves reviews pending, and takes them from a cache later', async () => {
    const recorded = recordedRuns[0]!;
    const folder = temporaryFolder();
    const out = path.join(folder, 'out');
    const sweep = sweepFile(folder, sweepOf(releaseWithSelection(folder, recorded), recorded));
    const cache = path.join(referenceRelease, 'examples', recorded.folder, 'review_cache.jsonl');

    const ran = await turnsweep(['run', sweep, '--out', out]);
    const scored = await turnsweep(['score', out, '--review-cache', cache]);

    expect(ran.code).toBe(2);
    expect(ran.stdout).toContain('awaiting review');
    expect(scored.code).toBe(0);
    const release = rows(referenceRelease, 'examples', recorded.folder, 'report/paired_items.jsonl');
    expect(rows(out, 'report/lane/paired_items.jsonl')).toEqual(release);
  });

  it('with a reply missing from the recording excludes the view and never guesses', async () => {
    const recorded = recordedRuns[3]!;
    const folder = temporaryFolder();
    const sweep = sweepFile(folder, {
      ...sweepOf(referenceRelease, recorded),
      benchmark: {
        kind: 'return',
        release: referenceRelease,
        manifest: 'data/preview_manifest.json',
        verifyMedia: false,
      },
    });

    const ran = await turnsweep(['run', sweep, '--out', path.join(folder, 'out')]);

    expect(ran.code).toBe(2);
    const excluded = rows(folder, 'out/report/lane/excluded_items.jsonl') as { reason: string }[];
    const missing = excluded.filter((row) => row.reason.includes('recording_missing'));
    expect(missing.length).toBe(160 - 16);
    const summary = json(folder, 'out/plan/lane/summary.json') as { distinctRequests: number; views: number };
    expect(summary).toMatchObject({ distinctRequests: 490, views: 160 });
  });
});
