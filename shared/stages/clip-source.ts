import { errorNames, TurnsweepError } from '../errors.ts';
import { keys } from '../keys.ts';
import type { ClipSource } from '../ports/model-client.ts';
import type { ObjectStore } from '../ports/object-store.ts';

/** Encoded clips in memory at most, in bytes: the clips of a group are asked for again and again. */
const usualCacheBytes = 64 * 1024 * 1024;

export const extensionOf = (path: string): string =>
  /\.([A-Za-z0-9]+)$/.exec(path)?.[1]?.toLowerCase() ?? 'bin';

/** Clips by content from the store's `media/` keys, base64-encoded, with the latest kept in memory. */
export const createClipSource = (
  store: Pick<ObjectStore, 'getBytes'>,
  cacheBytes = usualCacheBytes,
): ClipSource => {
  const cache = new Map<string, string>();
  let held = 0;
  return {
    async base64(clip) {
      if (clip.sha256 === null) {
        throw new TurnsweepError(errorNames.objectMissing, 'a clip without verified content cannot be sent', {
          where: clip.path,
          remedy: 'set benchmark.verifyMedia to true',
        });
      }
      const key = keys.media(clip.sha256, extensionOf(clip.path));
      const cached = cache.get(key);
      if (cached !== undefined) return cached;
      const bytes = await store.getBytes(key);
      if (bytes === null)
        throw new TurnsweepError(errorNames.objectMissing, 'a clip is missing', { where: clip.path });
      const encoded = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64');
      cache.set(key, encoded);
      held += encoded.length;
      for (const [oldest, value] of cache) {
        if (held <= cacheBytes) break;
        cache.delete(oldest);
        held -= value.length;
      }
      return encoded;
    },
  };
};
