import { type DerivedRecord, derivedRecord } from '../contracts/media.ts';
import { type ClipForm, recipeId } from '../domain/media.ts';
import { errorNames, TurnsweepError } from '../errors.ts';
import { keys } from '../keys.ts';
import type { ClipSource, LoadedClip } from '../ports/model-client.ts';
import type { ObjectStore } from '../ports/object-store.ts';
import { readStored } from './stored-json.ts';

/** Encoded clips in memory at most, in bytes: the clips of a group are asked for again and again. */
const usualCacheBytes = 64 * 1024 * 1024;
const recordsKept = 4096;
/** Clips read at a time: a request may have hundreds, and their raw bytes are only needed until they are encoded. */
const readAtOnce = 8;

export const extensionOf = (path: string): string =>
  /\.([A-Za-z0-9]+)$/.exec(path)?.[1]?.toLowerCase() ?? 'bin';

const mimes: Readonly<Record<string, string>> = {
  mp4: 'video/mp4',
  webm: 'video/webm',
  mov: 'video/quicktime',
  mkv: 'video/x-matroska',
  wav: 'audio/wav',
  mp3: 'audio/mpeg',
  flac: 'audio/flac',
  ogg: 'audio/ogg',
  jpg: 'image/jpeg',
  png: 'image/png',
};

/** Media type by file name; what is not known is the benchmark's usual form. */
const mimeOf = (type: 'audio' | 'video', extension: string): string =>
  mimes[extension] ?? (type === 'audio' ? 'audio/wav' : 'video/mp4');

export interface ClipSourceOptions {
  store: Pick<ObjectStore, 'getBytes' | 'getText'>;
  /** Address at which a provider can fetch what is under a key; null where nobody can fetch from us. */
  urlOf: ((key: string) => Promise<string>) | null;
  cacheBytes?: number;
}

/** Runs so many tasks at a time, the others in the order in which they came. */
const takingTurns = (atOnce: number) => {
  let free = atOnce;
  const waiting: (() => void)[] = [];
  return async <T>(task: () => Promise<T>): Promise<T> => {
    if (free > 0) free -= 1;
    else await new Promise<void>((resolve) => waiting.push(resolve));
    try {
      return await task();
    } finally {
      const next = waiting.shift();
      if (next === undefined) free += 1;
      else next();
    }
  };
};

interface StoredFile {
  key: string;
  mime: string;
  /** Null where only reading it tells. */
  bytes: number | null;
}

/**
 * Clips by content: originals from the store's `media/` keys, forms of them from `derived/`, base64-encoded, with the
 * latest kept in memory. Throws `MediaUnusable` for a clip that could not be made in the wanted form.
 */
export const createClipSource = ({
  store,
  urlOf,
  cacheBytes = usualCacheBytes,
}: ClipSourceOptions): ClipSource => {
  const cache = new Map<string, string>();
  let held = 0;
  const records = new Map<string, Promise<DerivedRecord>>();
  const inTurn = takingTurns(readAtOnce);
  const encodedOf = async (key: string, path: string): Promise<string> => {
    const cached = cache.get(key);
    if (cached !== undefined) return cached;
    return inTurn(() => readAndEncode(key, path));
  };
  const readAndEncode = async (key: string, path: string): Promise<string> => {
    // Another call may have read it while this one waited.
    const cached = cache.get(key);
    if (cached !== undefined) return cached;
    const bytes = await store.getBytes(key);
    if (bytes === null) {
      records.clear();
      throw new TurnsweepError(errorNames.objectMissing, 'a clip is missing', {
        where: path,
        remedy: 'run again: what is made of clips is made anew',
      });
    }
    const encoded = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64');
    if (!cache.has(key)) held += encoded.length;
    cache.set(key, encoded);
    for (const [oldest, value] of cache) {
      if (held <= cacheBytes) break;
      cache.delete(oldest);
      held -= value.length;
    }
    return encoded;
  };

  const recordOf = (sha256: string, form: ClipForm, path: string): Promise<DerivedRecord> => {
    const key = keys.derived.record(sha256, recipeId(form));
    const known = records.get(key);
    if (known !== undefined) return known;
    const record = readStored(store, key, derivedRecord).then(
      (found) => found ?? Promise.reject(unprepared(path)),
    );
    records.set(key, record);
    // A clip that could not be made may be made for another start while this process lives.
    record.then(
      ({ status }) => status === 'unusable' && records.delete(key),
      () => records.delete(key),
    );
    if (records.size > recordsKept) records.delete(records.keys().next().value!);
    return record;
  };

  const filesOf = async (clip: Verified, form: ClipForm | null): Promise<StoredFile[]> => {
    const extension = extensionOf(clip.path);
    const original = { key: keys.media(clip.sha256, extension), mime: mimeOf(clip.type, extension) };
    if (form === null) return [{ ...original, bytes: null }];
    const record = await recordOf(clip.sha256, form, clip.path);
    if (record.status === 'same') return [{ ...original, bytes: record.bytes }];
    if (record.status === 'unusable') {
      const what = `a clip cannot be sent as ${form.kind}: ${record.reason}`;
      throw new TurnsweepError(errorNames.mediaUnusable, what, { where: clip.path });
    }
    return record.files.map(({ name, bytes }) => ({
      key: keys.derived.file(clip.sha256, record.recipe, name),
      mime: record.mime,
      bytes,
    }));
  };

  const loadFile = async (
    file: StoredFile,
    path: string,
    bytesAtMost: number | null,
  ): Promise<LoadedClip> => {
    const { key, mime } = file;
    const isSmall = (bytes: number) => bytesAtMost === null || bytes <= bytesAtMost;
    if (bytesAtMost !== 0 && (file.bytes === null || isSmall(file.bytes))) {
      const base64 = await encodedOf(key, path);
      if (file.bytes !== null || isSmall(Buffer.byteLength(base64, 'base64'))) {
        return { type: 'inline', mime, base64 };
      }
    }
    if (urlOf !== null) return { type: 'url', mime, url: await urlOf(key) };
    throw new TurnsweepError(errorNames.usage, `a clip of more than ${bytesAtMost} bytes has to be fetched`, {
      where: path,
      remedy: `lower settings.videoMaxSide or settings.fps, run on AWS, or serve the clips and set ${mediaUrlVariable}`,
    });
  };

  return {
    givesUrls: urlOf !== null,
    async bytesOf(clip, form) {
      const files = await filesOf(verified(clip), form);
      return files.reduce<number | null>(
        (sum, { bytes }) => (sum === null || bytes === null ? null : sum + bytes),
        0,
      );
    },
    async load(clip, { form, inlineBytesAtMost }) {
      const files = await filesOf(verified(clip), form);
      return Promise.all(files.map((file) => loadFile(file, clip.path, inlineBytesAtMost)));
    },
  };
};

type Verified = Parameters<ClipSource['load']>[0] & { sha256: string };

const verified = (clip: Parameters<ClipSource['load']>[0]): Verified => {
  const { sha256 } = clip;
  if (sha256 !== null) return { ...clip, sha256 };
  throw new TurnsweepError(errorNames.objectMissing, 'a clip without verified content cannot be sent', {
    where: clip.path,
    remedy: 'set benchmark.verifyMedia to true',
  });
};

const unprepared = (path: string): TurnsweepError =>
  new TurnsweepError(errorNames.objectMissing, 'a clip has not been prepared for its provider', {
    where: path,
    remedy: "delete the run's plan/summary.json and run again: the sweep is planned anew",
  });

/** Names the address under which a run's `media/` and `derived/` can be fetched. */
export const mediaUrlVariable = 'TURNSWEEP_MEDIA_URL';

/** Addresses below a base that somebody serves; null where none is named. */
export const urlsBelow = (base: string | undefined): ClipSourceOptions['urlOf'] =>
  base === undefined || base === '' ? null : async (key) => `${base.replace(/\/+$/, '')}/${key}`;
