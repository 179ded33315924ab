import { describe, expect, it } from 'vitest';
import { createPlanSweep } from '../../functions/plan-sweep/plan-sweep.ts';
import { createFileObjectStore } from '../../shared/adapters/local/file-object-store.ts';
import { scopeObjectStore } from '../../shared/adapters/local/scoped-object-store.ts';
import type { Benchmark } from '../../shared/benchmarks/benchmark.ts';
import { type ClipToPrepare, clipToPrepare } from '../../shared/contracts/media.ts';
import { asTheyAre, type ClipForms, recipeId } from '../../shared/domain/media.ts';
import type { Channel } from '../../shared/domain/request.ts';
import { keys } from '../../shared/keys.ts';
import { scopes } from '../../shared/scopes.ts';
import { temporaryFolder } from '../support/command-line.ts';

const run = 'demo-0123456789ab';
const contents = { 'a.mp4': '1', 'b.mp4': '2', 'a.wav': '3' } as const;
const hashOf = (file: keyof typeof contents) => contents[file].repeat(64);

/** One view with one earlier turn: `a` with sound in the last turn, `b` alone before. */
const benchmark = {
  kind: 'fake',
  read: async () => ({ inputs: {}, answers: null, problems: [] }),
  planLane: () => ({
    taskIds: ['t'],
    groups: [{ groupId: 'g', viewIds: ['v'] }],
    views: [
      {
        viewId: 'v',
        taskId: 't',
        interface: 'i',
        targetRequestIds: ['single', 'multi'],
        requestIds: ['single', 'earlier', 'multi'],
      },
    ],
  }),
  frozenRequest: (_: unknown, requestId: string) => {
    const last = {
      role: 'user',
      content: [
        { type: 'video', path: 'a.mp4' },
        { type: 'audio', path: 'a.wav' },
        { type: 'text', text: 'What?' },
      ],
    };
    const earlier = { role: 'user', content: [{ type: 'video', path: 'b.mp4' }] };
    const bound = { role: 'assistant', replyOf: 'earlier' };
    const messages = { single: [last], earlier: [earlier], multi: [earlier, bound, last] }[requestId];
    return { requestId, messages };
  },
} as unknown as Benchmark;

const laneContract = (id: string, modalities: Channel[]) => ({
  id,
  provider: 'p',
  model: 'm',
  baseUrl: null,
  recordingSha256: null,
  modalities,
  maxTokens: 10,
  retryMaxTokens: null,
  settings: {},
});
const laneSettings = (id: string) => ({
  id,
  displayName: id,
  family: null,
  apiKeyEnv: null,
  attempts: 2,
  maxInFlight: 1,
  deadlineSeconds: 60,
  backoff: { baseSeconds: 0, maxSeconds: 0 },
  price: null,
  budgetMicroUsd: null,
});

/** The planner over a stored run whose lanes send their clips as told. */
const planner = async (lanes: Record<string, { modalities: Channel[]; forms: ClipForms }>) => {
  const store = createFileObjectStore({ root: temporaryFolder() });
  const contract = {
    v: 1,
    name: 'demo',
    benchmark: {
      kind: 'fake',
      id: 'b',
      interfaces: ['i'],
      taskCount: 1,
      taskIdsSha256: '',
      mediaSha256: 'x',
    },
    lanes: Object.entries(lanes).map(([id, { modalities }]) => laneContract(id, modalities)),
    reuseIdenticalRequests: false,
  };
  const settings = {
    v: 1,
    run,
    seed: 1,
    taskIds: ['t'],
    budgetMicroUsd: null,
    lanes: Object.keys(lanes).map(laneSettings),
    judge: null,
  };
  const media = Object.fromEntries(
    Object.keys(contents).map((file) => [file, hashOf(file as keyof typeof contents)]),
  );
  await store.put(keys.run.contract(run), JSON.stringify({ hash: 'h', contract }));
  await store.put(keys.run.settings(run), JSON.stringify(settings));
  await store.put(keys.benchmark.input('b', 'media.json'), JSON.stringify(media));
  const planSweep = createPlanSweep({
    store: scopeObjectStore(store, scopes['plan-sweep']),
    benchmarkOf: () => benchmark,
    queueUrl: (queue) => queue,
    workersOf: () => null,
    clipFormsOf: ({ id }) => lanes[id]!.forms,
    clipsAtOnce: 3,
  });
  return {
    store,
    async plan(retryErrors = false) {
      const { media: planned } = await planSweep({ run, retryErrors });
      const text = (await store.getText(planned.pendingKey))!;
      const rows = text.split('\n').filter((line) => line !== '');
      expect(planned).toMatchObject({ pending: rows.length, maxConcurrency: 3 });
      return rows.map((row): ClipToPrepare => clipToPrepare.parse(JSON.parse(row)));
    },
    record: (clip: ClipToPrepare, record: object) =>
      store.put(
        keys.derived.record(clip.clip.sha256, recipeId(clip.form)),
        JSON.stringify({ v: 1, recipe: recipeId(clip.form), tool: 't', ...record }),
      ),
  };
};
const names = (clips: readonly ClipToPrepare[]) =>
  clips.map(({ clip, form }) => `${clip.path} ${form.kind}`).toSorted();
const forms: ClipForms = {
  video: { kind: 'video', maxSide: 768, fps: 2 },
  audio: { kind: 'wav' },
  mux: false,
};

describe('the clips of a sweep', () => {
  it('are none where all go out as they are', async () => {
    const { plan } = await planner({ plain: { modalities: ['V', 'A'], forms: asTheyAre } });

    expect(await plan()).toEqual([]);
  });

  it('are each content in each form once, however many lanes and requests need it', async () => {
    const { plan } = await planner({
      one: { modalities: ['V', 'A'], forms },
      other: { modalities: ['V', 'A'], forms },
      frames: {
        modalities: ['V', 'A'],
        forms: { ...forms, video: { kind: 'frames', maxSide: 768, fps: 2 } },
      },
    });

    expect(names(await plan())).toEqual([
      'a.mp4 frames',
      'a.mp4 video',
      'a.wav wav',
      'b.mp4 frames',
      'b.mp4 video',
    ]);
  });

  it('leave out the channels that a lane does not have', async () => {
    const { plan } = await planner({ eyes: { modalities: ['V'], forms: { ...forms, mux: true } } });

    expect(names(await plan())).toEqual(['a.mp4 video', 'b.mp4 video']);
  });

  it('become one file where a message has both media, and keep their own form where it has one', async () => {
    const { plan } = await planner({ omni: { modalities: ['V', 'A'], forms: { ...forms, mux: true } } });

    const clips = await plan();

    expect(names(clips)).toEqual(['a.mp4 video-with-sound', 'b.mp4 video']);
    expect(clips.find(({ form }) => form.kind === 'video-with-sound')!.form).toEqual({
      kind: 'video-with-sound',
      maxSide: 768,
      fps: 2,
      sound: { path: 'a.wav', sha256: hashOf('a.wav') },
    });
  });
});

describe('the clips that a start has to make', () => {
  const made = (name: string) => ({
    status: 'made',
    mime: 'video/mp4',
    files: [{ name, bytes: 1, sha256: '9'.repeat(64) }],
    seconds: 1,
    width: 2,
    height: 2,
  });

  it('are those that are not there whole', async () => {
    const { plan, record, store } = await planner({ omni: { modalities: ['V', 'A'], forms } });
    const [first, second, third] = await plan();
    await record(first!, made('1.mp4'));
    await store.put(keys.derived.file(first!.clip.sha256, recipeId(first!.form), '1.mp4'), 'x');
    await record(second!, { status: 'same', bytes: 1 });
    // Its file was cleared away.
    await record(third!, made('3.mp4'));

    expect(await plan()).toEqual([third]);
  });

  it('are not those that could not be made, unless errors are asked for again', async () => {
    const { plan, record } = await planner({ eyes: { modalities: ['V'], forms } });
    const [first, second] = await plan();
    await record(first!, { status: 'unusable', reason: 'it has no picture' });

    expect(await plan()).toEqual([second]);
    expect(await plan(true)).toEqual([first, second]);
  });

  it('are none for a run that was planned before clips had forms', async () => {
    const { plan, store } = await planner({ eyes: { modalities: ['V'], forms } });
    await plan();
    await store.delete(keys.run.clips(run));

    expect(await plan()).toEqual([]);
  });
});
