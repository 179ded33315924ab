import type { ClipForm } from '../domain/media.ts';
import { errorNames, TurnsweepError } from '../errors.ts';
import { keys } from '../keys.ts';
import type { ClipSource } from '../ports/model-client.ts';
import type { ObjectStore } from '../ports/object-store.ts';

/** Encoded clips in memory at most, in bytes: the clips of a group are asked for again and again. */
const usualCacheBytes = 64 * 1024 * 1024;

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

/** Clips by content from the store's `media/` keys, base64-encoded, with the latest kept in memory. */
export const createClipSource = (
  store: Pick<ObjectStore, 'getBytes'>,
  cacheBytes = usualCacheBytes,
): ClipSource => {
  const cache = new Map<string, string>();
  let held = 0;
  const encodedOf = async (key: string, path: string): Promise<string> => {
    const cached = cache.get(key);
    if (cached !== undefined) return cached;
    const bytes = await store.getBytes(key);
    if (bytes === null)
      throw new TurnsweepError(errorNames.objectMissing, 'a clip is missing', { where: path });
    const encoded = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64');
    cache.set(key, encoded);
    held += encoded.length;
    for (const [oldest, value] of cache) {
      if (held <= cacheBytes) break;
      cache.delete(oldest);
      held -= value.length;
    }
    return encoded;
  };
  return {
    async load(clip, { form }) {
      if (clip.sha256 === null) {
        throw new TurnsweepError(errorNames.objectMissing, 'a clip without verified content cannot be sent', {
          where: clip.path,
          remedy: 'set benchmark.verifyMedia to true',
        });
      }
      refuseForm(form, clip.path);
      const extension = extensionOf(clip.path);
      const base64 = await encodedOf(keys.media(clip.sha256, extension), clip.path);
      return [{ type: 'inline', mime: mimeOf(clip.type, extension), base64 }];
    },
  };
};

const refuseForm = (form: ClipForm | null, path: string): void => {
  if (form === null) return;
  throw new TurnsweepError(errorNames.usage, `clips cannot be sent as ${form.kind} yet`, { where: path });
};
