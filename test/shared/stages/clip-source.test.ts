import { describe, expect, it } from 'vitest';
import { createFileObjectStore } from '../../../shared/adapters/local/file-object-store.ts';
import type { DerivedRecord } from '../../../shared/contracts/media.ts';
import { type ClipForm, recipeId } from '../../../shared/domain/media.ts';
import { keys } from '../../../shared/keys.ts';
import type { ClipSource } from '../../../shared/ports/model-client.ts';
import type { ObjectStore } from '../../../shared/ports/object-store.ts';
import { type ClipSourceOptions, createClipSource, urlsBelow } from '../../../shared/stages/clip-source.ts';
import { temporaryFolder } from '../../support/command-line.ts';

const sha256 = 'c'.repeat(64);
const clip = { type: 'video', path: 'data/clip.webm', sha256 } as const;
const form: ClipForm = { kind: 'frames', maxSide: 768, fps: 2 };
const recipe = recipeId(form);
const original = 'ten bytes!';
const made: DerivedRecord = {
  v: 1,
  status: 'made',
  recipe,
  tool: 'ffmpeg version 5',
  mime: 'image/jpeg',
  files: [
    { name: '000001-a.jpg', bytes: 5, sha256 },
    { name: '000002-b.jpg', bytes: 7, sha256 },
  ],
  seconds: 1,
  width: 2,
  height: 2,
};

/** A store with an original and what a record tells of it; and a source that reads from it. */
const sourceWith = async (
  record: DerivedRecord | null,
  urlOf: ClipSourceOptions['urlOf'] = null,
): Promise<{ source: ClipSource; store: ObjectStore }> => {
  const store = createFileObjectStore({ root: temporaryFolder() });
  await store.put(keys.media(sha256, 'webm'), original);
  if (record !== null) await store.put(keys.derived.record(sha256, recipe), JSON.stringify(record));
  await store.put(keys.derived.file(sha256, recipe, '000001-a.jpg'), 'first');
  await store.put(keys.derived.file(sha256, recipe, '000002-b.jpg'), 'second!');
  return { store, source: createClipSource({ store, urlOf }) };
};
const base64 = (text: string) => Buffer.from(text).toString('base64');
const urlOf = async (key: string) => `https://clips.example/${key}`;

describe('a clip', () => {
  it('goes out as the benchmark has it where no form is wanted', async () => {
    const { source } = await sourceWith(null);

    expect(await source.load(clip, { form: null, inlineBytesAtMost: null })).toEqual([
      { type: 'inline', mime: 'video/webm', base64: base64(original) },
    ]);
  });

  it('in a form of several files comes as all of them, in order', async () => {
    const { source } = await sourceWith(made);

    expect(await source.load(clip, { form, inlineBytesAtMost: null })).toEqual([
      { type: 'inline', mime: 'image/jpeg', base64: base64('first') },
      { type: 'inline', mime: 'image/jpeg', base64: base64('second!') },
    ]);
  });

  it('that has its form already is the original', async () => {
    const { source } = await sourceWith({ v: 1, status: 'same', recipe, tool: 't', bytes: 10 });

    expect(await source.load(clip, { form, inlineBytesAtMost: null })).toEqual([
      { type: 'inline', mime: 'video/webm', base64: base64(original) },
    ]);
  });

  it('that is larger than goes inline comes as an address', async () => {
    const { source } = await sourceWith(made, urlOf);

    const files = await source.load(clip, { form, inlineBytesAtMost: 5 });
    const [whole] = await source.load(clip, { form: null, inlineBytesAtMost: 9 });

    expect(files).toEqual([
      { type: 'inline', mime: 'image/jpeg', base64: base64('first') },
      {
        type: 'url',
        mime: 'image/jpeg',
        url: `https://clips.example/derived/${sha256}/frames-768px-2fps-r1/000002-b.jpg`,
      },
    ]);
    expect(whole).toMatchObject({ type: 'url', url: `https://clips.example/media/${sha256}.webm` });
  });

  it('is an address where nothing goes inline, without being read', async () => {
    const { source, store } = await sourceWith(made, urlOf);
    await store.delete(keys.media(sha256, 'webm'));

    expect(await source.load(clip, { form: null, inlineBytesAtMost: 0 })).toMatchObject([{ type: 'url' }]);
  });

  it('that nobody can fetch from here is refused, with a way out', async () => {
    const { source } = await sourceWith(made);

    await expect(source.load(clip, { form, inlineBytesAtMost: 5 })).rejects.toMatchObject({
      name: 'UsageWrong',
      message: expect.stringMatching(/more than 5 bytes.*data\/clip\.webm.*TURNSWEEP_MEDIA_URL/),
    });
  });

  it('tells its size without being read, as far as that is known', async () => {
    const { source, store } = await sourceWith(made, urlOf);
    await store.delete(keys.derived.file(sha256, recipe, '000001-a.jpg'));

    expect(source.givesUrls).toBe(true);
    // Two files of 5 and 7 bytes.
    expect(await source.bytesOf!(clip, form)).toBe(12);
    expect(await source.bytesOf!(clip, null)).toBeNull();
    expect((await sourceWith(made)).source.givesUrls).toBe(false);
  });

  it('is one of few that are read at a time, and is read once for calls that want it later', async () => {
    const reads: string[] = [];
    let atOnce = 0;
    let most = 0;
    const source = createClipSource({
      urlOf: null,
      store: {
        getText: async () => null,
        getBytes: async (key) => {
          reads.push(key);
          atOnce += 1;
          most = Math.max(most, atOnce);
          await new Promise((resolve) => setImmediate(resolve));
          atOnce -= 1;
          return Buffer.from(key);
        },
      },
    });
    const hundred = Array.from({ length: 100 }, (_, index) => String(index).padStart(64, '0'));
    const loadAll = () =>
      Promise.all(
        hundred.map((hash) =>
          source.load(
            { type: 'audio', path: `${hash}.wav`, sha256: hash },
            { form: null, inlineBytesAtMost: null },
          ),
        ),
      );

    const files = await loadAll();
    await loadAll();

    expect(files.flat().map((file) => 'base64' in file && file.base64)).toEqual(
      hundred.map((hash) => base64(keys.media(hash, 'wav'))),
    );
    expect(reads).toHaveLength(100);
    expect(most).toBe(8);
  });

  it('that could not be made says why, and is looked at again next time', async () => {
    const { source, store } = await sourceWith({
      v: 1,
      status: 'unusable',
      recipe,
      tool: 't',
      reason: 'it has no picture',
    });

    await expect(source.load(clip, { form, inlineBytesAtMost: null })).rejects.toMatchObject({
      name: 'MediaUnusable',
      message: 'a clip cannot be sent as frames: it has no picture (data/clip.webm)',
    });
    await store.put(keys.derived.record(sha256, recipe), JSON.stringify(made));
    expect(await source.load(clip, { form, inlineBytesAtMost: null })).toHaveLength(2);
  });

  it('that was never prepared is missing, not guessed', async () => {
    const { source } = await sourceWith(null);

    await expect(source.load(clip, { form, inlineBytesAtMost: null })).rejects.toMatchObject({
      name: 'ObjectMissing',
      message: expect.stringContaining('has not been prepared'),
    });
  });

  it('without verified content is not sent', async () => {
    const { source } = await sourceWith(made);

    await expect(source.load({ ...clip, sha256: null }, { form, inlineBytesAtMost: null })).rejects.toThrow(
      /verified content/,
    );
  });
});

it('addresses below a base are its keys', async () => {
  expect(await urlsBelow('https://files.example/run/')!('media/a.mp4')).toBe(
    'https://files.example/run/media/a.mp4',
  );
  expect(urlsBelow(undefined)).toBeNull();
  expect(urlsBelow('')).toBeNull();
});
