import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { prepareRun } from '../../cli/prepare-run.ts';
import { readSweepFile } from '../../cli/read-sweep.ts';
import { uploadRun } from '../../cli/upload-run.ts';
import { createLocalHome, mediaAliases, openRunFolder } from '../../local/home.ts';
import { createProgress } from '../../local/progress.ts';
import type { ScenarioInput } from '../../mock/scenario.ts';
import { startMockProvider } from '../../mock/server.ts';
import { createSeededRandom } from '../../shared/adapters/local/seeded-random.ts';
import { createSystemClock } from '../../shared/adapters/local/system-clock.ts';
import type { Clock } from '../../shared/ports/clock.ts';
import {
  type CommandResult,
  main,
  startCommand,
  sweepFile,
  temporaryFolder,
  turnsweep,
} from '../support/command-line.ts';
import { folderFingerprint } from '../support/folder-fingerprint.ts';
import { releaseOnDisk } from '../support/release-on-disk.ts';
import { resultFiles } from '../support/result-files.ts';
import { historiesSent, type SentBody } from '../support/sweep-under-test.ts';

/** Kills of the long run: 100 with TURNSWEEP_KILLS=100. TURNSWEEP_SEED repeats a run's draws. */
const kills = Number(process.env.TURNSWEEP_KILLS ?? 15);
const seed = Number(process.env.TURNSWEEP_SEED ?? 20_261_130);
console.info(`chaos: seed ${seed}, ${kills} kills`);

type Model = ScenarioInput['models'][string];
type Faults = NonNullable<Model['faults']>;

const lanes = ['first', 'second'];
const callsInFlight = 4;
const judgeCallsInFlight = 2;
/** The second lane's model says the same to everything; only a judge can tell what it is worth. */
const fixedReply = 'a hammer, or B';
const price = { inputPerMTok: 1, outputPerMTok: 2 };

/** Every way in which a call can fail and yet succeed later; together they meet a share of the attempts. */
const everyFault = (share: number): Faults => {
  const kinds = [
    ...['http_408', 'http_409', 'http_425', 'http_429', 'http_500', 'http_502', 'http_503', 'http_504'],
    ...['http_529', 'reset', 'hang', 'cut_stream', 'no_finish_reason', 'empty', 'bad_json', 'html_200'],
    ...['error_200', 'F-04', 'F-14', 'F-22', 'F-25', 'F-26', 'F-27', 'F-28', 'F-30', 'F-31', 'F-33'],
    ...['F-34', 'F-35', 'F-36', 'F-49'],
  ];
  // The first that fits is taken: 1 − (1 − rate) ^ kinds = share.
  const rate = 1 - (1 - share) ** (1 / kinds.length);
  return kinds.map((kind) => ({ kind, rate }));
};
/** Replies that are sound however odd they look. */
const oddReplies = (share: number): Faults =>
  ['F-23', 'F-29', 'F-42', 'F-43', 'F-48'].map((kind) => ({
    kind,
    rate: share / 5,
  }));
const judgeFaults = (share: number): Faults =>
  ['http_500', 'reset', 'rubbish', 'missing_id', 'bad_json', 'cut_stream', 'fenced'].map((kind) => ({
    kind,
    rate: share / 7,
  })) as Faults;

interface Scene {
  roots: number;
  latencyMs?: number;
  faultShare?: number;
  maxInFlight?: number;
}

/** A release, a fake provider, and a sweep of two lanes and a judge against it. */
const scene = async ({ roots, latencyMs = 0, faultShare = 0, maxInFlight = callsInFlight }: Scene) => {
  const folder = temporaryFolder();
  const release = releaseOnDisk(path.join(folder, 'release'), { roots, seed: 5 });
  const models = (share: number, latency: number): ScenarioInput => ({
    seed,
    models: {
      first: {
        reply: { echo: true },
        latencyMs: latency,
        faults: [...everyFault(share), ...oddReplies(share / 2)],
      },
      second: { reply: { text: fixedReply }, latencyMs: latency, faults: everyFault(share) },
      judge: { reply: { judge: 'aliases' }, latencyMs: latency, faults: judgeFaults(share) },
    },
  });
  const bodies: SentBody[] = [];
  const mock = await startMockProvider({
    scenario: models(faultShare, latencyMs),
    timeScale: 0.1,
    onRequest: (body) => bodies.push(JSON.parse(body)),
  });
  onTestFinished(() => mock.close());
  const common = {
    provider: 'openai-compatible',
    baseUrl: mock.url,
    attempts: 20,
    deadlineSeconds: faultShare > 0 ? 2 : 60,
    backoff: { baseSeconds: 0, maxSeconds: 0 },
    price,
  };
  const sweep = sweepFile(folder, {
    name: 'chaos',
    benchmark: { kind: 'return', release: release.directory },
    models: lanes.map((id) => ({
      ...common,
      id,
      model: id,
      family: 'Omni',
      modalities: ['V', 'A'],
      maxTokens: 64,
      maxInFlight,
    })),
    judge: { ...common, model: 'judge', itemsPerRequest: 5, maxInFlight: judgeCallsInFlight },
  });
  const out = (name: string) => path.join(folder, name);
  return {
    folder,
    release,
    sweep,
    mock,
    bodies,
    out,
    use: (share: number, latency: number) => mock.setScenario(models(share, latency)),
    run: (name: string, options: Parameters<typeof turnsweep>[1] = {}) =>
      turnsweep(['run', sweep, '--out', out(name)], options),
    start: (name: string, options: Parameters<typeof startCommand>[1] = {}) =>
      startCommand(['run', sweep, '--out', out(name)], options),
  };
};
type Chaos = Awaited<ReturnType<typeof scene>>;

/** An undisturbed run: its files, and how often each request is answered. */
const calmRun = async (chaos: Chaos, faultShare = 0, latencyMs = 0) => {
  chaos.use(0, 0);
  expect(await chaos.run('calm')).toMatchObject({ code: 0, stderr: '' });
  const replies = chaos.mock.stats().repliesByFingerprint;
  chaos.mock.reset();
  chaos.use(faultShare, latencyMs);
  return { files: resultFiles(chaos.out('calm')), replies };
};
type Calm = Awaited<ReturnType<typeof calmRun>>;

/** What a run concluded about the models, without what its calls have cost. */
const conclusions = (files: Record<string, string>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(files).filter(([name]) => !/report\/(costs\.csv|summary\.json|index\.html)$/.test(name)),
  );

const isEvaluated = (key: string): boolean => !key.startsWith('judge ');

/** Replies beyond those of the calm run, evaluated models and judge; what the calm run had must all be there. */
const answeredAgain = (chaos: Chaos, calm: Calm): { evaluated: number; judge: number } => {
  const again = { evaluated: 0, judge: 0 };
  const disturbed = chaos.mock.stats().repliesByFingerprint;
  expect(Object.keys(disturbed).filter(isEvaluated).sort()).toEqual(
    Object.keys(calm.replies).filter(isEvaluated).sort(),
  );
  for (const [key, count] of Object.entries(disturbed)) {
    const more = count - (calm.replies[key] ?? 0);
    if (isEvaluated(key)) expect(more, key).toBeGreaterThanOrEqual(0);
    again[isEvaluated(key) ? 'evaluated' : 'judge'] += more;
  }
  return again;
};

/** Every reply on record and in every history that was sent is one that a model gave. */
const expectOnlyReplies = async (chaos: Chaos, name: string): Promise<void> => {
  const lastTexts = chaos.release.rows.inputs.map((row) => {
    const last = row.messages.at(-1)!;
    const parts = last.role === 'user' ? last.content : [];
    return parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n');
  });
  const given = new Set([...lastTexts, fixedReply]);
  const target = path.join(chaos.folder, `${name}-exported`);
  const exported = await turnsweep(['export', chaos.out(name), '--to', 'return-release', '--out', target]);
  expect(exported).toMatchObject({ code: 0, stderr: '' });
  for (const lane of lanes) {
    const rows = readFileSync(path.join(target, lane, 'predictions.jsonl'), 'utf8')
      .trim()
      .split('\n');
    expect(rows.length).toBe(chaos.release.rows.inputs.length);
    for (const row of rows) {
      const { status, raw_text } = JSON.parse(row) as { status: string; raw_text: string };
      expect(status).toBe('ok');
      expect(given).toContain(raw_text);
    }
  }
  const sent = chaos.bodies.filter(({ model }) => model !== 'judge');
  for (const text of historiesSent(sent)) expect(given).toContain(text);
};

const until = (isReached: () => boolean) => vi.waitUntil(isReached, { interval: 2, timeout: 60_000 });
const errorLines = /^(error: [^\n]+\n)+$/;

describe('everything at once', () => {
  it(`${kills} kills and drains, every fault, every message twice and out of order end with the same results`, async () => {
    const share = 0.2;
    const chaos = await scene({ roots: Math.ceil(3 + kills / 5), faultShare: share, latencyMs: 60 });
    const calm = await calmRun(chaos, share, 60);
    const random = createSeededRandom(seed);
    // Kills are to come at every point of a start.
    const env = { TURNSWEEP_FAULT: 'deliver-twice,out-of-order', NODE_DISABLE_COMPILE_CACHE: '1' };

    const count = { killed: 0, drained: 0, endedFirst: 0 };
    while (count.killed < kills && count.endedFirst < kills) {
      const command = chaos.start('killed', { env });
      const signal = random.next() < 0.2 ? 'SIGTERM' : 'SIGKILL';
      const timer = setTimeout(() => command.kill(signal), 350 + random.next() * 900);
      const ended = await command.ended;
      clearTimeout(timer);
      if (ended.signal === 'SIGKILL') count.killed += 1;
      // Node has not yet taken the signal over where it comes while the program is loading.
      else if (ended.signal === 'SIGTERM' || ended.code === 130) count.drained += 1;
      else {
        expect(ended).toMatchObject({ code: 0, stderr: '' });
        count.endedFirst += 1;
      }
    }
    const last = await chaos.run('killed', { env });

    expect(last).toMatchObject({ code: 0, stderr: '' });
    expect(count.killed).toBe(kills);
    expect(conclusions(resultFiles(chaos.out('killed')))).toEqual(conclusions(calm.files));
    const again = answeredAgain(chaos, calm);
    console.info(`chaos: ${JSON.stringify({ ...count, again, faults: chaos.mock.stats().byFault })}`);
    expect(again.evaluated).toBeLessThanOrEqual(kills * lanes.length * callsInFlight);
    await expectOnlyReplies(chaos, 'killed');
  }, 600_000);

  it('without a kill nothing at all is answered twice', async () => {
    const share = 0.2;
    const chaos = await scene({ roots: 5, faultShare: share, latencyMs: 2 });
    const calm = await calmRun(chaos, share, 2);

    const ended = await chaos.run('faulty', { env: { TURNSWEEP_FAULT: 'deliver-twice,out-of-order' } });

    expect(ended).toMatchObject({ code: 0, stderr: '' });
    expect(conclusions(resultFiles(chaos.out('faulty')))).toEqual(conclusions(calm.files));
    const { byFault, requests, replies } = chaos.mock.stats();
    console.info(`chaos: ${requests} calls, ${replies} replies, ${JSON.stringify(byFault)}`);
    expect(Object.keys(byFault).length).toBeGreaterThan(25);
    expect(answeredAgain(chaos, calm).evaluated).toBe(0);
    await expectOnlyReplies(chaos, 'faulty');
  }, 120_000);
});

describe('messages twice and out of order', () => {
  it('change nothing, the cost included', async () => {
    const chaos = await scene({ roots: 4, latencyMs: 5 });
    const calm = await calmRun(chaos, 0, 5);

    const ended = await chaos.run('shuffled', { env: { TURNSWEEP_FAULT: 'out-of-order,deliver-twice' } });

    expect(ended).toMatchObject({ code: 0, stderr: '' });
    expect(resultFiles(chaos.out('shuffled'))).toEqual(calm.files);
    expect(chaos.mock.stats().repliesByFingerprint).toEqual(calm.replies);
    await expectOnlyReplies(chaos, 'shuffled');
  }, 120_000);
});

describe('a provider that hangs', () => {
  it('costs its own lane the deadlines and no other anything; asked again, all is as it would have been', async () => {
    const chaos = await scene({ roots: 1 });
    const calm = await calmRun(chaos);
    const text = readFileSync(chaos.sweep, 'utf8');
    const impatient = text
      .replaceAll('deadlineSeconds: 60', 'deadlineSeconds: 0.3')
      .replaceAll('attempts: 20', 'attempts: 2');
    writeFileSync(chaos.sweep, impatient);
    const hang: Faults = [{ kind: 'hang', firstAttempts: 999 }];
    const replies = { first: { echo: true as const }, second: { text: fixedReply } };
    chaos.mock.setScenario({
      models: {
        first: { reply: replies.first },
        second: { reply: replies.second, faults: hang },
        judge: { reply: { judge: 'aliases' } },
      },
    });

    const hung = await chaos.run('hung');

    expect(hung.code).toBe(2);
    expect(hung.stderr).toMatch(/^lane second .*: 16 views excluded \(.*timeout×\d+.*\n$/);
    const { byModel } = chaos.mock.stats();
    expect(byModel.second!.replies).toBe(0);
    const first = (files: Record<string, string>) =>
      Object.fromEntries(Object.entries(files).filter(([name]) => /(\/|^)first[./]/.test(name)));
    expect(first(conclusions(resultFiles(chaos.out('hung'))))).toEqual(first(conclusions(calm.files)));

    chaos.use(0, 0);
    const retried = await turnsweep(['run', chaos.sweep, '--out', chaos.out('hung'), '--retry-errors']);

    expect(retried).toMatchObject({ code: 0, stderr: '' });
    expect(conclusions(resultFiles(chaos.out('hung')))).toEqual(conclusions(calm.files));
    expect(answeredAgain(chaos, calm).evaluated).toBe(0);
    await expectOnlyReplies(chaos, 'hung');
  }, 120_000);
});

/** Files of lines and logs that a run reads, one of each kind: lanes have the same. */
const filesOfLines = (folder: string): string[] => {
  const kinds = new Map<string, string>();
  for (const file of Object.keys(folderFingerprint(folder))) {
    if (
      /^(report|scores)\/|\.(json|html|csv)$|\/$/.test(file) ||
      statSync(path.join(folder, file)).size === 0
    )
      continue;
    kinds.set(file.replace(/(lanes|plan|rule-scores)\/(first|second)/, '$1/*'), file);
  }
  return [...kinds.values()];
};

describe('a torn last line', () => {
  it('of any file of a run is made good or named; nothing that is whole is asked again', async () => {
    const chaos = await scene({ roots: 1 });
    const calm = await calmRun(chaos);
    const random = createSeededRandom(seed);
    // Half-way through, with files of every kind: the second lane is stopped by a key that is refused.
    chaos.mock.setScenario({
      models: {
        first: { reply: { echo: true } },
        second: {
          reply: { text: fixedReply },
          faults: [
            { kind: 'http_401', firstAttempts: 99, match: { lastText: 'Which colour' } },
            { kind: 'http_503', firstAttempts: 1, match: { lastText: 'Answer briefly' } },
          ],
        },
        judge: { reply: { judge: 'aliases' } },
      },
    });
    expect((await chaos.run('half')).code).toBe(2);
    chaos.use(0, 0);
    const repliesOfLanes = () =>
      lanes.reduce((sum, lane) => sum + (chaos.mock.stats().byModel[lane]?.replies ?? 0), 0);
    const left =
      Object.entries(calm.replies).reduce((sum, [key, count]) => sum + (isEvaluated(key) ? count : 0), 0) -
      repliesOfLanes();
    expect(left).toBeGreaterThan(0);
    const ends: Record<string, string> = {};
    for (const file of filesOfLines(chaos.out('half'))) {
      const torn = chaos.out('torn');
      rmSync(torn, { recursive: true, force: true });
      cpSync(chaos.out('half'), torn, { recursive: true });
      const target = path.join(torn, file);
      const whole = readFileSync(target);
      const lastLine = whole.length - (whole.lastIndexOf(10, whole.length - 2) + 1);
      truncateSync(target, whole.length - 1 - Math.floor(random.next() * (lastLine - 1)));
      chaos.mock.reset();

      const ended = await chaos.run('torn');

      if (ended.code === 1) {
        expect(ended.stderr, file).toMatch(errorLines);
        expect(ended.stderr, file).toContain(file);
        expect(chaos.mock.stats().byModel.first?.replies ?? 0, file).toBe(0);
        writeFileSync(target, whole);
        expect(await chaos.run('torn'), file).toMatchObject({ code: 0, stderr: '' });
        ends[file] = 'named';
      } else {
        expect(ended, file).toMatchObject({ code: 0, stderr: '' });
        ends[file] = 'made good';
      }
      expect(conclusions(resultFiles(torn)), file).toEqual(conclusions(calm.files));
      // At most the one record that was torn is asked for again.
      expect(repliesOfLanes(), file).toBeLessThanOrEqual(left + 1);
    }
    console.info(`torn: ${JSON.stringify(ends, null, 1)}`);
    expect(Object.keys(ends).length).toBeGreaterThan(5);
  }, 240_000);
});

describe('the disk', () => {
  const isRoot = process.getuid?.() === 0;

  it('fills up in the middle: the run says so, and ends as ever once there is room', async (context) => {
    const chaos = await scene({ roots: 3, latencyMs: 10 });
    const calm = await calmRun(chaos, 0, 10);
    const disk = chaos.out('disk');
    mkdirSync(disk);
    const mounted =
      isRoot && spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=16m', 'tmpfs', disk]).status === 0;
    if (!mounted) context.skip('this user may not mount a small disk');
    onTestFinished(() => void spawnSync('umount', [disk]));
    const random = createSeededRandom(seed);
    const filler = path.join(disk, '.filler');

    let full = 0;
    for (let round = 0; round < 3; round += 1) {
      const running = chaos.start('disk/out');
      const askedAt = chaos.mock.stats().requests + 5 + Math.floor(random.next() * 40);
      let isOver = false;
      void running.ended.then(() => (isOver = true));
      await until(() => isOver || chaos.mock.stats().requests >= askedAt);
      // Everything that is left, and all that the run frees while it goes on.
      for (let chunk = 65_536; chunk > 0; chunk = Math.floor(chunk / 4)) {
        for (;;) {
          try {
            writeFileSync(filler, Buffer.alloc(chunk), { flag: 'a' });
          } catch {
            break;
          }
        }
      }
      const ended = await running.ended;
      rmSync(filler, { force: true });
      if (ended.code === 0) continue;
      full += 1;
      expect(ended.code).toBe(1);
      expect(ended.stderr).toMatch(/^error: .*(ENOSPC|disk).*; free disk space[^\n]*\n$/);
    }
    expect(full).toBeGreaterThan(0);
    const resumed = await chaos.run('disk/out');

    expect(resumed).toMatchObject({ code: 0, stderr: '' });
    expect(resultFiles(chaos.out('disk/out'))).toEqual(calm.files);
    const again = answeredAgain(chaos, calm);
    console.info(`full disk: ${full} times, answered again ${JSON.stringify(again)}`);
    // Four messages a lane are at work beside its calls: their replies are on the way to the disk.
    expect(again.evaluated).toBeLessThanOrEqual(2 * full * lanes.length * callsInFlight);
    await expectOnlyReplies(chaos, 'disk/out');
  }, 120_000);

  it('becomes read-only in the middle: the run says so, and ends as ever once it may write', async (context) => {
    const nobody = isRoot ? { uid: 65_534, gid: 65_534 } : {};
    const canRun = spawnSync(process.execPath, [main, '--help'], nobody).status === 0;
    if (!canRun) context.skip('another user cannot read this checkout');
    const chaos = await scene({ roots: 3, latencyMs: 10 });
    chmodSync(chaos.folder, 0o777);
    const calm = await calmRun(chaos, 0, 10);
    const setMode = (folder: string, mode: number) => {
      chmodSync(folder, mode);
      for (const entry of readdirSync(folder, { withFileTypes: true })) {
        const inner = path.join(folder, entry.name);
        if (entry.isDirectory()) setMode(inner, mode);
      }
    };
    const out = chaos.out('locked');
    const running = chaos.start('locked', nobody);
    await until(() => chaos.mock.stats().requests > 20);
    setMode(out, 0o555);

    const ended = await running.ended;
    const before = folderFingerprint(out);
    const refused = await chaos.start('locked', nobody).ended;

    for (const { code, stderr } of [ended, refused]) {
      expect(code).toBe(1);
      expect(stderr).toMatch(/^error: .*EACCES.*check permissions of [^\n]*\n$/);
    }
    expect(folderFingerprint(out)).toEqual(before);
    setMode(out, 0o755);
    const resumed = await chaos.start('locked', nobody).ended;
    expect(resumed).toMatchObject({ code: 0, stderr: '' });
    expect(resultFiles(out)).toEqual(calm.files);
    const again = answeredAgain(chaos, calm);
    expect(again.evaluated).toBeLessThanOrEqual(lanes.length * callsInFlight);
    await expectOnlyReplies(chaos, 'locked');
  }, 120_000);
});

describe('several processes on one folder', () => {
  it('one works, the others are refused by name; after it, the next finds all done', async () => {
    const chaos = await scene({ roots: 2, latencyMs: 40 });
    const calm = await calmRun(chaos, 0, 40);

    const started = Array.from({ length: 4 }, () => chaos.start('one'));
    const ended = await Promise.all(started.map((command) => command.ended));

    const worked = ended.filter(({ code }) => code === 0);
    expect(worked).toHaveLength(1);
    const owner = started[ended.findIndex(({ code }) => code === 0)]!.pid;
    const isRefusal = (result: CommandResult) =>
      result.code === 1 &&
      new RegExp(`^error: process ${owner} on .* is at work in this folder`).test(result.stderr);
    expect(ended.filter(isRefusal)).toHaveLength(3);
    expect(resultFiles(chaos.out('one'))).toEqual(calm.files);
    expect(chaos.mock.stats().repliesByFingerprint).toEqual(calm.replies);
    expect((await chaos.run('one')).stdout).toContain('  0 calls');
    await expectOnlyReplies(chaos, 'one');
  }, 120_000);
});

/** Where a package manager puts the library that lies to a process about the time. */
const libfaketime = ['x86_64', 'aarch64']
  .flatMap((machine) => [`/usr/lib/${machine}-linux-gnu/faketime/libfaketime.so.1`])
  .find(existsSync);

describe('a clock that jumps', () => {
  const hoursMs = 3_600_000;

  it('forwards and backwards by hours, again and again, changes neither calls nor results', async () => {
    const share = 0.2;
    const chaos = await scene({ roots: 2, faultShare: share, latencyMs: 5 });
    const calm = await calmRun(chaos, share, 5);
    const random = createSeededRandom(seed);
    const system = createSystemClock();
    let [offMs, jumps] = [0, 0];
    const clock: Clock = {
      ...system,
      now: () => {
        if (random.next() < 0.2) {
          offMs = Math.round((random.next() - 0.5) * 48) * hoursMs;
          jumps += 1;
        }
        return system.now() + offMs;
      },
    };
    const directory = chaos.out('jumping');
    mkdirSync(directory);
    const prepared = await prepareRun(await readSweepFile(chaos.sweep), chaos.sweep, { limit: null });
    const store = openRunFolder(directory, prepared.run, {
      media: mediaAliases(prepared.release.directory, prepared.media!),
    });
    await uploadRun(store, prepared);
    const progress = createProgress(
      lanes.map((lane) => ({ lane, total: 32, done: 0, excluded: 0, openViews: new Set() })),
    );
    const home = await createLocalHome({
      store,
      directory,
      run: prepared.run,
      progress,
      clock,
      deliverTwice: true,
      outOfOrder: true,
    });
    try {
      await home.sweep({ retryErrors: false });
    } finally {
      await home.close();
    }

    expect(progress.recentFaults()).toEqual([]);
    expect(jumps).toBeGreaterThan(50);
    expect(conclusions(resultFiles(directory))).toEqual(conclusions(calm.files));
    expect(answeredAgain(chaos, calm).evaluated).toBe(0);
    await expectOnlyReplies(chaos, 'jumping');
  }, 120_000);

  it.runIf(libfaketime !== undefined)(
    'under the whole process is not noticed either (needs libfaketime)',
    async () => {
      const chaos = await scene({ roots: 3, faultShare: 0.1, latencyMs: 20 });
      const calm = await calmRun(chaos, 0.1, 20);
      const random = createSeededRandom(seed);
      const offsets = path.join(chaos.folder, 'offset');
      writeFileSync(offsets, '+0');
      const running = chaos.start('jumping', {
        env: {
          LD_PRELOAD: libfaketime!,
          FAKETIME_TIMESTAMP_FILE: offsets,
          FAKETIME_NO_CACHE: '1',
          FAKETIME_DONT_FAKE_MONOTONIC: '1',
          TURNSWEEP_FAULT: 'deliver-twice,out-of-order',
        },
      });
      const jumping = setInterval(() => {
        const hours = Math.round((random.next() - 0.5) * 48);
        writeFileSync(offsets, `${hours < 0 ? '-' : '+'}${Math.abs(hours)}h`);
      }, 50);
      const ended = await running.ended;
      clearInterval(jumping);

      expect(ended).toMatchObject({ code: 0, stderr: '' });
      expect(conclusions(resultFiles(chaos.out('jumping')))).toEqual(conclusions(calm.files));
      expect(answeredAgain(chaos, calm).evaluated).toBe(0);
      await expectOnlyReplies(chaos, 'jumping');
    },
    120_000,
  );
});
