import {
  type ClipToPrepare,
  clipToPrepare,
  type DerivedRecord,
  derivedRecord,
} from '../../shared/contracts/media.ts';
import { type ClipForm, recipeId } from '../../shared/domain/media.ts';
import {
  faultOfOriginal,
  faultOfResult,
  faultOfRiff,
  isPlainWavContent,
  type MediaFacts,
  planMaking,
  satisfies,
} from '../../shared/domain/media-facts.ts';
import { errorNames, isNamed, TurnsweepError } from '../../shared/errors.ts';
import { keys } from '../../shared/keys.ts';
import { sha256 } from '../../shared/naming.ts';
import type { MediaTool, MediaWorkspace } from '../../shared/ports/media-tool.ts';
import type { ObjectStore } from '../../shared/ports/object-store.ts';
import { extensionOf } from '../../shared/stages/clip-source.ts';
import { readStored } from '../../shared/stages/stored-json.ts';

export interface PrepareMediaPorts {
  store: ObjectStore;
  tool: MediaTool;
}

export interface PrepareMediaResult {
  status: DerivedRecord['status'] | 'kept';
}

const mimes: Record<ClipForm['kind'], string> = {
  video: 'video/mp4',
  'video-with-sound': 'video/mp4',
  wav: 'audio/wav',
  frames: 'image/jpeg',
};

/**
 * Makes one clip in one form, once for its content: a file that has the form already is passed on unchanged, what was
 * made is looked into before it counts. A clip that cannot be had in that form is recorded with the reason, so that
 * requests with it fail before any call; it does not end the run. Throws what is wrong with the machine or the store.
 */
export const createPrepareMedia =
  ({ store, tool }: PrepareMediaPorts) =>
  async (rawInput: unknown): Promise<PrepareMediaResult> => {
    const { clip, form } = clipToPrepare.parse(rawInput);
    const recipe = recipeId(form);
    const key = keys.derived.record(clip.sha256, recipe);
    const known = await readStored(store, key, derivedRecord);
    if (known !== null && known.status !== 'unusable' && (await isWhole(store, clip.sha256, known))) {
      return { status: 'kept' };
    }
    const record = await prepare(store, tool, clip, form).catch(async (error: unknown) => {
      if (!isNamed(error, errorNames.mediaUnusable)) throw error;
      const reason = (error as TurnsweepError).message;
      return { v: 1, status: 'unusable', recipe, tool: await tool.version(), reason } as const;
    });
    const text = `${JSON.stringify(record, null, 2)}\n`;
    // Another run may have made the same clip meanwhile: then its files are the ones that count.
    if (known === null) await store.putIfAbsent(key, text);
    else await store.put(key, text);
    return { status: record.status };
  };

/** What was made may have been cleared away since, the record last. */
const isWhole = async (store: ObjectStore, clip: string, record: DerivedRecord): Promise<boolean> =>
  record.status !== 'made' ||
  (await store.tag(keys.derived.file(clip, record.recipe, record.files[0]!.name))) !== null;

const prepare = async (
  store: ObjectStore,
  tool: MediaTool,
  clip: ClipToPrepare['clip'],
  form: ClipForm,
): Promise<DerivedRecord> => {
  const content = await originalOf(store, clip);
  const recipe = recipeId(form);
  // A benchmark may have tens of thousands of these: nothing is started for them.
  if (form.kind === 'wav' && isPlainWavContent(content)) {
    return { v: 1, status: 'same', recipe, tool: 'header', bytes: content.length };
  }
  const room = await tool.open();
  try {
    const source = await bring(room, content, clip, 'original');
    const version = await tool.version();
    if (satisfies(source.facts, form)) {
      return { v: 1, status: 'same', recipe, tool: version, bytes: source.bytes };
    }
    const sound =
      form.kind === 'video-with-sound'
        ? await bring(room, await originalOf(store, form.sound), form.sound, 'sound')
        : null;
    const making = planMaking(source, sound, form);
    if (typeof making === 'string') throw unusable(making);
    const names = await room.make(making);
    if (names.length === 0) throw unusable('nothing came out of its conversion');
    const made = await room.probe(names[0]!);
    const fault = faultOfResult(made, names.length, making, source.facts, sound?.facts ?? null);
    if (fault !== null) throw unusable(fault);

    const files: (DerivedRecord & { status: 'made' })['files'] = [];
    for (const [at, name] of names.entries()) {
      const content = await room.read(name);
      if (content.length === 0) throw unusable('an empty file came out of its conversion');
      const hash = sha256(content);
      // The content is part of the name: what two makers of the same clip write never mixes.
      const stored = `${String(at + 1).padStart(6, '0')}-${hash.slice(0, 16)}.${extensionOf(name)}`;
      await store.putIfAbsent(keys.derived.file(clip.sha256, recipe, stored), content);
      files.push({ name: stored, bytes: content.length, sha256: hash });
    }
    return {
      v: 1,
      status: 'made',
      recipe,
      tool: version,
      mime: mimes[form.kind],
      files,
      seconds: source.facts.heldSeconds,
      width: making.picture?.width ?? null,
      height: making.picture?.height ?? null,
    };
  } finally {
    await room.close();
  }
};

const unusable = (reason: string): TurnsweepError => new TurnsweepError(errorNames.mediaUnusable, reason);

interface Brought {
  name: string;
  bytes: number;
  facts: MediaFacts;
}

/** Content of an original. Throws `ObjectMissing` and `ObjectDamaged`, naming the clip. */
const originalOf = async (store: ObjectStore, clip: ClipToPrepare['clip']): Promise<Uint8Array> => {
  const content = await store.getBytes(keys.media(clip.sha256, extensionOf(clip.path)));
  if (content === null) {
    throw new TurnsweepError(errorNames.objectMissing, 'a clip is missing', { where: clip.path });
  }
  if (sha256(content) !== clip.sha256) {
    throw new TurnsweepError(errorNames.objectDamaged, 'a clip has changed since it was checked', {
      where: clip.path,
      remedy: 'put back the original and run again',
    });
  }
  if (content.length === 0) throw unusable('it is empty');
  const cut = faultOfRiff(content);
  if (cut !== null) throw unusable(cut);
  return content;
};

/** Puts an original into the room and looks into it. */
const bring = async (
  room: MediaWorkspace,
  content: Uint8Array,
  clip: ClipToPrepare['clip'],
  as: string,
): Promise<Brought> => {
  const name = `${as}.${extensionOf(clip.path)}`;
  await room.put(name, content);
  const facts = await room.probe(name);
  const fault = faultOfOriginal(facts);
  if (fault !== null) throw unusable(fault);
  return { name, bytes: content.length, facts };
};
