import { describe, expect, it } from 'vitest';
import { createPrepareMedia } from '../../functions/prepare-media/prepare-media.ts';
import { createFileObjectStore } from '../../shared/adapters/local/file-object-store.ts';
import { scopeObjectStore } from '../../shared/adapters/local/scoped-object-store.ts';
import type { ClipForm } from '../../shared/domain/media.ts';
import { recipeId } from '../../shared/domain/media.ts';
import type { MediaFacts } from '../../shared/domain/media-facts.ts';
import { errorNames, TurnsweepError } from '../../shared/errors.ts';
import { keys } from '../../shared/keys.ts';
import { sha256 } from '../../shared/naming.ts';
import type { MediaTool } from '../../shared/ports/media-tool.ts';
import { scopes } from '../../shared/scopes.ts';
import { collect } from '../support/collect.ts';
import { temporaryFolder } from '../support/command-line.ts';
import { wavFile } from '../support/wav.ts';

const picture = (frames: number, seconds: number, rate: string) =>
  ({
    kind: 'picture',
    index: 0,
    codec: 'h264',
    pixelFormat: 'yuv420p',
    width: 640,
    height: 360,
    shownWidth: 640,
    shownHeight: 360,
    isTurned: false,
    rate,
    hasConstantRate: true,
    frames,
    seconds,
  }) as const;
const file = (streams: MediaFacts['streams'], seconds = 3): MediaFacts => ({
  container: 'mov,mp4',
  claimedSeconds: seconds,
  heldSeconds: seconds,
  streams,
});
/** Three seconds at 30 and at 2 frames a second. */
const original = file([picture(90, 3, '30/1')]);
const sampled = file([picture(6, 3, '2/1')]);
const silent: ClipForm = { kind: 'video', maxSide: 768, fps: 2 };

/** A stage whose tool finds and makes what the test says. */
const stage = async (
  changes: {
    content?: string | Uint8Array;
    facts?: MediaFacts | TurnsweepError;
    made?: readonly { content: string; facts: MediaFacts }[];
    makeFails?: TurnsweepError;
  } = {},
) => {
  const { content = 'a video', facts = original, makeFails } = changes;
  const made = changes.made ?? [{ content: 'a silent video', facts: sampled }];
  const seen = { open: 0, closed: 0, made: 0 };
  const tool: MediaTool = {
    version: async () => 'tool 1',
    open: async () => {
      seen.open += 1;
      const files = new Map<string, { content: Uint8Array; facts: MediaFacts | TurnsweepError }>();
      return {
        put: async (name, bytes) => void files.set(name, { content: bytes, facts }),
        probe: async (name) => {
          const found = files.get(name)!.facts;
          if (found instanceof TurnsweepError) throw found;
          return found;
        },
        make: async () => {
          seen.made += 1;
          if (makeFails !== undefined) throw makeFails;
          for (const [at, one] of made.entries()) {
            files.set(`made-${at}.mp4`, { content: Buffer.from(one.content), facts: one.facts });
          }
          return made.map((_, at) => `made-${at}.mp4`);
        },
        read: async (name) => files.get(name)!.content,
        close: async () => {
          seen.closed += 1;
        },
      };
    },
  };
  const store = createFileObjectStore({ root: temporaryFolder() });
  const clip = { path: 'data/clip.mp4', sha256: sha256(content) };
  await store.put(keys.media(clip.sha256, 'mp4'), content);
  const prepareMedia = createPrepareMedia({
    store: scopeObjectStore(store, scopes['prepare-media']),
    tool,
  });
  return {
    store,
    seen,
    clip,
    prepare: (form: ClipForm = silent) => prepareMedia({ clip, form }),
    record: async (form: ClipForm = silent) =>
      JSON.parse((await store.getText(keys.derived.record(clip.sha256, recipeId(form))))!),
    derived: () => collect(store.list('derived/')),
  };
};

describe('a clip', () => {
  it('is made once, with its files named by their content', async () => {
    const { prepare, record, derived, seen, store, clip } = await stage();

    const statuses = [await prepare(), await prepare()];

    expect(statuses).toEqual([{ status: 'made' }, { status: 'kept' }]);
    expect(seen).toEqual({ open: 1, closed: 1, made: 1 });
    const hash = sha256('a silent video');
    const name = `000001-${hash.slice(0, 16)}.mp4`;
    expect(await record()).toEqual({
      v: 1,
      status: 'made',
      recipe: 'video-768px-2fps-r1',
      tool: 'tool 1',
      mime: 'video/mp4',
      files: [{ name, bytes: 14, sha256: hash }],
      seconds: 3,
      width: 640,
      height: 360,
    });
    const folder = `derived/${clip.sha256}/video-768px-2fps-r1/`;
    expect(await derived()).toEqual([`${folder}${name}`, `${folder}made.json`]);
    expect(await store.getText(`${folder}${name}`)).toBe('a silent video');
  });

  it('is made anew where its files were cleared away', async () => {
    const { prepare, record, store, clip } = await stage();
    await prepare();
    const [{ name }] = (await record()).files;
    await store.delete(keys.derived.file(clip.sha256, recipeId(silent), name));

    expect(await prepare()).toEqual({ status: 'made' });
  });

  it('that has the form already is recorded as the same, and nothing is made', async () => {
    const { prepare, record, seen, derived } = await stage({ facts: sampled });

    expect(await prepare()).toEqual({ status: 'same' });
    expect(await prepare()).toEqual({ status: 'kept' });
    expect(seen).toEqual({ open: 1, closed: 1, made: 0 });
    expect(await record()).toMatchObject({ status: 'same', bytes: 'a video'.length });
    expect(await derived()).toHaveLength(1);
  });
});

describe('sound', () => {
  const form: ClipForm = { kind: 'wav' };

  it('in its form by its own header is the same without a look by the tool', async () => {
    const { prepare, record, seen } = await stage({ content: wavFile(Buffer.from([1, 2, 3, 4])) });

    expect(await prepare(form)).toEqual({ status: 'same' });
    expect(await prepare(form)).toEqual({ status: 'kept' });
    expect(seen).toEqual({ open: 0, closed: 0, made: 0 });
    expect(await record(form)).toEqual({
      v: 1,
      status: 'same',
      recipe: 'wav-16khz-mono-r1',
      tool: 'header',
      bytes: 48,
    });
  });

  it('of another rate is looked into', async () => {
    const found = {
      kind: 'sound',
      index: 0,
      codec: 'pcm_s16le',
      sampleRate: 24_000,
      channels: 1,
      seconds: 3,
    };
    const made = { ...found, sampleRate: 16_000 };
    const { prepare, seen } = await stage({
      content: wavFile(Buffer.from([1, 2, 3, 4]), { samplesPerSecond: 24_000 }),
      facts: { ...file([found as MediaFacts['streams'][number]]), container: 'wav' },
      made: [
        {
          content: 'sound',
          facts: { ...file([made as MediaFacts['streams'][number]]), container: 'wav' },
        },
      ],
    });

    expect(await prepare(form)).toEqual({ status: 'made' });
    expect(seen).toEqual({ open: 1, closed: 1, made: 1 });
  });
});

describe('a clip that cannot be used', () => {
  const broken = new TurnsweepError(errorNames.mediaUnusable, 'the tool cannot read it');

  it.each([
    ['the tool cannot read it', { facts: broken }],
    [
      'the tool cannot make it',
      { makeFails: new TurnsweepError(errorNames.mediaUnusable, 'the tool cannot make it') },
    ],
    ['it is empty', { content: '' }],
    ['it has no picture', { facts: file([]) }],
    [
      'it is cut short: 1.0 s of 9.0 s are there',
      { facts: { ...sampled, claimedSeconds: 9, heldSeconds: 1 } },
    ],
    ['nothing came out of its conversion', { made: [] }],
    ['an empty file came out of its conversion', { made: [{ content: '', facts: sampled }] }],
    [
      '2 frames came out where 6.0 were expected',
      { made: [{ content: 'x', facts: file([picture(2, 1, '2/1')]) }] },
    ],
  ])('is recorded with the reason, and its room is cleared: %s', async (reason, changes) => {
    const { prepare, record, seen, derived } = await stage(changes);

    expect(await prepare()).toEqual({ status: 'unusable' });
    expect(await record()).toEqual({
      v: 1,
      status: 'unusable',
      recipe: 'video-768px-2fps-r1',
      tool: 'tool 1',
      reason,
    });
    expect(await derived()).toHaveLength(1);
    expect(seen.closed).toBe(seen.open);
  });

  it('may be had later', async () => {
    const { prepare, record, clip, store } = await stage();
    const unusable = { v: 1, status: 'unusable', recipe: recipeId(silent), tool: 'tool 0', reason: 'no' };
    await store.put(keys.derived.record(clip.sha256, recipeId(silent)), JSON.stringify(unusable));

    expect(await prepare()).toEqual({ status: 'made' });
    expect(await record()).toMatchObject({ status: 'made', tool: 'tool 1' });
  });
});

describe('what is wrong with the machine', () => {
  it.each([
    ['a missing program', new TurnsweepError(errorNames.usage, 'ffmpeg is missing'), 'UsageWrong'],
    ['a full disk', new TurnsweepError(errorNames.mediaToolFailed, 'no room'), 'MediaToolFailed'],
  ])('is no fault of the clip: %s', async (_, makeFails, name) => {
    const { prepare, derived, seen } = await stage({ makeFails });

    await expect(prepare()).rejects.toMatchObject({ name });
    expect(await derived()).toEqual([]);
    expect(seen.closed).toBe(1);
  });

  it('is a clip that has gone or has changed', async () => {
    const gone = await stage();
    await gone.store.delete(keys.media(gone.clip.sha256, 'mp4'));
    await expect(gone.prepare()).rejects.toMatchObject({ name: 'ObjectMissing', where: 'data/clip.mp4' });

    const changed = await stage();
    await changed.store.put(keys.media(changed.clip.sha256, 'mp4'), 'another video');
    await expect(changed.prepare()).rejects.toMatchObject({ name: 'ObjectDamaged', where: 'data/clip.mp4' });
  });

  it('is a message of another shape', async () => {
    const { clip, store } = await stage();
    const prepareMedia = createPrepareMedia({ store, tool: {} as MediaTool });

    await expect(prepareMedia({ clip, form: { kind: 'film' } })).rejects.toThrow(/kind/);
    await expect(prepareMedia({ clip: { ...clip, sha256: '../x' }, form: silent })).rejects.toThrow(/sha256/);
  });
});
