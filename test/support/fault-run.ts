import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parse } from 'csv-parse/sync';
import { prepareRun } from '../../cli/prepare-run.ts';
import { readSweepFile } from '../../cli/read-sweep.ts';
import { uploadRun } from '../../cli/upload-run.ts';
import { createLocalHome, mediaAliases, openRunFolder } from '../../local/home.ts';
import { createProgress, type LaneRate } from '../../local/progress.ts';
import type { LoggedRequest } from '../../mock/control.ts';
import type { ProviderName } from '../../mock/dialects/dialect.ts';
import { startMockProvider } from '../../mock/server.ts';
import { createSystemClock } from '../../shared/adapters/local/system-clock.ts';
import type { AttemptLog, FailureRecord, RequestRecord, ViewRow } from '../../shared/contracts/records.ts';
import type { Clock } from '../../shared/ports/clock.ts';
import { sweepFile } from './command-line.ts';
import { ffmpeg } from './media-files.ts';
import { documentsIn } from './packed-records.ts';
import { buildRelease } from './return-release-builder.ts';

/** A second of the run takes so many real ones. Deadlines of calls stay real. */
const runSpeed = 40;
/** A second of the fake provider's waiting takes so many real ones unless a lane says otherwise. */
const usualTimeScale = 0.02;

/** A clock on which waits of minutes are over in seconds: its seconds are so many times as short. */
export const fastClock = (speed = runSpeed): Clock => {
  const system = createSystemClock();
  const startedMs = system.now();
  return {
    now: () => startedMs + Math.round((system.now() - startedMs) * speed),
    monotonic: () => system.monotonic() * speed,
    sleep: (ms, signal) => system.sleep(ms / speed, signal),
  };
};

const usualAttempts = 3;

/** One view of two turns with a recording and a film each, and its single turn: three requests. */
const task = 'root-002-short-preserve';
const prefix = 'root-002::task::short';
export const requestIds = {
  single: `${prefix}::C::openqa`,
  /** The first turn of the history: meets the fault. */
  first: `${prefix}::preserve::openqa::N0`,
  last: `${prefix}::preserve::openqa::H0`,
};

/** A release whose clips are real media of a second, so that they can be prepared. */
export const releaseWithRealClips = (): string => {
  const folder = mkdtempSync(path.join(tmpdir(), 'turnsweep-'));
  const directory = path.join(folder, 'release');
  const [film, sound] = [path.join(folder, 'film.mp4'), path.join(folder, 'sound.wav')];
  ffmpeg('-f', 'lavfi', '-i', 'testsrc=duration=1:size=64x64:rate=4', '-pix_fmt', 'yuv420p', film);
  ffmpeg('-f', 'lavfi', '-i', 'sine=frequency=440:duration=1', '-ar', '16000', '-ac', '1', sound);
  const clips = { mp4: readFileSync(film), wav: readFileSync(sound) };
  const release = buildRelease({ roots: 2 });
  const write = (file: string, content: string | Buffer) => {
    mkdirSync(path.dirname(path.join(directory, file)), { recursive: true });
    writeFileSync(path.join(directory, file), content);
  };
  for (const [file, content] of Object.entries(release.files)) write(file, content);
  const digests = release.mediaPaths.map((file) => {
    const bytes = clips[file.endsWith('.mp4') ? 'mp4' : 'wav'];
    write(file, bytes);
    return `${createHash('sha256').update(bytes).digest('hex')}  ${file}`;
  });
  write('data/media_sha256.txt', `${digests.join('\n')}\n`);
  write('manifest.json', JSON.stringify({ task_ids: [task] }));
  return folder;
};

export interface FaultLane {
  id: string;
  /** What the provider does with the lane's requests, in order; then all is well. */
  queue: readonly string[];
  model: string;
  modalities: readonly ('V' | 'A')[];
  timeScale?: number;
  /** Anything else of the lane in a sweep file. */
  more?: Record<string, unknown>;
}

export interface LaneEnd {
  /** Calls that the provider received, in order. */
  calls: LoggedRequest[];
  records: ReadonlyMap<string, RequestRecord>;
  failures: ReadonlyMap<string, FailureRecord>;
  /** Attempts of requests without a reply, by request. */
  attempts: ReadonlyMap<string, AttemptLog>;
  view: ViewRow;
  /** Seconds that the run waited before each further attempt. */
  waits: number[];
  /** What the lane's stop says; null where it went on. */
  stopped: { kind: string; message: string } | null;
  cost: Record<string, string>;
  rate: LaneRate | null;
}

const documents = <Document extends { requestId: string }>(directory: string): Map<string, Document> =>
  new Map(documentsIn<Document>(directory).map((document) => [document.requestId, document]));

/**
 * One run of the embedded home against one strict fake provider for each lane, so that every lane meets its own
 * outcomes. The clips are made once for all runs of a release's folder.
 */
export const runLanes = async (
  folder: string,
  name: string,
  provider: ProviderName,
  lanes: readonly FaultLane[],
): Promise<{ lanes: ReadonlyMap<string, LaneEnd>; files: string }> => {
  const servers = new Map<string, Awaited<ReturnType<typeof startMockProvider>>>();
  for (const { id, queue, timeScale = usualTimeScale } of lanes) {
    const server = await startMockProvider({ provider, timeScale });
    server.control({ provider, queue: [...queue] });
    servers.set(id, server);
  }
  try {
    const file = sweepFile(
      folder,
      {
        name,
        benchmark: { kind: 'return', release: path.join(folder, 'release'), manifest: 'manifest.json' },
        interfaces: ['openqa'],
        models: lanes.map(({ id, model, modalities, more }) => ({
          id,
          provider,
          model,
          modalities,
          baseUrl: servers.get(id)!.url,
          maxTokens: 64,
          maxInFlight: 1,
          attempts: usualAttempts,
          backoff: { baseSeconds: 0, maxSeconds: 0 },
          price: { inputPerMTok: 1, outputPerMTok: 2 },
          ...more,
        })),
      },
      `${name}.yaml`,
    );
    const directory = path.join(folder, name);
    mkdirSync(directory);
    const prepared = await prepareRun(await readSweepFile(file), file, { limit: null });
    const store = openRunFolder(directory, prepared.run, {
      derivedDirectory: path.join(folder, 'derived'),
      media: mediaAliases(prepared.release.directory, prepared.media!),
    });
    await uploadRun(store, prepared);
    const progress = createProgress(
      lanes.map(({ id }) => ({ lane: id, total: 1, done: 0, excluded: 0, openViews: new Set() })),
    );
    const waits = new Map<string, number[]>(lanes.map(({ id }) => [id, []]));
    const attemptsOf = (lane: string) => prepared.settings.lanes.find(({ id }) => id === lane)!.attempts;
    const home = await createLocalHome({
      store,
      directory,
      run: prepared.run,
      clock: fastClock(),
      progress: {
        ...progress,
        turns: (lane, viewId, outcome) => {
          // Without a kind no call was made: the gate asked to come back later. After the last attempt nobody waits.
          const { status, kind, attempt, waitSeconds } = outcome;
          if (status === 'retry' && kind !== null && attempt < attemptsOf(lane))
            waits.get(lane)!.push(waitSeconds);
          progress.turns(lane, viewId, outcome);
        },
      },
    });
    try {
      await home.sweep({ retryErrors: false });
      if (progress.recentFaults().length > 0) throw new Error(progress.recentFaults().join('\n'));
    } finally {
      await home.close();
    }
    const costs: Record<string, string>[] = parse(
      readFileSync(path.join(directory, 'report', 'costs.csv'), 'utf8'),
      { columns: true },
    );
    const rates = new Map(progress.snapshot().lanes.map(({ lane, rate }) => [lane, rate]));
    const ends = lanes.map(({ id }): [string, LaneEnd] => {
      const lane = path.join(directory, 'lanes', id);
      const stopped = path.join(lane, 'stopped.json');
      return [
        id,
        {
          calls: servers.get(id)!.log(),
          records: documents(path.join(lane, 'requests')),
          failures: documents(path.join(lane, 'failures')),
          attempts: documents(path.join(lane, 'attempts')),
          view: JSON.parse(readFileSync(path.join(lane, 'views.jsonl'), 'utf8')),
          waits: waits.get(id)!,
          stopped: existsSync(stopped) ? JSON.parse(readFileSync(stopped, 'utf8')) : null,
          cost: costs.find((row) => row.lane === id && row.phase === 'generate')!,
          rate: rates.get(id) ?? null,
        },
      ];
    });
    return { lanes: new Map(ends), files: directory };
  } finally {
    for (const server of servers.values()) await server.close();
  }
};
