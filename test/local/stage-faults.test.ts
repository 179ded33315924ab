import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { prepareRun } from '../../cli/prepare-run.ts';
import { readSweepFile } from '../../cli/read-sweep.ts';
import { uploadRun } from '../../cli/upload-run.ts';
import { createLocalHome, mediaAliases, openRunFolder } from '../../local/home.ts';
import { createProgress, type StageFault } from '../../local/progress.ts';
import { startMockProvider } from '../../mock/server.ts';
import type { FailureRecord } from '../../shared/contracts/records.ts';
import { sweepFile, temporaryFolder } from '../support/command-line.ts';
import { fastClock } from '../support/fault-run.ts';
import { documentsIn } from '../support/packed-records.ts';
import { releaseOnDisk } from '../support/release-on-disk.ts';

/** One view a lane: a single turn, and a history of two requests. */
const task = 'root-002-short-preserve';

/** A lane `broken`, in which every call that is answered throws as often as told, beside a sound one. */
const runWithFaults = async (times: number) => {
  const folder = temporaryFolder();
  const release = releaseOnDisk(path.join(folder, 'release'), { roots: 2 });
  const mock = await startMockProvider({ scenario: { models: { '*': { reply: { text: 'hammer' } } } } });
  onTestFinished(() => mock.close());
  const lane = { provider: 'openai-compatible', model: 'm', baseUrl: mock.url, modalities: ['V', 'A'] };
  const file = sweepFile(folder, {
    name: 'throwing',
    benchmark: { kind: 'return', release: release.directory, manifest: 'manifest.json' },
    interfaces: ['openqa'],
    models: ['broken', 'sound'].map((id) => ({ ...lane, id, settings: { stream: false } })),
  });
  writeFileSync(path.join(release.directory, 'manifest.json'), JSON.stringify({ task_ids: [task] }));
  const directory = path.join(folder, 'out');
  mkdirSync(directory);
  const prepared = await prepareRun(await readSweepFile(file), file, { limit: null });
  const store = openRunFolder(directory, prepared.run, {
    media: mediaAliases(prepared.release.directory, prepared.media!),
  });
  await uploadRun(store, prepared);
  const progress = createProgress(
    ['broken', 'sound'].map((id) => ({ lane: id, total: 1, done: 0, excluded: 0, openViews: new Set() })),
  );
  const faults: StageFault[] = [];
  progress.onFault((fault) => faults.push(fault));
  let thrown = 0;
  const home = await createLocalHome({
    store,
    directory,
    run: prepared.run,
    clock: fastClock(400),
    progress: {
      ...progress,
      call: (event) => {
        if (event.lane === 'broken' && thrown < times) {
          thrown += 1;
          throw new TypeError('nothing has no members');
        }
        progress.call(event);
      },
    },
  });
  try {
    const summary = await home.sweep({ retryErrors: false });
    const view = (id: string) =>
      JSON.parse(readFileSync(path.join(directory, 'lanes', id, 'views.jsonl'), 'utf8'));
    const failures = documentsIn<FailureRecord>(path.join(directory, 'lanes', 'broken', 'failures'));
    return { summary, faults, view, failures };
  } finally {
    await home.close();
  }
};

it('an exception of a stage is told with the time of the next try, and costs the run nothing once it passes', async () => {
  const { faults, view, failures } = await runWithFaults(3);

  expect(faults).toMatchObject(
    [1, 2, 4].map((againSeconds, index) => ({ stage: 'generate-turns', tries: index + 1, againSeconds })),
  );
  expect(faults.map(({ error }) => error)).toEqual(Array(3).fill(new TypeError('nothing has no members')));
  expect([view('broken').outcome, view('sound').outcome]).toEqual(['done', 'done']);
  expect(failures).toEqual([]);
});

it('an exception that does not pass ends its view after the last try; the other lanes complete', async () => {
  const { summary, faults, view, failures } = await runWithFaults(Number.POSITIVE_INFINITY);

  // The single turn and the first turn of the history; what comes after that needs its reply.
  const perRequest = [1, 2, 4, 8, 16, 32, 60, null];
  expect(faults.map(({ againSeconds }) => againSeconds)).toEqual([...perRequest, ...perRequest]);
  expect(view('broken')).toMatchObject({ outcome: 'excluded', reason: 'worker_lost' });
  expect(view('sound').outcome).toBe('done');
  expect(summary).toMatchObject({ views: 2, excluded: 1 });
  expect(failures.map(({ message }) => message)).toContain('MessagePoisoned: nothing has no members');
});
